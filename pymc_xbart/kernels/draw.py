"""Draws by weight, in log space (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.decorator import contracting_kernel, inner_kernel
from pymc_xbart.kernels.sums import sum_of_sizes

# Weights this many nats below the largest cannot change a double-precision sum of fewer than 2^20
# terms.
NEGLIGIBLE = 50.0

# Processors do the same for up to eight numbers at a time.
LANES = 8


@inner_kernel
def in_lanes(size):
    """Smallest multiple of `LANES` that is at least a size.

    A loop over so many leaves none over that would be taken one by one.
    """
    return (size + LANES - 1) // LANES * LANES


@inner_kernel
def log_sum_exp(log_weight, size):
    """Log of the sum of the first `size` weights; -inf if all are zero."""
    largest = -np.inf
    for k in range(size):
        largest = max(largest, log_weight[k])
    if largest == -np.inf:
        return largest
    total = 0.0
    for k in range(size):
        if log_weight[k] >= largest - NEGLIGIBLE:  # not >: beyond 2^58 the two sides are equal
            total += np.exp(log_weight[k] - largest)
    return largest + np.log(total)


# exp(x) = 2^k exp(r) with k = round(x / log 2). Adding 1.5 * 2^52 to a number rounds it to a whole
# one, which is then found in the lowest bits; with 1023 more, shifted to those of an exponent, they
# are 2^k. That log 2 is rounded costs less than 1e-16 k.
ROUNDING = 1.5 * 2.0**52 + 1023.0
LOG2, INVERSE_LOG2 = 0.6931471805599453, 1.4426950408889634
SMALLEST_EXPONENT = -700.0  # exp of less is not a normal number


@inner_kernel
def log_sum_exp_of_many(log_weight, factor, size):
    """Log of a sum of tens of terms and more, each a positive factor times an exponential.

    `log_weight` is overwritten with the terms, up to a factor that all have in common, and both
    arrays behind the last term, as far as there is room. The exponentials are written out, as a
    loop that processors carry out for several of them at a time; the library's is called once for
    each. Their relative error is below 1e-13.
    """
    largest = _largest(log_weight[:size])
    if largest == -np.inf:
        return largest
    # Some more of no weight, see `in_lanes`.
    padded = min(in_lanes(size), log_weight.size)
    for k in range(size, padded):
        log_weight[k] = -np.inf
        factor[k] = 0.0
    _exponentiate(log_weight[:padded], largest, factor[:padded])
    return largest + np.log(sum_of_sizes(log_weight[:padded]))


@contracting_kernel
def _exponentiate(log_weight, largest, factor):
    """Overwrite each of `log_weight` with its factor times exp(`log_weight` - `largest`)."""
    for i in range(factor.size):
        x = max(log_weight[i] - largest, SMALLEST_EXPONENT)
        shifted = x * INVERSE_LOG2 + ROUNDING
        r = x - (shifted - ROUNDING) * LOG2
        # |r| is at most log(2) / 2, where the largest relative error of this polynomial is as small
        # as that of any of its degree (Remez' algorithm): 2.1e-16.
        p = 2.748844618035579e-07
        p = p * r + 2.763976819981133e-06
        p = p * r + 2.4801917680289918e-05
        p = p * r + 0.00019841171384383515
        p = p * r + 0.0013888888499146064
        p = p * r + 0.008333333384665643
        p = p * r + 0.04166666666842598
        p = p * r + 0.16666666666557742
        p = p * r + 0.49999999999997286
        p = p * r + 1.0000000000000064
        p = p * r + 1.0
        power = np.int64(np.float64(shifted).view(np.int64) << 52).view(np.float64)
        log_weight[i] = factor[i] * (p * power)


@inner_kernel
def _largest(a):
    """Largest of some numbers, of four that do not wait for each other."""
    first = -np.inf
    second = -np.inf
    third = -np.inf
    fourth = -np.inf
    num_fours = a.size // 4
    for i in range(num_fours):
        first = a[4 * i] if a[4 * i] > first else first
        second = a[4 * i + 1] if a[4 * i + 1] > second else second
        third = a[4 * i + 2] if a[4 * i + 2] > third else third
        fourth = a[4 * i + 3] if a[4 * i + 3] > fourth else fourth
    for i in range(4 * num_fours, a.size):
        first = a[i] if a[i] > first else first
    return max(max(first, second), max(third, fourth))


@inner_kernel
def draw_from_log_weights(log_weight, size, log_total, rng):
    """Index below `size` drawn with probability exp(log_weight[k] - log_total).

    -1 if every weight is zero.
    `log_total` is what `log_sum_exp` gave for the same weights.
    """
    remaining = rng.random()
    last = -1
    for k in range(size):
        if log_weight[k] > -np.inf and log_weight[k] >= log_total - NEGLIGIBLE:
            last = k
            remaining -= np.exp(log_weight[k] - log_total)
            if remaining < 0.0:
                break
    return last


@inner_kernel
def draw_from_weights(weight, size, rng):
    """Index below `size` drawn in proportion to the weights; -1 if all are zero."""
    remaining = rng.random() * sum_of_sizes(weight[:size])
    last = -1
    for k in range(size):
        if weight[k] > 0.0:
            last = k
            remaining -= weight[k]
            if remaining < 0.0:
                break
    return last
