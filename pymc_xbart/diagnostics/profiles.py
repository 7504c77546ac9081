"""f at every point of a grid and every row, and functions of it (floor 2)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import label, read_all
from pymc_xbart.diagnostics.grid import Grid
from pymc_xbart.diagnostics.held import at_each_row, hold, see_rows
from pymc_xbart.forest.draws import Draws, evenly_spaced
from pymc_xbart.forest.new_rows import NewRows
from pymc_xbart.forest.prior import whole_number

Transform = Callable[[xr.DataArray], Any]


def choose_rows(rows: int | Sequence[int] | None, num_rows: int) -> NDArray[np.int64]:
    """Numbers of rows: those given, or so many evenly spaced, or all for None."""
    if rows is None:
        return np.arange(num_rows)
    if np.ndim(rows) == 0:
        return evenly_spaced(num_rows, whole_number(rows, "rows"))
    chosen = np.asarray(rows)
    is_number = chosen.ndim == 1 and chosen.dtype.kind in "iu" and chosen.size > 0
    if not is_number or chosen.min() < 0 or chosen.max() >= num_rows:
        msg = (
            f"rows is {rows!r}, but must be how many rows of X to use, or a list of their numbers, "
            f"from 0 to {num_rows - 1}."
        )
        raise ValueError(msg)
    return chosen.astype(np.int64)


def some_rows(rows: NewRows, chosen: NDArray[np.int64]) -> NewRows:
    """Some rows, labelled by their numbers where they have no labels."""
    labels = chosen if rows.labels is None else np.asarray(rows.labels)[chosen]
    return rows._replace(X=rows.X[chosen], labels=labels)


def bytes_a_draw(draws: Draws, rows: NewRows, grid: Grid) -> int:
    """What `profiles` take for each draw."""
    size: int = 8 * len(draws.first.forests) * grid.points.shape[0] * rows.X.shape[0]
    return size


def profiles(draws: Draws, rows: NewRows, grid: Grid) -> xr.DataArray:
    """All f, at each point and row, with dims of the draws, of the variable, and of the grid."""
    first = draws.first
    held = hold(grid, see_rows(rows.X, first.is_categorical), first.is_categorical)
    num_rows = rows.X.shape[0]
    f = np.empty((draws.text.size, len(first.forests), grid.points.shape[0], num_rows))
    for draw, stored in enumerate(read_all(draws)):
        for k, forest in enumerate(stored.forests):
            at_each_row(forest, held, f[draw, k])
    by_row = np.moveaxis(f.reshape(*f.shape[:2], *grid.shape, num_rows), -1, 2)
    coords: dict[str, Any] = {draws.dims[-1]: rows.labels, **grid.coords}
    return label(draws, by_row, coords, of_each_forest=True)


def transformed(transform: Transform, f: xr.DataArray, needed: tuple[str, ...]) -> xr.DataArray:
    """Transform f, which must keep some dims.

    Raises
    ------
    ValueError
        If it does not.
    """
    result: xr.DataArray = transform(f)
    if not isinstance(result, xr.DataArray) and np.shape(result) == f.shape:
        result = f.copy(data=np.asarray(result))  # functions of scipy.stats drop labels
    missing = [dim for dim in needed if dim not in getattr(result, "dims", ())]
    if missing:
        msg = (
            f"transform must keep the dimensions {', '.join(map(repr, needed))}, but has returned "
            f"something without {', '.join(map(repr, missing))}. It is given f as a DataArray, and "
            "returns a function of each of its numbers."
        )
        raise ValueError(msg)
    return result


def centre(result: xr.DataArray, grid: Grid) -> xr.DataArray:
    """Subtract the value at the first point of the grid."""
    return result - result.isel(dict.fromkeys(grid.dims, 0), drop=True)


def name_values(draws: Draws, transform: Transform | None, kind: str) -> str:
    """What a picture calls f, or a function of it."""
    name = draws.name
    if transform is not None:
        function = getattr(transform, "__name__", "")
        name = f"{function}({name})" if function.isidentifier() else f"function of {name}"
    return f"change of {name} from the first point" if kind == "centred" else name
