"""`accumulated_local_effects`: what a step in a column does to rows that are there (floor 2)."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import label, read_all
from pymc_xbart.diagnostics.grid import (
    Grid,
    make_grids,
    name_of,
    read_columns,
    to_dataset,
)
from pymc_xbart.diagnostics.selection import some_trees, splits_of_trees
from pymc_xbart.forest.draws import Draws, find_draws
from pymc_xbart.forest.new_rows import NewRows, read_new_rows
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.views import Seen, evaluate_trees, see


def accumulated_local_effects(
    idata: Any,
    X: Any,
    columns: Any = None,
    *,
    grid: Any = None,
    var_name: str | None = None,
    draws: int | None = None,
) -> xr.Dataset:
    """How f changes along a column, in small steps of rows that are there anyway.

    For each draw, the rows between two neighbouring points of a grid are moved to either of them,
    and the mean change of f is what the step between these points does. The steps add up to a
    curve. Other than for `partial_dependence`, no row is moved far: the curve says nothing of
    combinations that do not occur, however closely the columns go together.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Rows to move, as `predict` takes them. Those without a value in the column stay out.
    columns : int, str or list, optional
        Name or number of a column, or a list of such, one by one. By default all, but those of
        categories without an order.
    grid : int, array_like or dict, optional
        How many quantiles of a column to take, from its smallest value to its largest, by default
        50; or the points themselves, in ascending order; or either for some columns, as ``{column:
        ...}``. A column with fewer values has a point at each. Rows beyond the points stay out, and
        between any two there must be one: a row belongs to the step that ends at or above its
        value, and one at the first point, to the first step.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        As `partial_dependence` returns it: (chain, draw, column), on the scale of f. Each draw is
        centred: if the curve is drawn straight from point to point, its mean over the rows is 0.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, X has other columns, there are no such columns or points, or a
        column holds categories without an order, so that there are no neighbours.

    References
    ----------
    Apley & Zhu (2020). Visualizing the effects of predictor variables in black box supervised
    learning models, section 3.1. Journal of the Royal Statistical Society B 82, 1059-1086.

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
    """
    found = find_draws(idata, var_name, draws)
    table = read_new_rows(X, found)
    items, is_list = read_columns(columns, table)
    is_nominal = found.first.is_categorical
    if columns is None:
        items = [(v,) for (v,) in items if not is_nominal[v]]
    for item in items:
        _check_item(item, is_nominal, table)
    grids = [_without_missing(each) for each in make_grids(items, grid, table, found)]
    curves = [_curve(found, table, each) for each in grids]
    attrs = {"long_name": f"local effect on {found.name}"}
    return to_dataset(found, grids, curves, table, is_list=is_list, attrs=attrs)


def _check_item(item: tuple[int, ...], is_nominal: NDArray[np.bool_], rows: NewRows) -> None:
    if len(item) > 1:
        names = " and ".join(repr(name_of(v, rows)) for v in item)
        msg = (
            f"columns holds {names} as a tuple, but effects are of one column. Pass a list for one "
            "after the other; `partial_dependence` holds two at the same time."
        )
        raise ValueError(msg)
    if is_nominal[item[0]]:
        msg = (
            f"The column {name_of(item[0], rows)!r} holds categories without an order, so that "
            "there are no steps from one to the next. Use `partial_dependence`, or make it an "
            "ordered one before the fit."
        )
        raise ValueError(msg)


def _without_missing(grid: Grid) -> Grid:
    points = grid.points[:, grid.columns[0]]
    is_known = ~np.isnan(points)
    return grid._replace(labels=(grid.labels[0][is_known],), points=grid.points[is_known])


class _Steps(NamedTuple):
    """Rows at either end of the step that they belong to."""

    ends: Seen  # all at the lower end, then all at the upper one
    step: NDArray[np.int64]  # (rows,), number of the step of each
    num_rows: NDArray[np.int64]  # (steps,), of each
    weight: NDArray[np.float64]  # (steps + 1,), of each point in the mean of the curve over rows


def _curve(draws: Draws, rows: NewRows, grid: Grid) -> xr.DataArray:
    """Draws of the curve of one column."""
    first = draws.first
    (v,) = grid.columns
    steps = _find_steps(grid, rows, first.is_categorical)
    curves = np.zeros((draws.text.size, len(first.forests), *grid.shape))
    for draw, stored in enumerate(read_all(draws)):
        for k, forest in enumerate(stored.forests):
            splits = splits_of_trees(forest, rows.X.shape[1])
            # No other tree changes in a step.
            curves[draw, k, 1:] = np.cumsum(_changes(some_trees(forest, splits[:, v]), steps))
    centre = curves @ steps.weight
    return label(draws, curves - centre[..., np.newaxis], grid.coords, of_each_forest=True)


def _find_steps(grid: Grid, rows: NewRows, is_categorical: NDArray[np.bool_]) -> _Steps:
    """Find the step of each row, and move the rows to its ends."""
    (v,), (labels,) = grid.columns, grid.labels
    points = grid.points[:, v]
    name = name_of(v, rows)
    if points.size == 0 or (np.diff(points) <= 0).any():
        msg = (
            f"grid of the column {name!r} must hold at least one value, in ascending order, none "
            "of them twice."
        )
        raise ValueError(msg)
    X = rows.X[(points[0] <= rows.X[:, v]) & (rows.X[:, v] <= points[-1])]
    step = np.maximum(np.searchsorted(points, X[:, v]) - 1, 0)
    num_rows = np.bincount(step, minlength=points.size)[: points.size - 1]
    if (num_rows == 0).any():
        k = np.flatnonzero(num_rows == 0)[0]
        msg = (
            f"No row of X lies between the points {labels[k]} and {labels[k + 1]} of the column "
            f"{name!r}, so that nothing is known of this step. Leave one of them out."
        )
        raise ValueError(msg)
    weight = _weights(X[:, v], points, step)
    lower, upper = X.copy(), X.copy()
    lower[:, v], upper[:, v] = points[step], points[np.minimum(step + 1, points.size - 1)]
    return _Steps(see(np.concatenate([lower, upper]), is_categorical), step, num_rows, weight)


def _weights(
    x: NDArray[np.float64], points: NDArray[np.float64], step: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weight of each point in the mean, over rows, of a curve drawn straight between points."""
    if points.size == 1:
        return np.ones(1)
    part = (x - points[step]) / (points[step + 1] - points[step])
    sums = np.bincount(step, 1.0 - part, points.size) + np.bincount(step + 1, part, points.size)
    return sums / x.size


def _changes(stored: StoredForest, steps: _Steps) -> NDArray[np.float64]:
    """Mean change of f in each step, (steps,)."""
    f = np.empty(2 * steps.step.size)
    evaluate_trees(stored.forest, stored.view, stored.cut_value, steps.ends, f)
    lower, upper = f.reshape(2, -1)
    return (
        np.bincount(steps.step, upper - lower, steps.num_rows.size)[: steps.num_rows.size]
        / steps.num_rows
    )
