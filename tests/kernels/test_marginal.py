"""f with columns held at points is what single rows give, moved to each point one by one."""

import numpy as np
import pytest

from pymc_xbart.kernels import (
    cut_values,
    draw_prior_forest,
    encode,
    marginal_values,
    profile_values,
    route_values,
)
from pymc_xbart.kernels.route import ROWS_AT_ONCE
from tests.helpers import cases, inside, slow

NUM_TREES = 6


def random_forest(rng, num_rows=30, beta=0.4):
    """Four columns, with ties, and a forest of the prior."""
    X = np.column_stack([cases.random_X(rng, num_rows, 3), rng.standard_normal(num_rows)])
    design = encode(X)
    forest, _ = draw_prior_forest(
        design, inside.make_prior(4, alpha=0.97, beta=beta), NUM_TREES, rng
    )
    return X, forest, cut_values(design, forest.column, forest.cut)


def values_at(forest, cut_value, x):
    """Value of each tree at one row."""
    leaf = [slow.leaf_of(forest, t, lambda v, k: x[v] <= cut_value[k]) for t in range(NUM_TREES)]
    return [forest.value[forest.tree_start[t] + leaf[t]] for t in range(NUM_TREES)]


def moved(X, columns, point):
    X = X.copy()
    X[:, columns] = point[columns]
    return X


def hold(kernel, forest, cut_value, columns, X, points, f):
    """Call a kernel: points stand in an order of their own, and rows lack what is held."""
    is_held = np.isin(forest.column, columns)
    order = np.array(columns[::-1], np.int32)
    place = np.zeros(X.shape[1], np.int32)
    place[order] = np.arange(order.size)
    column = np.where(is_held, place[forest.column], forest.column).astype(np.int32)
    rows = np.vstack([moved(X, columns, np.full(4, np.nan)).T, np.zeros(len(X))])
    beside = np.ascontiguousarray(points.T[order])
    kernel(forest._replace(column=column), cut_value, is_held, rows, beside, f)
    return f


@pytest.mark.parametrize("columns", [[0], [3], [2, 1], [0, 1, 2, 3]])
def test_the_mean_over_rows_is_that_of_rows_moved_to_each_point(rng, columns):
    for _ in range(5):
        X, forest, cut_value = random_forest(rng)
        points = np.concatenate([X[:3], 2 * rng.standard_normal((3, 4)), [[np.inf] * 4]])
        f = np.full((NUM_TREES, 7), np.nan)
        hold(marginal_values, forest, cut_value, columns, X, points, f)
        for k, point in enumerate(points):
            at_rows = [values_at(forest, cut_value, x) for x in moved(X, columns, point)]
            np.testing.assert_allclose(f[:, k], np.mean(at_rows, axis=0), rtol=1e-12, atol=1e-13)


def test_weighing_by_rows_of_nodes_is_another_number(rng):
    """Two columns that are the same: below the first split, rows are on one side of the second."""
    X = np.repeat(np.linspace(0, 1, 11)[:, np.newaxis], 4, axis=1)
    column = np.array([0, 1, 1, -1, -1, -1, -1], np.int32)
    left = np.array([1, 3, 5, -1, -1, -1, -1], np.int32)
    _, forest, _ = random_forest(rng)
    forest = forest._replace(
        tree_start=np.array([0, 7]),
        column=column,
        left=left,
        cut=np.zeros(7, np.int32),
        value=np.array([0.0, 0, 0, 1, 2, 3, 4]),
    )
    cut_value = np.array([0.45, 0.25, 0.75, np.nan, np.nan, np.nan, np.nan])
    f = hold(marginal_values, forest, cut_value, [0], X, X[[0, 10]], np.empty((1, 2)))
    np.testing.assert_allclose(f[0], [(3 * 1 + 8 * 2) / 11, (8 * 3 + 3 * 4) / 11])
    by_node = [(3 * 1 + 2 * 2) / 5, (3 * 3 + 3 * 4) / 6]  # as of those in either child of the root
    assert abs(f[0] - by_node).min() > 0.1


@pytest.mark.parametrize("num_rows", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1])
def test_rows_in_several_blocks_are_all_counted(rng, num_rows):
    X, forest, cut_value = random_forest(rng, num_rows, beta=1.0)
    points = X[:2]
    f = hold(marginal_values, forest, cut_value, [1, 3], X, points, np.empty((NUM_TREES, 2)))
    for k, point in enumerate(points):
        each = np.empty(num_rows)
        route_values(forest, cut_value, np.ascontiguousarray(moved(X, [1, 3], point).T), each)
        np.testing.assert_allclose(f[:, k].sum(), each.mean(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("columns", [[0], [3], [2, 1], [0, 1, 2, 3]])
def test_each_row_gives_the_bits_of_the_row_moved_to_each_point(rng, columns):
    for _ in range(5):
        X, forest, cut_value = random_forest(rng)
        points = np.concatenate([X[:3], X[:3], 2 * rng.standard_normal((3, 4)), [[-np.inf] * 4]])
        f = np.full((10, 30), np.nan)
        hold(profile_values, forest, cut_value, columns, X, points, f)
        for k, point in enumerate(points):
            each = np.empty(30)
            route_values(forest, cut_value, np.ascontiguousarray(moved(X, columns, point).T), each)
            assert np.array_equal(f[k], each)
