"""`partial_dependence`: the mean of f where some columns have chosen values (floor 2)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from pymc_xbart.diagnostics.columns import label, read_all
from pymc_xbart.diagnostics.grid import (
    Grid,
    make_grids,
    read_columns,
    to_dataset,
)
from pymc_xbart.diagnostics.held import hold, means_of_forest, see_rows
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
from pymc_xbart.forest.prior import check_choice

KINDS = ("mean", "centred")
TRANSFORMED_ROWS = 1_000
BYTES_AT_ONCE = 1.6e7  # of f at points and rows; more of it would no longer be near the processor


def partial_dependence(
    idata: Any,
    X: Any,
    columns: Any = None,
    *,
    grid: Any = None,
    kind: str = "mean",
    transform: Transform | None = None,
    rows: int | Sequence[int] | None = None,
    var_name: str | None = None,
    draws: int | None = None,
) -> xr.Dataset:
    """Mean of f over rows of X, all of which are given the same value in one or two columns.

    For each draw, and each point s of a grid, it is the mean over rows i of f(s, the other columns
    of row i). Over the stored trees that is exact, in a time that hardly depends on the number of
    points: rows go down each tree once. Where a column goes along with others, the mean is also
    over combinations that do not occur; see `accumulated_local_effects`.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Rows to average over, as `predict` takes them; those of the fit, or others.
    columns : int, str, tuple or list, optional
        Name or number of a column; a tuple of two, which are held at the same time; or a list of
        such, one by one. All columns, one by one, by default.
    grid : int, array_like or dict, optional
        How many quantiles of a column to take, from its smallest value to its largest, by default
        50; or the values themselves; or either for some columns, as ``{column: ...}``. A column
        with fewer values has a point at each, one of categories at each that is in X. Values are
        those of X as trees know it, categories their labels; dates may be given as such, and are
        seconds since 1970 in what is returned. Missing
        values of a column are a point of their own, the last one: NaN, or "(missing)" among labels
        of categories. Pass a grid without it to leave it out.
    kind : {"mean", "centred"}, default "mean"
        "centred" subtracts the value at the first point from each draw. Its intervals are those of
        differences, without what is unsure about the level of f.
    transform : callable, optional
        Function of f to average instead, for instance ``scipy.special.expit`` for a probability. It
        is given f at some draws, as a DataArray with the dims of the draws, of the variable, and of
        the grid, and returns one, whose dims may lack that of k forests. Trees then can't be taken
        one by one: f is evaluated at every point and row, some draws at a time, and the time goes
        with their product.
    rows : int or sequence of int, optional
        How many rows of X to use, evenly spaced, or their numbers. All by default; 1 000 with
        `transform`.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        A variable named as the forest, on the scale of f (or of `transform`), with a dimension
        named as each column that is held, labelled by its values: (chain, draw, column), or (chain,
        draw, k, column) for a variable of shape (k, n). For a list of columns, a variable for each,
        with the column's name behind that of the forest: ``f_age``. Columns without names are
        ``column_0``, ...

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, X has other columns, or there are no such columns or points.

    References
    ----------
    Friedman (2001). Greedy function approximation: a gradient boosting machine, section 8.2. Annals
    of Statistics 29, 1189-1232.

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
    >>> pxb.partial_dependence(idata, X, 0, grid=20).sizes
    Frozen({'chain': 2, 'draw': 50, 'column_0': 20})
    >>> pxb.partial_dependence(idata, X, (0, 1), grid=5, transform=np.exp)["f"].shape
    (2, 50, 5, 5)
    """
    check_choice(kind, "kind", KINDS)
    found = find_draws(idata, var_name, draws)
    table = read_new_rows(X, found)
    items, is_list = read_columns(columns, table)
    grids = make_grids(items, grid, table, found)
    if rows is None and transform is not None:
        rows = TRANSFORMED_ROWS
    table = some_rows(table, choose_rows(rows, table.X.shape[0]))
    if transform is None:
        results = _means(found, table, grids)
    else:
        results = [_means_of(transform, found, table, each) for each in grids]
    if kind == "centred":
        results = [centre(*each) for each in zip(results, grids, strict=True)]
    attrs = {"long_name": name_values(found, transform, kind)}
    return to_dataset(found, grids, results, table, is_list=is_list, attrs=attrs)


def _means(draws: Draws, rows: NewRows, grids: list[Grid]) -> list[xr.DataArray]:
    """Mean of f over rows at the points of each grid."""
    first = draws.first
    seen = see_rows(rows.X, first.is_categorical)
    held = [hold(grid, seen, first.is_categorical) for grid in grids]
    size = draws.text.size, len(first.forests)
    means = [np.empty((*size, grid.points.shape[0])) for grid in grids]
    for draw, stored in enumerate(read_all(draws)):
        for k, forest in enumerate(stored.forests):
            for mean, at_points in zip(means, means_of_forest(forest, held), strict=True):
                mean[draw, k] = at_points
    return [
        label(draws, mean.reshape(*size, *grid.shape), grid.coords, of_each_forest=True)
        for mean, grid in zip(means, grids, strict=True)
    ]


def _means_of(transform: Transform, draws: Draws, rows: NewRows, grid: Grid) -> xr.DataArray:
    """Mean of a function of f over rows, evaluated for some draws at a time."""
    dim = draws.dims[-1]
    parts = []
    for part in _parts(draws, bytes_a_draw(draws, rows, grid)):
        f = profiles(part, rows, grid)
        parts.append(transformed(transform, f, (dim, *grid.dims)).mean(dim, skipna=False))
    return xr.concat(parts, draws.text.dims[-1]) if len(parts) > 1 else parts[0]


def _parts(draws: Draws, bytes_of_one: int) -> Iterator[Draws]:
    """Divide the draws, each chain alike, so that every part fits in memory."""
    if not draws.text.dims:
        yield draws
        return
    dim = draws.text.dims[-1]
    size = draws.text.sizes[dim]
    step = max(1, int(BYTES_AT_ONCE / (bytes_of_one * draws.text.size / size)))
    for start in range(0, size, step):
        yield draws._replace(text=draws.text.isel({dim: slice(start, start + step)}))
