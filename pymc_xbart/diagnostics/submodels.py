"""Forests with some columns averaged out, beside the whole forest (floor 2).

A draw is compared with another draw of the whole forest, not with itself. Then a submodel is as
good as the whole once the two agree as well with that other draw, and all that a submodel loses is
to be seen beside how much draws of the whole differ anyway.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import read_all
from pymc_xbart.forest.draws import Draws
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.views import Seen, places_of, see
from pymc_xbart.kernels import WeightedForest, expected_changes, expected_values, shares_left
from pymc_xbart.kernels.records import NO_COLUMN


class Submodels(NamedTuple):
    """All draws of a forest at some rows, ready to leave columns out."""

    forests: list[list[WeightedForest]]  # (draws, k)
    rows: NDArray[np.float64]  # (places, n), what the forests compare
    num_columns: int
    target: NDArray[np.float64]  # (draws, k, n), f of the draw that each is compared with, centred


def make_submodels(draws: Draws, X: NDArray[np.float64]) -> Submodels:
    """Read draws, of which there are at least two, and evaluate them at X (n, p)."""
    read = read_all(draws)
    seen = see(X, read[0].is_categorical)
    forests = [[_weigh(stored, seen) for stored in draw.forests] for draw in read]
    submodels = Submodels(forests, seen.rows, X.shape[1], np.empty(0))
    everything = np.ones(X.shape[1], np.bool_)
    f = np.array([_values(submodels, draw, everything) for draw in range(len(read))])
    # Half the draws on: of another chain, or far away in the same.
    return submodels._replace(target=np.roll(_centred(f), -(len(read) // 2), axis=0))


def _weigh(stored: StoredForest, seen: Seen) -> WeightedForest:
    forest = stored.forest
    share_left = shares_left(forest, stored.rows)
    return WeightedForest(
        forest, places_of(forest, stored.view, seen), stored.cut_value, share_left
    )


def splits_of_columns(submodels: Submodels) -> NDArray[np.int64]:
    """How many splits all draws have on each column; (p,)."""
    total = np.zeros(submodels.num_columns, np.int64)
    for forests in submodels.forests:
        for trees in forests:
            column = trees.forest.column
            total += np.bincount(column[column != NO_COLUMN], minlength=total.size)
    return total


def r2_of_submodel(submodels: Submodels, columns: list[int]) -> NDArray[np.float64]:
    """R^2 of every draw with these columns only; (draws,)."""
    is_included = _marked(submodels, columns)
    return np.array(
        [
            _r2(_values(submodels, draw, is_included), target)
            for draw, target in enumerate(submodels.target)
        ]
    )


def r2_of_neighbours(
    submodels: Submodels, columns: list[int], candidates: list[int]
) -> NDArray[np.float64]:
    """R^2 of the submodels that have one column more, or one less; (draws, candidates).

    Parameters
    ----------
    submodels : Submodels
    columns : list of int
        That are included.
    candidates : list of int
        Each of which is included in turn if it is not, left out if it is.
    """
    is_included = _marked(submodels, columns)
    is_candidate = _marked(submodels, candidates)
    num_columns, num_rows = submodels.num_columns, submodels.rows.shape[1]
    changes = np.empty((num_columns, num_rows))
    found = np.empty((len(submodels.forests), len(candidates)))
    for draw, (forests, target) in enumerate(zip(submodels.forests, submodels.target, strict=True)):
        f = np.repeat(_values(submodels, draw, is_included)[None], len(candidates), axis=0)
        for k, trees in enumerate(forests):
            expected_changes(trees, is_included, is_candidate, submodels.rows, changes)
            f[:, k] += changes[candidates]
        found[draw] = _r2(f, target)
    return found


def _marked(submodels: Submodels, columns: list[int]) -> NDArray[np.bool_]:
    is_marked = np.zeros(submodels.num_columns, np.bool_)
    is_marked[columns] = True
    return is_marked


def _values(submodels: Submodels, draw: int, is_included: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Sum of the trees of a draw, (k, n); without mu, which R^2 does not see."""
    forests = submodels.forests[draw]
    f = np.empty((len(forests), submodels.rows.shape[1]))
    for k, trees in enumerate(forests):
        expected_values(trees, is_included, submodels.rows, f[k])
    return f


def _centred(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences from the mean of the rows, exactly 0 where f is constant."""
    differences = f - f[..., :1]
    centred: NDArray[np.float64] = differences - differences.mean(axis=-1, keepdims=True)
    return centred


def _r2(f: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared correlation of f (..., k, n) with a centred target (k, n), all forests together.

    0 where one of them is constant: it says nothing of the other.
    """
    f = _centred(f)
    covariance = np.einsum("...ki,ki->...", f, target)
    variances = np.einsum("...ki,...ki->...", f, f) * np.einsum("ki,ki->", target, target)
    squared = np.divide(
        covariance**2, variances, out=np.zeros_like(covariance), where=variances > 0.0
    )
    return np.asarray(squared)
