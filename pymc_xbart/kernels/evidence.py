"""Evidence and posterior of a leaf, log-likelihood quadratic (floor 0: NumPy and Numba only).

A leaf value t ~ N(0, v) shifts f at the rows of a node and changes the log-likelihood by G t - H
t^2 / 2, with G and H the sums of g = d log p / d f and h = - d^2 log p / d f^2 over those rows.
Integrating t out gives

    evidence    e(G, H) = -log(1 + v H) / 2 + v G^2 / (2 (1 + v H))
    posterior   t ~ N(v G / (1 + v H), v / (1 + v H))

With G = s / sigma^2 and H = n / sigma^2 the evidence is the splitting criterion of He, Yalov & Hahn
(2019, eq. 3).
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, returning_kernel
from pymc_xbart.kernels.tally import count_of, sum_of


class EvidenceTable(NamedTuple):
    """The two factors of the evidence that depend on H alone, for H = h, 2 h, ..., n h.

    Only where all rows have the same h: H then is a multiple of the row count, and a sweep needs
    thousands of times more evidences than there are counts.
    """

    leaf_var: float
    is_uniform: bool  # all rows have curvature h; otherwise the arrays are not filled
    h: float
    half_log: np.ndarray  # (n + 1,) -log(1 + v h c) / 2 at count c
    gain: np.ndarray  # (n + 1,) v / (2 (1 + v h c))


@inner_kernel
def log_evidence(sum_g, sum_h, leaf_var):
    """Log of the integrated likelihood of a node, relative to f unchanged there."""
    precision_ratio = 1.0 + leaf_var * sum_h
    return 0.5 * (leaf_var * sum_g * sum_g / precision_ratio - np.log(precision_ratio))


@inner_kernel
def sums_of_node(tally, sum_h, rows, table):
    """Sums of g and h over some of `rows`. That of h is given, unless h is uniform."""
    if table.is_uniform:
        sum_h = count_of(tally, rows.bits) * table.h
    return sum_of(tally, rows.bits, rows.unit[0]), sum_h


@inner_kernel
def draw_leaf_value(sum_g, sum_h, leaf_var, rng):
    """Draw a leaf value from its posterior."""
    posterior_var = leaf_var / (1.0 + leaf_var * sum_h)
    return posterior_var * sum_g + np.sqrt(posterior_var) * rng.standard_normal()


@returning_kernel
def tabulate_evidence(leaf_var, h, half_log, gain):
    """Table for this sweep's g and h; `half_log` and `gain` (n + 1,) are overwritten."""
    lowest = h[0]
    highest = h[0]
    for i in range(h.size):
        lowest = min(lowest, h[i])
        highest = max(highest, h[i])
    is_uniform = lowest == highest
    if is_uniform:
        for count in range(half_log.size):
            precision_ratio = 1.0 + leaf_var * lowest * count
            half_log[count] = -0.5 * np.log(precision_ratio)
            gain[count] = 0.5 * leaf_var / precision_ratio
    return EvidenceTable(leaf_var, is_uniform, lowest, half_log, gain)
