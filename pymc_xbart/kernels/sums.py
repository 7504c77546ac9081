"""Sums that do not wait for each other (floor 0: NumPy and Numba only).

A processor adds several numbers at a time, but one that is added to the sum of those before it has
to wait for that. So there are four sums, added up in the end.
"""

from pymc_xbart.kernels.decorator import inner_kernel


@inner_kernel
def sum_of_sizes(values):
    """Sum of absolute values."""
    return _sum_of(_size, values)


@inner_kernel
def sum_of_squares(values):
    """Sum of squares."""
    return _sum_of(_square, values)


@inner_kernel
def _sum_of(term, values):
    """Sum over values of an inner kernel of one number."""
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    num_fours = values.size // 4
    for i in range(num_fours):
        first += term(values[4 * i])
        second += term(values[4 * i + 1])
        third += term(values[4 * i + 2])
        fourth += term(values[4 * i + 3])
    for i in range(4 * num_fours, values.size):
        first += term(values[i])
    return (first + second) + (third + fourth)


@inner_kernel
def _size(x):
    return abs(x)


@inner_kernel
def _square(x):
    return x * x
