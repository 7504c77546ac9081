"""Points at which columns of X are held (floor 2): which ones by default, and what they are called.

A column is held at values that occur in it, so that whole numbers stay whole and no point lies
where there are no rows.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.forest.covariates import find_column
from pymc_xbart.forest.draws import Draws
from pymc_xbart.forest.new_rows import NewRows
from pymc_xbart.forest.prior import whole_number
from pymc_xbart.forest.tables import as_numbers, as_seconds

NUM_POINTS = 50
ROWS_A_CELL = 10  # on average, where rows are moved within cells between the points of two columns
MISSING = "(missing)"  # label of missing values beside those of categories

Columns = tuple[int, ...]  # that are held at the same time


class Grid(NamedTuple):
    """Every combination of some values of each column that is held, the last one changing first."""

    columns: Columns
    dims: tuple[str, ...]  # what these columns are called in a result
    values: tuple[NDArray[np.float64], ...]  # of each, as trees know them
    labels: tuple[NDArray[Any], ...]  # of these values, as a result has them
    points: NDArray[np.float64]  # (m, p), 0 in other columns

    @property
    def shape(self) -> tuple[int, ...]:
        """How many points each column has."""
        return tuple(labels.size for labels in self.labels)

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Labels of the points, by dimension."""
        return dict(zip(self.dims, self.labels, strict=True))


def read_columns(columns: Any, rows: NewRows) -> tuple[list[Columns], bool]:
    """Which columns are asked for, and whether that is a list of them.

    Parameters
    ----------
    columns : int, str, tuple, list or None
        One column, a tuple of two that are held at the same time, a list of such, or None for all
        columns one by one.
    rows : NewRows
    """
    num_columns = rows.X.shape[1]
    if columns is None:
        return [(v,) for v in range(num_columns)], True
    is_one = isinstance(columns, str | int | np.integer | tuple)
    asked = [columns] if is_one else list(columns)
    if not asked:
        msg = "columns is empty. Name at least one column of X, or leave it out for all of them."
        raise ValueError(msg)
    return [_read_item(item, rows.names, num_columns) for item in asked], not is_one


def _read_item(item: Any, names: list[str] | None, num_columns: int) -> Columns:
    together = item if isinstance(item, tuple) else (item,)
    found = tuple(find_column(column, names, num_columns, "columns") for column in together)
    if len(set(found)) != len(together) or len(together) not in (1, 2):
        msg = (
            f"columns holds the tuple {item!r}, but a tuple is two different columns that are held "
            "at the same time. Pass a list for several columns one by one."
        )
        raise ValueError(msg)
    return found


def name_of(v: int, rows: NewRows) -> str:
    """Name of a column, or what it is called without one."""
    return rows.names[v] if rows.names else f"column_{v}"


def make_grids(
    items: list[Columns], grid: Any, rows: NewRows, draws: Draws, *, in_steps: bool = False
) -> list[Grid]:
    """Points of each item.

    Parameters
    ----------
    items : list of tuple of int
        One or two columns each.
    grid : int, array_like, mapping or None
        How many quantiles of each column to take; or the values of a single column; or either by
        column. None: `NUM_POINTS` quantiles.
    rows : NewRows
    draws : Draws
    in_steps : bool, default False
        Whether rows are moved from point to point. Missing values are then no point, rows without
        a value in a column of an item don't count, and two columns have by default fewer points:
        about `ROWS_A_CELL` rows lie in each cell.

    Raises
    ------
    TypeError, ValueError
        If `grid` is about other columns, or holds what is no value of its column; or if results
        could not stand side by side.
    """
    if isinstance(grid, Mapping):
        num_columns = rows.X.shape[1]
        grid = {find_column(key, rows.names, num_columns, "grid"): grid[key] for key in grid}
        extra = [name_of(v, rows) for v in grid if not any(v in columns for columns in items)]
        if extra:
            msg = f"grid has points of the column {extra[0]!r}, which is not among the columns."
            raise ValueError(msg)
    elif np.ndim(grid) > 0 and {len(items), *map(len, items)} != {1}:
        msg = "grid is a list of values, but there are several columns. Pass {column: values}."
        raise ValueError(msg)
    grids = [_make_grid(columns, grid, rows, draws, in_steps) for columns in items]
    _check_names(grids, rows, draws)
    _check_points(grids)
    return grids


