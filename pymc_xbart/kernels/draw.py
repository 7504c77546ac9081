"""Draws in log space (floor 0: NumPy and Numba only)."""

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel

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
