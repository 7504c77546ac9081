import numpy as np
import pytest

from pymc_xbart.kernels import (
    Forest,
    cut_values,
    draw_prior_forest,
    encode,
    find_leaves,
    forest_values,
    route_codes,
    route_values,
    rows_of_leaves,
)
from pymc_xbart.kernels.route import MAX_BLENDED
from pymc_xbart.kernels.tally import FEW_NODES
from tests.helpers import cases, check, inside, slow


def random_forest(rng, num_rows=40):
    X = np.column_stack([cases.random_X(rng, num_rows, 3), rng.standard_normal(num_rows)])
    design = encode(X)
    prior = inside.make_prior(4, alpha=0.97, beta=0.2)
    return X, design, prior, *draw_prior_forest(design, prior, 6, rng)


def test_rows_reach_the_leaf_that_the_cuts_say(rng):
    for _ in range(20):
        _, design, _, forest, leaf_of_row = random_forest(rng)
        routed = np.full_like(leaf_of_row, 9999)
        route_codes(forest, design.codes, routed)
        assert np.array_equal(routed, slow.route(forest, design.codes))
        assert np.array_equal(routed, leaf_of_row)


def test_forest_values_add_up_leaf_values(rng):
    for _ in range(20):
        _, _, _, forest, leaf_of_row = random_forest(rng)
        f = np.full(40, np.nan)
        forest_values(forest, leaf_of_row, f)
        expected = slow.forest_values(forest, leaf_of_row)
        np.testing.assert_allclose(f, expected, rtol=1e-13, atol=1e-14)


def test_the_rows_of_each_leaf_are_counted(rng):
    sizes = set()
    for _ in range(20):
        _, _, _, forest, leaf_of_row = random_forest(rng, num_rows=200)
        num_nodes = np.diff(forest.tree_start)
        expected = [
            np.bincount(leaf, minlength=size)
            for leaf, size in zip(leaf_of_row, num_nodes, strict=True)
        ]
        assert np.array_equal(rows_of_leaves(forest, leaf_of_row), np.concatenate(expected))
        sizes |= set(num_nodes.tolist())
    assert min(sizes) <= FEW_NODES < max(sizes)  # both ways of counting


def new_rows(rng, X):
    """Between, on, next to and beyond the values seen."""
    seen = rng.permuted(X, axis=0)
    return np.concatenate(
        [
            seen,
            np.nextafter(seen, np.inf),
            np.nextafter(seen, -np.inf),
            2 * rng.standard_normal((40, X.shape[1])),
            np.where(rng.random((10, X.shape[1])) < 0.5, -np.inf, np.inf),
            np.where(rng.random((10, X.shape[1])) < 0.5, -1.7e308, 1.7e308),
        ]
    )


def leaf_by_value(forest, tree, cut_value, x):
    return slow.leaf_of(forest, tree, lambda v, k: x[v] <= cut_value[k])


def test_new_rows_go_left_up_to_and_including_the_cut(rng):
    for _ in range(20):
        X, design, _, forest, _ = random_forest(rng)
        cut_value = cut_values(design, forest.column, forest.cut)
        X_new = new_rows(rng, X)
        leaf = np.array([[leaf_by_value(forest, t, cut_value, x) for x in X_new] for t in range(6)])
        f = np.full(len(X_new), np.nan)
        route_values(forest, cut_value, np.ascontiguousarray(X_new.T), f)
        expected = slow.forest_values(forest, leaf)
        np.testing.assert_allclose(f, expected, rtol=1e-13, atol=1e-14)


def test_training_rows_give_the_same_bits_by_value_as_by_leaf(rng):
    for _ in range(20):
        X, design, prior, forest, leaf_of_row = random_forest(rng)
        check.check_forest(forest, leaf_of_row, design, prior, X)


@pytest.mark.parametrize("num_rows", [511, 512, 513])
def test_large_trees_and_many_rows_give_the_same_bits_too(rng, num_rows):
    """Large trees go another way than small ones, and rows come in blocks."""
    X = rng.standard_normal((num_rows, 3))
    for beta, are_small in [(2.0, True), (0.1, False)]:
        case = inside.make_case(X, alpha=0.99, beta=beta, num_cutpoints=500)
        forest, leaf_of_row = draw_prior_forest(case.design, case.prior, 5, rng)
        assert (np.diff(forest.tree_start).max() <= MAX_BLENDED) == are_small
        check.check_forest(forest, leaf_of_row, case.design, case.prior, X)


@pytest.mark.parametrize("num_rows", [66_000, 150_000])
def test_rows_that_share_a_code_share_a_leaf(rng, num_rows):
    """Where values outnumber codes, rows sent by value must follow the merged ranks."""
    X = rng.standard_normal((num_rows, 1))
    case = inside.make_case(X, alpha=0.9, beta=0.1, max_depth=12)
    assert case.design.num_codes[0] < num_rows
    forest = inside.grow_trees(case, 1, rng) if num_rows < 100_000 else by_hand(case.design)
    leaf_of_row = find_leaves(forest, case.design.codes)
    by_leaf, by_value = np.empty(num_rows), np.empty(num_rows)
    forest_values(forest, leaf_of_row, by_leaf)
    cut_value = cut_values(case.design, forest.column, forest.cut)
    route_values(forest, cut_value, np.ascontiguousarray(X.T), by_value)
    assert np.array_equal(by_leaf, by_value)


def by_hand(design):
    """A tree whose cuts are neighbouring codes in the middle of the column."""
    middle = int(design.num_codes[0]) // 2
    column = np.array([0, -1, 0, -1, 0, -1, -1], np.int32)
    cut = np.array([middle, 0, middle + 1, 0, middle + 2, 0, 0], np.int32)
    left = np.array([1, -1, 3, -1, 5, -1, -1], np.int32)
    value = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 4.0])
    return Forest(np.array([0, 7]), column, cut, left, value)
