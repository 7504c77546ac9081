import numpy as np
import pytest

from pymc_xbart.kernels import (
    Forest,
    forest_values,
    make_leaf_of_row,
    make_workspace,
    stump_forest,
    sweep,
)
from tests.helpers import cases, check, inside, law, slow


class Chain:
    """A forest, the rows in its leaves, and a Normal or weighted likelihood around it."""

    def __init__(self, case, num_trees):
        self.case = case
        self.forest = stump_forest(num_trees)
        self.leaf_of_row = make_leaf_of_row(num_trees, case.num_rows)
        self.info = None

    def gradient(self):
        """g at the current forest: `case.g` belongs to f = 0."""
        f = np.empty(self.case.num_rows)
        forest_values(self.forest, self.leaf_of_row, f)
        return self.case.g - self.case.h * f

    def sweep(self, rng):
        self.forest, self.leaf_of_row, self.info = sweep(*self.arguments(), rng)

    def arguments(self):
        """Of `sweep`, the generator apart."""
        case = self.case
        g = self.gradient()
        return self.forest, self.leaf_of_row, g, case.h, case.design, case.prior, case.work


def signal_case(rng, n=50, h=None, **prior_fields):
    X = np.column_stack([rng.standard_normal(n), rng.integers(0, 2, n), cases.random_X(rng, n, 1)])
    h = np.full(n, 4.0) if h is None else h
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n)
    return inside.make_case(X, h * y, h, **({"leaf_var": 0.1} | prior_fields))


CURVATURES = {
    "equal": lambda _, n: np.full(n, 4.0),
    "whole multiples": lambda rng, n: rng.poisson(4.0, n).astype(float),
    "unequal": lambda rng, n: rng.gamma(1.0, 4.0, n),
    "with zeros": lambda rng, n: rng.gamma(1.0, 4.0, n) * (rng.random(n) < 0.7),
    "none": lambda _, n: np.zeros(n),
}


def test_forests_stay_sound_sweep_after_sweep(rng):
    for case in cases.cases(rng, 40):
        chain = Chain(case, num_trees=4)
        for _ in range(3):
            chain.sweep(rng)
            check.check_forest(chain.forest, chain.leaf_of_row, case.design, case.prior, case.X)
            check.check_same_rows_stay_together(case.X, chain.leaf_of_row)


@pytest.mark.parametrize("num_regrown", [0, 2, 4])
def test_whole_and_almost_whole_multiples_give_the_same_forests(num_regrown):
    """As a rounding error may tip a draw, seeds are fixed."""
    forests = []
    for error in (0.0, 1e-12):
        rng = np.random.default_rng(1)
        case = signal_case(rng, h=rng.poisson(4.0, 50) * (1.0 + error * rng.random(50)))
        assert (inside.weights_of(case.h) is None) == (error > 0)
        chain = Chain(case, num_trees=4)
        for _ in range(10):
            arguments = chain.arguments()
            chain.forest, chain.leaf_of_row, _ = sweep(
                *arguments, rng, is_corrected=True, num_regrown=num_regrown
            )
        forests.append(chain.forest)
    one, other = forests
    assert one.column.size > 4
    for a, b in zip(one[:-1], other[:-1], strict=True):
        assert np.array_equal(a, b)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-8, atol=1e-8)


def replay(chain, rng, num_sweeps, forget_the_old_tree=False):
    """Uniforms behind the choices and leaf values of some sweeps (see `slow.replay_sweep`)."""
    choices, values = [], []
    for _ in range(num_sweeps):
        forest, leaf_of_row = chain.forest, chain.leaf_of_row.copy()
        problem = chain.case.problem._replace(g=chain.gradient())
        chain.sweep(rng)
        if forget_the_old_tree:
            forest = forest._replace(value=np.zeros_like(forest.value))
        new = slow.replay_sweep(problem, forest, leaf_of_row, chain.forest, rng)
        choices += new[0]
        values += new[1]
    return choices, values


@pytest.mark.parametrize("curvature", CURVATURES)
def test_sweeps_draw_every_tree_given_the_others(rng, curvature):
    case = signal_case(rng, h=CURVATURES[curvature](rng, 50), num_cutpoints=7)
    chain = Chain(case, num_trees=5)
    choices, values = replay(chain, rng, num_sweeps=40)
    law.assert_uniform(choices, false_fail=1e-6)
    law.assert_uniform(values, false_fail=1e-6)
    # Sure to see: distribution functions that differ by 0.2 somewhere.
    assert 2 * law.cdf_limit(len(choices)) < 0.2
    assert 2 * law.cdf_limit(len(values)) < 0.2


def test_that_the_check_would_catch_a_tree_left_in_its_own_residual(rng):
    chain = Chain(signal_case(rng), num_trees=5)
    chain.sweep(rng)
    _, values = replay(chain, rng, num_sweeps=40, forget_the_old_tree=True)
    with pytest.raises(AssertionError):
        law.assert_uniform(values, false_fail=1e-6)


