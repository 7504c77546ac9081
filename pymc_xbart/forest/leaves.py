"""All leaf values of a forest, drawn jointly (floor 1).

A sweep draws the leaf values of each tree given those of the others, which hold each other in
place. Given the trees, a quadratic log-likelihood makes all of them jointly Normal: with Z the
(n, L) matrix of which row is in which leaf, h the curvature and g the gradient where all leaf
values are 0,

    precision  Z' diag(h) Z + I / leaf_var,    precision * mean = Z' g

Drawing from that law after a sweep leaves the posterior as it is, and f moves further.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from pymc_xbart.kernels import Forest, shared_rows, sums_by_leaf

# The Cholesky factor takes L^3 / 3 operations: about as many as a sweep over 1 000 rows and 200
# trees has where there are this many leaves.
MAX_LEAVES = 1_000


def redraw_leaves(
    forest: Forest,
    leaf_of_row: NDArray[np.int32],
    g: NDArray[np.float64],
    h: NDArray[np.float64],
    leaf_var: float,
    rng: np.random.Generator,
) -> Forest:
    """Draw all leaf values jointly, given the trees.

    Parameters
    ----------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n)
    g, h : ndarray of shape (n,)
        d log p / d f where all leaf values are 0, and -d^2 log p / d f^2.
    leaf_var : float
    rng : numpy.random.Generator

    Returns
    -------
    Forest
        With other values; the same forest where this would take too long: where rows differ in h,
        or there are more than `MAX_LEAVES` leaves. Both are the same before and after, so that the
        draw is right whenever there is one.
    """
    num_leaves = (forest.column.size + forest.tree_start.size - 1) // 2
    if num_leaves > MAX_LEAVES or h.min() != h.max():
        return forest
    leaves, precision = shared_rows(forest, leaf_of_row)
    precision *= h[0]
    precision[np.diag_indices(leaves.size)] += 1.0 / leaf_var
    lower = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    sums = sums_by_leaf(forest, leaf_of_row, g)[leaves]
    half = solve_triangular(lower, sums, lower=True, check_finite=False)
    half += rng.standard_normal(leaves.size)
    value = np.zeros(forest.value.size)
    value[leaves] = solve_triangular(lower, half, lower=True, trans="T", check_finite=False)
    return forest._replace(value=value)
