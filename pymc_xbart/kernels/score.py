"""Weights of everything that can happen to a node (floor 0: NumPy and Numba only).

With p_d = alpha (1 + d)^-beta, K_v candidate cuts in column v and s_v its split weight (He, Yalov &
Hahn 2019, eqs. 3 and 4, with each column weighing the same however many cuts it has),

    cut of column v    p_d * (s_v / sum of s over columns with cuts) / K_v * exp(e(left) + e(right))
    stopping           (1 - p_d) * exp(e(node))

and a node without cuts stops. The sum of these weights is the evidence of the node looking one
split ahead.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.cuts import Cuts, list_cuts, make_cuts
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.draw import draw_from_log_weights, log_sum_exp
from pymc_xbart.kernels.evidence import log_evidence
from pymc_xbart.kernels.histogram import Buckets, make_buckets, num_buckets, num_stored, sum_column

NOWHERE = np.int32(
    -1
)  # of the type of GrowingTree's arrays: for another one, Numba would compile all scoring twice
MAX_RANGE_DEPTH = 64  # nodes from this depth on look for their code range themselves


class Scratch(NamedTuple):
    """Room for scoring nodes; contents are undefined between trees."""

    buckets: Buckets  # (num_buckets,), for nodes that keep no sums
    stored: Buckets  # (places, p, num_buckets), for those that do
    cuts: Cuts
    option_log_weight: (
        np.ndarray
    )  # (p + 1,) log-weight of splitting on each column, and of stopping
    # Codes between which the last scored node of each depth lies, per column. Depth first, the last
    # scored node one level up is always the parent.
    code_range: np.ndarray  # (MAX_RANGE_DEPTH + 1, p, 2) int32


class Node(NamedTuple):
    """A node that waits to be scored."""

    start: int  # its slice of NodeRows
    stop: int
    depth: int
    sum_g: float
    sum_h: float
    place: int  # where it keeps its sums among `Scratch.stored`; -1 if nowhere
    is_ready: bool  # its sums are there already
    # where its sums are to be taken out of the parent's, which leaves the sibling's; -1 if nowhere
    sibling_place: int


def make_scratch(num_rows: int, num_columns: int, num_cutpoints: int) -> Scratch:
    """Allocate scratch for n rows and p columns."""
    size = num_buckets(num_cutpoints)
    return Scratch(
        make_buckets(size),
        make_buckets(num_stored(num_rows, num_columns, size), num_columns, size),
        make_cuts(size),
        np.empty(num_columns + 1),
        np.empty((MAX_RANGE_DEPTH + 1, num_columns, 2), np.int32),
    )


@kernel
def split_probability(prior, depth):
    """Prior probability that a node with cuts splits."""
    if depth >= prior.max_depth:
        return 0.0
    return prior.alpha * (1.0 + depth) ** -prior.beta


@kernel
def score_cuts(cuts, num_cuts, num_rows, sum_g, sum_h, table):
    """Write e(left) + e(right) to `cuts.log_weight`. Returns the log of the sum of their exp."""
    _, num_left, left_g, left_h, log_weight = cuts
    if table.is_uniform:
        half_log = table.half_log
        gain = table.gain
        for k in range(num_cuts):
            left = num_left[k]
            right = np.uint32(num_rows) - left
            right_g = sum_g - left_g[k]
            log_weight[k] = (
                half_log[left]
                + half_log[right]
                + gain[left] * left_g[k] * left_g[k]
                + gain[right] * right_g * right_g
            )
    else:
        leaf_var = table.leaf_var
        for k in range(num_cuts):
            right_g = sum_g - left_g[k]
            left_ratio = 1.0 + leaf_var * left_h[k]
            # sum_h - h can come out below zero by rounding where the right side has no curvature
            right_ratio = 1.0 + leaf_var * max(0.0, sum_h - left_h[k])
            log_weight[k] = 0.5 * (
                leaf_var * (left_g[k] * left_g[k] / left_ratio + right_g * right_g / right_ratio)
                - np.log(left_ratio * right_ratio)
            )
    return log_sum_exp(log_weight, num_cuts)


@kernel
def score_node(design, prior, table, rows, node, scratch):
    """Write the log-weights of splitting on each column and of stopping to `option_log_weight`.

    Nodes must come depth first, a smaller child before its larger sibling. Returns the log of the
    sum of the weights, the node's evidence one split ahead.
    """
    num_columns = design.num_codes.size
    log_weight = scratch.option_log_weight
    split = split_probability(prior, node.depth)
    available = 0.0
    for v in range(num_columns):
        log_weight[v] = -np.inf
        if split == 0.0 or prior.split_weights[v] == 0.0:
            continue
        inherit_code_range(scratch.code_range, node.depth, v, design.num_codes)
        num_cuts = find_cuts(design, prior, table, rows, node, v, scratch)
        if num_cuts > 0:
            available += prior.split_weights[v]
            log_sum = score_cuts(
                scratch.cuts, num_cuts, node.stop - node.start, node.sum_g, node.sum_h, table
            )
            log_weight[v] = np.log(prior.split_weights[v] / num_cuts) + log_sum
    log_weight[num_columns] = log_evidence(node.sum_g, node.sum_h, table.leaf_var)
    if available == 0.0:
        return log_weight[num_columns]
    log_weight[num_columns] += np.log1p(-split)
    for v in range(num_columns):
        log_weight[v] += np.log(split / available)
    return log_sum_exp(log_weight, num_columns + 1)


@kernel
def draw_cut(design, prior, table, rows, node, v, scratch, rng):
    """Code of a cut of column v, drawn by weight, in the node that was scored last."""
    # Finding the cuts again costs one column of many; keeping those of all columns would cost
    # memory traffic for each.
    has_sums = node.place >= 0
    scored = Node(
        node.start, node.stop, node.depth, node.sum_g, node.sum_h, node.place, has_sums, NOWHERE
    )
    num_cuts = find_cuts(design, prior, table, rows, scored, v, scratch)
    log_total = score_cuts(
        scratch.cuts, num_cuts, node.stop - node.start, node.sum_g, node.sum_h, table
    )
    return scratch.cuts.code[
        draw_from_log_weights(scratch.cuts.log_weight, num_cuts, log_total, rng)
    ]


@kernel
def find_cuts(design, prior, table, rows, node, v, scratch):
    """Write the candidate cuts of column v to `scratch.cuts`. Returns how many there are."""
    own = scratch.buckets
    if node.place >= 0:
        own = column_of(scratch.stored, node.place, v)
    sibling = own
    if node.sibling_place >= 0:
        sibling = column_of(scratch.stored, node.sibling_place, v)
    code_range = scratch.code_range[min(node.depth, MAX_RANGE_DEPTH), v]
    base, shift, first, last = sum_column(
        design.codes[v],
        rows,
        node.start,
        node.stop,
        code_range,
        table.is_uniform,
        node.is_ready,
        own,
        node.sibling_place >= 0,
        sibling,
    )
    if shift == 0 and node.place < 0:
        # The outermost buckets are the outermost codes. (Stored sums must keep the base they were
        # added up with.)
        code_range[0] = base + first
        code_range[1] = base + last
    return list_cuts(
        own,
        base,
        shift,
        first,
        last,
        node.stop - node.start,
        prior.num_cutpoints,
        prior.min_samples_leaf,
        table.is_uniform,
        scratch.cuts,
    )


@kernel
def column_of(stored, place, v):
    """Sums of one column in one of the nodes that keep theirs."""
    return Buckets(stored.num_rows[place, v], stored.g[place, v], stored.h[place, v])


@kernel
def inherit_code_range(code_range, depth, v, num_codes):
    """Take over the parent's code range in column v, or the whole column if it is not on record."""
    own = code_range[min(depth, MAX_RANGE_DEPTH), v]
    if 0 < depth < MAX_RANGE_DEPTH:
        parent = code_range[depth - 1, v]
        own[0] = parent[0]
        own[1] = parent[1]
    else:
        own[0] = 0
        own[1] = num_codes[v] - 1
