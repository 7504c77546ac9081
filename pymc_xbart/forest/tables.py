"""Numbers out of whatever holds them (floor 1): lists, arrays, masked arrays, pandas and polars.

Tables are recognised by what they offer, so that neither pandas nor polars need be installed.
"""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_NAMED = 3  # rows that an error message names

# pandas' own markers of a missing entry; known by name, since pandas is not imported
MISSING_TYPES = ("NAType", "NaTType")


def is_table(data: Any) -> bool:
    """Whether `data` is a pandas or polars DataFrame."""
    return hasattr(data, "columns") and (hasattr(data, "iloc") or hasattr(data, "get_columns"))


def is_labelled_array(data: Any) -> bool:
    """Whether `data` is an xarray.DataArray."""
    return all(hasattr(data, name) for name in ("dims", "coords", "to_pandas"))


def is_labelled_table(data: Any) -> bool:
    """Whether `data` is an xarray.Dataset."""
    return all(hasattr(data, name) for name in ("dims", "data_vars", "to_dataframe"))


def frame_of(data: Any) -> Any:
    """Data variables of an xarray.Dataset as a pandas.DataFrame; coordinates are no columns."""
    return data.reset_coords(drop=True).to_dataframe()


def named_columns(table: Any) -> list[tuple[str, Any]]:
    """Columns of a DataFrame with their names as text, which need not be unique."""
    if hasattr(table, "iloc"):
        return [(str(name), table.iloc[:, j]) for j, name in enumerate(table.columns)]
    return [(column.name, column) for column in table.get_columns()]


def first_rows(rows: NDArray[np.intp]) -> str:
    """Name the first of these rows: "row 3", "rows 3, 7 and 9", "rows 3, 7, 9 and 12 more"."""
    named = [str(row) for row in rows[:MAX_NAMED]]
    if rows.size > MAX_NAMED:
        return f"rows {', '.join(named)} and {rows.size - MAX_NAMED} more"
    if len(named) == 1:
        return f"row {named[0]}"
    return f"rows {', '.join(named[:-1])} and {named[-1]}"


def as_numbers(
    values: Any, what: str, advice: str | None = None, *, copy: bool = True
) -> NDArray[np.float64]:
    """Convert an array or Series to float64; whatever counts as missing becomes NaN.

    Parameters
    ----------
    values : array_like
        Any shape; a column of a DataFrame; a masked array.
    what : str
        How an error message begins, for instance "Column 'age' of X".
    advice : str, optional
        How one about anything but numbers ends.
    copy : bool, default True
        Whether the result is a copy in any case. Otherwise it is `values` where nothing has to be
        converted.

    Returns
    -------
    ndarray
        Of the same shape.

    Raises
    ------
    TypeError
        If an entry is text, a date, a category or anything else that is not a real number. Text
        that looks like a number is refused too: whether "01" is 1 is for its owner to say.
    ValueError
        If the numbers are complex.
    """
    advice = advice or _ADVICE
    if getattr(getattr(values, "dtype", None), "categories", None) is not None:
        # pandas would hand out the categories' own values, numbers perhaps, without their order
        msg = f"{what} holds categories. {advice}"
        raise TypeError(msg)
    is_masked = np.ma.isMaskedArray(values)
    array = np.asarray(values.data if is_masked else values)
    if array.dtype.kind == "c":
        msg = (
            f"{what} holds complex numbers. Complex data not supported: pass real and imaginary "
            "part one by one."
        )
        raise ValueError(msg)
    if array.dtype.kind in "biuf":
        result = array.astype(np.float64, order="C", copy=copy or is_masked)
    elif array.dtype.kind in "OUS":
        mask = np.ma.getmaskarray(values) if is_masked else None
        result = _numbers_of_objects(array.astype(object), mask, what, advice)
    else:
        # Dates and durations, say: as objects, some of them would be numbers.
        msg = f"{what} holds values of type {array.dtype}. {advice}"
        raise TypeError(msg)
    if is_masked:
        result[np.ma.getmaskarray(values)] = np.nan
    return result


def as_seconds(dates: Any) -> Any:
    """Dates, or texts such as "2024-06-01", as seconds since 1970; what is no date, as it is."""
    array = np.array(dates)
    if array.dtype.kind in "biuf":
        return dates
    if array.dtype == object:
        array[array != array] = None  # pandas' NaT, which NumPy does not know
    try:
        times = array.astype("datetime64[us]")
    except (TypeError, ValueError):
        return dates
    return np.where(np.isnat(times), np.nan, times.astype(np.float64) / 1e6)


_ADVICE = "Pass real numbers."
# In the words that scikit-learn's estimator checks look for.
COLUMN_ADVICE = (
    "The argument must be free of strings: declare a column of categories as such, for instance by "
    "table.astype({'name': 'category'}) in pandas, or give its categories numbers and name it in "
    "`categorical`; convert numbers that are text."
)


def _numbers_of_objects(
    array: NDArray[np.object_], mask: NDArray[np.bool_] | None, what: str, advice: str
) -> NDArray[np.float64]:
    """Convert one by one, as tables with mixed columns and nullable ones arrive as objects."""
    result = np.full(array.shape, np.nan)
    refused = []
    for i, value in enumerate(array.flat):
        if mask is not None and mask.flat[i]:
            continue
        # To Python, durations of NumPy are whole numbers.
        if isinstance(value, numbers.Real | np.bool) and not isinstance(value, np.timedelta64):
            try:
                result.flat[i] = float(value)
            except OverflowError:
                refused.append(i)
        elif value is not None and type(value).__name__ not in MISSING_TYPES:
            refused.append(i)
    if refused:
        rows = np.unravel_index(refused, array.shape)[0] if array.ndim else np.array(refused)
        value = array.flat[refused[0]]
        msg = (
            f"{what} holds values that are not real numbers in {first_rows(np.unique(rows))} "
            f"(counting from 0), first {value!r}. {advice}"
        )
        raise TypeError(msg)
    return result
