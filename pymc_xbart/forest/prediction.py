"""f at new rows, from forests that outlive the data they were grown on (floor 1).

A stored forest is a `Forest` and its cuts in the units of X, as `kernels.cut_values` gives them.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.kernels import Forest, route_values


def sums_of_trees(
    forests: Iterable[Forest], cut_values: Iterable[NDArray[np.float64]], X: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Evaluate stored forests one after the other.

    Parameters
    ----------
    forests : iterable of Forest
    cut_values : iterable of ndarray of shape (nodes,)
        For each forest, its cuts: rows with x <= value go left.
    X : ndarray of shape (n, p)
        As `check_design` returns it.

    Yields
    ------
    ndarray of shape (n,)
        Sum of the trees at each row of `X`; at rows that a forest was grown on, to the last bit
        what `kernels.forest_values` gave there.
    """
    columns = np.ascontiguousarray(X.T)
    for forest, cut_value in zip(forests, cut_values, strict=True):
        f = np.empty(X.shape[0])
        route_values(forest, cut_value, columns, f)
        yield f


def mean_of_draws(draws: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean over draws, each (n,), of which there is at least one; they need not fit in memory."""
    remaining = iter(draws)
    total = next(remaining).copy()
    num_draws = 1
    for f in remaining:
        total += f
        num_draws += 1
    return total / num_draws
