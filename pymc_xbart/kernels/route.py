"""Send rows through grown trees (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel, kernel
from pymc_xbart.kernels.records import NO_COLUMN, Forest
from pymc_xbart.kernels.tally import FEW_NODES

ROWS_AT_ONCE = 512  # values of all nodes of a small tree then stay in the second cache
MAX_BLENDED = 65  # nodes; a larger tree has a branch for each row, but a short way to its leaf


@kernel
def route_codes(forest, codes, leaf_of_row):
    """Find the leaf of each coded row in each tree.

    Parameters
    ----------
    forest : Forest
    codes : (p, n) uint16
        Of the design that the forest was grown on.
    leaf_of_row : (num_trees, n) uint16 or int32
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
def route_values(forest, cut_value, columns, f):
    """Sum of the trees at new rows.

    Small trees are evaluated from the leaves up, for a block of rows at once: at a split, each row
    picks the value of one of the two children. These are loops without branches, which processors
    carry out for several rows at a time; following each row down is ten times slower, up to some
    ten splits a tree.

    Parameters
    ----------
    forest : Forest
    cut_value : (nodes,) float64
        Cuts in the units of X, from `cut_values`; rows with x <= cut go left.
    columns : (p, n) float64
        X, column by column.
    f : (n,) float64
        Overwritten. Summed tree by tree, as `forest_values` does, so that training rows give the
        same bits.
    """
    values = np.empty((MAX_BLENDED, ROWS_AT_ONCE))
    for first in range(0, f.size, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, f.size)
        total = f[first:last]
        for i in range(total.size):
            total[i] = 0.0
        for tree in range(forest.tree_start.size - 1):
            start = forest.tree_start[tree]
            num_nodes = forest.tree_start[tree + 1] - start
            if num_nodes == 1:
                for i in range(total.size):
                    total[i] += forest.value[start]
            elif num_nodes <= MAX_BLENDED:
                _blend(forest, start, num_nodes, cut_value, columns, first, values, total)
            else:
                _walk(forest, start, cut_value, columns, first, total)


@inner_kernel
def _blend(forest, start, num_nodes, cut_value, columns, first, values, total):
    """Add one tree to `total`, from the leaves up; `values` holds one row for each node."""
    for node in range(num_nodes - 1, -1, -1):  # children stand behind their parents
        left = forest.left[start + node]
        if left >= 0:
            _pick(
                columns[forest.column[start + node], first : first + total.size],
                cut_value[start + node],
                values[left, : total.size],
                values[left + 1, : total.size],
                forest.value[start + left],
                forest.value[start + left + 1],
                forest.left[start + left] < 0,
                forest.left[start + left + 1] < 0,
                values[node, : total.size],
            )
    at_root = values[0, : total.size]
    for i in range(total.size):
        total[i] += at_root[i]


@inner_kernel
def _pick(x, cut, lefts, rights, left, right, left_is_leaf, right_is_leaf, picked):
    """Value of the child that each row goes to: of a leaf `left`, of a split `lefts` (rows,)."""
    if left_is_leaf and right_is_leaf:
        for i in range(picked.size):
            picked[i] = right if x[i] > cut else left
    elif left_is_leaf:
        for i in range(picked.size):
            picked[i] = rights[i] if x[i] > cut else left
    elif right_is_leaf:
        for i in range(picked.size):
            picked[i] = right if x[i] > cut else lefts[i]
    else:
        for i in range(picked.size):
            picked[i] = rights[i] if x[i] > cut else lefts[i]


@inner_kernel
def _walk(forest, start, cut_value, columns, first, total):
    """Add one tree to `total`, following each row down."""
    for i in range(total.size):
        node = 0
        while forest.left[start + node] >= 0:
            right = columns[forest.column[start + node], first + i] > cut_value[start + node]
            node = forest.left[start + node] + right
        total[i] += forest.value[start + node]


@kernel
def forest_values(forest, leaf_of_row, f):
    """Sum of the trees at the training rows: `f` (n,) is overwritten."""
    num_trees = leaf_of_row.shape[0]
    for i in range(f.size):
        f[i] = 0.0
    for tree in range(0, num_trees - 3, 4):
        _add_four(forest, leaf_of_row, tree, f)
    for tree in range(num_trees - num_trees % 4, num_trees):
        value, leaf = forest.value[forest.tree_start[tree] :], leaf_of_row[tree]
        for i in range(f.size):
            f[i] += value[POSITION_DTYPE(leaf[i])]


@inner_kernel
def _add_four(forest, leaf_of_row, tree, f):
    """Add four trees, so that f is read and written a fourth as often."""
    start, value = forest.tree_start, forest.value
    value_a, value_b = value[start[tree] :], value[start[tree + 1] :]
    value_c, value_d = value[start[tree + 2] :], value[start[tree + 3] :]
    leaf_a, leaf_b = leaf_of_row[tree], leaf_of_row[tree + 1]
    leaf_c, leaf_d = leaf_of_row[tree + 2], leaf_of_row[tree + 3]
    for i in range(f.size):
        total = f[i] + value_a[POSITION_DTYPE(leaf_a[i])]
        total += value_b[POSITION_DTYPE(leaf_b[i])]
        total += value_c[POSITION_DTYPE(leaf_c[i])]
        total += value_d[POSITION_DTYPE(leaf_d[i])]
        f[i] = total


def rows_of_leaves(forest: Forest, leaf_of_row: np.ndarray) -> np.ndarray:
    """Count the training rows of each leaf, (nodes,) int64; 0 at a split."""
    num_rows = np.zeros(forest.column.size, np.int64)
    _count_rows(forest, np.ascontiguousarray(leaf_of_row), num_rows)
    return num_rows


@kernel
def _count_rows(forest, leaf_of_row, num_rows):
    """See `rows_of_leaves`; `num_rows` (nodes,) is added to."""
    for tree in range(leaf_of_row.shape[0]):
        start = forest.tree_start[tree]
        num_nodes = forest.tree_start[tree + 1] - start
        if num_nodes <= FEW_NODES:
            for node in range(num_nodes):
                if forest.column[start + node] == NO_COLUMN:
                    num_rows[start + node] += _rows_of_leaf(leaf_of_row[tree], node)
        else:
            for i in range(leaf_of_row.shape[1]):
                num_rows[start + leaf_of_row[tree, i]] += 1


@inner_kernel
def _rows_of_leaf(leaf, node):
    """Count the rows in one leaf, with `leaf` (n,) that of each row. See `tally_of_leaf`."""
    count = np.int32(0)  # half as wide as an index, so that twice as many go at a time
    for i in range(leaf.size):
        count = np.int32(count + np.int32(leaf[i] == node))
    return count


def sum_of_trees(forest: Forest, leaf_of_row: np.ndarray) -> np.ndarray:
    """Sum of the trees at the training rows, (n,), as `forest_values` finds it."""
    f = np.empty(leaf_of_row.shape[1])
    forest_values(forest, np.ascontiguousarray(leaf_of_row), f)
    return f
