"""All leaf values of a forest, drawn jointly, or in few blocks (floor 1).

A sweep draws the leaf values of each tree given those of the others, which hold each other in
place. Given the trees, a quadratic log-likelihood makes all of them jointly Normal: with Z the
(n, L) matrix of which row is in which leaf, h the curvature and g the gradient where all leaf
values are 0,

    precision  Z' diag(h) Z + I / leaf_var,    precision * mean = Z' g

Drawing from that law after a sweep leaves the posterior as it is, and f moves further. Forests of
many leaves are redrawn in blocks of trees that are put together anew each time: given the other
blocks, the same holds of one block.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from pymc_xbart.kernels import Forest, shared_rows, sum_of_trees, sums_by_leaf

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
    """Draw all leaf values given the trees, as many trees jointly as have `MAX_LEAVES` leaves.

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
        With other values; the same forest where rows differ in h, which would take too long.
    """
    if h.min() != h.max():
        return forest
    blocks = _draw_blocks(forest, rng)
    if len(blocks) == 1:
        return _redraw_jointly(forest, leaf_of_row, g, h[0], leaf_var, rng)
    value = forest.value.copy()
    f = sum_of_trees(forest, leaf_of_row)
    for trees in blocks:
        nodes, part = _select(forest._replace(value=value), trees)
        leaf = leaf_of_row[trees]
        f -= sum_of_trees(part, leaf)
        part = _redraw_jointly(part, leaf, g - h * f, h[0], leaf_var, rng)
        f += sum_of_trees(part, leaf)
        value[nodes] = part.value
    return forest._replace(value=value)


def _draw_blocks(forest: Forest, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Put all trees into blocks of about equally many leaves, by chance if there are several.

    Blocks depend on the trees' sizes, which a redraw of leaf values does not change.
    """
    num_leaves = (np.diff(forest.tree_start) + 1) // 2
    num_blocks = -(-int(num_leaves.sum()) // MAX_LEAVES)
    trees = np.arange(num_leaves.size)
    if num_blocks == 1:
        return [trees]
    trees = rng.permutation(trees)
    leaves_before = np.cumsum(num_leaves[trees]) - num_leaves[trees]
    block = leaves_before * num_blocks // num_leaves.sum()
    return [trees[block == k] for k in np.unique(block)]


def _select(forest: Forest, trees: NDArray[np.intp]) -> tuple[NDArray[np.intp], Forest]:
    """Some trees as a forest of their own, and where their nodes are in the whole one."""
    first, last = forest.tree_start[trees], forest.tree_start[trees + 1]
    nodes = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    tree_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(last - first)])
    return nodes, Forest(tree_start, *(array[nodes] for array in forest[1:]))


def _redraw_jointly(
    forest: Forest,
    leaf_of_row: NDArray[np.int32],
    g: NDArray[np.float64],
    h: float,
    leaf_var: float,
    rng: np.random.Generator,
) -> Forest:
    """Draw all leaf values from their joint law, with `g` (n,) where they are 0."""
    leaves, precision = shared_rows(forest, leaf_of_row)
    precision *= h
    precision[np.diag_indices(leaves.size)] += 1.0 / leaf_var
    # LAPACK itself: what SciPy wraps around it takes a third of the time of such small matrices.
    # Transposed, because LAPACK wants columns one after another; the matrix is symmetric.
    lower, info = dpotrf(precision.T, lower=True, clean=False, overwrite_a=True)
    if info:
        msg = "The precision of the leaf values is not positive definite in floating point."
        raise np.linalg.LinAlgError(msg)
    half, _ = dtrtrs(lower, sums_by_leaf(forest, leaf_of_row, g)[leaves], lower=True)
    half += rng.standard_normal(leaves.size)
    value = np.zeros(forest.value.size)
    value[leaves], _ = dtrtrs(lower, half, lower=True, trans=1)
    return forest._replace(value=value)
