"""What is true of every forest, whatever the data."""

import numpy as np

from pymc_xbart.kernels import cut_values, forest_values, route_codes, route_values
from pymc_xbart.kernels.leaf_numbers import most_nodes


def check_forest(forest, leaf_of_row, design, prior, X=None):
    """Fail unless the forest is one that its prior allows and `leaf_of_row` belongs to it.

    `leaf_of_row` is (num_trees, n); with `X` (n, p), rows are also sent by value.
    """
    assert forest.tree_start[0] == 0
    assert forest.tree_start[-1] == forest.column.size
    assert [array.dtype for array in forest] == [np.int64, np.int32, np.int32, np.int32, np.float64]
    assert np.diff(forest.tree_start).max() <= most_nodes(leaf_of_row.dtype)
    assert np.isfinite(forest.value).all()
    for tree, leaf in enumerate(leaf_of_row):
        start, stop = forest.tree_start[tree : tree + 2]
        nodes = slice(start, stop)
        check_tree(*(array[nodes] for array in forest[1:]), leaf, design, prior)
    _check_routes(forest, leaf_of_row, design, X)


def check_tree(column, cut, left, value, leaf, design, prior):
    """Fail unless one tree is sound; `leaf` (n,) is the leaf of each row."""
    num_nodes = column.size
    is_split = column >= 0
    assert num_nodes % 2 == 1, "a split adds two nodes"
    assert np.array_equal(column[~is_split], np.full((~is_split).sum(), -1))
    assert np.array_equal(left[~is_split], np.full((~is_split).sum(), -1))
    assert not cut[~is_split].any()
    assert not value[is_split].any()
    # Every node but the root is the child of exactly one split, and children are neighbours.
    children = np.concatenate([left[is_split], left[is_split] + 1])
    assert sorted(children.tolist()) == list(range(1, num_nodes))
    rows = {0: np.arange(leaf.size)}
    depth = {0: 0}
    for node in range(num_nodes):
        own = rows[node]
        if not is_split[node]:
            assert own.size > 0, "an empty leaf"
            assert (leaf[own] == node).all(), "leaf_of_row disagrees with the tree's cuts"
            continue
        assert prior.split_weights[column[node]] > 0
        assert depth[node] < prior.max_depth
        code = design.codes[column[node]][own]
        goes_left = code <= cut[node]
        assert code[goes_left].max() == cut[node], "the cut is not named by a code on its left"
        assert min(goes_left.sum(), (~goes_left).sum()) >= prior.min_samples_leaf
        for child, side in ((left[node], own[goes_left]), (left[node] + 1, own[~goes_left])):
            rows[child] = side
            depth[child] = depth[node] + 1
            assert child > node, "a child before its parent"


def _check_routes(forest, leaf_of_row, design, X):
    """Fail unless all ways to find f at the training rows give the same bits."""
    routed = np.empty_like(leaf_of_row)
    route_codes(forest, design.codes, routed)
    assert np.array_equal(routed, leaf_of_row)
    if X is not None:
        f = np.empty(leaf_of_row.shape[1])
        forest_values(forest, leaf_of_row, f)
        f_by_value = np.empty_like(f)
        cut_value = cut_values(design, forest.column, forest.cut)
        route_values(forest, cut_value, np.ascontiguousarray(X.T), f_by_value)
        assert np.array_equal(f, f_by_value)


def check_same_rows_stay_together(X, leaf_of_row):
    """Fail if rows with equal X fall into different leaves."""
    _, group = np.unique(X, axis=0, return_inverse=True)
    for leaf in leaf_of_row:
        for k in range(group.max() + 1):
            assert np.unique(leaf[group == k]).size == 1
