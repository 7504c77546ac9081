"""Rows to predict at (floor 1): the columns that a forest was grown on, under their names."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.covariates import (
    Labels,
    column_names,
    date_columns,
    read_covariates,
    warn_of_gaps,
)
from pymc_xbart.forest.draws import Draws
from pymc_xbart.forest.stored import digest_of
from pymc_xbart.forest.tables import frame_of, is_labelled_array, is_labelled_table

MAX_NAMED = 5  # columns that an error message lists


class NewRows(NamedTuple):
    """X, read for one forest."""

    X: NDArray[np.float64]  # (n, p)
    labels: Any  # index of the rows where X has one, else None
    names: list[str] | None  # of the columns, if they have any where trees were grown or here
    categories: Labels  # labels of each column's categories by their numbers; None: numbers
    dates: frozenset[int]  # columns that hold dates where trees were grown or here


def read_new_rows(X: Any, draws: Draws) -> NewRows:
    """Check X against the columns of a forest, and put them in its order.

    Parameters
    ----------
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset
        Columns with names are found by them; others by position.
    draws : Draws

    Raises
    ------
    ValueError
        If columns are missing, are too many, or can't be told to be the right ones.
    """
    has_names = True
    if is_labelled_table(X):
        X = frame_of(X)
    elif is_labelled_array(X) and X.ndim == 2:
        has_names = X.dims[1] in X.coords
        X = X.to_pandas()
    labels = _labels(X)
    first = draws.first
    names = column_names(X) if has_names else None
    if names is not None and first.columns_digest:
        X = _in_order(X, names, draws, first.columns_digest)
    known = draws.schema.labels or [None] * first.num_columns
    matrix, _, categories, _ = read_covariates(X, first.categorical, labels=known, min_rows=1)
    if matrix.shape[1] != first.num_columns:
        msg = (
            f"X has {matrix.shape[1]} column(s), but the forest {draws.name!r} was grown on "
            f"{first.num_columns}{_known(draws)}. Pass the same columns."
        )
        raise ValueError(msg)
    names = draws.schema.columns or names
    warn_of_gaps(matrix, first.has_missing, names)
    dates = frozenset(draws.schema.dates or ()) | frozenset(date_columns(X) or ())
    return NewRows(matrix, labels, names, categories or known, dates)


def _labels(X: Any) -> Any:
    """Labels of the rows, unless they are mere numbers from 0."""
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    return None if index is None or np.array_equal(index, np.arange(len(index))) else index


def _in_order(X: Any, names: list[str], draws: Draws, digest: int) -> Any:
    """Put named columns in the order of those that the forest was grown on."""
    if digest_of(names) == digest:
        return X
    known = draws.schema.columns
    if known is None:
        msg = (
            f"The columns of X are not those that the forest {draws.name!r} was grown on, or are "
            "in another order; which these are can't be told from sample_stats alone. Pass all "
            "that pm.sample returned (its group 'constant_data' holds the names)."
        )
        raise ValueError(msg)
    missing = [name for name in known if name not in names]
    extra = [name for name in names if name not in known]
    if missing or extra:
        msg = f"X has other columns than the forest {draws.name!r} was grown on."
        if missing:
            msg += f" Missing: {_list(missing)}."
        if extra:
            msg += f" Not among them: {_list(extra)}."
        raise ValueError(msg)
    order = [names.index(name) for name in known]
    return X.iloc[:, order] if hasattr(X, "iloc") else X.select(known)


def _known(draws: Draws) -> str:
    return f" ({_list(draws.schema.columns)})" if draws.schema.columns else ""


def _list(names: list[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(map(repr, names[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")
