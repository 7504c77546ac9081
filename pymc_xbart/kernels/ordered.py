"""Candidate cuts of a node, from rows in the order of a column (floor 0: NumPy and Numba only).

For small data sets, where looking after a thousand buckets costs more than the rows themselves. One
pass over all rows in increasing order of the column picks out those of the node; cuts are then
found by going from each to the next. The cuts are those of `cuts.list_cuts` where every code has a
bucket of its own, which so few rows never fill.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel

MAX_ORDERED = 1024  # rows; for all of them each node is asked, so that more are left to buckets
ORDER_DTYPE = np.uint16


class Members(NamedTuple):
    """Rows of one node among all n rows."""

    is_member: np.ndarray  # (n,) uint8, 1 for the rows of the node, else 0
    g: np.ndarray  # (n,) float64, by row; undefined for rows of other nodes
    h: np.ndarray  # (n,) float64, likewise, and where h is uniform
    row: np.ndarray  # (n + 1,) ORDER_DTYPE, those of the node in the order of a column


def make_members(num_rows: int) -> Members:
    """Allocate for n rows; for none, if there are too many to use this."""
    size = num_rows if num_rows <= MAX_ORDERED else 0
    return Members(
        np.zeros(size, np.uint8), np.empty(size), np.empty(size), np.zeros(size + 1, ORDER_DTYPE)
    )


def order_rows(codes: np.ndarray) -> np.ndarray:
    """Rows of codes (p, n) in increasing order of each column, (p, n); (p, 0) for too many rows."""
    num_columns, num_rows = codes.shape
    if num_rows > MAX_ORDERED:
        return np.empty((num_columns, 0), ORDER_DTYPE)
    return np.argsort(codes, axis=1, kind="stable").astype(ORDER_DTYPE)


@inner_kernel
def mark_members(rows, start, stop, uniform_h, members):
    """Let `members` hold the rows of the node `rows[start:stop]`."""
    row, g, h = rows
    is_member, member_g, member_h, _ = members
    for i in range(is_member.size):
        is_member[i] = 0
    for k in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        i = POSITION_DTYPE(row[k])
        is_member[i] = 1
        member_g[i] = g[k]
        if not uniform_h:
            member_h[i] = h[k]


@inner_kernel
def list_ordered_cuts(
    codes,
    order,
    has_ties,
    num_rows,
    num_cutpoints,
    min_samples_leaf,
    uniform_h,
    members,
    cuts,
):
    """Write the candidate cuts of a column to `cuts` (apart from `log_weight`). Returns how many.

    Parameters
    ----------
    codes : (n,) uint16
        The column.
    order : (n,) ORDER_DTYPE
        All rows, in increasing order of their codes.
    has_ties : bool
        Whether any two rows have the same code.
    num_rows : int
        Rows of the node, which `members` holds.
    """
    is_member, _, _, row = members
    size = POSITION_DTYPE(0)
    for k in range(POSITION_DTYPE(order.size)):
        i = order[k]
        row[size] = i  # to be overwritten unless it is one of the node's
        size += POSITION_DTYPE(is_member[i])
    step = max(1, (num_rows - 2) // num_cutpoints)
    last_legal = num_rows - min_samples_leaf
    if step > 1 and _has_few(codes, row, has_ties, min_samples_leaf, last_legal, num_cutpoints):
        step = 1
    first = max(step, min_samples_leaf)
    num_cuts = _walk(codes, has_ties, num_rows, first, step, last_legal, uniform_h, members, cuts)
    if num_cuts == 0 and step > 1:
        # No legal cut passes a multiple of the step: the first legal one is the only candidate.
        first, step = min_samples_leaf, num_rows
        num_cuts = _walk(
            codes, has_ties, num_rows, first, step, last_legal, uniform_h, members, cuts
        )
    return num_cuts


@inner_kernel
def _walk(codes, has_ties, num_rows, first, step, last_legal, uniform_h, members, cuts):
    """List the cut at or behind `first` rows, and those behind further multiples of `step`."""
    _, g, h, row = members
    cut_code, cut_num_left, cut_g, cut_h, _, _ = cuts
    inverse_step = 1.0 / step
    num_cuts = 0
    num_left = np.int64(0)
    left_g = 0.0
    left_h = 0.0
    target = np.int64(first)
    while target <= last_legal:
        more_g = _sum_at(g, row, num_left, target)
        more_h = 0.0 if uniform_h else _sum_at(h, row, num_left, target)
        num_left = target
        code = codes[row[num_left - 1]]
        if has_ties:
            while num_left < num_rows and codes[row[num_left]] == code:
                more_g += g[row[num_left]]
                if not uniform_h:
                    more_h += h[row[num_left]]
                num_left += 1
            if num_left > last_legal:
                break
        left_g += more_g
        left_h += more_h
        cut_code[num_cuts] = code
        cut_num_left[num_cuts] = num_left
        cut_g[num_cuts] = left_g
        cut_h[num_cuts] = left_h
        num_cuts += 1
        if num_cuts == 1 or has_ties:
            # See `cuts.list_cuts`, which divides in the same way.
            target = (np.int64((num_left + 0.5) * inverse_step) + 1) * step
        else:  # from one multiple to the next, where no tie led beyond it
            target += step
    return num_cuts


@inner_kernel
def _sum_at(values, row, start, stop):
    """Sum of `values` at `row[start:stop]`, in two sums that do not wait for each other."""
    even = 0.0
    odd = 0.0
    k = POSITION_DTYPE(start)
    last = POSITION_DTYPE(stop) - POSITION_DTYPE(1)  # stop is at least 1
    while k < last:
        even += values[row[k]]
        odd += values[row[k + POSITION_DTYPE(1)]]
        k += POSITION_DTYPE(2)
    return even + odd + values[row[k]] if k == last else even + odd


@inner_kernel
def _has_few(codes, row, has_ties, first_legal, last_legal, enough):
    """Whether there are at most `enough` legal cuts."""
    if not has_ties:
        return last_legal - first_legal + 1 <= enough
    num_legal = 0
    for k in range(first_legal, last_legal + 1):
        if codes[row[k - 1]] != codes[row[k]]:
            num_legal += 1
            if num_legal > enough:
                return False
    return True
