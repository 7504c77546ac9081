"""Send rows through grown trees (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.records import Forest


@kernel
def route_codes(forest, codes, leaf_of_row):
    """Find the leaf of each coded row in each tree.

    Parameters
    ----------
    forest : Forest
    codes : (p, n) uint16
        Of the design that the forest was grown on.
    leaf_of_row : (num_trees, n) int32
        Overwritten.
    """
    for tree in range(leaf_of_row.shape[0]):
        start = forest.tree_start[tree]
        for i in range(leaf_of_row.shape[1]):
            node = 0
            while forest.left[start + node] >= 0:
                right = codes[forest.column[start + node], i] > forest.cut[start + node]
                node = forest.left[start + node] + right
            leaf_of_row[tree, i] = node


@kernel
def route_values(forest, cut_value, X, f):
    """Sum of the trees at new rows.

    Parameters
    ----------
    forest : Forest
    cut_value : (nodes,) float64
        Cuts in the units of X, from `cut_values`; rows with x <= cut go left.
    X : (n, p) float64
    f : (n,) float64
        Overwritten. Summed tree by tree, as `forest_values` does, so that training rows give the
        same bits.
    """
    for i in range(f.size):
        f[i] = 0.0
    for tree in range(forest.tree_start.size - 1):
        start = forest.tree_start[tree]
        for i in range(f.size):
            node = 0
            while forest.left[start + node] >= 0:
                right = X[i, forest.column[start + node]] > cut_value[start + node]
                node = forest.left[start + node] + right
            f[i] += forest.value[start + node]


@kernel
def forest_values(forest, leaf_of_row, f):
    """Sum of the trees at the training rows: `f` (n,) is overwritten."""
    for i in range(f.size):
        f[i] = 0.0
    for tree in range(leaf_of_row.shape[0]):
        start = forest.tree_start[tree]
        for i in range(f.size):
            f[i] += forest.value[start + leaf_of_row[tree, i]]


def sum_of_trees(forest: Forest, leaf_of_row: np.ndarray) -> np.ndarray:
    """Sum of the trees at the training rows, (n,), as `forest_values` finds it."""
    f = np.empty(leaf_of_row.shape[1])
    forest_values(forest, np.ascontiguousarray(leaf_of_row), f)
    return f
