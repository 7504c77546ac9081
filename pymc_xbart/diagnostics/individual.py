"""`individual_conditional_expectation`: f of single rows along a column (floor 2)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr

from pymc_xbart.diagnostics.grid import Grid, make_grids, read_columns, to_dataset
from pymc_xbart.diagnostics.profiles import (
    Transform,
    bytes_a_draw,
    centre,
    choose_rows,
    name_values,
    profiles,
    some_rows,
    transformed,
)
from pymc_xbart.forest.draws import Draws, find_draws
from pymc_xbart.forest.new_rows import NewRows, read_new_rows
from pymc_xbart.forest.predict import MAX_MEMORY
from pymc_xbart.forest.prior import check_choice, positive_number

KINDS = ("individual", "centred")
NUM_ROWS = 50


def individual_conditional_expectation(
    idata: Any,
    X: Any,
    columns: Any = None,
    *,
    grid: Any = None,
    kind: str = "individual",
    transform: Transform | None = None,
    rows: int | Sequence[int] | None = NUM_ROWS,
    var_name: str | None = None,
    draws: int | None = None,
    max_memory: float = MAX_MEMORY,
) -> xr.Dataset:
    """Draws of f at some rows of X, each with the values of a grid in one or two columns.

    What `partial_dependence` is the mean of. Where curves of different rows are not parallel, the
    columns interact with others.

    Parameters
    ----------
    idata, X, columns, grid, var_name, draws
        See `partial_dependence`. The grid is made from all rows of X.
    kind : {"individual", "centred"}, default "individual"
        "centred" subtracts from each curve its value at the first point, in each draw: the curves
        then begin at 0, and differ in shape only.
    transform : callable, optional
        Function of f to return instead, see `partial_dependence`.
    rows : int or sequence of int, default 50
        How many rows of X, evenly spaced, or their numbers. All for None.
    max_memory : float, default 4e9
        Bytes that the draws of one column may take, > 0.

    Returns
    -------
    xarray.Dataset
        As `partial_dependence` returns it, with the rows, as `predict` calls them, before the
        columns: (chain, draw, row, column), or (chain, draw, k, row, column) for a variable of
        shape (k, n). Rows are labelled by the index of X where it has one, else by their numbers.
        At a row's own value, it is what `predict` returns, to the last bit.

    Raises
    ------
    KeyError, TypeError, ValueError
        As for `partial_dependence`; or if the draws do not fit in `max_memory`.

    References
    ----------
    Goldstein, Kapelner, Bleich & Pitkin (2015). Peeking inside the black box. Journal of
    Computational and Graphical Statistics 24, 44-65.

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
    >>> pxb.individual_conditional_expectation(idata, X, 0, rows=7, grid=20).sizes
    Frozen({'chain': 2, 'draw': 50, 'f_dim_0': 7, 'column_0': 20})
    """
    check_choice(kind, "kind", KINDS)
    max_memory = positive_number(max_memory, "max_memory")
    found = find_draws(idata, var_name, draws)
    table = read_new_rows(X, found)
    items, is_list = read_columns(columns, table)
    grids = make_grids(items, grid, table, found)
    table = some_rows(table, choose_rows(rows, table.X.shape[0]))
    _check_memory(found, table, grids, max_memory)
    curves = []
    for each in grids:
        f = profiles(found, table, each)
        if transform is not None:
            f = transformed(transform, f, (found.dims[-1], *each.dims))
        curves.append(centre(f, each) if kind == "centred" else f)
    attrs = {"long_name": name_values(found, transform, kind), "rows": found.dims[-1]}
    return to_dataset(found, grids, curves, table, is_list=is_list, attrs=attrs)


def _check_memory(draws: Draws, rows: NewRows, grids: list[Grid], max_memory: float) -> None:
    needed = sum(bytes_a_draw(draws, rows, grid) for grid in grids) * draws.text.size
    if needed > max_memory:
        num_points = sum(grid.points.shape[0] for grid in grids)
        msg = (
            f"All draws of f at {rows.X.shape[0]} rows and {num_points} points take "
            f"{needed / 1e9:.2g} GB, and max_memory is {max_memory / 1e9:.2g} GB. Pass `draws`, "
            "`rows` or `grid` to use fewer of them, some `columns`, or a larger `max_memory`."
        )
        raise ValueError(msg)
