"""A tree while it is grown or evaluated, node by node (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.chunks import split_rows
from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.evidence import draw_leaf_value, sums_of_node
from pymc_xbart.kernels.node_cuts import MAX_RANGE_DEPTH, NOWHERE, Node
from pymc_xbart.kernels.records import NO_CHILD, NO_COLUMN
from pymc_xbart.kernels.tally import FEW_NODES, tally_of_leaf

# One tree, with what each node knows of the data. A structured array, where a record of arrays
# would say the same: Numba compiles a function in proportion to the number of arrays that it is
# given.
NODE_DTYPE = np.dtype(
    [
        ("column", np.int32),  # as in Forest
        ("cut", np.int32),
        ("left", np.int32),
        ("depth", np.int32),
        ("start", np.int32),  # the node's slice of NodeRows
        ("stop", np.int32),
        ("place", np.int32),  # see score.Node
        ("parent_place", np.int32),
        ("sibling_place", np.int32),
        ("value", np.float64),
        ("tally", np.int64),  # where leaves are added up; else undefined
        ("sum_g", np.float64),
        ("sum_h", np.float64),
    ],
    align=True,
)


def make_tree(num_rows: int) -> np.ndarray:
    """Allocate a tree over n rows.

    It has at most 2 n - 1 nodes, since no leaf is empty; pages that are not reached cost no memory.
    """
    return np.empty(2 * num_rows, NODE_DTYPE)


@inner_kernel
def add_node(tree, node, start, stop, depth, sum_g, sum_h):
    """Write a leaf without a value at index `node`."""
    tree[node]["column"] = NO_COLUMN
    tree[node]["cut"] = 0
    tree[node]["left"] = NO_CHILD
    tree[node]["value"] = 0.0
    tree[node]["start"] = start
    tree[node]["stop"] = stop
    tree[node]["depth"] = depth
    tree[node]["sum_g"] = sum_g
    tree[node]["sum_h"] = sum_h
    tree[node]["place"] = NOWHERE
    tree[node]["parent_place"] = NOWHERE
    tree[node]["sibling_place"] = NOWHERE


@inner_kernel
def split_node(tree, node, left, column, cut, codes, curvature, rows, crew):
    """Turn leaf `node` into a split, whose children become nodes `left` and `left + 1`."""
    start = tree[node]["start"]
    stop = tree[node]["stop"]
    front, middle, back, last_left, left_tally, right_tally, left_h, right_h = split_rows(
        codes, column, cut, rows, start, stop, curvature.is_whole, crew
    )
    left_g, left_h = sums_of_node(left_tally, left_h, rows, curvature)
    right_g, right_h = sums_of_node(right_tally, right_h, rows, curvature)
    tree[node]["column"] = column
    tree[node]["cut"] = last_left
    tree[node]["left"] = left
    depth = np.int32(tree[node]["depth"] + 1)
    middle = np.int32(middle)
    add_node(tree, left, np.int32(front), middle, depth, left_g, left_h)
    add_node(tree, left + 1, middle, np.int32(back), depth, right_g, right_h)


@inner_kernel
def order_children(tree, node, num_places, min_rows):
    """Decide where the children of a split keep their sums. Returns the larger and the smaller.

    The smaller is to be scored first: its sums, added up row by row, are taken out of the parent's,
    which gives the larger child's. These replace the parent's, unless the parent is the root, whose
    sums serve every tree over the same g and h.
    """
    larger = tree[node]["left"]
    smaller = larger + 1
    if (
        tree[larger]["stop"] - tree[larger]["start"]
        < tree[smaller]["stop"] - tree[smaller]["start"]
    ):
        larger, smaller = smaller, larger
    place = tree[node]["place"]
    target = max(place, 1)
    if (
        place >= 0
        and target < num_places
        and tree[larger]["stop"] - tree[larger]["start"] >= min_rows
        and tree[larger]["depth"] < MAX_RANGE_DEPTH
    ):
        tree[larger]["place"] = target
        tree[smaller]["parent_place"] = place
        tree[smaller]["sibling_place"] = target
        if tree[smaller]["stop"] - tree[smaller]["start"] >= min_rows and target + 1 < num_places:
            tree[smaller]["place"] = target + 1
    return larger, smaller


@inner_kernel
def load_tree(forest, index, tree):
    """Copy the structure of tree `index` of a forest. Returns its number of nodes."""
    start = forest.tree_start[index]
    num_nodes = forest.tree_start[index + 1] - start
    tree[0]["depth"] = 0
    for node in range(num_nodes):  # parents come before their children
        left = forest.left[start + node]
        tree[node]["column"] = forest.column[start + node]
        tree[node]["cut"] = forest.cut[start + node]
        tree[node]["left"] = left
        tree[node]["value"] = 0.0
        if left != NO_CHILD:
            tree[left]["depth"] = tree[node]["depth"] + 1
            tree[left + 1]["depth"] = tree[node]["depth"] + 1
    return num_nodes


@inner_kernel
def sum_leaves(tree, num_nodes, leaf, h, curvature, rows):
    """Sum g and h over the rows of each leaf, with `leaf` (n,) that of each row.

    `h` (n,) is by row, as the tallies of the root in `rows` are.
    """
    for node in range(num_nodes):
        tree[node]["tally"] = 0
        tree[node]["sum_h"] = 0.0
    if num_nodes <= FEW_NODES:
        for node in range(num_nodes):
            if tree[node]["column"] == NO_COLUMN:
                tree[node]["tally"] = tally_of_leaf(rows.tally, leaf, node)
    else:
        for i in range(leaf.size):
            tree[leaf[i]]["tally"] += rows.tally[i]
    if not curvature.is_whole:
        for i in range(leaf.size):
            tree[leaf[i]]["sum_h"] += h[i]
    for node in range(num_nodes):
        sum_g, sum_h = sums_of_node(tree[node]["tally"], tree[node]["sum_h"], rows, curvature)
        tree[node]["sum_g"] = sum_g
        tree[node]["sum_h"] = sum_h


@inner_kernel
def waiting_node(tree, node):
    """What scoring needs to know of a node."""
    place = tree[node]["place"]
    sibling_place = tree[node]["sibling_place"]
    # A child with a place and no sums to derive is a larger one: its sums are there.
    is_ready = node > 0 and place >= 0 and sibling_place < 0
    return Node(
        tree[node]["start"],
        tree[node]["stop"],
        tree[node]["depth"],
        tree[node]["sum_g"],
        tree[node]["sum_h"],
        place,
        is_ready,
        tree[node]["parent_place"],
        sibling_place,
        node > 0,
    )


@inner_kernel
def draw_leaf_values(tree, num_nodes, leaf_var, rng):
    """Draw the value of every leaf from its posterior."""
    for node in range(num_nodes):
        if tree[node]["column"] == NO_COLUMN:
            tree[node]["value"] = draw_leaf_value(
                tree[node]["sum_g"], tree[node]["sum_h"], leaf_var, rng
            )
