"""`plot_residuals`: what f has left over, along the columns of X (floor 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.special import ndtri

from pymc_xbart.diagnostics.residuals import residuals
from pymc_xbart.forest.draws import evenly_spaced
from pymc_xbart.plots.bins import Bins, bin_rows
from pymc_xbart.plots.curves import COLOURS, finish_curves
from pymc_xbart.plots.intervals import GREY, check_labels, text_of_interval
from pymc_xbart.plots.panels import Panels
from pymc_xbart.plots.read import choose_columns, column_of, read_data

MAX_DOTS = 1_000


def plot_residuals(
    idata: Any,
    X: Any,
    y: Any,
    columns: Any = None,
    *,
    probability: float = 0.94,
    var_name: str | None = None,
    draws: int | None = None,
    random_seed: Any = None,
    labels: Mapping[str, str] | None = None,
    figsize: tuple[float, float] | None = None,
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw residuals along each column: where their means leave 0, f has missed something there.

    Dots are rows, at most 1 000, evenly spaced. Means are over rows with similar values: each
    category, each of up to 6 numbers, or tenths of the rows; missing values stand apart on the
    right. Their intervals are those of a mean of independent residuals. As f was fitted to the same
    rows, means are a little closer to 0 than these say.

    If ``idata.posterior_predictive`` has one variable that goes with y (by its shape, and by
    ``idata.observed_data``, where that has it), it gives the residuals: y less the predictive mean;
    or, for counts and classes, randomized quantile residuals, which are standard normal if the
    model holds. Otherwise they are y less the posterior mean of f, which makes sense where f is the
    mean of y.

    Parameters
    ----------
    idata : xarray.DataTree
        What `pm.sample` returned.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Rows of y, as `predict` takes them.
    y : array_like of shape (n,)
    columns : int, str or list, optional
        Columns of X, by name or number. All by default.
    probability : float, default 0.94
        Of the intervals.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of f to use in each chain, evenly spaced; all by default. Of predictive
        draws, all are used.
    random_seed : int or numpy.random.Generator, optional
        Of randomized residuals.
    labels, figsize, axes
        See `plot_partial_dependence`.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each column.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws or columns, or y does not go with X.

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
    >>> pxb.plot_residuals(idata, X, y).size
    2
    """
    if np.ndim(probability) or not 0.0 < probability < 1.0:
        msg = f"probability is {probability!r}, but must be a number between 0 and 1."
        raise ValueError(msg)
    data = read_data(X, idata, var_name)
    asked = choose_columns(data, columns)
    check_labels(labels, list(data))
    labels = labels or {}
    left, name = residuals(idata, X, y, var_name=var_name, draws=draws, random_seed=random_seed)
    num_rows = next(iter(data.values())).values.size
    if left.shape != (num_rows,):
        msg = f"y has the shape {left.shape}, but X has {num_rows} rows. Pass one number for each."
        raise ValueError(msg)
    bins = [bin_rows(each, column_of(data, each), labels.get(each, each)) for each in asked]
    panels = Panels([each.scale for each in bins], axes, figsize)
    for k, (ax, each) in enumerate(zip(panels.axes, bins, strict=True)):
        _draw(ax, each, left, probability)
        finish_curves(ax, each.scale, panels.inches_wide(k))
    panels.share_y(range(len(bins)), name)
    panels.add_legend(range(len(bins)))
    return panels.as_array()


def _draw(ax: Axes, bins: Bins, residuals: NDArray[np.float64], probability: float) -> None:
    rows = evenly_spaced(residuals.size, MAX_DOTS)
    ax.axhline(0.0, color="black", lw=0.8)
    ax.plot(bins.x[rows], residuals[rows], ".", ms=3, color=GREY, alpha=0.5, label="one row")
    mean = bins.means(residuals)
    # One standard deviation for all: bins of a few rows would not know their own.
    error = residuals.std(ddof=1) / np.sqrt(bins.num_rows)
    half = ndtri(0.5 + 0.5 * probability) * error
    label = text_of_interval(probability)
    ax.vlines(bins.at, mean - half, mean + half, color=COLOURS[1], lw=1.6, label=label)
    ax.plot(bins.at, mean, "o", ms=4, mfc="white", mec=COLOURS[1], mew=1.2, label="mean")
