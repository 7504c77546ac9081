"""Curvatures that are whole multiples of one number (floor 0: NumPy and Numba only).

With h = w h0 and whole weights w, the sum of h over any rows is h0 times a whole number, which a
tally can hold beside the number of rows and the sum of g, so that adding once adds all three. Rows
that stand for several others have such h; any other h can be rounded to some, see
`whole_multiples`.

Multiples are meant to the last bit: a node must have the evidence of its own h, not of a close one.
"""

import math

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel

# A tally has to hold the sum of weights: its bits are taken from the sum of g (see `tally`).
MAX_ROWS = 10_000
MAX_MEAN_WEIGHT = 8
MAX_SMALLEST = 8  # of the weights above 0, see `common_divisor`
DIVISOR_BITS = 24  # of 53: its product with a weight below 2^29 is not rounded


def whole_multiples(h: np.ndarray, coarse: float, rng: np.random.Generator) -> np.ndarray:
    """Round curvatures to whole multiples of their mean / `coarse`, at random, without bias.

    Parameters
    ----------
    h : ndarray of shape (n,)
        At least 0, not all of them 0, and finite.
    coarse : float
        About what the weights will be on average. Sweeps make use of them up to 7, and for at most
        10 000 rows.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n,)
        With `h` as their expectation.
    """
    mantissa, exponent = math.frexp(float(h.mean()) / coarse)
    divisor = math.ldexp(round(math.ldexp(mantissa, DIVISOR_BITS)), exponent - DIVISOR_BITS)
    return divisor * np.floor(h / divisor + rng.random(h.size))


@inner_kernel
def common_divisor(h):
    """Largest number of which all h (n,) are whole multiples, to the last bit; and sum of weights.

    Both are 0 if there is none, or if weights would be too large. The smallest h above 0 is taken
    to have a weight of at most `MAX_SMALLEST`.
    """
    smallest = np.inf
    sum_h = 0.0
    for i in range(h.size):
        sum_h += h[i]
        if 0.0 < h[i] < smallest:
            smallest = h[i]
    if h.size <= MAX_ROWS and sum_h < np.inf:
        for weight in range(1, MAX_SMALLEST + 1):
            divisor = smallest / weight
            if not sum_h <= MAX_MEAN_WEIGHT * h.size * divisor:
                break
            total = _total_weight(h, divisor)
            if total > 0:
                return divisor, total
    return 0.0, np.int64(0)


@inner_kernel
def _total_weight(h, divisor):
    """Sum of weights; 0 if some h is no whole multiple."""
    total = np.int64(0)
    for i in range(h.size):
        weight = np.rint(h[i] / divisor)
        if not (weight >= 0.0 and weight * divisor == h[i]):
            return np.int64(0)
        total += np.int64(weight)
    return total
