"""Number the nodes of trees level by level (floor 0: NumPy and Numba only).

The children of the k-th split of a tree (from 0) then are nodes 2 k + 1 and 2 k + 2, so that which
nodes split says all about a tree's shape.
"""

import numpy as np

from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.records import NO_CHILD, Forest


def level_order(forest: Forest) -> np.ndarray:
    """Positions of a forest's nodes, tree by tree and each tree level by level; (nodes,) int64."""
    order = np.empty(forest.column.size, np.int64)
    _fill(forest.tree_start, forest.left, order)
    return order


def children_in_level_order(is_split: np.ndarray, tree_start: np.ndarray) -> np.ndarray:
    """Field `left` of a forest in level order; (nodes,) int32.

    Parameters
    ----------
    is_split : ndarray of shape (nodes,), bool
    tree_start : ndarray of shape (num_trees + 1,), int64
    """
    splits_before = np.cumsum(is_split) - is_split
    first = np.repeat(splits_before[tree_start[:-1]], np.diff(tree_start))
    return np.where(is_split, 2 * (splits_before - first) + 1, NO_CHILD).astype(np.int32)


def tree_starts(is_split: np.ndarray, num_trees: int) -> np.ndarray:
    """Where the trees of a forest in level order begin; (num_trees + 1,) int64.

    A tree has one leaf more than splits: it ends where, for the first time, its leaves outnumber
    its splits.
    """
    surplus = np.cumsum(np.where(is_split, -1, 1))
    ends = np.searchsorted(np.maximum.accumulate(surplus), np.arange(1, num_trees + 1))
    return np.concatenate([np.zeros(1, np.int64), ends + 1])


@kernel
def _fill(tree_start, left, order):
    """See `level_order`: each tree's part of `order` is its own queue."""
    for tree in range(tree_start.size - 1):
        start = tree_start[tree]
        order[start] = start
        last = start
        for k in range(start, tree_start[tree + 1]):
            child = left[order[k]]
            if child >= 0:
                order[last + 1] = start + child
                order[last + 2] = start + child + 1
                last += 2
