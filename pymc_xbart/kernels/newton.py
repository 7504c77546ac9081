"""Normal laws for the leaf values of one tree, by Newton's method (floor 0: NumPy and Numba only).

With f the forest without the tree, t the values of its leaves, v their prior variance, and G and H
the sums of gradient and curvature over the rows of a leaf at f + t, a step in all leaves at once is

    var = 1 / (1 / v + H),    t + var * (G - t / v)

Where the log-likelihood is quadratic, the first step from t = 0 gives the posterior of t.
"""

import math

import numpy as np

from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.records import STEEPEST

# A curvature below this share of the squared gradient says nothing, and rounding may have left it.
NO_CURVATURE = 1e-8


@kernel
def cautious(g, h):
    """Gradient and a curvature that is positive where the gradient is not zero.

    Where a log-likelihood does not curve downwards, the squared gradient stands in, whose
    expectation is the expected curvature (Fisher information). Rows where one of them is not finite
    or above `STEEPEST` say nothing.

    Parameters
    ----------
    g, h : ndarray of shape (n,)
        d log p / d f and -d^2 log p / d f^2.

    Returns
    -------
    g, h : ndarray of shape (n,)
    """
    careful_g, careful_h = np.zeros(g.size), np.zeros(g.size)
    for i in range(g.size):
        if abs(g[i]) <= STEEPEST and abs(h[i]) <= STEEPEST:  # false for NaN
            square = g[i] * g[i]
            careful_g[i] = g[i]
            careful_h[i] = h[i] if h[i] > NO_CURVATURE * square else square
    return careful_g, careful_h


@kernel
def newton_step(without, leaf, t, g, h, leaf_var, longest):
    """Take one step in all leaves of a tree at once.

    Parameters
    ----------
    without : ndarray of shape (n,)
        f without the tree.
    leaf : ndarray of shape (n,), uint16 or int32
        Leaf of each row.
    t : ndarray of shape (nodes,)
        Where the leaves are; 0 at splits.
    g, h : ndarray of shape (n,)
        As from `cautious`, at f + t.
    leaf_var : float
    longest : float
        No step is longer.

    Returns
    -------
    t : ndarray of shape (nodes,)
    var : ndarray of shape (nodes,)
        From the curvature at the start of the step; that of the prior at splits.
    evidence : float
        Sum of the leaves' log-evidences under (g, h): the tree's, where t was 0.
    f : ndarray of shape (n,)
        At the new t.
    distance : float
        Largest step, in standard deviations of its leaf value.
    """
    sum_g, sum_h = np.zeros(t.size), np.zeros(t.size)
    for i in range(leaf.size):
        sum_g[leaf[i]] += g[i]
        sum_h[leaf[i]] += h[i]
    new, var = np.empty(t.size), np.empty(t.size)
    evidence, distance = 0.0, 0.0
    for node in range(t.size):
        var[node] = leaf_var / (1.0 + leaf_var * sum_h[node])
        evidence += 0.5 * (var[node] * sum_g[node] ** 2 + math.log(var[node] / leaf_var))
        step = var[node] * (sum_g[node] - t[node] / leaf_var)
        distance = max(distance, abs(step) / math.sqrt(var[node]))
        new[node] = t[node] + min(max(step, -longest), longest)
    f = np.empty(leaf.size)
    for i in range(leaf.size):
        f[i] = without[i] + new[leaf[i]]
    return new, var, evidence, f, distance


@kernel
def log_prior_ratio(left, value, mean, var, leaf_var):
    """Log of prior over N(mean, var), summed over the leaf values; arrays are (nodes,)."""
    total = 0.0
    for node in range(left.size):
        if left[node] < 0:
            total += (value[node] - mean[node]) ** 2 / var[node] - value[node] ** 2 / leaf_var
            total += math.log(var[node] / leaf_var)
    return 0.5 * total
