"""Which columns a node considers (floor 0: NumPy and Numba only).

He, Yalov & Hahn (2019, "Sparse Proposal Distribution") draw `mtry` columns before each split, one
after the other and without replacement, with probabilities proportional to weights w.

A Metropolis-Hastings correction has to compare two trees under the same columns. There the columns
are drawn once for a tree that is to be replaced: those that it splits on, and every other one
independently with a probability of its own, mtry / p if nothing else is said.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.records import NO_COLUMN


class ColumnChoice(NamedTuple):
    """How a node comes by the columns that it considers, of p."""

    mtry: int  # at most p; p considers all of them
    weights: np.ndarray  # (p,) float64, >= 0, for drawing them anew in each node
    is_per_tree: bool  # all nodes of a tree consider the first `subset_size` columns of `subset`
    share: np.ndarray  # (p,) float64, probability of each column being among them
    is_complete: bool  # whether all these are 1
    subset: np.ndarray  # (p,) int32, all columns, those of the subset first
    subset_size: np.ndarray  # (1,) int64
    is_drawn: np.ndarray  # (p,) bool, scratch


def column_choice(
    num_columns: int,
    mtry: int | None = None,
    weights: np.ndarray | None = None,
    *,
    is_per_tree: bool = False,
    share: np.ndarray | None = None,
) -> ColumnChoice:
    """Consider all of p columns, or about `mtry` of them.

    Parameters
    ----------
    num_columns : int
    mtry : int, optional
        p by default.
    weights : ndarray of shape (p,), optional
        Equal by default. Not used where columns are drawn once for each tree.
    is_per_tree : bool, default False
        Draw columns once for each tree, as a correction needs it if not all are considered.
    share : ndarray of shape (p,), optional
        Probability that a tree considers each column which it does not split on, > 0; mtry / p by
        default. Only where columns are drawn once for each tree.
    """
    mtry = num_columns if mtry is None else mtry
    share = np.full(num_columns, mtry / num_columns) if share is None else share.copy()
    return ColumnChoice(
        mtry,
        np.ones(num_columns) if weights is None else np.array(weights, np.float64),
        is_per_tree,
        share,
        bool(share.min() >= 1.0),
        np.arange(num_columns, dtype=np.int32),
        np.full(1, num_columns, np.int64),
        np.empty(num_columns, np.bool_),
    )


@inner_kernel
def is_shared(choice):
    """Whether all nodes of a tree consider the same columns."""
    return choice.is_per_tree or choice.mtry >= choice.weights.size


@inner_kernel
def draw_subset(columns, choice, rng):
    """Draw the columns that all trees consider that may replace one which splits on `columns`.

    NO_COLUMN among them counts for nothing.
    """
    subset = choice.subset
    is_drawn = choice.is_drawn
    share = choice.share
    num_columns = subset.size
    if choice.is_complete:
        return
    for v in range(num_columns):
        is_drawn[v] = share[v] >= 1.0 or rng.random() < share[v]
    for k in range(columns.size):
        if columns[k] != NO_COLUMN:
            is_drawn[columns[k]] = True
    size = 0
    num_others = 0
    for v in range(num_columns):
        if is_drawn[v]:
            subset[size] = v
            size += 1
        else:
            num_others += 1
            subset[num_columns - num_others] = v
    choice.subset_size[0] = size


@inner_kernel
def draw_columns(choice, considered, rng):
    """Write the columns that a node considers to the front of `considered` (p,), then the others.

    Returns how many there are: `mtry`, or fewer if fewer have a positive weight.
    """
    if is_shared(choice):
        for k in range(considered.size):
            considered[k] = choice.subset[k]
        return choice.subset_size[0]
    weights = choice.weights
    for v in range(considered.size):
        considered[v] = v
    for k in range(choice.mtry):
        total = 0.0
        for j in range(k, considered.size):
            total += weights[considered[j]]
        if total <= 0.0:
            return k
        remaining = rng.random() * total
        drawn = -1
        for j in range(k, considered.size):
            weight = weights[considered[j]]
            if weight > 0.0:
                drawn = j
                remaining -= weight
                if remaining < 0.0:
                    break
        considered[k], considered[drawn] = considered[drawn], considered[k]
    return choice.mtry
