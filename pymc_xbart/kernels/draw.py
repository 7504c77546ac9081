"""Draws in log space (floor 0: NumPy and Numba only)."""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import contracting_kernel, inner_kernel

# Weights this many nats below the largest cannot change a double-precision sum of fewer than 2^20
# terms.
NEGLIGIBLE = 50.0


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


class Powers(NamedTuple):
    """Scratch for many exponentials at once."""

    mantissa: np.ndarray  # (size,) float64
    power: np.ndarray  # (size,) float64, of two
    bits: np.ndarray  # (size,) int64, the same memory as `power`


def make_powers(size: int) -> Powers:
    """Allocate room for `size` exponentials."""
    power = np.empty(size)
    return Powers(np.empty(size), power, power.view(np.int64))


# exp(x) = 2^k exp(r) with k = round(x / log 2). Adding 1.5 * 2^52 to a number rounds it to a whole
# one, which is then found in the lowest bits; log 2 comes in two parts, the first of which can be
# multiplied by k without rounding.
ROUNDING = 1.5 * 2.0**52
INVERSE_LOG2 = 1.4426950408889634
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SMALLEST_EXPONENT = -700.0  # exp of less is not a normal number


@inner_kernel
def log_sum_exp_of_many(log_weight, size, powers):
    """`log_sum_exp` for tens of weights and more.

    The exponentials are written out, as loops that processors carry out for several weights at a
    time; the library's is called once for each. Their relative error is below 1e-14.
    """
    largest = _largest(log_weight[:size])
    if largest == -np.inf:
        return largest
    # Some more of no weight, so that none is left over where eight are taken at a time.
    padded = min((size + 7) // 8 * 8, log_weight.size)
    for k in range(size, padded):
        log_weight[k] = -np.inf
    _exponentials(log_weight[:padded], largest, powers.mantissa[:padded], powers.power[:padded])
    _to_powers_of_two(powers.bits[:padded])
    return largest + np.log(dot(powers.mantissa[:padded], powers.power[:padded]))


@contracting_kernel
def _exponentials(log_weight, largest, mantissa, power):
    """With x = `log_weight` - `largest`, write exp(r) to `mantissa`, `ROUNDING` + k to `power`."""
    for i in range(mantissa.size):
        x = max(log_weight[i] - largest, SMALLEST_EXPONENT)
        shifted = x * INVERSE_LOG2 + ROUNDING
        power[i] = shifted
        k = shifted - ROUNDING
        r = (x - k * LOG2_HIGH) - k * LOG2_LOW
        # Taylor's series: |r| is at most log(2) / 2, and its 13th term below 1e-15.
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        mantissa[i] = p * r + 1.0


# log(x) = k log 2 + log(m) with m between sqrt(1/2) and sqrt(2). The bits above the lowest 52 count
# powers of two, and k those from sqrt(1/2) on. As the lowest bits of 2^52, k makes 2^52 + k.
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
TWO_52, TWO_52_BITS = 2.0**52, 0x4330000000000000


@contracting_kernel
def logs_of_many(x):
    """Overwrite numbers from 1 on by their logarithms.

    The error is below 1e-15 of a logarithm, or 2e-16 if that is more. Infinity counts as 2^1024.
    """
    for i in range(x.size):
        bits = np.float64(x[i]).view(np.int64)
        k = (bits - SQRT_HALF_BITS) >> 52
        m = np.int64(bits - (k << 52)).view(np.float64)
        # log(m) = 2 artanh(s), by Taylor's series: s^2 is at most 0.03, and its 10th power over 21
        # below 1e-16.
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 1.0 / 19.0
        p = p * z + 1.0 / 17.0
        p = p * z + 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        exponent = np.int64(k + TWO_52_BITS).view(np.float64) - TWO_52
        s += s
        x[i] = exponent * LOG2_HIGH + (s + (s * z * p + exponent * LOG2_LOW))


@inner_kernel
def _to_powers_of_two(bits):
    """Turn `ROUNDING` + k into 2^k, as the bits of floating-point numbers."""
    for i in range(bits.size):
        bits[i] = (bits[i] + 1023) << 52


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
def dot(a, b):
    """Sum of products, in four sums that do not wait for each other."""
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    num_fours = a.size // 4
    for i in range(num_fours):
        first += a[4 * i] * b[4 * i]
        second += a[4 * i + 1] * b[4 * i + 1]
        third += a[4 * i + 2] * b[4 * i + 2]
        fourth += a[4 * i + 3] * b[4 * i + 3]
    for i in range(4 * num_fours, a.size):
        first += a[i] * b[i]
    return (first + second) + (third + fourth)


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
