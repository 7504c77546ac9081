"""Weights of everything that can happen to a node (floor 0: NumPy and Numba only).

With p_d = alpha (1 + d)^-beta, K_v candidate cuts in column v, s_v its split weight, and e the
evidence of a leaf, stopping weighs (1 - p_d) exp(e(node)), and a cut of column v weighs

    p_d * prior * exp(e(left) + e(right)),    where prior is

    columns    (s_v / sum of s over columns with cuts) / K_v
    cuts       s_v / sum of s_u K_u
    paper      s_v / sum of s over all columns considered

A node without cuts stops. "columns" gives a column its split weight, whatever the number of its
cuts. "cuts" is what the authors' released code does: all cuts weigh the same. "paper" is the text
of He, Yalov & Hahn (2019, eqs. 3 and 4), whose V null cuts let a node with K cuts split with prior
odds p_d K : (1 - p_d) V instead of p_d : (1 - p_d). The sum of all weights is the evidence of the
node looking one split ahead.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.columns import draw_columns, is_shared
from pymc_xbart.kernels.cuts import Cuts, is_varied, list_cuts, make_cuts
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.draw import draw_from_log_weights, log_sum_exp, log_sum_exp_of_many
from pymc_xbart.kernels.evidence import log_evidence
from pymc_xbart.kernels.histogram import Buckets, make_buckets, num_buckets, num_stored, sum_column
from pymc_xbart.kernels.ordered import Members, list_ordered_cuts, make_members, mark_members
from pymc_xbart.kernels.records import COLUMNS, CUTS
from pymc_xbart.kernels.sparse import Sparse, make_sparse
from pymc_xbart.kernels.tally import count_of, sum_of

# Of the types that a tree's arrays have, and comparisons: for literals, Numba would compile all
# scoring once more.
NOWHERE = np.int32(-1)
YES, NO = np.bool_(True), np.bool_(False)
MAX_RANGE_DEPTH = 64  # nodes from this depth on look for their code range themselves


class Scratch(NamedTuple):
    """Room for scoring nodes; contents are undefined between trees."""

    buckets: Buckets  # (num_buckets,), for nodes that keep no sums
    stored: Buckets  # (places, p, num_buckets), for those that do
    sparse: Sparse
    members: Members  # of the node at hand, on small data sets
    cuts: Cuts
    # Codes between which the last scored node of each depth lies, per column. Depth first, the last
    # scored node one level up is always the parent.
    code_range: np.ndarray  # (MAX_RANGE_DEPTH + 1, p, 2) int32


class Scores(NamedTuple):
    """What can happen to a node: option k < num_considered is to split on column considered[k]."""

    considered: np.ndarray  # (p,) int32, columns considered come first
    num_considered: np.ndarray  # (1,) int64; the option of this number is to stop
    log_weight: np.ndarray  # (p + 1,) float64, of the options
    log_evidence: np.ndarray  # (p,) float64, log of the sum over cuts of exp(e(left) + e(right))
    log_total: np.ndarray  # (1,) float64, log of the sum of the weights
    # (1,) float64, log of the share of columns considered among all that have cuts here, by weight
    log_share: np.ndarray


class Node(NamedTuple):
    """A node that waits to be scored. Places are positions in `Scratch.stored`, or NOWHERE."""

    start: int  # its slice of NodeRows
    stop: int
    depth: int
    sum_g: float
    sum_h: float
    place: int  # where it keeps its sums
    is_ready: bool  # its sums are there already
    parent_place: int  # where those of its parent are, if its larger sibling's are to be derived
    sibling_place: int  # where to put them
    has_parent: bool  # which was the last node to be scored at the depth above


def make_scratch(num_rows: int, num_columns: int, num_cutpoints: int) -> Scratch:
    """Allocate scratch for n rows and p columns."""
    size = num_buckets(num_cutpoints)
    return Scratch(
        make_buckets(size),
        make_buckets(num_stored(num_rows, num_columns, size), num_columns, size),
        make_sparse(size),
        make_members(num_rows),
        make_cuts(size),
        np.empty((MAX_RANGE_DEPTH + 1, num_columns, 2), np.int32),
    )


def make_scores(num_columns: int) -> Scores:
    """Allocate the scores of one node."""
    return Scores(
        np.empty(num_columns, np.int32),
        np.empty(1, np.int64),
        np.empty(num_columns + 1),
        np.empty(num_columns),
        np.empty(1),
        np.empty(1),
    )


@inner_kernel
def split_probability(prior, depth):
    """Prior probability that a node with cuts splits."""
    if depth >= prior.max_depth:
        return 0.0
    return prior.alpha * (1.0 + depth) ** -prior.beta


@inner_kernel
def score_node(design, prior, table, choice, rows, node, scratch, scores, rng):
    """Write the log-weights of what can happen to a node to `scores`.

    Their sum is the node's evidence one split ahead. Nodes must come depth first, a smaller child
    before its larger sibling. `rng` is used only if `choice` leaves columns to chance here.
    """
    considered = scores.considered
    log_weight = scores.log_weight
    split = split_probability(prior, node.depth)
    num_considered = draw_columns(choice, considered, rng) if split > 0.0 else 0
    # The parent has looked at this column, too, if all nodes look at the same columns.
    is_on_record = is_shared(choice) and node.has_parent and node.depth < MAX_RANGE_DEPTH
    available = 0.0  # what prior weights are divided by
    left_out = 0.0  # what they would be divided by in addition, if all columns were considered
    has_any = False
    knows_even = False  # whether `scratch.cuts` knows the counts of all columns with even cuts
    num_looked_at = considered.size if choice.is_per_tree and split > 0.0 else num_considered
    if num_looked_at > 0:
        look_at(design, table, rows, node, scratch.members)
    for k in range(num_looked_at):
        v = considered[k]
        weight = prior.split_weights[v]
        is_left_out = k >= num_considered
        if not is_left_out:
            log_weight[k] = -np.inf
        if weight == 0.0:
            continue
        if is_left_out and prior.min_samples_leaf == 1:
            if is_varied(design, v, rows, node.start, node.stop):
                left_out += weight
            continue
        start_code_range(scratch.code_range, node.depth, v, design.num_codes, is_on_record)
        num_cuts = find_cuts(design, prior, table, rows, node, v, NO, scratch)
        if is_left_out:
            if num_cuts > 0:
                left_out += weight
            continue
        if num_cuts > 0:
            has_any = True
            is_even = has_even_cuts(design, v)
            if table.is_uniform and not (is_even and knows_even):
                look_up_counts(scratch.cuts, num_cuts, node, table, rows.bits)
                knows_even = is_even
            scores.log_evidence[k] = score_cuts(scratch.cuts, num_cuts, node, table, rows)
            log_weight[k] = np.log(weight) + scores.log_evidence[k]
            if prior.cut_prior == COLUMNS:
                log_weight[k] -= np.log(num_cuts)
        if prior.cut_prior == CUTS:
            available += weight * num_cuts
        elif num_cuts > 0 or prior.cut_prior != COLUMNS:
            available += weight
    log_weight[num_considered] = log_evidence(node.sum_g, node.sum_h, table.leaf_var)
    if has_any or left_out > 0.0:
        log_weight[num_considered] += np.log1p(-split)
    if has_any:
        log_prior = np.log(split / available)
        for k in range(num_considered):
            log_weight[k] += log_prior
    scores.num_considered[0] = num_considered
    scores.log_total[0] = log_sum_exp(log_weight, num_considered + 1)
    scores.log_share[0] = -np.log1p(left_out / available) if has_any else 0.0


@inner_kernel
def lone_node(start, stop, depth, sum_g, sum_h):
    """Node that neither its parent nor its sibling is scored with."""
    return Node(start, stop, depth, sum_g, sum_h, NOWHERE, False, NOWHERE, NOWHERE, False)


@inner_kernel
def without_places(node, place):
    """The same node, with sums at `place` if anywhere, and none to derive for a sibling."""
    return Node(
        node.start,
        node.stop,
        node.depth,
        node.sum_g,
        node.sum_h,
        place,
        place >= 0,
        NOWHERE,
        NOWHERE,
        node.has_parent,
    )


@inner_kernel
def has_even_cuts(design, v):
    """Whether a column has as many rows left of each cut as every other column of which this holds.

    The cuts of a column without ties are a matter of counting, unless codes share buckets.
    """
    return design.num_codes[v] == design.order.shape[1]


@inner_kernel
def look_up_counts(cuts, num_cuts, node, table, bits):
    """Look up in the table what the number of rows on both sides of each cut says."""
    _, tally, _, half_log, left_gain, right_gain, _, _ = cuts
    num_rows = POSITION_DTYPE(node.stop - node.start)
    for k in range(num_cuts):
        left = POSITION_DTYPE(count_of(tally[k], bits))
        right = num_rows - left
        half_log[k] = table.half_log[left] + table.half_log[right]
        left_gain[k] = table.gain[left]
        right_gain[k] = table.gain[right]


@inner_kernel
def score_cuts(cuts, num_cuts, node, table, rows):
    """Write e(left) + e(right) to `cuts.log_weight`. Returns the log of the sum of their exp.

    Where h is uniform, counts must have been looked up.
    """
    # Arrays are taken out of their records once: inside of loops Numba counts references each time.
    _, tally, left_h, half_log, left_gain, right_gain, log_weight, powers = cuts
    bits = rows.bits
    unit = rows.unit[0]
    sum_g = node.sum_g
    if table.is_uniform:
        for k in range(POSITION_DTYPE(num_cuts)):
            left_g = sum_of(tally[k], bits, unit)
            right_g = sum_g - left_g
            log_weight[k] = (
                half_log[k] + left_gain[k] * left_g * left_g + right_gain[k] * right_g * right_g
            )
    else:
        leaf_var = table.leaf_var
        sum_h = node.sum_h
        for k in range(num_cuts):
            left_g = sum_of(tally[k], bits, unit)
            right_g = sum_g - left_g
            left_ratio = 1.0 + leaf_var * left_h[k]
            # sum_h - h can come out below zero by rounding where the right side has no curvature
            right_ratio = 1.0 + leaf_var * max(0.0, sum_h - left_h[k])
            log_weight[k] = 0.5 * (
                leaf_var * (left_g * left_g / left_ratio + right_g * right_g / right_ratio)
                - np.log(left_ratio * right_ratio)
            )
    return log_sum_exp_of_many(log_weight, num_cuts, powers)


@inner_kernel
def draw_cut(design, prior, table, rows, node, v, scratch, rng):
    """Code of a cut of column v, drawn by weight, in a node that has been scored.

    Its own children must not have been scored since.
    """
    # Finding the cuts again costs one column of many; keeping those of all columns would cost
    # memory traffic for each.
    again = without_places(node, node.place)
    look_at(design, table, rows, node, scratch.members)
    num_cuts = find_cuts(design, prior, table, rows, again, v, YES, scratch)
    if table.is_uniform:
        look_up_counts(scratch.cuts, num_cuts, again, table, rows.bits)
    log_total = score_cuts(scratch.cuts, num_cuts, again, table, rows)
    drawn = draw_from_log_weights(scratch.cuts.log_weight, num_cuts, log_total, rng)
    return scratch.cuts.code[drawn]


@inner_kernel
def look_at(design, table, rows, node, members):
    """Prepare finding the cuts of a node, in any column."""
    if design.order.shape[1] > 0:
        mark_members(rows, node.start, node.stop, table.is_uniform, members)


@inner_kernel
def find_cuts(design, prior, table, rows, node, v, wants_codes, scratch):
    """Write the candidate cuts of column v to `scratch.cuts`. Returns how many there are.

    The node must be the one that was looked at last. The codes of the cuts may be left out unless
    they are asked for.
    """
    if design.order.shape[1] > 0:
        return list_ordered_cuts(
            design.codes[v],
            design.order[v],
            design.num_codes[v] < design.order.shape[1],
            node.stop - node.start,
            prior.num_cutpoints,
            prior.min_samples_leaf,
            table.is_uniform,
            rows.bits,
            wants_codes,
            scratch.members,
            scratch.cuts,
        )
    own = scratch.buckets
    if node.place >= 0:
        own = column_of(scratch.stored, node.place, v)
    parent = own
    sibling = own
    has_sibling = node.sibling_place >= 0
    if has_sibling:
        parent = column_of(scratch.stored, node.parent_place, v)
        sibling = column_of(scratch.stored, node.sibling_place, v)
    code_range = scratch.code_range[min(node.depth, MAX_RANGE_DEPTH), v]
    base, shift, first, last, is_sparse = sum_column(
        design.codes[v],
        rows,
        node.start,
        node.stop,
        code_range,
        table.is_uniform,
        node.is_ready,
        own,
        has_sibling,
        parent,
        sibling,
        node.place < 0 and not has_sibling,
        scratch.sparse,
    )
    position = scratch.sparse.position if is_sparse else scratch.sparse.everywhere
    if shift == 0 and node.place < 0:
        # The outermost buckets are the outermost codes. (Stored sums must keep the base they were
        # added up with.)
        code_range[0] = base + position[first]
        code_range[1] = base + position[last]
    return list_cuts(
        own,
        position,
        base,
        shift,
        first,
        last,
        node.stop - node.start,
        prior.num_cutpoints,
        prior.min_samples_leaf,
        table.is_uniform,
        rows.bits,
        scratch.cuts,
    )


@inner_kernel
def has_cuts(design, prior, table, rows, node, scratch):
    """Whether a node can split, asking columns until one has cuts."""
    if prior.min_samples_leaf > 1:
        look_at(design, table, rows, node, scratch.members)
    for column in range(design.num_codes.size):
        v = np.int32(column)  # as everywhere else
        if prior.split_weights[v] == 0.0:
            continue
        if prior.min_samples_leaf == 1:
            if is_varied(design, v, rows, node.start, node.stop):
                return True
            continue
        start_code_range(scratch.code_range, node.depth, v, design.num_codes, NO)
        if find_cuts(design, prior, table, rows, node, v, NO, scratch) > 0:
            return True
    return False


@inner_kernel
def column_of(stored, place, v):
    """Sums of one column in one of the nodes that keep theirs."""
    return Buckets(stored.tally[place, v], stored.h[place, v])


@inner_kernel
def start_code_range(code_range, depth, v, num_codes, is_on_record):
    """Take over the parent's code range in column v, or the whole column if it is not on record."""
    own = code_range[min(depth, MAX_RANGE_DEPTH), v]
    if is_on_record:
        parent = code_range[depth - 1, v]
        own[0] = parent[0]
        own[1] = parent[1]
    else:
        own[0] = 0
        own[1] = num_codes[v] - 1
