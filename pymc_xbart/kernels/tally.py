"""Number of rows and sum of g in one whole number, a tally (floor 0: NumPy and Numba only).

    tally  =  |  sum of g, in units  |  number of rows  |
                   64 - b bits             b bits

Adding tallies adds both at once, for any rows in any order with the same result: no sum depends on
the way by which a node was reached. The unit is a power of two, as small as lets the sum of all |g|
fit. Each g is off by half a unit at most, which is 2^(b - 62) of that sum: 2e-16 of it with a
thousand rows, 2e-13 with a million. Rows whose g is that much smaller than the rest count as 0.
"""

import math

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel

ROOM = 62  # bits for number and sum, apart from the sign, one of them for rounding
SMALLEST_EXPONENT = -900  # of a sum of |g|; below it g counts as zero


def num_count_bits(num_rows: int) -> int:
    """Bits that the number of rows takes."""
    return num_rows.bit_length()


@inner_kernel
def count_of(tally, bits):
    """Number of rows."""
    return tally & ((np.int64(1) << bits) - 1)


@inner_kernel
def sum_of(tally, bits, unit):
    """Sum of g."""
    return (tally >> bits) * unit


@inner_kernel
def tally_of_leaf(tally, leaf, node):
    """Tally of the rows in one leaf, with `leaf` (n,) that of each row.

    All rows are read: for a few leaves that is several times as fast as adding each row to its own,
    which waits for the row before.
    """
    total = np.int64(0)
    for i in range(tally.size):
        total += tally[i] if leaf[i] == node else 0
    return total


@inner_kernel
def tally_rows(g, bits, tally):
    """Write the tally of each row to `tally` (n,). Returns the unit.

    If some g is infinite or not a number, the unit is NaN, and so is any sum.
    """
    total = _sum_of_sizes(g)
    one = np.int64(1)
    if not total < np.inf:
        for i in range(g.size):
            tally[i] = one
        return np.nan
    _, exponent = math.frexp(total)
    exponent = max(exponent, SMALLEST_EXPONENT) + bits - ROOM
    units = math.ldexp(1.0, -exponent)
    for i in range(g.size):
        tally[i] = (np.int64(np.rint(g[i] * units)) << bits) + one
    return math.ldexp(1.0, exponent)


@inner_kernel
def _sum_of_sizes(g):
    """Sum of |g|, in four sums that do not wait for each other."""
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    num_fours = g.size // 4
    for i in range(num_fours):
        first += abs(g[4 * i])
        second += abs(g[4 * i + 1])
        third += abs(g[4 * i + 2])
        fourth += abs(g[4 * i + 3])
    for i in range(4 * num_fours, g.size):
        first += abs(g[i])
    return (first + second) + (third + fourth)