def _make_grid(columns: Columns, grid: Any, rows: NewRows, draws: Draws, in_steps: bool) -> Grid:
    count = NUM_POINTS
    if in_steps:
        rows = rows._replace(X=rows.X[~np.isnan(rows.X[:, columns]).any(axis=1)])
        if len(columns) == 2:
            count = min(NUM_POINTS, 2 + math.isqrt(rows.X.shape[0] // ROWS_A_CELL))
    values = []
    for v in columns:
        asked = grid.get(v) if isinstance(grid, dict) else grid
        points = _values(count if asked is None else asked, v, rows, draws)
        values.append(points[~np.isnan(points)] if in_steps else points)
    labels = tuple(_labels(x, v, rows) for x, v in zip(values, columns, strict=True))
    points = np.zeros((math.prod(x.size for x in values), rows.X.shape[1]))
    for v, x in zip(columns, np.meshgrid(*values, indexing="ij"), strict=True):
        points[:, v] = x.ravel()
    return Grid(columns, _dims(columns, rows, draws), tuple(values), labels, points)


def _values(grid: Any, v: int, rows: NewRows, draws: Draws) -> NDArray[np.float64]:
    """Values at which a column is held, as trees know them."""
    if np.ndim(grid) == 0 and not isinstance(grid, str):
        count = whole_number(grid, "grid")
        return spread_values(rows.X[:, v], None if is_discrete(v, rows, draws) else count)
    labels = rows.categories[v]
    if labels is None:
        grid = as_seconds(grid) if v in rows.dates else grid
        values = as_numbers(grid, f"grid of the column {name_of(v, rows)!r}")
    else:
        values = np.array([_number_of(label, labels, name_of(v, rows)) for label in grid])
    if values.ndim != 1 or values.size == 0:
        msg = f"grid of the column {name_of(v, rows)!r} must be a list of at least one value."
        raise ValueError(msg)
    return values


def is_discrete(v: int, rows: NewRows, draws: Draws) -> bool:
    """Whether a column holds categories, each of which is a point of its own."""
    return rows.categories[v] is not None or bool(draws.first.is_categorical[v])


def _number_of(label: Any, labels: list[str], name: str) -> float:
    if label is None or label != label or label == MISSING:
        return math.nan
    if str(label) not in labels:
        msg = (
            f"grid of the column {name!r} holds the category {label!r}, but the column's "
            f"categories are {', '.join(map(repr, labels))}."
        )
        raise ValueError(msg)
    return float(labels.index(str(label)))


def spread_values(x: NDArray[np.float64], count: int | None) -> NDArray[np.float64]:
    """Values of a column, in ascending order, the missing one last if there are any.

    All distinct ones if these are no more than `count`, or for None; else so many quantiles, from
    the smallest value to the largest.
    """
    is_missing = np.isnan(x)
    known = np.unique(x[~is_missing])
    if count is not None and known.size > count:
        levels = np.linspace(0.0, 1.0, count) if count > 1 else [0.5]
        known = np.unique(np.quantile(x[~is_missing], levels, method="inverted_cdf"))
    return np.append(known, math.nan) if is_missing.any() else known


def _labels(values: NDArray[np.float64], v: int, rows: NewRows) -> NDArray[Any]:
    labels = rows.categories[v]
    if labels is None:
        return values
    return np.array([MISSING if math.isnan(x) else labels[int(x)] for x in values])


def _dims(columns: Columns, rows: NewRows, draws: Draws) -> tuple[str, ...]:
    """Names of columns, but of none that a result has otherwise."""
    taken = {draws.name, *draws.dims, *map(str, draws.text.dims), *map(str, draws.text.coords)}
    names = [name_of(v, rows) for v in columns]
    return tuple(f"{name}_column" if name in taken else name for name in names)


def to_dataset(
    draws: Draws,
    grids: list[Grid],
    results: list[xr.DataArray],
    rows: NewRows,
    *,
    is_list: bool,
    attrs: dict[str, Any],
) -> xr.Dataset:
    """One variable named as the forest; for a list of columns, one for each, with their names.

    Its attributes tell a picture what it shows: `attrs`, and which dims are columns, and which of
    these hold categories or dates.
    """
    results = [
        result.assign_attrs(attrs | _about(grid, rows, draws))
        for result, grid in zip(results, grids, strict=True)
    ]
    if not is_list:
        return results[0].to_dataset(name=draws.name)
    names = [_name_of_result(grid, rows, draws) for grid in grids]
    return xr.Dataset(dict(zip(names, results, strict=True)))


def _name_of_result(grid: Grid, rows: NewRows, draws: Draws) -> str:
    return "_".join([draws.name, *(name_of(v, rows) for v in grid.columns)])


def _check_names(grids: list[Grid], rows: NewRows, draws: Draws) -> None:
    """Refuse results that would have the same name, or that of a column."""
    names = [_name_of_result(grid, rows, draws) for grid in grids]
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    twice += sorted({dim for grid in grids for dim in grid.dims} & set(names))
    if twice:
        msg = f"columns asks twice for what is called {twice[0]!r}. Ask for one after the other."
        raise ValueError(msg)


def _check_points(grids: list[Grid]) -> None:
    """Refuse results that have other points of a column: xarray would fill gaps with NaN."""
    known: dict[str, NDArray[Any]] = {}
    for grid in grids:
        for dim, labels in grid.coords.items():
            first = known.setdefault(dim, labels)
            is_number = labels.dtype.kind == "f"
            if not np.array_equal(first, labels, equal_nan=is_number):
                msg = (
                    f"columns asks for {dim!r} twice, at other points, since beside another column "
                    "there are fewer. Ask for one after the other, or pass its points, "
                    f"grid={{{dim!r}: ...}}."
                )
                raise ValueError(msg)


def _about(grid: Grid, rows: NewRows, draws: Draws) -> dict[str, Any]:
    pairs = list(zip(grid.columns, grid.dims, strict=True))
    kinds = {
        "categories": [dim for v, dim in pairs if is_discrete(v, rows, draws)],
        "dates": [dim for v, dim in pairs if v in rows.dates],
    }
    # Files can't hold an empty list.
    known = {kind: dims for kind, dims in kinds.items() if dims}
    return {"forest": draws.name, "columns": list(grid.dims)} | known
