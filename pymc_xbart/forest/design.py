"""X at the door (floor 1): a matrix of finite numbers, or an error that names column and rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.tables import as_numbers, first_rows, is_table, named_columns


def check_design(X: Any, *, min_rows: int = 2) -> NDArray[np.float64]:
    """Convert covariates to the matrix that trees split on, or say why that can't be done.

    Constant columns are allowed: they offer no cuts and are never split on.

    Parameters
    ----------
    X : array_like or DataFrame of shape (n, p)
        Real numbers, one row for each observation and one column for each covariate. Booleans count
        as 0 and 1. pandas and polars DataFrames are read column by column.
    min_rows : int, default 2
        Fewest rows accepted. One row can't be split, so a forest over it is a mere number; it makes
        sense where prediction is meant.

    Returns
    -------
    ndarray of shape (n, p)
        A copy: later changes to `X` change nothing here.

    Raises
    ------
    TypeError
        If X holds text, categories, dates, or is a sparse matrix.
    ValueError
        If X is not two-dimensional, has no columns or too few rows, or holds NaN or infinities.
    """
    labels = None
    if is_table(X):
        columns = named_columns(X)
        labels = [repr(name) for name, _ in columns]
        numbers = [as_numbers(column, f"Column {name!r} of X") for name, column in columns]
        matrix = np.column_stack(numbers) if numbers else np.empty((len(X), 0))
    else:
        matrix = _matrix_of_array(X)
    _check_shape(matrix, min_rows)
    _refuse_non_finite(matrix, labels or [f"{v} (counting from 0)" for v in range(matrix.shape[1])])
    return np.ascontiguousarray(matrix)


def _matrix_of_array(X: Any) -> NDArray[np.float64]:
    """Convert anything that is no table, naming the column where one is at fault."""
    if hasattr(X, "toarray"):
        msg = "X is a sparse matrix, but the trees read every value of X. Pass X.toarray()."
        raise TypeError(msg)
    array = X if np.ma.isMaskedArray(X) else np.asarray(X)
    if array.ndim != 2:
        msg = (
            f"X has shape {array.shape}, but must have two dimensions: one row for each "
            "observation and one column for each covariate. Reshape your data, for instance with "
            "x[:, None] for a single covariate."
        )
        raise ValueError(msg)
    if array.dtype.kind in "biuf":
        return as_numbers(array, "X")
    numbers = [as_numbers(array[:, v], f"Column {v} of X") for v in range(array.shape[1])]
    return np.column_stack(numbers) if numbers else np.empty(array.shape)


def _check_shape(matrix: NDArray[np.float64], min_rows: int) -> None:
    n, p = matrix.shape
    if p == 0:
        msg = (
            f"X has no columns: 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is "
            "required. A forest needs a covariate to split on."
        )
        raise ValueError(msg)
    if n < min_rows:
        counted = "no rows" if n == 0 else f"{n} row" if n == 1 else f"{n} rows"
        msg = (
            f"X has {counted}, but a tree needs at least {min_rows} to split (n_samples = {n}). "
            "X has one row for each observation; if it was meant to have more, its transpose may "
            "have been passed."
        )
        raise ValueError(msg)


def _refuse_non_finite(matrix: NDArray[np.float64], labels: list[str]) -> None:
    is_bad = ~np.isfinite(matrix)
    if not is_bad.any():
        return
    bad_columns = np.flatnonzero(is_bad.any(axis=0))
    v = bad_columns[0]
    rows = np.flatnonzero(is_bad[:, v])
    kind = "missing values (NaN)" if np.isnan(matrix[rows[0], v]) else "infinite values"
    others = (
        f" {bad_columns.size - 1} other column(s) are affected too." if bad_columns.size > 1 else ""
    )
    msg = (
        f"X has {kind} in column {labels[v]}, in {first_rows(rows)} (counting rows from "
        f"0).{others} Trees have no side to send such rows to: leave these rows out, or fill in "
        "finite numbers."
    )
    raise ValueError(msg)
