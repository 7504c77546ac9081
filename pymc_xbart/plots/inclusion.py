"""`plot_inclusion`: how often trees split on each column (floor 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import OTHER_COLUMN
from pymc_xbart.diagnostics.inclusion import variable_inclusion
from pymc_xbart.forest.draws import DRAW_DIMS
from pymc_xbart.forest.prior import check_split_weights, whole_number
from pymc_xbart.plots.intervals import (
    GREY,
    draw_intervals,
    draws_by_column,
    make_axes,
    shown_names,
)


def plot_inclusion(
    idata: Any,
    *,
    var_name: str | None = None,
    draws: int | None = None,
    split_weights: Any = None,
    max_columns: int = 40,
    labels: Mapping[Any, str] | None = None,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of splits on each column, most first, beside what the prior gives it.

    Dots are posterior means, lines equal-tailed intervals of 50 % and 94 %. All forests of a
    variable of shape (k, n) are taken together; to see one, pass its part of what
    `variable_inclusion` returns.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` or `variable_inclusion` returned.
    var_name, draws
        See `variable_inclusion`; only for what `pm.sample` returned.
    split_weights : array_like of shape (p,), optional
        Those of the prior, in the order of the columns of X; equal ones by default. Their shares
        are drawn for reference: a column can't be split on everywhere, so that draws from the prior
        come near them, but not on them.
    max_columns : int, default 40
        Columns to show; a last line says how many others there are.
    labels : mapping, optional
        What to write instead of some columns' names, {name: text}. Long names lose their middle.
    figsize : tuple of float, optional
        Inches; by default as high as the columns ask for.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no draws, none has a split, or `labels` or `split_weights` do not fit.
    """
    max_columns = whole_number(max_columns, "max_columns")
    count = _count(idata, var_name, draws)
    num_columns = count.sizes["column"]
    total = count.sum("column")
    shares = draws_by_column(count / total.where(total > 0))
    if shares.size == 0:
        msg = "No draw has a split, so that there are no shares of splits to show."
        raise ValueError(msg)
    names = shown_names(count["column"], labels)
    order = np.argsort(-shares.mean(axis=0), stable=True)[:max_columns]
    num_left_out = num_columns - order.size
    prior = _prior_shares(split_weights, num_columns)
    ax = make_axes(order.size + (num_left_out > 0), figsize, ax)
    _draw_prior(ax, prior, num_columns, order)
    draw_intervals(ax, shares[:, order], [names[v] for v in order], num_left_out)
    ax.set_xlim(left=-0.02 * ax.get_xlim()[1])  # from 0, with room for half a dot
    ax.set_xlabel("share of splits")
    return ax


def _count(idata: Any, var_name: str | None, draws: int | None) -> xr.DataArray:
    """Splits by draw and column."""
    is_counted = hasattr(idata, "data_vars") and {"count", "share"} <= set(idata.data_vars)
    if is_counted and (OTHER_COLUMN in idata.dims or var_name is not None or draws is not None):
        msg = (
            "These are counts already. Pass those of variable_inclusion, not of pairs of columns, "
            "without var_name and draws; or what pm.sample returned."
        )
        raise TypeError(msg)
    inclusion = idata if is_counted else variable_inclusion(idata, var_name=var_name, draws=draws)
    count: xr.DataArray = inclusion["count"]
    return count.sum([dim for dim in count.dims if dim not in {*DRAW_DIMS, "column"}])


def _prior_shares(split_weights: Any, num_columns: int) -> NDArray[np.float64] | None:
    """Shares of split weights, (p,), if there are some."""
    if split_weights is None:
        return None
    weights = check_split_weights(split_weights, num_columns)
    if weights.ndim != 1:
        msg = (
            f"split_weights has shape {weights.shape}, but forests are taken together here: pass "
            "one weight for each column."
        )
        raise ValueError(msg)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _draw_prior(
    ax: Axes, prior: NDArray[np.float64] | None, num_columns: int, order: NDArray[np.intp]
) -> None:
    """Mark the share that the prior gives to each column."""
    if prior is None:
        ax.axvline(1.0 / num_columns, color=GREY, ls="--", lw=1, label="equal shares", zorder=1)
        return
    y, name = np.arange(order.size), "share of split weights"
    ax.plot(prior[order], y, "|", color=GREY, ms=12, mew=1.5, label=name, zorder=1)
