import math

import numpy as np
import pytest

from pymc_xbart.kernels import draw_prior_forest, encode
from pymc_xbart.kernels.ordered import MAX_ORDERED
from tests.helpers import cases, check, inside, law, slow


def draw(case, num_trees, rng):
    return draw_prior_forest(case.design, case.prior, num_trees, rng)


def test_drawn_trees_are_sound(rng):
    for case in cases.cases(rng, 100):
        forest, leaf_of_row = draw(case, 4, rng)
        check.check_forest(forest, leaf_of_row, case.design, case.prior, case.X)
        check.check_same_rows_stay_together(case.X, leaf_of_row)


def test_every_drawn_tree_is_possible(rng):
    """And every cut one that growing the tree would have considered."""
    for case in cases.cases(rng, 60):
        forest, _ = draw(case, 3, rng)
        for tree in range(3):
            nested = slow.as_tree(forest, tree)
            assert slow.tree_log_prob(case.problem, nested, slow.prior_options) > -math.inf
            assert inside.tree_log_prob(case, nested) > -math.inf


@pytest.mark.parametrize("n", [700, MAX_ORDERED, 1500])
@pytest.mark.parametrize("num_cutpoints", [1, 3, 7, 100])
def test_trees_over_many_codes_are_possible(rng, num_cutpoints, n):
    """In 700 rows each is told apart, in 1500 neighbours share buckets."""
    X = np.column_stack([rng.standard_normal(n), cases.random_X(rng, n, 1)])
    case = inside.make_case(X, num_cutpoints=num_cutpoints, alpha=0.97, beta=0.2, max_depth=5)
    forest, leaf_of_row = draw(case, 3, rng)
    check.check_forest(forest, leaf_of_row, case.design, case.prior, X)
    for tree in range(3):
        nested = slow.as_tree(forest, tree)
        assert slow.tree_log_prob(case.problem, nested, slow.prior_options) > -math.inf
        assert inside.tree_log_prob(case, nested) > -math.inf


def test_leaf_values_are_normal_with_variance_leaf_var(rng):
    case = inside.make_case(rng.standard_normal((12, 2)), leaf_var=0.3)
    forest, _ = draw(case, 800, rng)
    values = forest.value[forest.column == -1]
    law.assert_cdf(values, lambda t: slow.normal_cdf(t / math.sqrt(0.3)), false_fail=1e-6)
    assert 2 * law.cdf_limit(values.size) < 0.15


def test_that_the_check_would_catch_a_standard_deviation_for_a_variance(rng):
    case = inside.make_case(rng.standard_normal((12, 2)), leaf_var=0.3)
    forest, _ = draw(case, 800, rng)
    values = forest.value[forest.column == -1]
    with pytest.raises(AssertionError):
        law.assert_cdf(values, lambda t: slow.normal_cdf(t / 0.3), false_fail=1e-6)


def test_roots_split_with_probability_alpha(rng):
    case = inside.make_case(rng.standard_normal((12, 2)), alpha=0.6)
    forest, _ = draw(case, 4000, rng)
    roots = forest.column[forest.tree_start[:-1]]
    expected = {-1: math.log(0.4), 0: math.log(0.3), 1: math.log(0.3)}
    law.assert_law(roots.tolist(), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, 4000) < 0.08


def test_constant_columns_zero_weights_and_max_depth_zero_leave_single_leaves(rng):
    X = rng.standard_normal((12, 2))
    for case in (
        inside.make_case(np.ones((12, 2))),
        inside.make_case(np.ones((1, 2))),
        inside.make_case(X, split_weights=[0.0, 0.0]),
        inside.make_case(X, max_depth=0),
        inside.make_case(X, min_samples_leaf=7),
    ):
        forest, leaf_of_row = draw(case, 20, rng)
        assert forest.tree_start.tolist() == list(range(21))
        assert not leaf_of_row.any()


def test_the_generator_is_the_only_source_of_chance(rng):
    case = cases.random_case(rng, max_rows=30)
    seed = int(rng.integers(2**32))
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must not be touched
    own_rng = np.random.default_rng(seed)
    first, leaf_of_row = draw(case, 10, own_rng)
    second, _ = draw(case, 10, own_rng)
    again, leaf_again = draw(case, 10, np.random.default_rng(seed))
    assert cases.same_forest(first, again)
    assert np.array_equal(leaf_of_row, leaf_again)
    assert not cases.same_forest(first, second)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_strictly_increasing_transforms_of_X_give_the_same_forest(rng):
    X = cases.random_X(rng, 30, 4)
    prior = inside.make_prior(4)
    seed = int(rng.integers(2**32))
    forests = [
        draw_prior_forest(encode(data), prior, 10, np.random.default_rng(seed))[0]
        for data in (X, np.arctan(X), 1e-30 * X)
    ]
    assert cases.same_forest(forests[0], forests[1])
    assert cases.same_forest(forests[0], forests[2])
