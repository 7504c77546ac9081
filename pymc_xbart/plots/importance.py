"""`plot_importance`: how many columns are enough, or what shuffling each costs (floor 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from pymc_xbart.forest.prior import whole_number
from pymc_xbart.plots.intervals import (
    GREY,
    PROBABILITIES,
    draw_intervals,
    draws_by_column,
    ends_of,
    make_axes,
    shown_names,
)


def plot_importance(
    importance: xr.Dataset,
    *,
    max_columns: int = 40,
    labels: Mapping[Any, str] | None = None,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what `variable_importance` or `permutation_importance` returned.

    Of the first: R^2 of submodels, from top to bottom each with one column more, beside that of the
    whole forest. Where a submodel has come up to the band, the columns below it add nothing. Of the
    second: the loss in the score by column, the largest first. Dots are posterior means, lines
    equal-tailed intervals of 50 % and 94 %; the band is one of 94 %.

    Parameters
    ----------
    importance : xarray.Dataset
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
        If `importance` is anything else, or `labels` do not fit.
    """
    max_columns = whole_number(max_columns, "max_columns")
    variables = set(getattr(importance, "data_vars", ()))
    if not ({"r2", "reference"} <= variables or "loss" in variables):
        msg = (
            f"importance is a {type(importance).__name__} without R^2 or losses. Pass what "
            "variable_importance or permutation_importance returned."
        )
        raise TypeError(msg)
    draw = _draw_r2 if "r2" in variables else _draw_loss
    return draw(importance, max_columns, labels, figsize, ax)


def _draw_r2(
    importance: xr.Dataset,
    max_columns: int,
    labels: Mapping[Any, str] | None,
    figsize: tuple[float, float] | None,
    ax: Axes | None,
) -> Axes:
    num_columns = importance.sizes["column"]
    r2 = draws_by_column(importance["r2"])[:, :max_columns]
    names = shown_names(importance["column"], labels)[:max_columns]
    num_left_out = num_columns - len(names)
    ax = make_axes(len(names) + (num_left_out > 0), figsize, ax)
    reference = importance["reference"].values.ravel()
    ax.axvspan(*ends_of(reference, PROBABILITIES[1]), color="0.88", label="all columns")
    ax.axvline(reference.mean(), color=GREY, ls="--", lw=1)
    draw_intervals(ax, r2, names[:1] + [f"+ {name}" for name in names[1:]], num_left_out)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("R² with the whole forest")
    return ax


def _draw_loss(
    importance: xr.Dataset,
    max_columns: int,
    labels: Mapping[Any, str] | None,
    figsize: tuple[float, float] | None,
    ax: Axes | None,
) -> Axes:
    loss = draws_by_column(importance["loss"].mean("repeat"))
    names = shown_names(importance["column"], labels)
    order = np.argsort(-loss.mean(axis=0), stable=True)[:max_columns]
    num_left_out = len(names) - order.size
    ax = make_axes(order.size + (num_left_out > 0), figsize, ax)
    ax.axvline(0.0, color=GREY, ls="--", lw=1)
    draw_intervals(ax, loss[:, order], [names[v] for v in order], num_left_out)
    ax.set_xlabel("loss in the score if shuffled")
    return ax
