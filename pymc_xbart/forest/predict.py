"""`predict`: f at new rows from a result of `pm.sample`, without the model (floor 1)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_xbart.forest.draws import Draws, find_draws
from pymc_xbart.forest.new_rows import NewRows, read_new_rows
from pymc_xbart.forest.prediction import evaluate_draws
from pymc_xbart.forest.prior import positive_number, whole_number

if TYPE_CHECKING:
    import xarray as xr

MAX_MEMORY = 4e9


def predict(
    idata: Any,
    X: Any,
    var_name: str | None = None,
    draws: int | None = None,
    *,
    reduce: Callable[["xr.DataArray"], "xr.DataArray"] | None = None,
    max_memory: float = MAX_MEMORY,
    num_threads: int = 1,
) -> "xr.DataArray":
    """Draws of a forest f at new rows. Needs neither the model nor the data it was fitted to.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, fresh or read from a file; or its group ``sample_stats``; or a
        selection of either (`isel`, `xr.concat`, `az.extract`).
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (m, p)
        As where the forest was made: numbers, categories, missing entries; m >= 1. Columns that
        have names, here and there, may come in any order. Others must come in the same order.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.
    reduce : callable, optional
        Takes f at some of the rows, a DataArray as this function returns it, and gives what to keep
        of it for each row, for instance ``lambda f: f.mean(("chain", "draw"))`` or ``lambda f:
        f.quantile([0.05, 0.95], ("chain", "draw"))``. Rows are then evaluated some at a time.
    max_memory : float, default 4e9
        Bytes that draws of f may take at once, > 0.
    num_threads : int, default 1
        Threads to share the draws. The result is the same.

    Returns
    -------
    xarray.DataArray
        Named as the forest, with the dims of the draws and those of the forest: (chain, draw, row),
        or (chain, draw, k, row) for a variable of shape (k, n). Rows are labelled by the index of
        X, where it has one. f is the forest itself, on its own scale: no group effects, no link
        function, no noise. At the rows that a forest was fitted to, it is the f of the posterior to
        the last bit (in double precision, as PyMC samples by default).

    Raises
    ------
    ValueError
        If columns are missing or too many, or the draws do not fit in `max_memory` and there is
        nothing to reduce them by.
    KeyError, TypeError
        If `idata` holds no trees of that name.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> pxb.predict(idata, rng.uniform(size=(7, 2))).sizes
    Frozen({'chain': 2, 'draw': 50, 'f_dim_0': 7})
    """
    found = find_draws(idata, var_name, draws)
    rows = read_new_rows(X, found)
    num_threads = whole_number(num_threads, "num_threads")
    bytes_a_row = 8 * found.text.size * len(found.first.forests)
    rows_at_once = int(positive_number(max_memory, "max_memory") // bytes_a_row)
    if reduce is None:
        _check_memory(rows, rows_at_once, bytes_a_row, max_memory)
        return predict_rows(found, rows, slice(None), num_threads)
    return _reduce(found, rows, reduce, max(1, rows_at_once), num_threads)


def _check_memory(rows: NewRows, rows_at_once: int, bytes_a_row: int, max_memory: float) -> None:
    num_rows = rows.X.shape[0]
    if num_rows <= rows_at_once:
        return
    msg = (
        f"All draws of f at {num_rows} rows take {bytes_a_row * num_rows / 1e9:.2g} GB, and "
        f"max_memory is {max_memory / 1e9:.2g} GB. Pass `draws` to use fewer of them, `reduce` to "
        "keep a summary of each row, or a larger `max_memory`."
    )
    raise ValueError(msg)


def predict_rows(draws: Draws, rows: NewRows, part: slice, num_threads: int) -> "xr.DataArray":
    """Evaluate f at some of the rows, and label it."""
    import xarray as xr

    texts = [str(text) for text in draws.text.values.flat]
    f = evaluate_draws(texts, rows.X[part], num_threads)
    shape = (*draws.text.shape, *draws.first.batch, f.shape[-1])
    coords = dict(draws.text.coords)
    if rows.labels is not None:
        coords[draws.dims[-1]] = np.asarray(rows.labels[part])
    return xr.DataArray(f.reshape(shape), coords, (*draws.text.dims, *draws.dims), name=draws.name)


def _reduce(
    draws: Draws,
    rows: NewRows,
    reduce: Callable[["xr.DataArray"], "xr.DataArray"],
    rows_at_once: int,
    num_threads: int,
) -> "xr.DataArray":
    """Evaluate some rows at a time, and put together what is kept of them."""
    import xarray as xr

    dim = draws.dims[-1]
    kept = []
    for start in range(0, rows.X.shape[0], rows_at_once):
        part = slice(start, start + rows_at_once)
        kept.append(reduce(predict_rows(draws, rows, part, num_threads)))
        if dim not in getattr(kept[-1], "dims", ()):
            msg = (
                f"reduce must keep the dimension of the rows, {dim!r}: it is given f at some of "
                "them. Reduce over the draws, for instance over ('chain', 'draw')."
            )
            raise ValueError(msg)
    return xr.concat(kept, dim)
