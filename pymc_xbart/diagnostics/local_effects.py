"""Local effects of one column and of two (floor 2): changes of f in steps, added up and centred.

1. Move the rows of a step to both of its ends; for two columns, those of a cell to its corners.
2. Take the mean over them of the difference of f. For two columns it is the difference of
   differences, in which all is gone that only one of the columns has a part in.
3. Add these up along the points, and draw what comes out straight between them.
4. For two columns, take out the local effect that this has along either of them.
5. Subtract the mean over the rows.

Apley & Zhu (2020, JRSSB), sections 3.1 and 3.2. Departure: steps 4 and 5 take rows where they are
in their cells, not as if all were in the middle. So, to rounding, what is left of two columns has
no local effect along one of them.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from pymc_xbart.diagnostics.columns import read_all
from pymc_xbart.diagnostics.selection import some_trees, splits_of_trees
from pymc_xbart.diagnostics.steps import Steps
from pymc_xbart.forest.draws import Draws
from pymc_xbart.forest.views import evaluate_trees, see


def curves(draws: Draws, X: NDArray[np.float64], column: int, steps: Steps) -> NDArray[np.float64]:
    """Effect of one column at its m points, (draws, forests, m).

    Parameters
    ----------
    draws : Draws
    X : ndarray of shape (n, p)
        Rows that are in `steps`.
    column : int
    steps : Steps
    """
    share = steps.share
    effects = np.zeros((draws.text.size, len(draws.first.forests), steps.points.size))
    for place, (lower, upper) in _at_ends(draws, X, (column,), [steps]):
        effects[place][1:] = np.cumsum(share @ (upper - lower))
    centred: NDArray[np.float64] = effects - effects @ steps.weight.mean(axis=0)[:, np.newaxis]
    return centred


def surfaces(
    draws: Draws, X: NDArray[np.float64], columns: tuple[int, ...], steps: list[Steps]
) -> NDArray[np.float64]:
    """Effect of two columns beyond those of each, at their points, (draws, forests, m, m2).

    Parameters: as for `curves`, of both columns.
    """
    one, other = steps
    shape = one.num_steps, other.num_steps
    cell = np.ravel_multi_index((one.of_row, other.of_row), shape)
    num_rows = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
    # A cell without rows changes as the nearest that has some: without a change there, nothing
    # could be added up behind it.
    known = distance_transform_edt(
        num_rows == 0, 1 / np.array(shape), return_distances=False, return_indices=True
    )
    sums = np.zeros((draws.text.size, len(draws.first.forests), *(size + 1 for size in shape)))
    for place, f in _at_ends(draws, X, columns, steps):
        difference = (f[1, 1] - f[0, 1]) - (f[1, 0] - f[0, 0])
        total = np.bincount(cell, difference, num_rows.size).reshape(shape)
        change = (total / np.maximum(num_rows, 1))[tuple(known)]
        sums[place][1:, 1:] = change.cumsum(axis=0).cumsum(axis=1)
    along_one = _along(sums, one, other)[..., np.newaxis]
    along_other = _along(np.swapaxes(sums, -1, -2), other, one)[..., np.newaxis, :]
    effects = sums - along_one - along_other
    weight = one.weight.T @ other.weight / len(X)
    centred: NDArray[np.float64] = effects - np.sum(effects * weight, axis=(-2, -1), keepdims=True)
    return centred


def _at_ends(
    draws: Draws, X: NDArray[np.float64], columns: tuple[int, ...], steps: list[Steps]
) -> Iterator[tuple[tuple[int, int], NDArray[np.float64]]]:
    """Number of each draw and forest, with its f at rows moved to the ends of their steps.

    f has an axis for each column, lower end first, and then the rows. It is of trees that split on
    all the columns: no other tree has a part in the difference of all ends.
    """
    first = draws.first
    corners = []
    for ends in product(*(each.ends for each in steps)):
        moved = X.copy()
        moved[:, columns] = np.column_stack(ends)
        corners.append(moved)
    seen = see(np.concatenate(corners), first.is_categorical)
    for draw, stored in enumerate(read_all(draws)):
        for k, forest in enumerate(stored.forests):
            splits = splits_of_trees(forest, X.shape[1])
            some = some_trees(forest, splits[:, columns].all(axis=1))
            f = np.empty(seen.rows.shape[1])
            evaluate_trees(some.forest, some.view, some.cut_value, seen, f)
            yield (draw, k), f.reshape(*(2 for _ in columns), -1)


def _along(surfaces: NDArray[np.float64], steps: Steps, other: Steps) -> NDArray[np.float64]:
    """Local effect of the first column of surfaces (..., m, m2) at its points, (..., m)."""
    weight = steps.share @ other.weight  # (steps, m2)
    change = (np.diff(surfaces, axis=-2) * weight).sum(axis=-1)
    return np.insert(change.cumsum(axis=-1), 0, 0.0, axis=-1)
