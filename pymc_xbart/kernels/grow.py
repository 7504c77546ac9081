"""Grow one tree from the root (floor 0: NumPy and Numba only).

1. Score every candidate cut, and stopping, by integrated likelihood times prior.
2. Draw one of them. On "stop" the node is a leaf; otherwise its rows are split and both sides go
   through the same.

He, Yalov & Hahn (2019), algorithm "Grow-from-root backfitting". Departures: an explicit stack
replaces recursion, so that depth cannot overflow it, and leaf values are drawn apart from the
structure, because a Metropolis-Hastings correction has to decide between two structures first.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.draw import draw_from_log_weights
from pymc_xbart.kernels.evidence import draw_leaf_value
from pymc_xbart.kernels.histogram import NodeRows
from pymc_xbart.kernels.partition import gather_rows, partition_rows
from pymc_xbart.kernels.records import NO_CHILD, NO_COLUMN
from pymc_xbart.kernels.score import (
    MAX_RANGE_DEPTH,
    NOWHERE,
    Node,
    Scratch,
    draw_cut,
    make_scratch,
    score_node,
)


class GrowingTree(NamedTuple):
    """One tree under construction, with what each node knows of the data.

    A tree over n rows has at most 2 n - 1 nodes, since no leaf is empty; pages that are not reached
    cost no memory.
    """

    column: np.ndarray  # (2 n,) int32
    cut: np.ndarray  # (2 n,) int32
    left: np.ndarray  # (2 n,) int32
    value: np.ndarray  # (2 n,) float64
    depth: np.ndarray  # (2 n,) int32
    start: np.ndarray  # (2 n,) int32, the node's slice of NodeRows
    stop: np.ndarray  # (2 n,) int32
    sum_g: np.ndarray  # (2 n,) float64
    sum_h: np.ndarray  # (2 n,) float64
    place: np.ndarray  # (2 n,) int32, see score.Node
    sibling_place: np.ndarray  # (2 n,) int32


class Workspace(NamedTuple):
    """Scratch of a sweep over n rows and p columns. Nothing in it outlives a call."""

    rows: NodeRows
    spare: NodeRows
    tree: GrowingTree
    stack: np.ndarray  # (n + 1,) int32, nodes that wait
    scratch: Scratch
    half_log: np.ndarray  # (n + 1,) float64, see EvidenceTable
    gain: np.ndarray  # (n + 1,) float64


def make_workspace(num_rows: int, num_columns: int, num_cutpoints: int) -> Workspace:
    """Allocate the scratch that `sweep` needs; keep it between sweeps."""

    def integers(size: int) -> np.ndarray:
        return np.empty(size, np.int32)

    def node_rows() -> NodeRows:
        return NodeRows(np.empty(num_rows, np.uint32), np.empty(num_rows), np.empty(num_rows))

    size = 2 * num_rows
    tree = GrowingTree(
        column=integers(size),
        cut=integers(size),
        left=integers(size),
        value=np.empty(size),
        depth=integers(size),
        start=integers(size),
        stop=integers(size),
        sum_g=np.empty(size),
        sum_h=np.empty(size),
        place=integers(size),
        sibling_place=integers(size),
    )
    return Workspace(
        node_rows(),
        node_rows(),
        tree,
        integers(num_rows + 1),
        make_scratch(num_rows, num_columns, num_cutpoints),
        np.empty(num_rows + 1),
        np.empty(num_rows + 1),
    )


@kernel
def add_node(tree, node, start, stop, depth, sum_g, sum_h):
    """Write a leaf without a value at index `node`."""
    tree.column[node] = NO_COLUMN
    tree.cut[node] = 0
    tree.left[node] = NO_CHILD
    tree.value[node] = 0.0
    tree.start[node] = start
    tree.stop[node] = stop
    tree.depth[node] = depth
    tree.sum_g[node] = sum_g
    tree.sum_h[node] = sum_h
    tree.place[node] = NOWHERE
    tree.sibling_place[node] = NOWHERE


@kernel
def split_node(tree, node, num_nodes, column, cut, codes, rows, spare):
    """Turn leaf `node` into a split; its children become nodes `num_nodes` and `num_nodes + 1`."""
    start = tree.start[node]
    stop = tree.stop[node]
    middle, last_left, left_g, left_h, right_g, right_h = partition_rows(
        codes, cut, rows, start, stop, spare
    )
    tree.column[node] = column
    tree.cut[node] = last_left
    tree.left[node] = num_nodes
    depth = np.int32(tree.depth[node] + 1)
    middle = np.int32(middle)
    add_node(tree, num_nodes, start, middle, depth, left_g, left_h)
    add_node(tree, num_nodes + 1, middle, stop, depth, right_g, right_h)


@kernel
def place_sums(tree, left, place, num_places, min_rows):
    """Say where the children of a node keep their sums, given where the node does.

    Returns the larger child and the smaller one. The larger takes over the node's place once the
    smaller, which has to be scored first, has taken its own sums out.
    """
    smaller = left
    larger = left + 1
    if tree.stop[smaller] - tree.start[smaller] > tree.stop[larger] - tree.start[larger]:
        smaller = left + 1
        larger = left
    if (
        place >= 0
        and tree.stop[larger] - tree.start[larger] >= min_rows
        and tree.depth[left] < MAX_RANGE_DEPTH
    ):
        tree.place[larger] = place
        tree.sibling_place[smaller] = place
        if tree.stop[smaller] - tree.start[smaller] >= min_rows and place + 1 < num_places:
            tree.place[smaller] = place + 1
    return larger, smaller


@kernel
def grow_from_root(g, h, design, prior, table, work, rng):
    """Draw the structure of a tree, given g and h (n,) of the forest without it.

    `work.tree` and `work.rows` are overwritten with the tree and its rows. Returns the number of
    nodes.
    """
    tree = work.tree
    rows = work.rows
    num_columns = design.num_codes.size
    num_places = work.scratch.stored.num_rows.shape[0]
    min_rows = work.scratch.buckets.num_rows.size
    sum_g, sum_h = gather_rows(g, h, rows)
    add_node(tree, np.int64(0), np.int32(0), np.int32(g.size), np.int32(0), sum_g, sum_h)
    if num_places > 0:
        tree.place[0] = 0
    # np.int64, because Numba would compile all that follows twice: for the literal 1, and for
    # numbers
    num_nodes = np.int64(1)
    work.stack[0] = 0
    num_waiting = np.int64(1)
    while num_waiting > 0:
        num_waiting -= 1
        index = work.stack[num_waiting]
        node = waiting_node(tree, index)
        log_total = score_node(design, prior, table, rows, node, work.scratch)
        option = draw_from_log_weights(
            work.scratch.option_log_weight, num_columns + 1, log_total, rng
        )
        if option == num_columns:
            continue
        cut = draw_cut(design, prior, table, rows, node, option, work.scratch, rng)
        split_node(tree, index, num_nodes, option, cut, design.codes[option], rows, work.spare)
        larger, smaller = place_sums(tree, num_nodes, node.place, num_places, min_rows)
        work.stack[num_waiting] = larger
        work.stack[num_waiting + 1] = smaller
        num_waiting += 2
        num_nodes += 2
    return num_nodes


@kernel
def waiting_node(tree, index):
    """Collect what scoring needs to know of a node."""
    place = tree.place[index]
    sibling_place = tree.sibling_place[index]
    is_ready = index > 0 and place >= 0 and sibling_place < 0
    return Node(
        tree.start[index],
        tree.stop[index],
        tree.depth[index],
        tree.sum_g[index],
        tree.sum_h[index],
        place,
        is_ready,
        sibling_place,
    )


@kernel
def draw_leaf_values(tree, num_nodes, leaf_var, rng):
    """Draw the value of every leaf from its posterior."""
    for node in range(num_nodes):
        if tree.column[node] == NO_COLUMN:
            tree.value[node] = draw_leaf_value(tree.sum_g[node], tree.sum_h[node], leaf_var, rng)
