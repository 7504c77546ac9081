"""Candidate cuts of a node, with the sums on their left (floor 0: NumPy and Numba only).

A cut is legal where both sides keep `min_samples_leaf` rows. If a node offers at most C =
`num_cutpoints` legal cuts in a column, all are candidates; otherwise those at which the number of
rows at or below the cut passes a multiple of j = max(1, floor((n_node - 2) / C)), as in He, Yalov &
Hahn (2019, "Recursively Defined Cut-points"), counted in rows so that ties neither hide a rare
level nor multiply a common one. If none passes, the first legal cut is the only one. The rule reads
the node's X only, never the response, so proposals, their evaluation and prior draws find the same
cuts.

Codes that share a bucket (see `histogram`) count as one value. That happens in nodes whose codes
range over more than there are buckets; a bucket then holds about a quarter of the rows between two
candidates of a large node, and a small node loses the cuts between rows that are close
neighbours.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.draw import in_lanes
from pymc_xbart.kernels.tally import bit_length, count_of


class Cuts(NamedTuple):
    """Candidate cuts of one column in one node, in increasing order; the rest is unused room."""

    code: np.ndarray  # (num_buckets,) int32, rows with code <= this go left
    # (num_buckets,) int64, of the rows that go left; behind the last cut, see `end_cuts`
    tally: np.ndarray
    h: np.ndarray  # (num_buckets,) float64, their sum of h; undefined where tallies tell it
    # What scoring finds, (num_buckets,) float64 each. exp(e(left) + e(right)) is root exp(gain).
    root: np.ndarray  # of 1 / (1 + v H) of the left times that of the right
    left_gain: np.ndarray  # v / (2 (1 + v H)) of the left, by which G^2 is multiplied
    right_gain: np.ndarray  # of the right
    # The gain; and once these are added up, root exp(gain), up to a factor common to all cuts.
    term: np.ndarray


def make_cuts(size: int) -> Cuts:
    """Allocate room for the cuts that `size` buckets can offer."""
    return Cuts(
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
    )


@inner_kernel
def list_cuts(
    buckets,
    position,
    base,
    shift,
    first,
    last,
    num_rows,
    num_cutpoints,
    min_samples_leaf,
    is_whole,
    layout,
    wants_codes,
    cuts,
):
    """Write the candidate cuts to `cuts`, without what scoring finds. Returns how many there are.

    Parameters
    ----------
    buckets : Buckets of shape (num_buckets,)
    position : (num_buckets,) int32
        Number of the bucket that each sum is of.
    base, shift, first, last : int
        As `sum_column` returns them.
    num_rows : int
        Rows of the node.
    layout : Layout
        Of tallies.
    wants_codes : bool
        Whether `cuts.code` is asked for.
    """
    step = max(1, (num_rows - 2) // num_cutpoints)  # rows between two candidates: the paper's j
    last_legal = num_rows - min_samples_leaf
    # Once more at most, with all legal cuts. They are counted only where no more than C pass a
    # multiple of j, which is rare. A loop, so that listing is compiled once.
    while True:
        num_cuts, total = _list_passing(
            *(buckets, first, last, num_rows, step, min_samples_leaf, is_whole, layout),
            *(wants_codes, cuts),
        )
        while num_cuts > 0 and count_of(cuts.tally[num_cuts - 1], layout) > last_legal:
            num_cuts -= 1
        if (
            step == 1
            or num_cuts > num_cutpoints
            or not _has_few(
                *(buckets.tally, layout, first, last),
                *(min_samples_leaf, last_legal, num_cutpoints),
            )
        ):
            break
        step = 1
    if num_cuts == 0 and step > 1:
        # No legal cut passes a multiple of j: a value that most rows share follows them all.
        num_cuts = _list_first_cut(
            *(buckets, first, last, min_samples_leaf, last_legal, is_whole, layout, cuts)
        )
    if wants_codes:
        code = cuts.code
        for k in range(POSITION_DTYPE(num_cuts)):
            code[k] = ((base + position[code[k]] + 1) << shift) - 1
    end_cuts(cuts, num_cuts, total)
    return num_cuts


@inner_kernel
def end_cuts(cuts, num_cuts, total):
    """Write down behind the last cut that all rows go left: once, and as far as scoring reads."""
    for k in range(num_cuts, in_lanes(num_cuts + 1)):
        cuts.tally[k] = total
        cuts.h[k] = 0.0


@inner_kernel
def _list_passing(
    buckets, first, last, num_rows, step, first_legal, is_whole, layout, wants_codes, cuts
):
    """List the cuts, from the first legal one on, that pass a multiple of the step.

    Instead of its code, a cut gets the number of its sum. Returns how many there are, and the tally
    of all rows.
    """
    # Arrays are taken out of their records once: inside of loops Numba would count references at
    # each access.
    tally, sum_h = buckets
    cut_code, cut_tally, cut_h, _, _, _, _ = cuts
    inverse_step, bits = invert(step, num_rows)
    first = POSITION_DTYPE(first)
    last = POSITION_DTYPE(last)
    left = np.int64(0)
    left_h = 0.0
    while first < last and count_of(left + tally[first], layout) < first_legal:
        left += tally[first]
        if not is_whole:
            left_h += sum_h[first]
        first += POSITION_DTYPE(1)
    num_cuts = POSITION_DTYPE(0)
    num_passed = POSITION_DTYPE(0)  # multiples of the step
    for b in range(first, last + POSITION_DTYPE(1)):
        left += tally[b]
        # Written in any case, and kept if the next is written behind it: whether a bucket is a cut
        # is nothing that a processor could guess.
        cut_tally[num_cuts] = left
        if wants_codes:
            cut_code[num_cuts] = b
        if not is_whole:
            left_h += sum_h[b]
            cut_h[num_cuts] = left_h
        before = num_passed
        num_passed = quotient(count_of(left, layout), inverse_step, bits)
        num_cuts += POSITION_DTYPE(num_passed != before)
    return np.int64(num_cuts), left


@inner_kernel
def invert(step, largest):
    """What `quotient` needs to divide numbers up to `largest` by a step: (inverse, bits).

    Division of integers would take longer than all else in the loops over buckets or rows. The
    product with this many 2^-bits, rounded up, has the same whole part (Granlund & Montgomery 1994,
    theorem 4.2).
    """
    bits = POSITION_DTYPE(bit_length(largest) + bit_length(step))
    return (POSITION_DTYPE(1) << bits) // POSITION_DTYPE(step) + POSITION_DTYPE(1), bits


@inner_kernel
def quotient(number, inverse, bits):
    """Whole part of a number over the step that was inverted."""
    return (POSITION_DTYPE(number) * inverse) >> bits


@inner_kernel
def _list_first_cut(buckets, first, last, first_legal, last_legal, is_whole, layout, cuts):
    """List the first legal cut, as `_list_passing` does. Returns 1, or 0 if there is none."""
    left = np.int64(0)
    left_h = 0.0
    for b in range(first, last + 1):
        left += buckets.tally[b]
        if not is_whole:
            left_h += buckets.h[b]
        if first_legal <= count_of(left, layout) <= last_legal:
            cuts.code[0] = b
            cuts.tally[0] = left
            cuts.h[0] = left_h
            return 1
    return 0


@inner_kernel
def _has_few(tally, layout, first, last, first_legal, last_legal, enough):
    """Whether there are at most `enough` legal cuts."""
    num_legal = 0
    num_left = np.int64(0)
    for b in range(first, last + 1):
        num_rows = count_of(tally[b], layout)
        num_left += num_rows
        if num_left > last_legal:
            break
        # No branch on whether a bucket holds rows, which a processor could not guess.
        num_legal += (num_rows > 0) & (num_left >= first_legal)
        if num_legal > enough:
            return False
    return True


@inner_kernel
def is_varied(design, v, rows, start, stop):
    """Whether column v tells apart some of the rows `rows[start:stop]`."""
    codes = design.codes[v]
    if design.num_codes[v] == codes.size:  # it tells apart all rows, and need not be read
        return stop - start > 1
    row = rows.row
    first = codes[row[start]]
    for i in range(start + 1, stop):  # noqa: SIM110 (Numba has no any())
        if codes[row[i]] != first:  # mostly seen in the first few
            return True
    return False
