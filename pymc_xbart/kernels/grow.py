"""Grow one tree from the root, or evaluate one along its own path (floor 0: NumPy and Numba only).

1. Score every candidate cut, and stopping, by integrated likelihood times prior.
2. Draw one of them. On "stop" the node is a leaf; otherwise its rows are split and both sides go
   through the same.

He, Yalov & Hahn (2019), algorithm "Grow-from-root backfitting". Departures: an explicit stack
replaces recursion, so that depth cannot overflow it, and leaf values are drawn apart from the
structure, because a Metropolis-Hastings correction has to decide between two structures first.

With M(node) the sum of a node's weights and e the evidence of a leaf, a tree's posterior is

    log w = sum over nodes of log M(node)
            - sum over split nodes of [e(left) + e(right) - log(A_S / A)]

above the logarithm of the density with which growing proposes it, up to a constant. A is the sum of
the split weights of all columns with cuts in the node, and A_S of those that are considered.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.column_scores import Scores, make_scores
from pymc_xbart.kernels.columns import is_shared
from pymc_xbart.kernels.crew import LEAST_WORK, Crew, make_crew
from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.draw import draw_from_log_weights
from pymc_xbart.kernels.evidence import log_evidence, sums_of_node
from pymc_xbart.kernels.node_cuts import Scratch, make_scratch
from pymc_xbart.kernels.partition import NodeRows, make_node_rows, open_root
from pymc_xbart.kernels.score import draw_cut, score_node
from pymc_xbart.kernels.tree import (
    add_node,
    make_tree,
    order_children,
    split_node,
    waiting_node,
)


class Workspace(NamedTuple):
    """Scratch of a sweep over n rows and p columns.

    Nothing in it outlives a call, but for the row numbers of the root.
    """

    blank: np.ndarray  # (n,) int64, tally of each row for g = 0, where there are weights
    rows: NodeRows  # the root's tallies are those of the tree at hand
    tree: np.ndarray  # (2 n,) NODE_DTYPE, the tree that grows
    current: np.ndarray  # (2 n,) NODE_DTYPE, the tree that it may replace
    value: np.ndarray  # (2 n,) float64, of the nodes of one of them, while g is moved
    stack: np.ndarray  # (n + 1,) int32, nodes that wait
    scratch: Scratch
    scores: Scores  # of the node scored last
    root_scores: Scores  # of the root, for all trees over the same g and h
    used: np.ndarray  # (p,) bool, columns
    site_column: np.ndarray  # (1,) int32
    crew: Crew | None  # who helps to score nodes


def make_workspace(
    num_rows: int,
    num_columns: int,
    num_cutpoints: int,
    num_threads: int = 1,
    least_work: int = LEAST_WORK,
) -> Workspace:
    """Allocate the scratch that a sweep needs; keep it between sweeps.

    Threads beyond the first help to score nodes of at least so much work, see `crew`. Results do
    not depend on either.
    """
    return Workspace(
        np.empty(num_rows, np.int64),
        make_node_rows(num_rows),
        make_tree(num_rows),
        make_tree(num_rows),
        np.empty(2 * num_rows),
        np.empty(num_rows + 1, np.int32),
        make_scratch(num_rows, num_columns, num_cutpoints),
        make_scores(num_columns),
        make_scores(num_columns, is_of_root=True),
        np.empty(num_columns, np.bool_),
        np.empty(1, np.int32),
        make_crew(num_threads, least_work),
    )


class Built(NamedTuple):
    """What is known of a tree once it has been built."""

    num_nodes: int
    log_w: float  # see the head of this file
    log_density: float  # of growing this structure from the root, leaf values apart


@inner_kernel
def build_tree(
    forest, start, is_given, root_is_scored, tree, h, design, prior, curvature, choice, work, rng
):
    """Grow a tree from the root, or follow a given one along its own path.

    `work` must have taken up g of the forest without the tree.

    One function, because both score the nodes they meet, and Numba would compile scoring twice.

    Parameters
    ----------
    forest, start
        Where the given tree stands. Not read if `is_given` is false.
    is_given : bool
    root_is_scored : bool
        Whether `work.root_scores` holds the scores of the root for the same g and h.
    tree : (2 n,) NODE_DTYPE
        Overwritten with the tree, and `work.rows` with its rows.
    h : (n,) float64
    choice : ColumnChoice
        The same for all nodes, and with all columns of the tree, if it is given.

    Returns
    -------
    Built
    """
    rows = work.rows
    num_places = work.scratch.stored.tally.shape[0]
    min_rows = work.scratch.buckets.tally.shape[2]
    tally, sum_h = open_root(h, curvature.is_whole, rows)
    sum_g, sum_h = sums_of_node(tally, sum_h, rows, curvature)
    add_node(tree, np.int64(0), np.int32(0), np.int32(h.size), np.int32(0), sum_g, sum_h)
    if num_places > 0 and is_shared(choice):  # else a child may need sums that its parent lacks
        tree[0]["place"] = 0
    log_w = 0.0
    log_density = 0.0
    # np.int64, because Numba would compile all that follows for the literal 1 as well.
    num_nodes = np.int64(1)
    work.stack[0] = 0
    num_waiting = np.int64(1)
    while num_waiting > 0:
        num_waiting -= 1
        index = work.stack[num_waiting]
        node = waiting_node(tree, index)
        scores = work.root_scores if index == 0 else work.scores
        if index > 0 or not root_is_scored:
            score_node(
                design, prior, curvature, choice, rows, node, work.scratch, scores, work.crew, rng
            )
        log_w += scores.log_total[0]
        if is_given:
            option = option_of(forest.column[start + index], scores)
            cut = forest.cut[start + index]
            left = np.int64(forest.left[start + index])
        else:
            option = draw_option(scores, rng)
            cut = np.int32(0)
            left = num_nodes
        log_density += scores.log_weight[option] - scores.log_total[0]
        if option == scores.num_considered[0]:
            continue
        v = scores.considered[option]
        if not is_given:
            cut = draw_cut(design, prior, curvature, rows, node, v, work.scratch, rng)
        split_node(tree, index, left, v, cut, design.codes[v], curvature, rows, work.crew)
        evidence = evidence_of_children(tree, index, curvature.leaf_var)
        log_w -= evidence - scores.log_share[0]
        log_density += evidence - scores.log_evidence[option]
        larger, smaller = order_children(tree, index, num_places, min_rows)
        # The smaller child first, and depth first: scoring relies on it.
        work.stack[num_waiting] = larger
        work.stack[num_waiting + 1] = smaller
        num_waiting += 2
        num_nodes += 2
    return Built(num_nodes, log_w, log_density)


@inner_kernel
def option_of(column, scores):
    """Option that a given tree has taken in a node: to split on `column`, or to stop."""
    num_considered = scores.num_considered[0]
    for k in range(num_considered):
        if scores.considered[k] == column:
            return k
    return num_considered


@inner_kernel
def draw_option(scores, rng):
    """Draw what happens to a node. It stops where no weight is a number, as when g or h are not."""
    stop = scores.num_considered[0]
    drawn = draw_from_log_weights(scores.log_weight, stop + 1, scores.log_total[0], rng)
    # Option -1 would be a split without cuts, and empty leaves overrun the memory of the tree.
    return drawn if drawn >= 0 else stop


@inner_kernel
def evidence_of_children(tree, node, leaf_var):
    """Sum of the evidences of a split's children, taken as leaves."""
    left = tree[node]["left"]
    return log_evidence(tree[left]["sum_g"], tree[left]["sum_h"], leaf_var) + log_evidence(
        tree[left + 1]["sum_g"], tree[left + 1]["sum_h"], leaf_var
    )
