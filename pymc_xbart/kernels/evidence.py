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
from pymc_xbart.kernels.draw import logs_of_many
from pymc_xbart.kernels.tally import Layout, lay_out, sum_of, weight_of
from pymc_xbart.kernels.weights import common_divisor


class EvidenceTable(NamedTuple):
    """The logarithm in the evidence, which depends on H alone, for H = h, 2 h, ..., W h.

    Only where all rows have the same h, or whole multiples of it (see `weights`): H then is a
    multiple of the row count, or of the sum of weights, and a sweep needs thousands of times more
    evidences than there are of these. W is that of all rows.
    """

    leaf_var: float
    is_tabulated: bool  # if not, the array is not filled, and h is undefined
    is_uniform: bool  # all rows have curvature h: the weight of rows is their number
    h: float
    layout: Layout  # of tallies that know the weights
    half_log: np.ndarray  # (W + 1 or more,) -log(1 + v h w) / 2 at weight w


@inner_kernel
def log_evidence(sum_g, sum_h, leaf_var):
    """Log of the integrated likelihood of a node, relative to f unchanged there."""
    precision_ratio = 1.0 + leaf_var * sum_h
    return 0.5 * (leaf_var * sum_g * sum_g / precision_ratio - np.log(precision_ratio))


@inner_kernel
def sums_of_node(tally, sum_h, rows, table):
    """Sums of g and h over some of `rows`. That of h is given, unless evidence is tabulated."""
    if table.is_tabulated:
        sum_h = weight_of(tally, table.layout) * table.h
    return sum_of(tally, table.layout, rows.unit[0]), sum_h


@inner_kernel
def draw_leaf_value(sum_g, sum_h, leaf_var, rng):
    """Draw a leaf value from its posterior."""
    posterior_var = leaf_var / (1.0 + leaf_var * sum_h)
    return posterior_var * sum_g + np.sqrt(posterior_var) * rng.standard_normal()


@returning_kernel
def tabulate_evidence(leaf_var, h, blank, half_log):
    """Table for this sweep's g and h.

    `blank` and `half_log`, both of a `Workspace`, are overwritten.
    """
    is_uniform = all_equal(h)
    divisor = h[0]
    total_weight = np.int64(0)
    if not is_uniform:
        divisor, total_weight = common_divisor(h)
    is_tabulated = is_uniform or total_weight > 0
    if is_tabulated:
        size = max(total_weight, h.size) + 1
        _tabulate(leaf_var, divisor, half_log[:size])
    layout = lay_out(h.size, total_weight)
    if total_weight > 0:
        for i in range(h.size):
            weight = np.int64(np.rint(h[i] / divisor))
            blank[i] = (weight << layout.weight_start) + 1
    return EvidenceTable(leaf_var, is_tabulated, is_uniform, divisor, layout, half_log)


@inner_kernel
def all_equal(h):
    """Whether all h (n,) are the same."""
    num_others = 0
    for i in range(h.size):
        num_others += h[i] != h[0]
    return num_others == 0


@inner_kernel
def _tabulate(leaf_var, h, half_log):
    """Write -log(1 + v H) / 2 at H = 0, h, 2 h, ... to `half_log`."""
    # In loops that processors carry out for several weights at a time.
    for weight in range(half_log.size):
        half_log[weight] = 1.0 + leaf_var * h * weight
    logs_of_many(half_log)
    for weight in range(half_log.size):
        half_log[weight] *= -0.5
