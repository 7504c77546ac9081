"""f with some columns held at chosen points (floor 0: NumPy and Numba only).

A split on a column that is held sends all rows the same way, which depends on the point alone. So
what rows do at the other splits need not be found anew at each point:

- `marginal_values` averages over rows. Rows go down a tree once, both ways at splits that are held,
  and each leaf counts those that reach it. The mean at a point is then the sum, over the leaves
  that the point leaves open, of value times share of rows. That is exact. (Friedman 2001, section
  8.2, weighs the two ways of the other splits by the rows of the fit in either child, which is
  another number wherever columns depend on each other.)
- `profile_values` keeps rows apart, for what is not additive over trees. It evaluates a tree only
  where a point decides otherwise than the point before.
"""

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, kernel
from pymc_xbart.kernels.records import Forest
from pymc_xbart.kernels.route import ROWS_AT_ONCE, route_values


@kernel
def marginal_values(forest, cut_value, is_held, rows, points, f):
    """Mean over rows of each tree, with some columns held at points.

    Parameters
    ----------
    forest : Forest
        Its columns name those of `points` at splits that are held, else those of `rows`.
    cut_value : (nodes,) float64
        Rows and points with x <= cut go left.
    is_held : (nodes,) bool
        Whether a split looks at a column that is held.
    rows : (q, n) float64
        X, column by column.
    points : (r, m) float64
        The columns that are held, at m points.
    f : (num_trees, m) float64
        Overwritten.
    """
    num_rows = rows.shape[1]
    most_nodes = 1
    for tree in range(forest.tree_start.size - 1):
        most_nodes = max(most_nodes, forest.tree_start[tree + 1] - forest.tree_start[tree])
    is_here = np.empty((most_nodes, ROWS_AT_ONCE), np.int64)
    count = np.empty(most_nodes, np.int64)
    mean = np.empty((most_nodes, f.shape[1]))
    for tree in range(forest.tree_start.size - 1):
        start = forest.tree_start[tree]
        for node in range(forest.tree_start[tree + 1] - start):
            count[node] = 0
        for first in range(0, num_rows, ROWS_AT_ONCE):
            block = min(ROWS_AT_ONCE, num_rows - first)
            _send_down(forest, tree, cut_value, is_held, rows, first, block, is_here, count)
        _add_up(forest, tree, cut_value, is_held, points, count, num_rows, mean, f[tree])


@inner_kernel
def _send_down(forest, tree, cut_value, is_held, rows, first, num_rows, is_here, count):
    """Send some rows down one tree, and add to `count` (nodes,) how many reach each leaf.

    `is_here` (nodes, rows) is overwritten: 1 where a row is in a node, else 0. It is as wide as the
    numbers that are compared, so that processors mark several rows at a time.
    """
    start = forest.tree_start[tree]
    for i in range(num_rows):
        is_here[0, i] = 1
    for node in range(forest.tree_start[tree + 1] - start):  # parents stand before their children
        here = is_here[node]
        left = forest.left[start + node]
        if left < 0:
            reached = 0
            for i in range(num_rows):
                reached += here[i]
            count[node] += reached
        elif is_held[start + node]:
            for i in range(num_rows):
                is_here[left, i] = here[i]
                is_here[left + 1, i] = here[i]
        else:
            x = rows[forest.column[start + node], first : first + num_rows]
            cut = cut_value[start + node]
            for i in range(num_rows):
                is_left = here[i] & (x[i] <= cut)
                is_here[left, i] = is_left
                is_here[left + 1, i] = here[i] - is_left


@inner_kernel
def _add_up(forest, tree, cut_value, is_held, points, count, num_rows, mean, f):
    """Write the mean of one tree at each point to f (m,); `mean` (nodes, m) is overwritten."""
    start = forest.tree_start[tree]
    for node in range(forest.tree_start[tree + 1] - start - 1, -1, -1):
        here = mean[node]
        left = forest.left[start + node]
        if left < 0:
            share = forest.value[start + node] * count[node] / num_rows
            for k in range(f.size):
                here[k] = share
        elif is_held[start + node]:
            x = points[forest.column[start + node]]
            cut = cut_value[start + node]
            for k in range(f.size):
                here[k] = mean[left, k] if x[k] <= cut else mean[left + 1, k]
        else:
            for k in range(f.size):
                here[k] = mean[left, k] + mean[left + 1, k]
    for k in range(f.size):
        f[k] = mean[0, k]


@kernel
def profile_values(forest, cut_value, is_held, rows, points, f):
    """Sum of trees at each row, with some columns held at points.

    Parameters: see `marginal_values`, but the last column of `rows` is all zero, and `f` is (m, n).
    Trees are summed in the order of `route_values`, so that both give the same bits.
    """
    # At a point, a split that is held is one of the zeros, whose cut says where all rows go.
    column = np.empty(forest.column.size, np.int32)
    cut = np.empty(cut_value.size)
    of_tree = np.empty(rows.shape[1])
    for node in range(column.size):
        column[node] = rows.shape[0] - 1 if is_held[node] else forest.column[node]
        cut[node] = cut_value[node]
    for k in range(f.shape[0]):
        for i in range(f.shape[1]):
            f[k, i] = 0.0
    for tree in range(forest.tree_start.size - 1):
        alone = Forest(
            forest.tree_start[tree : tree + 2], column, forest.cut, forest.left, forest.value
        )
        for k in range(f.shape[0]):
            if _decide(forest, tree, cut_value, is_held, points, k, cut) or k == 0:
                route_values(alone, cut, rows, of_tree)
            here = f[k]
            for i in range(of_tree.size):
                here[i] += of_tree[i]


@inner_kernel
def _decide(forest, tree, cut_value, is_held, points, k, cut):
    """Set `cut` (nodes,) at the held splits of one tree to 0 (left) or -1; whether any changes."""
    is_new = False
    for node in range(forest.tree_start[tree], forest.tree_start[tree + 1]):
        if is_held[node]:
            way = 0.0 if points[forest.column[node], k] <= cut_value[node] else -1.0
            is_new |= cut[node] != way
            cut[node] = way
    return is_new
