"""Some trees of a forest (floor 2): those that look at certain columns, for instance."""

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.kernels import Forest


def splits_of_trees(stored: StoredForest, num_columns: int) -> NDArray[np.bool_]:
    """Whether each tree splits on each column, (num_trees, p)."""
    splits = np.zeros((stored.forest.tree_start.size - 1, num_columns + 1), np.bool_)
    # Leaves mark the last column, which is thrown away.
    splits[_tree_of_node(stored), stored.forest.column] = True
    return splits[:, :-1]


def some_trees(stored: StoredForest, is_wanted: NDArray[np.bool_]) -> StoredForest:
    """Forest of some trees of another, `is_wanted` (num_trees,)."""
    forest, view, cut_value, rows = stored[1:]
    of_node = is_wanted[_tree_of_node(stored)]
    sizes = np.diff(forest.tree_start)[is_wanted]
    tree_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    nodes = Forest(tree_start, *(array[of_node] for array in forest[1:]))
    return StoredForest(stored.mu, nodes, view[of_node], cut_value[of_node], rows[of_node])


def _tree_of_node(stored: StoredForest) -> NDArray[np.int64]:
    sizes = np.diff(stored.forest.tree_start)
    return np.repeat(np.arange(sizes.size), sizes)
