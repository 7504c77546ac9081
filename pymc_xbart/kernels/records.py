"""What kernels read and return (floor 0: NumPy and Numba only).

All records are tuples of arrays: Numba passes them without boxing, and they pickle, copy and
compare like data.
"""

from typing import NamedTuple

import numpy as np

# How prior weight is shared among the cuts of a node, see `score`.
COLUMNS, CUTS, PAPER = range(3)
CUT_PRIORS = {"columns": COLUMNS, "cuts": CUTS, "paper": PAPER}

# Of gradient and curvature in a row. Kernels square sums over rows: far from here, that stays a
# floating-point number.
STEEPEST = 1e100

NO_COLUMN = -1  # `column` of a leaf
NO_CHILD = -1  # `left` of a leaf


class Design(NamedTuple):
    """X as the kernels see it: ranks, and the values behind them. n rows, p columns."""

    codes: np.ndarray  # (p, n) uint16, rank of each value among the distinct values of its column
    num_codes: np.ndarray  # (p,) int64
    values: (
        np.ndarray
    )  # (sum of num_codes,) float64, largest value of X in each code, column after column
    value_start: np.ndarray  # (p + 1,) int64, where each column begins in `values`
    order: (
        np.ndarray
    )  # (p, n) uint16, rows in increasing order of each column; (p, 0) if n is large


class Prior(NamedTuple):
    """The prior of one tree."""

    alpha: float  # a node at depth d that has cuts splits with probability alpha * (1 + d) ** -beta
    beta: float
    leaf_var: float  # variance of a leaf value, > 0
    split_weights: np.ndarray  # (p,) float64, >= 0, need not sum to one
    num_cutpoints: int  # C: about how many cuts a column offers in a node
    min_samples_leaf: int  # rows that both children of a split must have
    max_depth: int  # nodes at this depth do not split (root: 0)
    cut_prior: int = COLUMNS  # one of CUT_PRIORS


class Forest(NamedTuple):
    """All trees of a forest, one after another.

    The nodes of tree l are `tree_start[l] : tree_start[l + 1]`. Within a tree the root is node 0
    and the children of a split are neighbours: `left` and `left + 1`.
    """

    tree_start: np.ndarray  # (num_trees + 1,) int64
    column: np.ndarray  # (nodes,) int32, NO_COLUMN at a leaf
    cut: np.ndarray  # (nodes,) int32, rows with code <= cut go left; 0 at a leaf
    left: np.ndarray  # (nodes,) int32, index within the tree; NO_CHILD at a leaf
    value: np.ndarray  # (nodes,) float64, leaf value; 0 at a split


class SweepInfo(NamedTuple):
    """What one sweep did. Not needed to continue."""

    num_leaves: np.ndarray  # (num_trees,) int32
    depth: np.ndarray  # (num_trees,) int32, of the deepest leaf
    regrown: np.ndarray  # (num_trees,) bool, whether one was grown from the root to replace it
    accepted: np.ndarray  # (num_trees,) bool, and whether that one was taken


def stump_forest(num_trees: int) -> Forest:
    """Forest of single leaves with value 0: f is 0 everywhere."""
    return Forest(
        np.arange(num_trees + 1, dtype=np.int64),
        np.full(num_trees, NO_COLUMN, np.int32),
        np.zeros(num_trees, np.int32),
        np.full(num_trees, NO_CHILD, np.int32),
        np.zeros(num_trees),
    )


def split_forest(forest: Forest) -> list[Forest]:
    """Each tree of a forest as a forest of its own."""
    bounds = zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True)
    return [
        Forest(np.array([0, stop - start]), *(array[start:stop] for array in forest[1:]))
        for start, stop in bounds
    ]


def take_trees(forest: Forest, trees: np.ndarray) -> Forest:
    """Forest of some trees of another, in the order given."""
    sizes = np.diff(forest.tree_start)[trees]
    tree_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    shift = forest.tree_start[trees] - tree_start[:-1]
    nodes = np.repeat(shift, sizes) + np.arange(tree_start[-1])
    return Forest(tree_start, *(array[nodes] for array in forest[1:]))


def join_forests(forests: list[Forest]) -> Forest:
    """Forest of the trees of some forests, one after another."""
    sizes = np.concatenate([np.diff(forest.tree_start) for forest in forests])
    tree_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    columns = zip(*(forest[1:] for forest in forests), strict=True)
    return Forest(tree_start, *(np.concatenate(arrays) for arrays in columns))
