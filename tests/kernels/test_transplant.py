"""Trees moved to other rows are trees of the prior there, and on their own rows they stay."""

import numpy as np
import pytest

from pymc_xbart.kernels import (
    cut_values,
    draw_prior_forest,
    encode,
    make_leaf_of_row,
    stump_forest,
    sum_of_trees,
    sweep,
    transplant_forest,
)
from tests.helpers import cases, inside, slow
from tests.helpers.check import check_forest

NUM_TREES = 8


def drawn(case, rng):
    forest, leaf_of_row = draw_prior_forest(case.design, case.prior, NUM_TREES, rng)
    return forest, cut_values(case.design, forest.column, forest.cut), leaf_of_row


def test_on_their_own_rows_trees_stay(rng):
    for case in cases.cases(rng, 60, max_rows=60):
        forest, cut_value, leaf_of_row = drawn(case, rng)
        moved, leaves = transplant_forest(forest, cut_value, case.design, case.prior)
        assert cases.same_forest(moved, forest)
        assert np.array_equal(leaves, leaf_of_row)


@pytest.mark.parametrize("n", [700, 2_500])
def test_on_their_own_rows_trees_that_were_grown_there_stay(rng, n):
    X = rng.standard_normal((n, 2))
    flat = np.zeros(n)
    case = inside.make_case(X, flat, flat + 1.0, alpha=0.99, beta=0.2)
    grown, leaf_of_row, _ = sweep(
        *(stump_forest(NUM_TREES), make_leaf_of_row(NUM_TREES, n), flat, flat + 1.0),
        *(case.design, case.prior, case.work, rng),
    )
    assert grown.column.size > 10 * NUM_TREES
    cut_value = cut_values(case.design, grown.column, grown.cut)
    moved, leaves = transplant_forest(grown, cut_value, case.design, case.prior)
    assert slow.as_tree(moved, 0) == slow.as_tree(grown, 0)
    f = sum_of_trees(grown, leaf_of_row)
    np.testing.assert_array_equal(sum_of_trees(moved, leaves), f)


def test_on_their_own_rows_trees_stay_where_codes_share_buckets(rng):
    X = rng.standard_normal((2_500, 2))
    case = inside.make_case(X, alpha=0.99, beta=0.2, num_cutpoints=5)
    forest, cut_value, leaf_of_row = drawn(case, rng)
    assert forest.column.size > 10 * NUM_TREES
    moved, leaves = transplant_forest(forest, cut_value, case.design, case.prior)
    assert cases.same_forest(moved, forest)
    assert np.array_equal(leaves, leaf_of_row)


def options_of(problem, tree, rows, depth=0):
    """Whether every split of a tree is one that its prior allows."""
    if tree == slow.LEAF:
        return True
    column, cut, left, right = tree
    if cut not in slow.available_cuts(problem, rows, depth).get(column, []):
        return False
    sides = slow.partition(problem.codes[column], cut, rows)
    return all(
        options_of(problem, child, side, depth + 1)
        for child, side in zip((left, right), sides, strict=True)
    )


def test_on_other_rows_they_are_trees_of_the_prior(rng):
    num_smaller = 0
    for case in cases.cases(rng, 60, max_rows=60):
        forest, cut_value, _ = drawn(case, rng)
        X = cases.random_X(rng, int(rng.integers(1, 40)), case.num_columns)
        other = inside.make_case(X, **case.prior._asdict())
        moved, leaves = transplant_forest(forest, cut_value, other.design, other.prior)
        check_forest(moved, leaves, other.design, other.prior, X)
        for tree in range(NUM_TREES):
            assert options_of(other.problem, slow.as_tree(moved, tree), other.problem.all_rows)
        num_smaller += moved.column.size < forest.column.size
    assert num_smaller > 10


def test_among_more_rows_f_stays_close_at_the_old_ones(rng):
    X = rng.standard_normal((400, 3))
    case = inside.make_case(X[:200], alpha=0.9, beta=1.0, num_cutpoints=50)
    forest, cut_value, leaf_of_row = drawn(case, rng)
    all_rows = case.prior._replace(num_cutpoints=400)
    moved, leaves = transplant_forest(forest, cut_value, encode(X), all_rows)
    f, g = sum_of_trees(forest, leaf_of_row), sum_of_trees(moved, leaves)[:200]
    # Every cut is a candidate among all values of its column; only those of small nodes, where a
    # row lies on the cut's other side, can differ.
    assert np.array_equal(f, g)


def test_a_node_without_cuts_becomes_a_leaf_of_the_mean():
    case = inside.make_case(np.array([[0.0], [1.0]]), num_cutpoints=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        forest, cut_value, _ = drawn(case, rng)
        constant = inside.make_case(np.array([[0.0], [0.0]]), num_cutpoints=1)
        moved, leaves = transplant_forest(forest, cut_value, constant.design, constant.prior)
        assert np.array_equal(moved.column, np.full(NUM_TREES, -1))
        assert not leaves.any()
        for tree in range(NUM_TREES):
            nodes = slice(*forest.tree_start[tree : tree + 2])
            values = forest.value[nodes][forest.column[nodes] == -1]
            assert moved.value[tree] == pytest.approx(values.mean())
