"""What columns offer a node (floor 0: NumPy and Numba only).

The cuts of a column, and the evidence of the two leaves on their sides. Rows are read for two
columns at a time. Apart from that no column needs to know of another, so that several threads can
each look at some, with scratch of their own.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.cuts import is_varied
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inlined_kernel, inner_kernel
from pymc_xbart.kernels.draw import in_lanes, log_sum_exp_of_many
from pymc_xbart.kernels.histogram import add_two_columns
from pymc_xbart.kernels.node_cuts import (
    FIRST,
    MAX_RANGE_DEPTH,
    NO,
    SECOND,
    find_cuts,
    may_be_sparse,
    own_sums,
    start_code_range,
    with_sums,
)
from pymc_xbart.kernels.tally import sum_of, weight_of


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
def score_two_columns(
    design,
    prior,
    curvature,
    rows,
    node,
    pair,
    num_looked_at,
    num_considered,
    is_on_record,
    knows_even,
    scratch,
    scores,
):
    """Write what two columns offer a node to entries 2 `pair` and 2 `pair` + 1 of `scores`.

    These are columns of `scores.considered`; from `num_looked_at` on nothing is asked of them, and
    from `num_considered` on only whether they have cuts.

    Parameters
    ----------
    is_on_record : bool
        Whether the parent has looked at these columns, too.
    knows_even : bool
        Whether what all columns with even cuts have in common is in `scratch.cuts`.

    Returns
    -------
    knows_even : bool
    """
    is_added = add_both(
        *(design, prior, curvature, rows, node, pair, num_looked_at, num_considered, is_on_record),
        *(scratch, scores),
    )
    for which in range(1, -1, -1):
        k = 2 * pair + which
        if k < num_looked_at:
            knows_even = score_column(
                design,
                prior,
                curvature,
                rows,
                with_sums(node) if is_added else node,
                k,
                which,
                num_considered,
                is_on_record,
                knows_even,
                scratch,
                scores,
            )
    return knows_even


@inner_kernel
def add_both(
    design,
    prior,
    curvature,
    rows,
    node,
    pair,
    num_looked_at,
    num_considered,
    is_on_record,
    scratch,
    scores,
):
    """Add up the rows of a node for two columns at once. Returns whether there was use for that."""
    second = 2 * pair + 1
    if design.order.shape[1] > 0 or node.is_ready or second >= num_looked_at:
        return False
    if second >= num_considered and prior.min_samples_leaf == 1:  # of which little is asked
        return False
    u, v = scores.considered[second - 1], scores.considered[second]
    if prior.split_weights[u] == 0.0 or prior.split_weights[v] == 0.0:
        return False
    start_code_range(scratch.code_range, node.depth, u, design.num_codes, is_on_record)
    start_code_range(scratch.code_range, node.depth, v, design.num_codes, is_on_record)
    depth = min(node.depth, MAX_RANGE_DEPTH)
    return add_two_columns(
        design.codes[u],
        design.codes[v],
        rows,
        node.start,
        node.stop,
        scratch.code_range[depth, u],
        scratch.code_range[depth, v],
        curvature.is_whole,
        may_be_sparse(node),
        (own_sums(scratch, node, u, FIRST), own_sums(scratch, node, v, SECOND)),
    )


@inlined_kernel
def score_column(
    design,
    prior,
    curvature,
    rows,
    node,
    k,
    which,
    num_considered,
    is_on_record,
    knows_even,
    scratch,
    scores,
):
    """One of the columns of `score_two_columns`: the first or second, by `which`."""
    v = scores.considered[k]
    is_left_out = k >= num_considered
    scores.num_cuts[k] = 0
    if prior.split_weights[v] == 0.0:
        return knows_even
    if is_left_out and prior.min_samples_leaf == 1:
        scores.num_cuts[k] = is_varied(design, v, rows, node.start, node.stop)
        return knows_even
    start_code_range(scratch.code_range, node.depth, v, design.num_codes, is_on_record)
    num_cuts = find_cuts(design, prior, curvature, rows, node, v, which, NO, scratch)
    scores.num_cuts[k] = num_cuts
    if num_cuts == 0 or is_left_out:
        return knows_even
    is_even = curvature.is_uniform and has_even_cuts(design, v)
    if not (is_even and knows_even):
        weigh_cuts(scratch.cuts, num_cuts, node.sum_h, curvature)
    knows_even = is_even
    scores.log_evidence[k] = score_cuts(scratch.cuts, num_cuts, node, curvature, rows)
    return knows_even


@inner_kernel
def has_even_cuts(design, v):
    """Whether a column has as many rows left of each cut as every other column of which this holds.

    The cuts of a column without ties are a matter of counting, unless codes share buckets.
    """
    return design.num_codes[v] == design.order.shape[1]


@inner_kernel
def weigh_cuts(cuts, num_cuts, sum_h, curvature):
    """Write down what the sums of h on both sides of each cut say, that of the node being given."""
    _, tally, left_h, root, left_gain, right_gain, _ = cuts
    leaf_var = curvature.leaf_var
    if curvature.is_whole:
        total = weight_of(tally[num_cuts], curvature.layout)
        scale = leaf_var * curvature.h
        for k in range(POSITION_DTYPE(in_lanes(num_cuts))):
            weight = weight_of(tally[k], curvature.layout)
            left_ratio = 1.0 + scale * weight
            right_ratio = 1.0 + scale * (total - weight)
            root[k], left_gain[k], right_gain[k] = _weigh(left_ratio, right_ratio, leaf_var)
    else:
        for k in range(POSITION_DTYPE(in_lanes(num_cuts))):
            left_ratio = 1.0 + leaf_var * left_h[k]
            # sum_h - h can come out below zero by rounding where the right has no curvature
            right_ratio = 1.0 + leaf_var * max(0.0, sum_h - left_h[k])
            root[k], left_gain[k], right_gain[k] = _weigh(left_ratio, right_ratio, leaf_var)


@inner_kernel
def _weigh(left_ratio, right_ratio, leaf_var):
    """What two leaves with these 1 + v H say, as in `Cuts`.

    A root and one division, of several cuts at once, take less time than to look up a logarithm.
    """
    inverse = 1.0 / (left_ratio * right_ratio)
    gain = 0.5 * leaf_var * inverse
    return np.sqrt(inverse), gain * right_ratio, gain * left_ratio


@inner_kernel
def score_cuts(cuts, num_cuts, node, curvature, rows):
    """Log of the sum of exp(e(left) + e(right)) over cuts that have been weighed.

    The terms are left in `cuts.term`.
    """
    # Arrays are taken out of their records once: inside of loops Numba counts references each time.
    _, tally, _, root, left_gain, right_gain, term = cuts
    layout = curvature.layout
    unit = rows.unit[0]
    sum_g = node.sum_g
    for k in range(POSITION_DTYPE(in_lanes(num_cuts))):
        left_g = sum_of(tally[k], layout, unit)
        right_g = sum_g - left_g
        term[k] = left_gain[k] * left_g * left_g + right_gain[k] * right_g * right_g
    return log_sum_exp_of_many(term, root, num_cuts)
