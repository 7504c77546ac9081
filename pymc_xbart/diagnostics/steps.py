"""Steps between neighbouring points of a column, and where rows are in them (floor 2)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.diagnostics.grid import Grid, name_of
from pymc_xbart.forest.new_rows import NewRows


class Steps(NamedTuple):
    """Steps along one column: step k goes from point k to point k + 1.

    A row belongs to the step that ends at or above its value, one at the first point to the first
    step. A single point has no step, and rows at it belong to none.
    """

    points: NDArray[np.float64]  # (m,), in ascending order
    of_row: NDArray[np.int64]  # (n,), number of the step of each row
    weight: NDArray[np.float64]  # (n, m), of points in what is drawn straight between them

    @property
    def num_steps(self) -> int:
        """One less than there are points."""
        return self.points.size - 1

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper end of the step of each row, (n,)."""
        return self.points[self.of_row], self.points[self.of_row + 1]

    @property
    def share(self) -> NDArray[np.float64]:
        """Share that each row has in the mean over the rows of a step, (steps, n)."""
        is_in = np.arange(self.num_steps)[:, np.newaxis] == self.of_row
        share: NDArray[np.float64] = is_in / is_in.sum(axis=1, keepdims=True)
        return share


def find_steps(grid: Grid, rows: NewRows) -> tuple[NDArray[np.float64], list[Steps]]:
    """Rows between the first and the last point of each column of a grid, and their steps.

    Raises
    ------
    ValueError
        If points are not in ascending order, or there is no row in a step.
    """
    X = rows.X
    for v, points in zip(grid.columns, grid.values, strict=True):
        if points.size == 0 or (np.diff(points) <= 0).any():
            msg = (
                f"grid of the column {name_of(v, rows)!r} must hold at least one value, in "
                "ascending order, none of them twice."
            )
            raise ValueError(msg)
        X = X[(points[0] <= X[:, v]) & (X[:, v] <= points[-1])]
    columns = zip(grid.columns, grid.values, grid.labels, strict=True)
    return X, [_steps(X[:, v], points, labels, name_of(v, rows)) for v, points, labels in columns]


def _steps(x: NDArray[np.float64], points: NDArray[np.float64], labels: Any, name: str) -> Steps:
    of_row = np.maximum(np.searchsorted(points, x) - 1, 0)
    num_rows = np.bincount(of_row, minlength=points.size)[: points.size - 1]
    if (num_rows == 0).any():
        k = np.flatnonzero(num_rows == 0)[0]
        msg = (
            f"No row of X lies between the points {labels[k]} and {labels[k + 1]} of the column "
            f"{name!r}, so that nothing is known of this step. Leave one of them out."
        )
        raise ValueError(msg)
    every = np.eye(points.size)
    weight = np.stack([np.interp(x, points, each) for each in every], axis=-1)
    return Steps(points, of_row, weight)
