"""Numbers of leaves get wider where a tree needs it, and nothing else depends on it."""

import numba
import numpy as np
import pytest

from pymc_xbart.kernels import (
    SideDraws,
    column_choice,
    draw_prior_forest,
    find_leaves,
    grow_successor,
    make_leaf_of_row,
    propose_forest,
    redraw_successor,
    stump_forest,
    sum_of_trees,
    sweep,
)
from pymc_xbart.kernels.leaf_numbers import NARROW, WIDE, most_nodes, put_leaf
from tests.helpers import cases, check, inside

N = 400
TINY = np.uint8


def steep_case(rng, noise=0.01, **prior_fields):
    """y tells all rows apart, so that trees have as many leaves as there are rows."""
    X = rng.standard_normal((N, 2))
    h = np.full(N, noise**-2)
    return inside.make_case(X, h * (X[:, 0] + X[:, 1]), h, **({"leaf_var": 1.0} | prior_fields))


def outgrows(forest):
    return np.diff(forest.tree_start).max() > most_nodes(TINY)


def tiny_leaf_of_row(num_trees):
    """Numbers so narrow that trees over few rows outgrow them."""
    return np.zeros((num_trees, N), TINY)


SWEEPS = {
    "uncorrected": {},
    "corrected": {"is_corrected": True},
    "redrawn": {"is_corrected": True, "num_regrown": 0},
}


def sweeps(case, leaf_of_row, num_sweeps, **how):
    """Everything that some sweeps give, for trees that stand in `leaf_of_row` at first."""
    rng = np.random.default_rng(5)
    forest, found, dtypes = stump_forest(leaf_of_row.shape[0]), [], []
    for _ in range(num_sweeps):
        g = case.g - case.h * sum_of_trees(forest, leaf_of_row)
        forest, leaf_of_row, info = sweep(
            *(forest, leaf_of_row, g, case.h, case.design, case.prior, case.work, rng), **how
        )
        found += [*forest, leaf_of_row.copy(), *info, rng.random(1)]
        dtypes.append(leaf_of_row.dtype)
    check.check_forest(forest, leaf_of_row, case.design, case.prior)
    return found, dtypes, forest


@pytest.mark.parametrize("how", SWEEPS)
def test_a_sweep_that_runs_out_of_numbers_goes_the_same_way_in_wider_ones(rng, how):
    case = steep_case(rng)
    # Redrawing adds about one leaf to a tree in two sweeps.
    num_trees, num_sweeps = (1, 400) if how == "redrawn" else (3, 3)
    found, dtypes, forest = sweeps(case, tiny_leaf_of_row(num_trees), num_sweeps, **SWEEPS[how])
    expected, _, _ = sweeps(
        case, tiny_leaf_of_row(num_trees).astype(WIDE), num_sweeps, **SWEEPS[how]
    )
    assert outgrows(forest)
    assert dtypes[-1] == WIDE
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_noise_and_weights_are_drawn_from_the_start_again(rng):
    """The second tree is the first to outgrow its numbers: only after the first, weights let it."""
    case = steep_case(rng)
    X = np.column_stack([rng.integers(0, 2, N), case.X[:, 0]])
    case = inside.make_case(X, case.g, case.h, leaf_var=1.0)
    results = []
    for dtype in (TINY, WIDE):
        choice = column_choice(2, mtry=1, weights=np.array([1.0, 1e-12]))
        noise_var, counts = np.array([1e-4]), np.array([0, 10**6])
        forest, leaf_of_row, _ = sweep(
            *(stump_forest(3), tiny_leaf_of_row(3).astype(dtype), case.g, case.h),
            *(case.design, case.prior, case.work, np.random.default_rng(5)),
            choice=choice,
            side=SideDraws(True, noise_var, 1e7, 1e3, True, counts),
        )
        assert leaf_of_row.dtype == WIDE
        results.append([*forest, leaf_of_row, choice.weights, noise_var, counts])
    sizes = np.diff(results[0][0])
    assert sizes[0] < most_nodes(TINY) < sizes[1]
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_numbers_stay_narrow_while_trees_are_small(rng):
    case = steep_case(rng, noise=3.0, beta=2.0)
    _, dtypes, forest = sweeps(case, tiny_leaf_of_row(3), 3)
    assert set(dtypes) == {np.dtype(TINY)}
    assert 1 < np.diff(forest.tree_start).max() <= most_nodes(TINY)


@pytest.mark.parametrize("scan", ["paper", "reversible"])
def test_so_does_a_sweep_in_one_proposal(rng, scan):
    case = steep_case(rng)
    narrow = tiny_leaf_of_row(2)
    results = []
    for leaf_of_row in (narrow, narrow.astype(WIDE)):
        forest, leaf, log_ratio, info = propose_forest(
            *(stump_forest(2), leaf_of_row, case.g, case.h, case.design, case.prior, case.work),
            np.random.default_rng(3),
            scan=scan,
        )
        assert leaf.dtype == WIDE
        assert outgrows(forest)
        results.append([*forest, leaf, log_ratio, *info])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    assert not narrow.any()  # which the old forest still needs


def test_so_do_successors_of_one_tree(rng):
    case = steep_case(rng)
    given = case.g, case.h, case.design, case.prior, case.work
    narrow = tiny_leaf_of_row(1)
    grown = [
        grow_successor(stump_forest(1), leaf, *given, np.random.default_rng(3))
        for leaf in (narrow, narrow.astype(WIDE))
    ]
    (one, leaf, *log_w), (other, other_leaf, *other_log_w) = grown
    assert outgrows(one)
    assert cases.same_forest(one, other)
    assert leaf.dtype == other_leaf.dtype == WIDE
    assert np.array_equal(leaf, other_leaf)
    assert log_w == other_log_w
    redrawn, leaf = redraw_successor(one, leaf, *given, rng)
    check.check_forest(redrawn, leaf, case.design, case.prior)


@pytest.mark.parametrize(("more", "dtype"), [(0, NARROW), (1, WIDE)])
def test_the_largest_narrow_number_is_one_less_than_their_count(more, dtype):
    num_nodes = most_nodes(NARROW) + more
    leaf = np.array([num_nodes - 1, 0, 7], WIDE)
    leaf_of_row = put_leaf(make_leaf_of_row(2, 3), 1, leaf, num_nodes)
    assert leaf_of_row.dtype == dtype
    assert leaf_of_row.tolist() == [[0, 0, 0], leaf.tolist()]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="takes minutes without JIT")
def test_trees_with_too_many_nodes_for_two_bytes(rng):
    """From the prior, where they are put, and where their leaves are found."""
    X = rng.standard_normal((40_000, 2))
    case = inside.make_case(X, alpha=0.9999, beta=0.0)
    forest, leaf_of_row = draw_prior_forest(case.design, case.prior, 1, rng)
    assert np.diff(forest.tree_start).max() > most_nodes(NARROW)
    assert leaf_of_row.dtype == WIDE
    found = find_leaves(forest, case.design.codes)
    assert found.dtype == WIDE
    assert np.array_equal(found, leaf_of_row)
