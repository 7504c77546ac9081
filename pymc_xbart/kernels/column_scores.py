"""What one column offers a node (floor 0: NumPy and Numba only).

The cuts of a column, and the evidence of the two leaves on their sides. No column needs to know of
another, so that several threads can each look at some, with scratch of their own.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.cuts import Cuts, is_varied, list_cuts, make_cuts
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inlined_kernel, inner_kernel
from pymc_xbart.kernels.draw import log_sum_exp_of_many, logs_of_many
from pymc_xbart.kernels.histogram import Buckets, make_buckets, num_buckets, num_stored, sum_column
from pymc_xbart.kernels.ordered import Members, list_ordered_cuts, make_members, mark_members
from pymc_xbart.kernels.sparse import Sparse, make_sparse
from pymc_xbart.kernels.tally import sum_of, weight_of

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
    num_cuts: np.ndarray  # (p,) int64, of each column; if it is left out, whether it has some
    log_weight: np.ndarray  # (p + 1,) float64, of the options
    log_evidence: np.ndarray  # (p,) float64, log of the sum over cuts of exp(e(left) + e(right))
    log_total: np.ndarray  # (1,) float64, log of the sum of the weights
    # (1,) float64, log of the share of columns considered among all that have cuts here, by weight
    log_share: np.ndarray
    is_of_root: bool  # which of the two that a `Workspace` has


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


def another_scratch(scratch: Scratch) -> Scratch:
    """Allocate what a second thread needs of its own to score columns of the same nodes."""
    size = scratch.buckets.tally.size
    row, running = scratch.members.row, scratch.members.running
    return scratch._replace(
        buckets=make_buckets(size),
        sparse=make_sparse(size),
        members=scratch.members._replace(row=row.copy(), running=running.copy()),
        cuts=make_cuts(size),
    )


def make_scores(num_columns: int, *, is_of_root: bool = False) -> Scores:
    """Allocate the scores of one node."""
    return Scores(
        np.empty(num_columns, np.int32),
        np.empty(1, np.int64),
        np.empty(num_columns, np.int64),
        np.empty(num_columns + 1),
        np.empty(num_columns),
        np.empty(1),
        np.empty(1),
        is_of_root,
    )


@inlined_kernel
def score_column(
    design,
    prior,
    table,
    rows,
    node,
    k,
    num_considered,
    is_on_record,
    knows_even,
    scratch,
    scores,
):
    """Write what column `scores.considered[k]` offers a node to entry k of `scores`.

    Of a column that is not among the first `num_considered`, only whether it has cuts is asked.

    Parameters
    ----------
    is_on_record : bool
        Whether the parent has looked at the column, too.
    knows_even : bool
        Whether what is looked up for all columns with even cuts is in `scratch.cuts`.

    Returns
    -------
    knows_even : bool
    """
    v = scores.considered[k]
    is_left_out = k >= num_considered
    scores.num_cuts[k] = 0
    if prior.split_weights[v] == 0.0:
        return knows_even
    if is_left_out and prior.min_samples_leaf == 1:
        scores.num_cuts[k] = is_varied(design, v, rows, node.start, node.stop)
        return knows_even
    start_code_range(scratch.code_range, node.depth, v, design.num_codes, is_on_record)
    num_cuts = find_cuts(design, prior, table, rows, node, v, NO, scratch)
    scores.num_cuts[k] = num_cuts
    if num_cuts == 0 or is_left_out:
        return knows_even
    if table.is_tabulated:
        is_even = table.is_uniform and has_even_cuts(design, v)
        if not (is_even and knows_even):
            look_up_cuts(scratch.cuts, num_cuts, table)
        knows_even = is_even
    scores.log_evidence[k] = score_cuts(scratch.cuts, num_cuts, node, table, rows)
    return knows_even


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
def look_up_cuts(cuts, num_cuts, table):
    """Look up in the table what the weights on both sides of each cut say."""
    _, tally, _, half_log, left_gain, right_gain, _, _ = cuts
    total = POSITION_DTYPE(weight_of(tally[num_cuts], table.layout))
    for k in range(POSITION_DTYPE(num_cuts)):
        left = POSITION_DTYPE(weight_of(tally[k], table.layout))
        right = total - left
        half_log[k] = table.half_log[left] + table.half_log[right]
        left_gain[k] = table.gain[left]
        right_gain[k] = table.gain[right]


@inner_kernel
def score_cuts(cuts, num_cuts, node, table, rows):
    """Write e(left) + e(right) to `cuts.log_weight`. Returns the log of the sum of their exp.

    Where evidence is tabulated, the cuts must have been looked up.
    """
    # Arrays are taken out of their records once: inside of loops Numba counts references each time.
    _, tally, left_h, half_log, left_gain, right_gain, log_weight, powers = cuts
    layout = table.layout
    unit = rows.unit[0]
    sum_g = node.sum_g
    if table.is_tabulated:
        for k in range(POSITION_DTYPE(num_cuts)):
            left_g = sum_of(tally[k], layout, unit)
            right_g = sum_g - left_g
            log_weight[k] = (
                half_log[k] + left_gain[k] * left_g * left_g + right_gain[k] * right_g * right_g
            )
    else:
        leaf_var = table.leaf_var
        sum_h = node.sum_h
        # half_log is free here: it holds the product of the ratios, and then the logarithm of it.
        for k in range(POSITION_DTYPE(num_cuts)):
            left_g = sum_of(tally[k], layout, unit)
            right_g = sum_g - left_g
            left_ratio = 1.0 + leaf_var * left_h[k]
            # sum_h - h can come out below zero by rounding where the right side has no curvature
            right_ratio = 1.0 + leaf_var * max(0.0, sum_h - left_h[k])
            log_weight[k] = leaf_var * (
                left_g * left_g / left_ratio + right_g * right_g / right_ratio
            )
            half_log[k] = left_ratio * right_ratio
        logs_of_many(half_log[:num_cuts])
        for k in range(POSITION_DTYPE(num_cuts)):
            log_weight[k] = 0.5 * (log_weight[k] - half_log[k])
    return log_sum_exp_of_many(log_weight, num_cuts, powers)


@inner_kernel
def look_at(design, table, rows, node, members):
    """Prepare finding the cuts of a node, in any column."""
    if design.order.shape[1] > 0:
        mark_members(rows, node.start, node.stop, table.is_tabulated, members)


@inlined_kernel
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
            table.is_tabulated,
            table.layout,
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
        table.is_tabulated,
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
        table.is_tabulated,
        table.layout,
        scratch.cuts,
    )


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
