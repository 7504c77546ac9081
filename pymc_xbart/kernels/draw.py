"""Draws by weight, in log space (floor 0: NumPy and Numba only)."""

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


# exp(x) = 2^k exp(r) with k = round(x / log 2). Adding 1.5 * 2^52 to a number rounds it to a whole
# one, which is then found in the lowest bits, and shifted to those of an exponent. log 2 comes in
# two parts, the first of which can be multiplied by k without rounding.
ROUNDING = 1.5 * 2.0**52
INVERSE_LOG2 = 1.4426950408889634
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SMALLEST_EXPONENT = -700.0  # exp of less is not a normal number


@inner_kernel
def log_sum_exp_of_many(log_weight, factor, size, exponential):
    """Log of a sum of tens of terms and more, each a positive factor times an exponential.

    The exponentials are written out, as a loop that processors carry out for several of them at a
    time; the library's is called once for each. Their relative error is below 1e-14. Writes
    them, over the largest, to `exponential`, and behind the last one to all three arrays, as far as
    there is room.
    """
    largest = _largest(log_weight[:size])
    if largest == -np.inf:
        return largest
    # Some more of no weight, so that none is left over where eight are taken at a time.
    padded = min((size + 7) // 8 * 8, exponential.size)
    for k in range(size, padded):
        log_weight[k] = -np.inf
        factor[k] = 0.0
    _exponentials(log_weight[:padded], largest, exponential[:padded])
    return largest + np.log(dot(factor[:padded], exponential[:padded]))


@contracting_kernel
def _exponentials(log_weight, largest, exponential):
    """Write exp(`log_weight` - `largest`) to `exponential`."""
    for i in range(exponential.size):
        x = max(log_weight[i] - largest, SMALLEST_EXPONENT)
        shifted = x * INVERSE_LOG2 + ROUNDING
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
        p = p * r + 1.0
        power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        exponential[i] = p * power


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


@inner_kernel
def draw_from_products(a, b, size, rng):
    """Index below `size` drawn in proportion to the products of both; -1 if all are zero."""
    remaining = rng.random() * dot(a[:size], b[:size])
    last = -1
    for k in range(size):
        weight = a[k] * b[k]
        if weight > 0.0:
            last = k
            remaining -= weight
            if remaining < 0.0:
                break
    return last
