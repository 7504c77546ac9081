"""X of any kind as a matrix of numbers, and what its numbers stand for (floor 1).

Tables are read by narwhals, so that none of their libraries need be installed.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.design import check_design
from pymc_xbart.forest.schema import Schema, distinct
from pymc_xbart.forest.tables import (
    COLUMN_ADVICE,
    MISSING_TYPES,
    as_numbers,
    first_rows,
    frame_of,
    is_labelled_array,
    is_labelled_table,
)

Labels = list[list[str] | None]  # of the categories of each column by their numbers; None: numbers
MAX_NAMED = 3  # categories that a warning names


class Covariates(NamedTuple):
    """X, read."""

    X: NDArray[np.float64]  # (n, p), NaN where missing; categories by their numbers
    names: list[str] | None  # of the columns, if all have one of their own
    labels: Labels | None  # None where no column holds categories that have labels
    categorical: tuple[int, ...]  # columns whose values are categories without an order


def read_covariates(
    X: Any,
    categorical: Sequence[int | str] | None = None,
    *,
    labels: Labels | None = None,
    min_rows: int = 2,
    copy: bool = True,
) -> Covariates:
    """Convert covariates to the matrix that trees see, or say why that can't be done.

    Parameters
    ----------
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Numbers; booleans, as 0 and 1; dates and times, as seconds since 1970; durations, as
        seconds; ordered categories, as their ranks; and categories. Entries may be missing.
    categorical : sequence of int or str, optional
        Columns whose values are categories, by number or name, beside those that a table declares
        as categories without an order.
    labels : list, optional
        What trees know of each column, where there are trees already: the labels of its categories,
        or None for numbers, in whose place categories are refused. Other categories get numbers
        behind them, with a warning; in columns that are not `categorical` they are refused.
    min_rows : int, default 2
    copy : bool, default True
        As in `check_design`.

    Raises
    ------
    TypeError, ValueError
        Naming column and rows.
    """
    if is_labelled_table(X):
        X = frame_of(X)
    names = None
    categorical = _listed(categorical)
    declared: list[int] = []
    found: Labels = []
    if is_labelled_array(X) and X.ndim == 2:
        names = _labels_of(X)
        X = X.values
    else:
        table = _as_table(X)
        if table is not None:
            names = _names_of(table)
            nominal = set(() if categorical is None else categorical)
            columns = []
            for v, series in enumerate(table.iter_columns()):
                if labels is None or v >= len(labels):
                    column = _read_column(series)
                else:
                    column = _read_known(series, labels[v], v not in nominal)
                columns.append(column.values)
                found.append(column.labels)
                declared += [v] if column.is_categorical else []
            X = np.column_stack(columns) if columns else np.empty((len(table), 0))
            copy = False  # it is one
    is_array = not found
    matrix = check_design(X, min_rows=min_rows, copy=copy)
    if is_array and labels is not None:
        _check_numbers(matrix, labels, names)
    chosen = choose_columns(categorical, names, matrix.shape[1])
    return Covariates(matrix, names, _or_none(found), tuple(sorted({*declared, *chosen})))


def _check_numbers(X: NDArray[np.float64], labels: Labels, names: list[str] | None) -> None:
    """Refuse an array whose numbers are not those of categories that trees know by labels.

    Where the labels themselves are numbers, nobody can tell: 1 may be the first, or that called 1.
    """
    for v, known in enumerate(labels[: X.shape[1]]):
        if known is None:
            continue
        x = X[~np.isnan(X[:, v]), v]
        if not np.isin(x, np.arange(len(known))).all() or all(map(_is_number, known)):
            msg = (
                f"X is an array of numbers, but trees were grown on categories in the column "
                f"{_called(v, names)}. Pass a table, as it was."
            )
            raise TypeError(msg)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def describe_columns(X: Any) -> Schema:
    """What is known of the columns of X, without reading the numbers."""
    if is_labelled_table(X):
        X = frame_of(X)
    if is_labelled_array(X) and X.ndim == 2:
        return Schema(_labels_of(X))
    table = _as_table(X)
    if table is None:
        return Schema()
    labels = [
        _read_categories(column).labels if _is_of_categories(column) else None
        for column in table.iter_columns()
    ]
    return Schema(_names_of(table), labels=_or_none(labels), dates=_dates_of(table))


def date_columns(X: Any) -> list[int] | None:
    """Numbers of the columns of a table that hold dates or times; None if there are none."""
    if is_labelled_table(X):
        X = frame_of(X)
    table = _as_table(X)
    return None if table is None else _dates_of(table)


def _dates_of(table: nw.DataFrame[Any]) -> list[int] | None:
    """Numbers of the columns that hold dates; None if there are none."""
    return [v for v, column in enumerate(table.iter_columns()) if _is_of_dates(column)] or None


def _or_none(labels: Labels) -> Labels | None:
    """None where no column has any."""
    return labels if any(each is not None for each in labels) else None


class _Column(NamedTuple):
    """One column of a table."""

    values: NDArray[np.float64]  # (n,)
    labels: list[str] | None
    is_categorical: bool


def _as_table(X: Any) -> nw.DataFrame[Any] | None:
    """X through narwhals; None if it is no table."""
    if hasattr(X, "iloc") and hasattr(X, "columns") and not X.columns.is_unique:
        X = X.set_axis(range(len(X.columns)), axis=1)  # names that are not distinct name nothing
    table = nw.from_native(X, eager_only=True, pass_through=True)
    return table if isinstance(table, nw.DataFrame) else None


def _read_known(column: Any, labels: list[str] | None, is_ordered: bool) -> _Column:
    """Read a column that trees have been grown on."""
    if labels is not None:
        read = _read_categories(column, labels)
        everything = read.labels or []
        _check_new(read.values, everything, labels, repr(column.name), is_ordered)
        return read
    if _is_of_categories(column):
        msg = (
            f"Column {column.name!r} of X holds categories, but the forest knows of none there: it "
            "was grown on numbers, or what pm.sample returned has been cut down to its trees (the "
            "group 'constant_data' holds the labels of categories)."
        )
        raise TypeError(msg)
    return _read_column(column)


def _read_column(column: Any) -> _Column:
    dtype = column.dtype
    if _is_of_categories(column):
        return _read_categories(column)
    if _is_of_dates(column):
        return _Column(_microseconds(column.dt.timestamp("us")), None, False)
    if isinstance(dtype, nw.Duration):
        return _Column(_microseconds(column.dt.total_microseconds()), None, False)
    what = f"Column {column.name!r} of X"
    return _Column(as_numbers(_as_array(column), what, COLUMN_ADVICE), None, False)


def _as_array(column: Any) -> Any:
    """Entries of a column, as they are."""
    native = column.to_native()
    if hasattr(native, "dtype"):
        return native
    return np.array(column.to_list(), dtype=object)  # pyarrow's


def _microseconds(column: Any) -> NDArray[np.float64]:
    """Seconds, of whole microseconds."""
    values = [np.nan if _is_missing(value) else value for value in column.to_list()]
    return np.array(values, np.float64) / 1e6


def _is_of_dates(column: Any) -> bool:
    return isinstance(column.dtype, nw.Datetime | nw.Date)


def _is_of_categories(column: Any) -> bool:
    return isinstance(column.dtype, nw.Categorical | nw.Enum)


def _read_categories(column: Any, known: Sequence[str] = ()) -> _Column:
    """Number the categories of a column: those known first, others in the order of the table."""
    values = [None if _is_missing(value) else str(value) for value in column.to_list()]
    declared = _declared(column) if _is_of_categories(column) else []
    everything = [*known, *map(str, declared), *(value for value in values if value is not None)]
    labels = list(dict.fromkeys(everything))
    number = {label: k for k, label in enumerate(labels)}
    codes = np.array([np.nan if value is None else number[value] for value in values])
    # pandas says so itself; what narwhals calls Enum has an order there, but not in polars.
    native = column.to_native()
    kinds = (
        getattr(native, "cat", None),
        getattr(native, "type", None),  # pyarrow's
        getattr(getattr(native, "dtype", None), "pyarrow_dtype", None),
    )
    is_ordered = any(getattr(kind, "ordered", False) for kind in kinds)
    return _Column(codes, labels, not is_ordered)


def _declared(column: Any) -> list[Any]:
    """Categories of a column, as far as it tells."""
    try:
        found: list[Any] = column.cat.get_categories().to_list()
    except AttributeError:  # narwhals asks pandas for those of an Arrow dictionary, in vain
        return []
    return found


def relabel(
    X: NDArray[np.float64],
    labels: Labels | None,
    known: Labels | None,
    names: list[str] | None,
    categorical: Sequence[int],
) -> NDArray[np.float64]:
    """Number the categories in X (n, p) as trees know them; they are numbered by `labels`.

    Raises
    ------
    TypeError, ValueError
        If a column holds categories here and numbers there, or new ones that have no place in an
        order.
    """
    if labels == known:
        return X
    p = X.shape[1]
    X = X.copy()
    for v, (here, there) in enumerate(zip(labels or [None] * p, known or [None] * p, strict=True)):
        name = _called(v, names)
        if (here is None) != (there is None):
            msg = (
                f"Column {name} of X holds {'numbers' if here is None else 'categories'}, but "
                f"trees were grown on {'numbers' if there is None else 'categories'} there. Pass "
                "it as it was."
            )
            raise TypeError(msg)
        if here is not None and there is not None and here != there:
            everything = [*there, *(label for label in here if label not in there)]
            number = np.array([everything.index(label) for label in here], np.float64)
            is_there = ~np.isnan(X[:, v])
            X[is_there, v] = number[X[is_there, v].astype(np.intp)]
            _check_new(X[:, v], everything, there, name, v not in categorical)
    return X


def _is_missing(value: Any) -> bool:
    # What pandas calls NA is neither equal to itself nor not.
    return value is None or type(value).__name__ in MISSING_TYPES or bool(value != value)


def _check_new(
    codes: NDArray[np.float64],
    labels: Sequence[str],
    known: Sequence[str],
    name: str,
    is_ordered: bool,
) -> None:
    """Warn of categories that no tree has seen, and refuse them where they have an order."""
    rows = np.flatnonzero(codes >= len(known))
    if rows.size == 0:
        return
    new = [repr(labels[int(k)]) for k in np.unique(codes[rows])]
    more = f" and {len(new) - MAX_NAMED} more" if len(new) > MAX_NAMED else ""
    msg = (
        f"Column {name} of X has categories that no tree has seen: {', '.join(new[:MAX_NAMED])}"
        f"{more}, in {first_rows(rows)} (counting from 0). "
    )
    if is_ordered:
        msg += "They have no place in the order of the others: leave these rows or entries out."
        raise ValueError(msg)
    msg += "Each split sends them left or right by chance, as its prior does."
    warnings.warn(msg, UserWarning, stacklevel=2)


def warn_of_gaps(
    X: NDArray[np.float64], has_missing: NDArray[np.bool_], names: list[str] | None
) -> None:
    """Warn of missing values in columns in which no tree has seen any."""
    is_missing = np.isnan(X)
    for v in np.flatnonzero(is_missing.any(axis=0) & ~has_missing):
        rows = first_rows(np.flatnonzero(is_missing[:, v]))
        msg = (
            f"Column {_called(int(v), names)} of X has missing values, in {rows} (counting from "
            "0), where trees have seen none. Each split sends them left or right by chance, as its "
            "prior does."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)


def _called(v: int, names: list[str] | None) -> str:
    """How a message calls a column."""
    return repr(names[v]) if names else f"{v} (counting from 0)"


def choose_columns(
    categorical: Sequence[int | str] | None, names: list[str] | None, num_columns: int
) -> tuple[int, ...]:
    """Numbers of columns that are given by number or name; none for None."""
    if categorical is None:
        return ()
    categorical = _listed(categorical)
    numbers = {find_column(column, names, num_columns, "categorical") for column in categorical}
    return tuple(sorted(numbers))


def _listed(categorical: Any) -> Any:
    """Columns that are named, in a list even if it is one."""
    return [categorical] if isinstance(categorical, str | int | np.integer) else categorical


def find_column(column: int | str, names: list[str] | None, num_columns: int, argument: str) -> int:
    """Number of a column that an argument gives by number or name."""
    if isinstance(column, str):
        if names is None or column not in names:
            known = f"are {', '.join(map(repr, names))}" if names else "have no names"
            msg = f"{argument} names the column {column!r}, but the columns of X {known}."
            raise ValueError(msg)
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        msg = f"{argument} holds {column!r}, but must hold names or numbers of columns of X."
        raise TypeError(msg)
    if not 0 <= column < num_columns:
        msg = f"{argument} holds {column}, but the {num_columns} columns of X are numbered from 0."
        raise ValueError(msg)
    return int(column)


def _labels_of(X: Any) -> list[str] | None:
    """Labels of the columns of a two-dimensional xarray.DataArray."""
    dim = X.dims[1]
    return distinct([str(label) for label in X.coords[dim].values]) if dim in X.coords else None


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a table or a labelled array, if all have one of their own."""
    if is_labelled_table(X):
        return distinct([str(name) for name in X.data_vars])
    if is_labelled_array(X) and X.ndim == 2:
        return _labels_of(X)
    table = _as_table(X)
    return None if table is None else _names_of(table)


def _names_of(table: nw.DataFrame[Any]) -> list[str] | None:
    return distinct([str(name) for name in table.columns])
