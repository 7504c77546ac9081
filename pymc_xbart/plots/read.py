"""What pictures of dependence are given (floor 3): results as arrays, and X beside them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.grid import MISSING
from pymc_xbart.forest.covariates import (
    Labels,
    date_columns,
    find_column,
    read_covariates,
)
from pymc_xbart.forest.draws import DRAW_DIMS, find_draws, stored_forests
from pymc_xbart.forest.new_rows import read_new_rows


class Item(NamedTuple):
    """One column, or two that are held at the same time."""

    draws: NDArray[np.float64]  # (draws, forests, rows, *points); a single row for means over rows
    columns: list[str]
    points: list[NDArray[Any]]  # of each column
    is_categorical: list[bool]
    is_date: list[bool]
    forests: list[str]  # what each is called; a single "" where there is one without a dimension
    name: str  # of the forest
    long_name: str  # what it holds


def is_result(idata: Any) -> bool:
    """Whether it is what a diagnostic returned, not a run that holds trees."""
    is_dataset = hasattr(idata, "data_vars") and not getattr(idata, "children", ())
    return is_dataset and not stored_forests(idata)


def read_items(result: xr.Dataset, *, has_rows: bool, maker: str) -> list[Item]:
    """Every variable of a result.

    Parameters
    ----------
    result : xarray.Dataset
    has_rows : bool
        Whether curves of single rows are asked for.
    maker : str
        Names the functions that return such results, for the message of the error.

    Raises
    ------
    TypeError
        If it is something else.
    """
    variables = list(result.data_vars.values())
    for variable in variables:
        if "columns" not in variable.attrs or ("rows" in variable.attrs) != has_rows:
            msg = (
                f"The variable {variable.name!r} does not say that it comes from {maker}. Pass "
                "what that returned, or what pm.sample returned, and X."
            )
            raise TypeError(msg)
    return [_read_item(variable) for variable in variables]


def _read_item(variable: xr.DataArray) -> Item:
    columns = _listed(variable.attrs["columns"])
    for dim in columns:
        # Grids may have any order, axes have theirs: numbers ascend, and what is missing is last.
        points = variable[dim].values
        order = np.argsort(
            points if points.dtype.kind in "fiu" else is_missing(points), stable=True
        )
        if (np.diff(order) < 0).any():
            variable = variable.isel({dim: order})
    rows = _listed(variable.attrs.get("rows", []))
    draws = [dim for dim in DRAW_DIMS if dim in variable.dims]
    forests = [dim for dim in variable.dims if dim not in {*draws, *rows, *columns}]
    values = variable.transpose(*draws, *forests, *rows, *columns).values
    sizes = [variable.sizes[dim] for dim in (*rows, *columns)]
    num_forests = int(np.prod([variable.sizes[dim] for dim in forests]))
    shape = (-1, num_forests, *([] if rows else [1]), *sizes)
    categories, dates = (_listed(variable.attrs.get(kind, [])) for kind in ("categories", "dates"))
    return Item(
        values.reshape(shape),
        columns,
        [variable[dim].values for dim in columns],
        [dim in categories for dim in columns],
        [dim in dates for dim in columns],
        _names_of_forests(variable, forests),
        str(variable.attrs.get("forest", variable.name)),
        str(variable.attrs.get("long_name", variable.name)),
    )


def _listed(value: Any) -> list[str]:
    """Names in a list, whatever a file has made of it."""
    return [value] if isinstance(value, str) else list(value)


def _names_of_forests(variable: xr.DataArray, dims: list[Any]) -> list[str]:
    labels = [variable[dim].values for dim in dims]
    places = np.ndindex(*(label.size for label in labels))
    return [
        ", ".join(f"{dim} {label[k]}" for dim, label, k in zip(dims, labels, place, strict=True))
        for place in places
    ]


class Column(NamedTuple):
    """Data of a column of X."""

    values: NDArray[np.float64]  # (n,), categories by their numbers
    labels: list[str] | None
    is_date: bool
    is_categorical: bool


def read_data(X: Any, idata: Any = None, var_name: str | None = None) -> dict[str, Column]:
    """Columns of X by name, "column_0", ... without names.

    Parameters
    ----------
    X : array_like, DataFrame, xarray.DataArray, xarray.Dataset or None
    idata, var_name
        Run that knows the columns; without, they go by the names in X.
    """
    if X is None:
        return {}
    labels: Labels | None
    if idata is None:
        matrix, names, labels, categorical = read_covariates(X, min_rows=1)
        is_categorical = np.isin(np.arange(matrix.shape[1]), categorical)
        dates = frozenset(date_columns(X) or ())
    else:
        draws = find_draws(idata, var_name, 1)
        matrix, _, names, labels, dates = read_new_rows(X, draws)
        is_categorical = draws.first.is_categorical
    names = names or [f"column_{v}" for v in range(matrix.shape[1])]
    labels = labels or [None] * len(names)
    return {
        name: Column(
            matrix[:, v], labels[v], v in dates, bool(is_categorical[v]) or labels[v] is not None
        )
        for v, name in enumerate(names)
    }


def find_data(data: Mapping[str, Column], column: str) -> Column | None:
    """Data of a column as a result calls it; None if there are no data at all."""
    return column_of(data, column) if data else None


def column_of(data: Mapping[str, Column], column: str) -> Column:
    """Data of a column.

    Raises
    ------
    ValueError
        If X has other columns.
    """
    name = column if column in data else column.removesuffix("_column")
    if name not in data:
        msg = f"X has no column {column!r}: its columns are {', '.join(map(repr, data))}."
        raise ValueError(msg)
    return data[name]


def choose_columns(data: Mapping[str, Column], columns: Any) -> list[str]:
    """Names of the columns that are asked for by name or number, one or several; all for None."""
    names = list(data)
    if columns is None:
        return names
    is_one = isinstance(columns, str | int | np.integer)
    asked: list[Any] = [columns] if is_one else list(columns)
    return [names[find_column(each, names, len(names), "columns")] for each in asked]


def is_missing(points: NDArray[Any]) -> NDArray[np.bool_]:
    """Which points stand for no value: NaN, or a label that says so."""
    result: NDArray[np.bool_]
    result = np.isnan(points) if points.dtype.kind == "f" else points == MISSING
    return result


def compute(
    diagnostic: Callable[..., xr.Dataset],
    idata: Any,
    X: Any,
    columns: Any,
    options: dict[str, Any],
) -> tuple[xr.Dataset, dict[str, Column]]:
    """Result of a diagnostic, unless it is one already, and the data beside it."""
    if not is_result(idata):
        result = diagnostic(idata, X, columns, **options)
        return result, read_data(X, idata, options.get("var_name"))
    if columns is not None or options:
        names = [*(["columns"] if columns is not None else []), *options]
        msg = (
            f"{', '.join(names)}: only with what pm.sample returned. This is a result of "
            f"{diagnostic.__name__}; tell that function instead."
        )
        raise TypeError(msg)
    return idata, read_data(X)
