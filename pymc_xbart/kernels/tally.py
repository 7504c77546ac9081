"""Sums over rows in one whole number, a tally (floor 0: NumPy and Numba only).

    tally  =  |  sum of g, in units  |  sum of weights  |  number of rows  |
                   64 - b bits                       b bits

Adding tallies adds all at once, for any rows in any order with the same result: no sum depends on
the way by which a node was reached. The unit is a power of two, as small as lets the sum of all |g|
fit. Each g is off by half a unit at most, which is 2^(b - 62) of that sum. Rows whose g is that
much smaller than the rest count as 0.

Only rows whose curvatures are multiples of one number have weights (see `weights`). Without them
that is 2e-16 with a thousand rows, and 2e-13 with a million; with them, where they are 4 on
average, 1e-12 with a thousand rows, and 2e-10 with ten thousand, the most that get some.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.sums import sum_of_sizes

ROOM = 62  # bits for all sums, apart from the sign, one of them for rounding
SMALLEST_EXPONENT = -900  # of a sum of |g|; below it g counts as zero
FEW_NODES = 33  # of a tree; up to here leaves are added up one by one, see `tally_of_leaf`


class Layout(NamedTuple):
    """Where in a tally its sums lie, in bits from the lowest."""

    count_end: int  # where the number of rows ends
    # Of the sum of weights. Without weights, each row weighs 1: the sum is the number of rows.
    weight_start: int
    sum_start: int  # where the sum of weights ends, and that of g begins


@inner_kernel
def lay_out(num_rows, total_weight):
    """Layout for all rows, which together have a weight above 0, or 0 if they have none."""
    count_end = bit_length(num_rows)
    weight_start = count_end if total_weight > 0 else np.int64(0)
    return Layout(count_end, weight_start, count_end + bit_length(total_weight))


@inner_kernel
def bit_length(number):
    """Bits that a whole number takes."""
    _, exponent = math.frexp(np.float64(number))
    return np.int64(exponent)


@inner_kernel
def count_of(tally, layout):
    """Number of rows."""
    return tally & ((np.int64(1) << layout.count_end) - 1)


@inner_kernel
def weight_of(tally, layout):
    """Sum of weights."""
    return (tally & ((np.int64(1) << layout.sum_start) - 1)) >> layout.weight_start


@inner_kernel
def sum_of(tally, layout, unit):
    """Sum of g."""
    return (tally >> layout.sum_start) * unit


@inner_kernel
def tally_of_leaf(tally, leaf, node):
    """Tally of the rows in one leaf, with `leaf` (n,) that of each row.

    All rows are read: for a few leaves that is several times as fast as adding each row to its own,
    which waits for the row before.
    """
    total = np.int64(0)
    for i in range(leaf.size):
        total += tally[i] if leaf[i] == node else 0
    return total


@inner_kernel
def unit_of(g, layout):
    """Unit for the tallies of g (n,), and its inverse.

    If some g is infinite or not a number, the unit is NaN, and so is any sum; the inverse is 0.
    """
    total = sum_of_sizes(g)
    if not total < np.inf:
        return np.nan, 0.0
    _, exponent = math.frexp(total)
    exponent = max(exponent, SMALLEST_EXPONENT) + int(layout.sum_start) - ROOM
    return math.ldexp(1.0, exponent), math.ldexp(1.0, -exponent)


@inner_kernel
def tally_rows(g, inverse_unit, blank, layout, tally, start, stop):
    """Write the tally of each row from start to stop to `tally` (n,).

    `blank` (n,) holds the tallies for g = 0, where there are weights. These are all there is if
    `inverse_unit` is 0.
    """
    has_weights = layout.weight_start > 0
    one = np.int64(1)
    start, stop = POSITION_DTYPE(start), POSITION_DTYPE(stop)
    if inverse_unit == 0.0:
        for i in range(start, stop):
            tally[i] = blank[i] if has_weights else one
    elif has_weights:
        for i in range(start, stop):
            tally[i] = (np.int64(np.rint(g[i] * inverse_unit)) << layout.sum_start) + blank[i]
    else:
        for i in range(start, stop):
            tally[i] = (np.int64(np.rint(g[i] * inverse_unit)) << layout.sum_start) + one
