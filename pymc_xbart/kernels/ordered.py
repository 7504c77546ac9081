"""Candidate cuts of a node, from rows in the order of a column (floor 0: NumPy and Numba only).

For small data sets, where looking after a thousand buckets costs more than the rows themselves. One
pass over all rows in increasing order of the column picks out those of the node; cuts are then
found by going from each to the next. The cuts are those of `cuts.list_cuts` where every code has a
bucket of its own, however many buckets there are for more rows.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.cuts import end_cuts, invert, quotient
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel

MAX_ORDERED = 1024  # rows; for all of them each node is asked, so that more are left to buckets
ORDER_DTYPE = np.uint16


class Members(NamedTuple):
    """Rows of one node among all n rows."""

    tally: np.ndarray  # (n,) int64, by row; 0 for rows of other nodes
    h: np.ndarray  # (n,) float64, by row; undefined for rows of other nodes
    row: np.ndarray  # (n + 1,) ORDER_DTYPE, those of the node in the order of a column
    running: np.ndarray  # (n + 1,) int64, tallies of the first, the first two, ... of them


def make_members(num_rows: int) -> Members:
    """Allocate for n rows; for none, if there are too many to use this."""
    size = num_rows if num_rows <= MAX_ORDERED else 0
    return Members(
        np.zeros(size, np.int64),
        np.empty(size),
        np.zeros(size + 1, ORDER_DTYPE),
        np.zeros(size + 1, np.int64),
    )


def order_rows(codes: np.ndarray) -> np.ndarray:
    """Rows of codes (p, n) in increasing order of each column, (p, n); (p, 0) for too many rows."""
    num_columns, num_rows = codes.shape
    if num_rows > MAX_ORDERED:
        return np.empty((num_columns, 0), ORDER_DTYPE)
    return np.argsort(codes, axis=1, kind="stable").astype(ORDER_DTYPE)


@inner_kernel
def mark_members(rows, start, stop, is_whole, members):
    """Let `members` hold the rows of the node `rows[start:stop]`."""
    row, tally, h, _ = rows
    member_tally, member_h, _, _ = members
    for i in range(member_tally.size):
        member_tally[i] = 0
    for k in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        i = POSITION_DTYPE(row[k])
        member_tally[i] = tally[k]
        if not is_whole:
            member_h[i] = h[k]


@inner_kernel
def list_ordered_cuts(
    codes,
    order,
    has_ties,
    num_rows,
    num_cutpoints,
    min_samples_leaf,
    is_whole,
    layout,
    wants_codes,
    members,
    cuts,
):
    """Write the candidate cuts of a column to `cuts`, without what scoring finds.

    Returns how many there are.


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
    layout : Layout
        Of tallies.
    wants_codes : bool
        Whether `cuts.code` is asked for, which takes some more time.
    """
    lists_rows = wants_codes or has_ties or not is_whole
    total = _add_up(order, lists_rows, layout, members)
    step = max(1, (num_rows - 2) // num_cutpoints)
    last_legal = num_rows - min_samples_leaf
    if step > 1 and _has_few(
        codes, members.row, has_ties, min_samples_leaf, last_legal, num_cutpoints
    ):
        step = 1
    first = max(step, min_samples_leaf)
    # Where no legal cut passes a multiple of the step, the first legal one is the only candidate.
    if not lists_rows:
        if first > last_legal:
            first, step = min_samples_leaf, num_rows
        num_cuts = _pick_even(members.running, first, step, last_legal, cuts.tally)
    else:
        num_cuts = _walk(
            codes, has_ties, num_rows, first, step, last_legal, is_whole, members, cuts
        )
        if num_cuts == 0 and step > 1:
            first, step = min_samples_leaf, num_rows
            num_cuts = _walk(
                codes, has_ties, num_rows, first, step, last_legal, is_whole, members, cuts
            )
    end_cuts(cuts, num_cuts, total)
    return num_cuts


@inner_kernel
def _add_up(order, lists_rows, layout, members):
    """Add up the node's rows in the order of a column, one by one, and list them if asked to.

    Returns their tally.
    """
    tally, _, row, running = members
    in_count = POSITION_DTYPE((np.int64(1) << layout.count_end) - 1)
    total = np.int64(0)
    # What is written for a row of another node is overwritten by the next of this one: their number
    # is part of the tally.
    if lists_rows:
        for k in range(POSITION_DTYPE(order.size)):
            i = order[k]
            position = POSITION_DTYPE(total) & in_count
            total += tally[i]
            running[position] = total
            row[position] = i
    else:
        for k in range(POSITION_DTYPE(order.size)):
            position = POSITION_DTYPE(total) & in_count
            total += tally[order[k]]
            running[position] = total
    return total


@inner_kernel
def _pick_even(running, first, step, last_legal, tally):
    """List the cuts behind `first` rows and behind further multiples of `step`: there are no ties.

    Only tallies are listed. `first` is a multiple of `step` or, if above it, the first legal cut.
    """
    if first > last_legal:
        return np.int64(0)
    tally[0] = running[first - 1]
    num_cuts = POSITION_DTYPE(1)
    one = POSITION_DTYPE(1)
    num_left = POSITION_DTYPE((first // step + 1) * step)
    while num_left <= POSITION_DTYPE(last_legal):
        tally[num_cuts] = running[num_left - one]
        num_cuts += one
        num_left += POSITION_DTYPE(step)
    return np.int64(num_cuts)


@inner_kernel
def _walk(codes, has_ties, num_rows, first, step, last_legal, is_whole, members, cuts):
    """List the cut at or behind `first` rows, and those behind further multiples of `step`."""
    _, h, row, running = members
    cut_code, cut_tally, cut_h, _, _, _, _ = cuts
    inverse_step, bits = invert(step, num_rows)
    num_cuts = 0
    num_left = np.int64(0)
    left_h = 0.0
    target = np.int64(first)
    while target <= last_legal:
        before = num_left
        num_left = target
        if has_ties:
            code = codes[row[num_left - 1]]
            while num_left < num_rows and codes[row[num_left]] == code:
                num_left += 1
            if num_left > last_legal:
                break
        cut_tally[num_cuts] = running[num_left - 1]
        cut_code[num_cuts] = codes[row[num_left - 1]]
        if not is_whole:
            left_h += _sum_at(h, row, before, num_left)
            cut_h[num_cuts] = left_h
        num_cuts += 1
        if num_cuts == 1 or has_ties:
            target = (np.int64(quotient(num_left, inverse_step, bits)) + 1) * step
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
        num_legal += codes[row[k - 1]] != codes[row[k]]  # no branch, as in `cuts`
        if num_legal > enough:
            return False
    return True
