"""Put trees on rows that they were not grown on (floor 0: NumPy and Numba only).

A tree is a tree of its prior only if each of its cuts is a candidate where it stands, which depends
on the rows. On its own rows a tree stays as it is. On others each cut moves to the nearest
candidate of its column, and a node whose column offers none becomes a leaf, with the mean of what
would have been its children.
"""

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, kernel
from pymc_xbart.kernels.histogram import num_told_apart
from pymc_xbart.kernels.leaf_numbers import WIDE, make_leaf_of_row, put_leaf
from pymc_xbart.kernels.prior import divide, list_candidates
from pymc_xbart.kernels.records import NO_CHILD, NO_COLUMN, Design, Forest, Prior


def transplant_forest(
    forest: Forest, cut_value: np.ndarray, design: Design, prior: Prior
) -> tuple[Forest, np.ndarray]:
    """Make a forest with the same cuts, as far as rows and prior allow.

    Parameters
    ----------
    forest : Forest
        Its field `cut` is not read.
    cut_value : ndarray of shape (nodes,)
        Its cuts in the units of X, as `cut_values` gives them.
    design : Design
        The new rows, of the same columns.
    prior : Prior

    Returns
    -------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
    """
    num_rows = design.codes.shape[1]
    num_trees = forest.tree_start.size - 1
    cut = _codes_of_cuts(forest.column, cut_value, design)
    leaf_of_row = make_leaf_of_row(num_trees, num_rows)
    leaf = np.empty(num_rows, WIDE)
    size = num_told_apart(num_rows, prior.num_cutpoints)
    scratch = np.empty(size, np.int64), np.empty(size, np.int64)
    num_nodes = forest.column.size
    column, new_cut, left, source, depth = (np.empty(num_nodes, np.int32) for _ in range(5))
    room = (column, new_cut, left, source, depth, np.empty(num_nodes))
    trees = []
    for index in range(num_trees):
        nodes = slice(*forest.tree_start[index : index + 2])
        tree = forest.column[nodes], cut[nodes], forest.left[nodes], forest.value[nodes].copy()
        size = _transplant_tree(tree, design, prior, leaf, *room, *scratch)
        leaf_of_row = put_leaf(leaf_of_row, index, leaf, size)
        trees.append([array[:size].copy() for array in (column, new_cut, left, room[-1])])
    tree_start = np.cumsum([0, *(tree[0].size for tree in trees)], dtype=np.int64)
    return Forest(
        tree_start, *(np.concatenate(arrays) for arrays in zip(*trees, strict=True))
    ), leaf_of_row


def _codes_of_cuts(column: np.ndarray, cut_value: np.ndarray, design: Design) -> np.ndarray:
    """Largest code at or below each cut, -1 if there is none; (nodes,)."""
    cut = np.zeros(column.size, np.int32)
    for v in np.unique(column[column != NO_COLUMN]):
        values = design.values[design.value_start[v] : design.value_start[v + 1]]
        is_here = column == v
        cut[is_here] = np.searchsorted(values, cut_value[is_here], side="right") - 1
    return cut


@kernel
def _transplant_tree(
    tree, design, prior, leaf, column, cut, left, source, depth, value, counts, candidates
):
    """Write a tree to `column`, `cut`, `left`, `value`, and each row's leaf to `leaf`.

    The values of the given `tree` are overwritten with means of those below. Returns the number of
    nodes. `source` holds the node of the given tree that a new one stands for.
    """
    old_column, old_cut, old_left, old_value = tree
    for node in range(old_column.size - 1, -1, -1):  # children stand behind their parents
        if old_column[node] != NO_COLUMN:
            child = old_left[node]
            old_value[node] = 0.5 * (old_value[child] + old_value[child + 1])
    for i in range(leaf.size):
        leaf[i] = 0
    source[0] = 0
    depth[0] = 0
    num_nodes = np.int64(1)
    node = np.int64(0)
    while node < num_nodes:
        old = source[node]
        v = old_column[old]
        num_candidates = 0
        if v != NO_COLUMN and prior.split_weights[v] > 0.0 and depth[node] < prior.max_depth:
            num_candidates = list_candidates(design.codes[v], prior, leaf, node, counts, candidates)
        if num_candidates > 0:
            k = nearest(candidates, num_candidates, old_cut[old])
            column[node] = v
            cut[node] = divide(design.codes[v], candidates[k], leaf, node, num_nodes)
            left[node] = num_nodes
            value[node] = 0.0
            source[num_nodes] = old_left[old]
            source[num_nodes + 1] = old_left[old] + 1
            depth[num_nodes] = depth[node] + 1
            depth[num_nodes + 1] = depth[node] + 1
            num_nodes += 2
        else:
            column[node] = NO_COLUMN
            cut[node] = 0
            left[node] = NO_CHILD
            value[node] = old_value[old]
        node += 1
    return num_nodes


@inner_kernel
def nearest(candidates, num_candidates, cut):
    """Position of the first candidate at or above `cut`, or of the last one.

    A candidate may bear any code up to that of the next row; the first at or above a cut that is
    itself one divides the rows in the same way.
    """
    for k in range(num_candidates):
        if candidates[k] >= cut:
            return k
    return num_candidates - 1
