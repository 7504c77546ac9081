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

from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.tally import Layout, lay_out, sum_of, weight_of
from pymc_xbart.kernels.weights import common_divisor


class Curvature(NamedTuple):
    """What a sweep has to know of h, and of the prior, for evidences."""

    leaf_var: float
    # All h are whole multiples of `h` (see `weights`), so that tallies tell their sums.
    is_whole: bool
    is_uniform: bool  # all h are `h`: the weight of rows is their number
    h: float
    layout: Layout  # of tallies that know the weights


@inner_kernel
def log_evidence(sum_g, sum_h, leaf_var):
    """Log of the integrated likelihood of a node, relative to f unchanged there."""
    precision_ratio = 1.0 + leaf_var * sum_h
    return 0.5 * (leaf_var * sum_g * sum_g / precision_ratio - np.log(precision_ratio))


@inner_kernel
def sums_of_node(tally, sum_h, rows, curvature):
    """Sums of g and h over some of `rows`. That of h is given, unless tallies tell it."""
    if curvature.is_whole:
        sum_h = weight_of(tally, curvature.layout) * curvature.h
    return sum_of(tally, curvature.layout, rows.unit[0]), sum_h


@inner_kernel
def draw_leaf_value(sum_g, sum_h, leaf_var, rng):
    """Draw a leaf value from its posterior."""
    posterior_var = leaf_var / (1.0 + leaf_var * sum_h)
    return posterior_var * sum_g + np.sqrt(posterior_var) * rng.standard_normal()


@inner_kernel
def read_curvature(leaf_var, h, blank):
    """Look for what all h (n,) are multiples of. `blank`, of a `Workspace`, is overwritten."""
    is_uniform = all_equal(h)
    divisor = h[0]
    total_weight = np.int64(0)
    if not is_uniform:
        divisor, total_weight = common_divisor(h)
    layout = lay_out(h.size, total_weight)
    if total_weight > 0:
        for i in range(h.size):
            weight = np.int64(np.rint(h[i] / divisor))
            blank[i] = (weight << layout.weight_start) + 1
    return Curvature(leaf_var, is_uniform or total_weight > 0, is_uniform, divisor, layout)


@inner_kernel
def all_equal(h):
    """Whether all h (n,) are the same."""
    num_others = 0
    for i in range(h.size):
        num_others += h[i] != h[0]
    return num_others == 0
