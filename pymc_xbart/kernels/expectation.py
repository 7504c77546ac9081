"""Trees with some columns averaged out (floor 0: NumPy and Numba only).

At a split on a column that is included, a row goes its way. At any other its way is not known: both
children count, each by the share of the rows of the fit that went there. This is the expected value
of a tree given the included columns, as far as the tree itself can tell, in the words of Friedman
(2001, section 8.2) the weighted traversal of a tree.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, kernel
from pymc_xbart.kernels.records import NO_COLUMN, Forest
from pymc_xbart.kernels.route import ROWS_AT_ONCE


class WeightedForest(NamedTuple):
    """A forest at rows that it need not have been grown on."""

    forest: Forest  # its field `cut` is not read
    place: np.ndarray  # (nodes,) int32, which of the `rows` below a split compares
    cut_value: np.ndarray  # (nodes,) float64, rows with a value <= cut go left
    share_left: np.ndarray  # (nodes,) float64, share of the rows of the fit that did; 0 at a leaf


def shares_left(forest: Forest, num_rows: np.ndarray) -> np.ndarray:
    """Share of the rows of each split that went left, (nodes,) float64; 0 at a leaf.

    Parameters
    ----------
    forest : Forest
    num_rows : ndarray of shape (nodes,), int64
        Rows of each leaf, at least one, as `rows_of_leaves` counts them.
    """
    share_left = np.zeros(num_rows.size)
    _fill_shares(forest.tree_start, forest.left, num_rows.copy(), share_left)
    return share_left


@kernel
def _fill_shares(tree_start, left, num_rows, share_left):
    """See `shares_left`; `num_rows` is overwritten with those of splits, too."""
    for tree in range(tree_start.size - 1):
        start = tree_start[tree]
        for k in range(tree_start[tree + 1] - 1, start - 1, -1):  # children behind their parents
            if left[k] >= 0:
                child = start + left[k]
                num_rows[k] = num_rows[child] + num_rows[child + 1]
                share_left[k] = num_rows[child] / num_rows[k]


@kernel
def expected_values(trees, is_included, rows, f):
    """Sum of the trees at rows of which some columns are known.

    Parameters
    ----------
    trees : WeightedForest
    is_included : (p,) bool
        Columns that are known.
    rows : (places, n) float64
    f : (n,) float64
        Overwritten.
    """
    values = np.empty((_most_nodes(trees.forest.tree_start), ROWS_AT_ONCE))
    for first in range(0, f.size, ROWS_AT_ONCE):
        total = f[first : first + ROWS_AT_ONCE]
        for i in range(total.size):
            total[i] = 0.0
        for tree in range(trees.forest.tree_start.size - 1):
            _evaluate(trees, tree, is_included, NO_COLUMN, rows, first, total.size, values)
            for i in range(total.size):
                total[i] += values[0, i]


@kernel
def expected_changes(trees, is_included, is_candidate, rows, changes):
    """What including one more column, or one less, changes, for each column.

    Only the trees that split on a column change with it, so that all columns together take little
    longer than one evaluation for each column that a tree splits on.

    Parameters
    ----------
    trees : WeightedForest
    is_included : (p,) bool
        Columns that are known.
    is_candidate : (p,) bool
        Columns to look at.
    rows : (places, n) float64
    changes : (p, n) float64
        Overwritten: for a candidate, what the sum of the trees gains if `is_included` takes its
        other value; 0 for other columns.
    """
    values = np.empty((_most_nodes(trees.forest.tree_start), ROWS_AT_ONCE))
    before = np.empty(ROWS_AT_ONCE)
    last_tree = np.empty(is_included.size, np.int64)  # that a column has been looked at for
    for first in range(0, changes.shape[1], ROWS_AT_ONCE):
        size = min(changes.shape[1] - first, ROWS_AT_ONCE)
        for column in range(is_included.size):
            last_tree[column] = -1
            for i in range(first, first + size):
                changes[column, i] = 0.0
        for tree in range(trees.forest.tree_start.size - 1):
            _evaluate(trees, tree, is_included, NO_COLUMN, rows, first, size, values)
            for i in range(size):
                before[i] = values[0, i]
            for k in range(trees.forest.tree_start[tree], trees.forest.tree_start[tree + 1]):
                column = trees.forest.column[k]
                if column != NO_COLUMN and is_candidate[column] and last_tree[column] != tree:
                    last_tree[column] = tree
                    _evaluate(trees, tree, is_included, column, rows, first, size, values)
                    for i in range(size):
                        changes[column, first + i] += values[0, i] - before[i]


@inner_kernel
def _most_nodes(tree_start):
    """Size of the largest tree."""
    most = 1
    for tree in range(tree_start.size - 1):
        most = max(most, tree_start[tree + 1] - tree_start[tree])
    return most


@inner_kernel
def _evaluate(trees, tree, is_included, toggled, rows, first, size, values):
    """Value of every node at a block of rows, from the leaves up, into `values` (nodes, rows).

    Column `toggled` is included if `is_included` says it is not, and the reverse.
    """
    start = trees.forest.tree_start[tree]
    for node in range(trees.forest.tree_start[tree + 1] - start - 1, -1, -1):
        k = start + node
        column = trees.forest.column[k]
        left = trees.forest.left[k]
        at_node = values[node, :size]
        if left < 0:
            _fill(trees.forest.value[k], at_node)
        elif is_included[column] != (column == toggled):
            x = rows[trees.place[k], first : first + size]
            _pick(x, trees.cut_value[k], values[left, :size], values[left + 1, :size], at_node)
        else:
            _mix(trees.share_left[k], values[left, :size], values[left + 1, :size], at_node)


@inner_kernel
def _fill(value, at_node):
    for i in range(at_node.size):
        at_node[i] = value


@inner_kernel
def _pick(x, cut, lefts, rights, at_node):
    """Value of the child that each row goes to."""
    for i in range(at_node.size):
        at_node[i] = rights[i] if x[i] > cut else lefts[i]


@inner_kernel
def _mix(share_left, lefts, rights, at_node):
    """Mean of both children."""
    for i in range(at_node.size):
        at_node[i] = share_left * lefts[i] + (1.0 - share_left) * rights[i]
