"""X at the door (floor 1): a matrix of numbers, or an error that names column and rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.tables import COLUMN_ADVICE, as_numbers

LARGEST = np.finfo(np.float64).max


def check_design(X: Any, *, min_rows: int = 2, copy: bool = True) -> NDArray[np.float64]:
    """Convert covariates to the matrix that trees split on, or say why that can't be done.

    Constant columns are allowed: they offer no cuts and are never split on. Missing values are NaN
    in the result. Infinities take their place in the order of numbers, as the largest ones that are
    finite, since trees see nothing but the order.

    Parameters
    ----------
    X : array_like of shape (n, p)
        Real numbers, one row for each observation and one column for each covariate. Booleans count
        as 0 and 1. Tables are for `covariates.read_covariates`.
    min_rows : int, default 2
        Fewest rows accepted. One row can't be split, so a forest over it is a mere number; it makes
        sense where prediction is meant.
    copy : bool, default True
        Whether later changes to `X` may change nothing in the result: it is a copy then, unless
        nobody can write to `X`. Otherwise it is `X` itself where nothing has to be converted: not
        to be written to.

    Returns
    -------
    ndarray of shape (n, p)

    Raises
    ------
    TypeError
        If X holds text, categories, dates, or is a sparse matrix.
    ValueError
        If X is not two-dimensional, or has no columns or too few rows.
    """
    copy = copy and _may_change(X)
    matrix = _matrix_of_array(X, copy)
    _check_shape(matrix, min_rows)
    # X may be most of what memory holds, so that a look costs less than a copy.
    is_finite = np.fmin.reduce(matrix, axis=None) >= -LARGEST
    is_finite &= np.fmax.reduce(matrix, axis=None) <= LARGEST
    if not is_finite:
        matrix = np.clip(matrix, -LARGEST, LARGEST, out=matrix if copy else None)
    return np.ascontiguousarray(matrix)


def _may_change(X: Any) -> bool:
    """Whether somebody can write to an array, or to one that it is a view of."""
    while isinstance(X, np.ndarray) and not X.flags.writeable:
        X = X.base
    # An array that owns its numbers has no base.
    return not (X is None or isinstance(X, bytes))


def _matrix_of_array(X: Any, copy: bool) -> NDArray[np.float64]:
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
        return as_numbers(array, "X", copy=copy)
    numbers = [
        as_numbers(array[:, v], f"Column {v} of X", COLUMN_ADVICE) for v in range(array.shape[1])
    ]
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
