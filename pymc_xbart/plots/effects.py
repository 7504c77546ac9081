"""`plot_effects`: effects of single rows and of groups, with intervals (floor 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pymc_xbart.diagnostics.effects import treatment_effects
from pymc_xbart.forest.draws import DRAW_DIMS, evenly_spaced
from pymc_xbart.plots.bins import Bins, bin_rows
from pymc_xbart.plots.curves import (
    COLOURS,
    draw_points,
    finish_curves,
    read_probabilities,
)
from pymc_xbart.plots.intervals import (
    GREY,
    PROBABILITIES,
    check_labels,
    ends_of,
    text_of_interval,
)
from pymc_xbart.plots.panels import Panels
from pymc_xbart.plots.read import Column, choose_columns, column_of, is_result, read_data
from pymc_xbart.plots.scales import Scale, make_scale

MAX_LINES = 80  # rows whose intervals are told apart as lines; more are a band
MAX_ROWS = 500
INCHES_WIDE = 4.2


def plot_effects(
    idata: Any,
    X: Any = None,
    columns: Any = None,
    *,
    probabilities: Any = PROBABILITIES,
    labels: Mapping[str, str] | None = None,
    figsize: tuple[float, float] | None = None,
    axes: Any = None,
    **options: Any,
) -> NDArray[np.object_]:
    """Draw conditional effects in ascending order, averages by group, and effects along columns.

    The first panel has the posterior mean and intervals of each row, with those of the average
    behind. Of more than 500 rows, evenly spaced ones are drawn. If there are groups beside all
    rows, the second panel has their averages. For each of `columns`, a further panel has the means
    of single rows as dots, and averages over rows with similar values, with intervals: each
    category, each of up to 6 numbers, or tenths of the rows. All panels have one vertical scale.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` or `treatment_effects` returned.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p), optional
        Rows of the effects, needed for `columns`. With what `pm.sample` returned, effects are
        those at these rows.
    columns : int, str or list, optional
        Columns of X to draw effects along, by name or number.
    probabilities : float or sequence of float, default (0.5, 0.94)
        Of the equal-tailed intervals.
    labels : mapping, optional
        What to write instead of names of some columns, or of the forest, {name: text}.
    figsize : tuple of float, optional
        Inches; by default as large as the panels ask for.
    axes : matplotlib.axes.Axes or array_like of them, optional
        Where to draw, one for each panel; a new figure by default.
    **options
        Those of `treatment_effects`, for instance ``groups``. Only with what `pm.sample` returned.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each panel.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, columns or rows, or effects are of several forests.
    """
    effects, data = _compute(idata, X, options)
    probabilities = read_probabilities(probabilities)
    if columns is not None and X is None:
        msg = "columns asks for effects along columns of X, but X is missing. Pass its rows."
        raise ValueError(msg)
    asked = [] if columns is None else choose_columns(data, columns)
    forest = effects.attrs.get("forest", "effect")
    check_labels(labels, [forest, *data])
    labels = labels or {}
    conditional, average = _draws_of(effects["conditional"]), _draws_of(effects["average"])
    weights = effects["weights"].values if "weights" in effects else None
    groups = [_scale_of_groups(effects["group"].values)] if average.shape[1] > 1 else []
    bins = [
        bin_rows(name, _column_of(data, name, conditional.shape[1]), labels.get(name, name))
        for name in asked
    ]
    scales = [None, *groups, *(each.scale for each in bins)]
    panels = Panels(scales, axes, figsize, inches=INCHES_WIDE)
    _draw_sorted(panels.axes[0], conditional, average[:, 0], probabilities)
    if groups:
        _draw_groups(panels.axes[1], average, probabilities)
    for ax, each in zip(panels.axes[1 + len(groups) :], bins, strict=True):
        _draw_along(ax, each, conditional, weights, probabilities)
    for k, scale in enumerate(scales):
        if scale is not None:
            finish_curves(panels.axes[k], scale, panels.inches_wide(k))
    for ax in panels.axes:
        ax.axhline(0.0, color="black", lw=0.8, zorder=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    panels.share_y(range(len(panels.axes)), labels.get(forest, f"effect ({forest})"))
    panels.add_legend(range(len(panels.axes)))
    return panels.as_array()


def _compute(idata: Any, X: Any, options: dict[str, Any]) -> tuple[xr.Dataset, dict[str, Column]]:
    """Effects, unless they are given, and the data beside them."""
    if not is_result(idata):
        return treatment_effects(idata, X, **options), read_data(X, idata, options.get("var_name"))
    if options or not {"conditional", "average"} <= set(idata.data_vars):
        msg = (
            f"idata is a {type(idata).__name__} without trees. Pass what treatment_effects "
            "returned, without further options, or what pm.sample returned."
        )
        raise TypeError(msg)
    return idata, read_data(X)


def _draws_of(effects: xr.DataArray) -> NDArray[np.float64]:
    """All draws, (draws, rows or groups)."""
    extra = [dim for dim in effects.dims[:-1] if dim not in DRAW_DIMS]
    if extra:
        msg = (
            f"There are effects of several forests, along {extra[0]!r}. Pass those of one: "
            f"effects.isel({{{extra[0]!r}: 0}})."
        )
        raise ValueError(msg)
    values: NDArray[np.float64] = effects.values.reshape(-1, effects.shape[-1])
    return values


def _column_of(data: Mapping[str, Column], name: str, num_rows: int) -> Column:
    column = column_of(data, name)
    if column.values.size != num_rows:
        msg = f"X has not as many rows as there are conditional effects, {num_rows}."
        raise ValueError(msg)
    return column


def _draw_sorted(
    ax: Axes,
    conditional: NDArray[np.float64],
    average: NDArray[np.float64],
    probabilities: tuple[float, ...],
) -> None:
    """Draw rows in ascending order of their posterior means, and their average."""
    num_rows = conditional.shape[1]
    order = np.argsort(conditional.mean(axis=0), stable=True)
    rank = evenly_spaced(num_rows, MAX_ROWS)
    draws = conditional[:, order[rank]]
    if rank.size <= MAX_LINES:
        draw_points(
            ax, rank.astype(np.float64), draws, "one row", 0, probabilities, name_intervals=True
        )
    else:
        for probability in probabilities[::-1]:
            ends = ends_of(draws, probability)
            label = text_of_interval(probability)
            ax.fill_between(rank, *ends, color=COLOURS[0], alpha=0.22, lw=0, label=label)
        ax.plot(rank, draws.mean(axis=0), color=COLOURS[0], lw=1.6, label="one row")
    low, high = ends_of(average, probabilities[-1])
    name = f"average, {text_of_interval(probabilities[-1])}"
    ax.axhspan(low, high, color=COLOURS[1], alpha=0.25, lw=0, zorder=0.6, label=name)
    ax.axhline(average.mean(), color=COLOURS[1], lw=1.2, ls="--", label="average effect")
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_xlabel(f"{num_rows} rows, sorted by their effect")


def _scale_of_groups(names: NDArray[Any]) -> Scale:
    return make_scale("group", "group", names.astype(object), is_categorical=True)


def _draw_groups(ax: Axes, averages: NDArray[np.float64], probabilities: tuple[float, ...]) -> None:
    """Draw the averages of groups, (draws, groups)."""
    at = np.arange(averages.shape[1], dtype=np.float64)
    draw_points(ax, at, averages, "average of a group", 1, probabilities, name_intervals=False)


def _draw_along(
    ax: Axes,
    bins: Bins,
    conditional: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    probabilities: tuple[float, ...],
) -> None:
    """Draw effects along a column: rows as dots, averages of bins with intervals."""
    rows = evenly_spaced(bins.x.size, MAX_ROWS)
    mean = conditional.mean(axis=0)
    ax.plot(bins.x[rows], mean[rows], ".", ms=3, color=GREY, alpha=0.5, label="mean of one row")
    means = bins.means(conditional, weights)
    draw_points(ax, bins.at, means, "average of a group", 1, probabilities, name_intervals=False)
