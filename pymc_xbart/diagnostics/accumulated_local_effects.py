"""`accumulated_local_effects`: what a step in a column does to rows that are there (floor 2)."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import label
from pymc_xbart.diagnostics.grid import (
    Grid,
    make_grids,
    name_of,
    read_columns,
    to_dataset,
)
from pymc_xbart.diagnostics.local_effects import curves, surfaces
from pymc_xbart.diagnostics.steps import find_steps
from pymc_xbart.forest.draws import Draws, find_draws
from pymc_xbart.forest.new_rows import NewRows, read_new_rows


def accumulated_local_effects(
    idata: Any,
    X: Any,
    columns: Any = None,
    *,
    grid: Any = None,
    var_name: str | None = None,
    draws: int | None = None,
) -> xr.Dataset:
    """How f changes along one or two columns, in small steps of rows that are there anyway.

    For each draw, the rows between two neighbouring points of a grid are moved to either of them,
    and the mean change of f is what the step between these points does. The steps add up to a
    curve. Other than for `partial_dependence`, no row is moved far: the curve says nothing of
    combinations that do not occur, however closely the columns go together.

    For two columns it is what they do together, beyond what each does: 0 where f is a sum of a
    function without the one and a function without the other. Rows between neighbouring points of
    both are moved to the four corners of their cell. A cell without rows changes as the nearest
    that has some: what the surface shows far from all rows, nothing is known of.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Rows to move, as `predict` takes them. Those without a value in the column stay out.
    columns : int, str, tuple or list, optional
        Name or number of a column; a tuple of two, for what they do together; or a list of such,
        one by one; a column that is in several of them needs points in `grid`. By default all
        columns, one by one, but those of categories without an order, and those without a value.
    grid : int, array_like or dict, optional
        How many quantiles of a column to take, from its smallest value to its largest, by default
        50; or the points themselves, in ascending order; or either for some columns, as ``{column:
        ...}``. A column with fewer values has a point at each. Rows beyond the points stay out, and
        between any two there must be one: a row belongs to the step that ends at or above its
        value, and one at the first point, to the first step. For two columns the default is about
        the square root of a tenth of the rows, for each: with more points, most cells would be
        without rows, and what happens there is missed.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        As `partial_dependence` returns it: (chain, draw, column), on the scale of f, with a
        dimension for each of two columns. Each draw is centred: drawn straight from point to point,
        its mean over the rows is 0.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, X has other columns, there are no such columns or points, or a
        column holds categories without an order, so that there are no neighbours.

    References
    ----------
    Apley & Zhu (2020). Visualizing the effects of predictor variables in black box supervised
    learning models, sections 3.1 and 3.2. Journal of the Royal Statistical Society B 82, 1059-1086.

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
    >>> pxb.accumulated_local_effects(idata, X, [0, 1], grid=20)["f_column_1"].sizes
    Frozen({'chain': 2, 'draw': 50, 'column_1': 20})
    >>> pxb.accumulated_local_effects(idata, X, (0, 1), grid=5)["f"].shape
    (2, 50, 5, 5)
    """
    found = find_draws(idata, var_name, draws)
    table = read_new_rows(X, found)
    items, is_list = read_columns(columns, table)
    is_nominal = found.first.is_categorical
    if columns is None:
        is_empty = np.isnan(table.X).all(axis=0)
        items = [(v,) for (v,) in items if not (is_nominal[v] or is_empty[v])]
        if not items:
            msg = (
                "No column of X has values with an order, so that there are no steps from one to "
                "the next. Use `partial_dependence`."
            )
            raise ValueError(msg)
    for item in items:
        _check_item(item, is_nominal, table)
    grids = make_grids(items, grid, table, found, in_steps=True)
    effects = [_effect(found, table, each) for each in grids]
    return to_dataset(found, grids, effects, table, is_list=is_list, attrs={})


def _check_item(item: tuple[int, ...], is_nominal: NDArray[np.bool_], rows: NewRows) -> None:
    for v in item:
        if is_nominal[v]:
            msg = (
                f"The column {name_of(v, rows)!r} holds categories without an order, so that there "
                "are no steps from one to the next. Use `partial_dependence`, or make it an "
                "ordered one before the fit."
            )
            raise ValueError(msg)


def _effect(draws: Draws, rows: NewRows, grid: Grid) -> xr.DataArray:
    """Draws of the effect of one column, or of two together."""
    X, steps = find_steps(grid, rows)
    if 1 in grid.shape:  # there is no step, and nothing changes
        effect = np.zeros((draws.text.size, len(draws.first.forests), *grid.shape))
    elif len(steps) == 1:
        effect = curves(draws, X, grid.columns[0], steps[0])
    else:
        effect = surfaces(draws, X, grid.columns, steps)
    which = "local effect" if len(steps) == 1 else "joint local effect"
    result = label(draws, effect, grid.coords, of_each_forest=True)
    return result.assign_attrs(long_name=f"{which} on {draws.name}")