def test_sweeps_over_thousands_of_rows_draw_every_tree_given_the_others(rng):
    """Large enough that codes share buckets, and that larger children inherit their sums."""
    n = 3000
    case = signal_case(
        rng, n, h=rng.gamma(1.0, 1.0, n), num_cutpoints=3, leaf_var=0.02, min_samples_leaf=20
    )
    chain = Chain(case, num_trees=2)
    choices, values = replay(chain, rng, num_sweeps=12)
    assert len(values) > 100
    law.assert_uniform(choices, false_fail=1e-6)
    law.assert_uniform(values, false_fail=1e-6)


def test_info_counts_leaves_and_levels(rng):
    chain = Chain(signal_case(rng), num_trees=6)
    chain.sweep(rng)
    for tree in range(6):
        nested = slow.as_tree(chain.forest, tree)
        assert chain.info.num_leaves[tree] == num_leaves(nested)
        assert chain.info.depth[tree] == depth(nested)
    assert chain.info.num_leaves.dtype == chain.info.depth.dtype == np.int32


def num_leaves(tree):
    return 1 if tree == slow.LEAF else sum(map(num_leaves, tree[2:]))


def depth(tree):
    return 0 if tree == slow.LEAF else 1 + max(map(depth, tree[2:]))


def test_the_node_store_grows_as_far_as_trees_need(rng):
    n = 400
    X = rng.standard_normal((n, 2))
    h = np.full(n, 100.0)
    case = inside.make_case(X, h * 30 * rng.standard_normal(n), h, alpha=0.999, beta=0.0)
    chain = Chain(case, num_trees=3)
    assert chain.forest.column.size == 3
    chain.sweep(rng)
    assert np.diff(chain.forest.tree_start).min() > 100
    check.check_forest(chain.forest, chain.leaf_of_row, case.design, case.prior, X)
    # And back: a sweep that draws small trees returns no more nodes than they have.
    chain.case = case._replace(prior=case.prior._replace(max_depth=0))
    chain.sweep(rng)
    assert chain.forest.tree_start.tolist() == [0, 1, 2, 3]
    assert [array.size for array in chain.forest[1:]] == [3, 3, 3, 3]


@pytest.mark.parametrize("curvature", CURVATURES)
def test_only_leaf_of_row_is_overwritten(rng, curvature):
    n = 30
    case = signal_case(rng, n, h=CURVATURES[curvature](rng, n))
    chain = Chain(case, num_trees=4)
    chain.sweep(rng)
    arguments = chain.arguments()
    inputs = [*chain.forest, arguments[2], case.h, *case.design, case.prior.split_weights]
    before = [array.copy() for array in inputs]
    new, _, _ = sweep(*arguments, rng)
    for array, copy in zip(inputs, before, strict=True):
        assert np.array_equal(array, copy)
    for array in new:
        for other in (*case.work.tree, *chain.forest):
            assert not np.shares_memory(array, other)


def test_the_generator_is_the_only_source_of_chance(rng):
    case = signal_case(rng)
    seed = int(rng.integers(2**32))
    forests = []
    before = np.random.get_state()  # noqa: NPY002 - the state that must not be touched
    for _ in range(2):
        # A workspace of its own for one, one that has been used for the other.
        work = make_workspace(case.num_rows, case.num_columns, case.prior.num_cutpoints)
        chain = Chain(case._replace(work=work), num_trees=4)
        own_rng = np.random.default_rng(seed)
        state = own_rng.bit_generator.state
        for _ in range(2):
            chain.sweep(own_rng)
        assert own_rng.bit_generator.state != state
        forests.append(chain.forest)
    after = np.random.get_state()  # noqa: NPY002
    assert cases.same_forest(*forests)
    assert before[0] == after[0]
    assert np.array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    chain.sweep(np.random.default_rng(seed + 1))
    assert not cases.same_forest(chain.forest, forests[0])


def test_two_sweeps_in_a_row_use_different_numbers(rng):
    case = signal_case(rng)
    own_rng = np.random.default_rng(int(rng.integers(2**32)))
    forests = []
    for _ in range(2):
        chain = Chain(case, num_trees=4)
        chain.sweep(own_rng)
        forests.append(chain.forest)
    assert not cases.same_forest(*forests)


def test_a_forest_follows_its_data(rng):
    n = 300
    X = rng.standard_normal((n, 3))
    f = 2 * (X[:, 0] > 0.2) - X[:, 1]
    y = f + 0.3 * rng.standard_normal(n)
    h = np.full(n, 1 / 0.09)
    chain = Chain(inside.make_case(X, h * y, h, leaf_var=0.1, alpha=0.95, beta=1.25), num_trees=10)
    mean = np.zeros(n)
    for k in range(12):
        chain.sweep(rng)
        if k >= 4:
            mean += case_values(chain) / 8
    # The noise has a standard deviation of 0.3, f one of 1.4.
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.25


def case_values(chain):
    f = np.empty(chain.case.num_rows)
    forest_values(chain.forest, chain.leaf_of_row, f)
    return f


def test_stump_forests_are_zero_everywhere():
    forest = stump_forest(3)
    assert isinstance(forest, Forest)
    leaf_of_row = make_leaf_of_row(3, 4)
    case = inside.make_case(np.arange(4.0)[:, None])
    check.check_forest(forest, leaf_of_row, case.design, case.prior, case.X)
    f = np.full(4, 9.0)
    forest_values(forest, leaf_of_row, f)
    assert f.tolist() == [0.0] * 4
