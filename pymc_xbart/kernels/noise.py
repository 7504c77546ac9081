"""What the paper's algorithm draws beside trees (floor 0: NumPy and Numba only).

After every tree, He, Yalov & Hahn (2019, algorithm "Accelerated Bayesian Additive Regression
Trees") draw the noise variance of a Normal likelihood from its inverse gamma conditional, and the
weights by which columns are drawn from a Dirichlet law with parameters 1 + number of splits on each
column. Inside a PyMC model both are the model's business, and a sweep draws neither.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.evidence import all_equal
from pymc_xbart.kernels.gradient import scale
from pymc_xbart.kernels.records import NO_COLUMN
from pymc_xbart.kernels.sums import sum_of_squares


class SideDraws(NamedTuple):
    """Whether, and from what, a sweep draws noise variance and column weights after every tree."""

    draws_noise: bool
    noise_var: np.ndarray  # (1,) float64, overwritten
    # Prior of the noise variance: inverse gamma with shape / 2 and rate / 2. (The paper prints
    # N + alpha and r'r + eta without the halves.)
    noise_shape: float
    noise_rate: float
    draws_weights: bool
    split_counts: np.ndarray  # (p,) int64, splits of the forest on each column; overwritten


@inner_kernel
def redraw_noise(g, h, side, crew, rng):
    """Draw the noise variance given the residuals, and put g and h (n,) on its scale.

    With residual r and observation weight q, g = q r / variance and h = q / variance, so that
    sum q r^2 = variance * sum g^2 / h. Rows without weight count for nothing.
    """
    if h[0] > 0.0 and all_equal(h):
        num_rows = g.size
        scaled_sum = sum_of_squares(g) / h[0]
    else:
        num_rows = 0
        scaled_sum = 0.0
        for i in range(g.size):
            if h[i] > 0.0:
                num_rows += 1
                scaled_sum += g[i] * g[i] / h[i]
    old = side.noise_var[0]
    rate = 0.5 * (side.noise_rate + old * scaled_sum)
    new = rate / rng.standard_gamma(0.5 * (side.noise_shape + num_rows))
    scale(old / new, g, h, crew)
    side.noise_var[0] = new


@inner_kernel
def count_splits(forest, index, sign, split_counts):
    """Add `sign` to the count of a column for every split on it in tree `index`."""
    for node in range(forest.tree_start[index], forest.tree_start[index + 1]):
        if forest.column[node] != NO_COLUMN:
            split_counts[forest.column[node]] += sign


@inner_kernel
def redraw_weights(weights, split_counts, rng):
    """Draw column weights (p,) from their Dirichlet law. Overwrites `weights`."""
    total = 0.0
    for v in range(weights.size):
        weights[v] = rng.standard_gamma(1.0 + split_counts[v])
        total += weights[v]
    for v in range(weights.size):
        weights[v] /= total
