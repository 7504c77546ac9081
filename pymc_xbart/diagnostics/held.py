"""Forests with some columns held at points (floor 2): what kernels need to know of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.diagnostics.grid import Grid
from pymc_xbart.diagnostics.selection import some_trees, splits_of_trees
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.views import Seen, places_of, see
from pymc_xbart.kernels import Forest, marginal_values, profile_values


class Held(NamedTuple):
    """Rows and points, as trees see them."""

    is_held: NDArray[np.bool_]  # (p,)
    rows: Seen  # n rows; their last view is all zero, which `profile_values` asks for
    points: Seen


def see_rows(X: NDArray[np.float64], is_categorical: NDArray[np.bool_]) -> Seen:
    """Rows X (n, p) for `hold`."""
    seen = see(X, is_categorical)
    return seen._replace(rows=np.vstack([seen.rows, np.zeros(X.shape[0])]))


def hold(grid: Grid, rows: Seen, is_categorical: NDArray[np.bool_]) -> Held:
    """Hold the columns of a grid at its points, beside rows that have the others."""
    is_held = np.isin(np.arange(is_categorical.size), grid.columns)
    # Other columns of the points are not looked at: one view of each will do.
    return Held(is_held, rows, see(grid.points, is_categorical & is_held))


def means_of_trees(stored: StoredForest, held: Held) -> NDArray[np.float64]:
    """Mean of each tree over rows, at each point, (num_trees, m)."""
    means = np.empty((stored.forest.tree_start.size - 1, held.points.rows.shape[1]))
    marginal_values(*_place(stored, held), held.rows.rows, held.points.rows, means)
    return means


def means_of_forest(stored: StoredForest, several: list[Held]) -> list[NDArray[np.float64]]:
    """Mean of f over the same rows, at the points of each, (m,)."""
    splits = splits_of_trees(stored, several[0].is_held.size)
    looks = np.array([splits[:, held.is_held].any(axis=1) for held in several])
    # Trees that look at nothing that is held say the same at all points, whatever these are about.
    is_constant = ~looks.all(axis=0)
    constant = np.zeros(is_constant.size)
    constant[is_constant] = means_of_trees(
        some_trees(stored, is_constant), _hold_nothing(several[0])
    )[:, 0]
    return [
        stored.mu
        + constant[~look].sum()
        + means_of_trees(some_trees(stored, look), held).sum(axis=0)
        for look, held in zip(looks, several, strict=True)
    ]


def _hold_nothing(held: Held) -> Held:
    return held._replace(
        is_held=np.zeros_like(held.is_held), points=held.points._replace(rows=np.zeros((1, 1)))
    )


def at_each_row(stored: StoredForest, held: Held, f: NDArray[np.float64]) -> None:
    """Write f at each point and row to `f` (m, n)."""
    profile_values(*_place(stored, held), held.rows.rows, held.points.rows, f)
    f += stored.mu


def _place(
    stored: StoredForest, held: Held
) -> tuple[Forest, NDArray[np.float64], NDArray[np.bool_]]:
    """Forest whose splits name rows of what is seen, its cuts, and which splits are held."""
    forest = stored.forest
    is_held = (forest.column >= 0) & held.is_held[forest.column]  # leaves look up the last, in vain
    of_points, of_rows = (places_of(forest, stored.view, seen) for seen in (held.points, held.rows))
    place = np.where(is_held, of_points, of_rows)
    return forest._replace(column=place), stored.cut_value, is_held
