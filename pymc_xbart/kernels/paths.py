"""Which columns meet on the paths of a tree (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.records import Forest


def count_meetings(forest: Forest, num_columns: int) -> np.ndarray:
    """Count the trees in which a split on one column lies below a split on another.

    Parameters
    ----------
    forest : Forest
    num_columns : int
        p

    Returns
    -------
    ndarray of shape (p, p), int32
        Symmetric. On the diagonal, trees that split on a column twice along a path.
    """
    counts = np.zeros((num_columns, num_columns), np.int32)
    parent = np.empty(forest.column.size, np.int64)
    last_tree = np.full((num_columns, num_columns), -1, np.int32)
    _count(forest.tree_start, forest.column, forest.left, parent, last_tree, counts)
    return counts


@kernel
def _count(tree_start, column, left, parent, last_tree, counts):
    """See `count_meetings`; `counts` is added to.

    `parent` (nodes,) is overwritten, and `last_tree` (p, p) with the last tree that each pair met
    in.
    """
    for tree in range(tree_start.size - 1):
        start = tree_start[tree]
        parent[start] = -1
        for k in range(start, tree_start[tree + 1]):  # parents come before their children
            if left[k] < 0:
                continue
            parent[start + left[k]] = k
            parent[start + left[k] + 1] = k
            above = parent[k]
            while above >= 0:
                low = min(column[k], column[above])
                high = max(column[k], column[above])
                if last_tree[low, high] != tree:
                    last_tree[low, high] = tree
                    counts[low, high] += 1
                    if low != high:
                        counts[high, low] += 1
                above = parent[above]
