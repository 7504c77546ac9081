"""`plot_ice`: f of single rows along its columns (floor 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.diagnostics.individual import individual_conditional_expectation
from pymc_xbart.plots.curves import COLOURS, MIN_SMOOTH, draw_rug, finish_curves
from pymc_xbart.plots.intervals import GREY, check_labels
from pymc_xbart.plots.panels import Panels, value_label
from pymc_xbart.plots.read import Item, compute, find_data, is_missing, read_items
from pymc_xbart.plots.scales import Scale, scale_of

MEAN = "mean of these rows"


def plot_ice(
    idata: Any,
    X: Any = None,
    columns: Any = None,
    *,
    labels: Mapping[str, str] | None = None,
    figsize: tuple[float, float] | None = None,
    axes: Any = None,
    **options: Any,
) -> NDArray[np.object_]:
    """Draw f of single rows along each column: where their curves are not parallel, it interacts.

    Each thin curve is the posterior mean of one row, the thick one the mean of these rows. Pass
    ``kind="centred"`` to let all begin at 0. At categories and missing values there are dots. What
    the posterior is unsure of is not shown: `plot_partial_dependence` has intervals.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` or `individual_conditional_expectation` returned.
    X, labels, figsize, axes
        See `plot_partial_dependence`.
    columns : int, str or list, optional
        One column, or several one by one; all by default.
    **options
        Those of `individual_conditional_expectation`, for instance ``rows`` or ``kind``.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each column; forests of a variable of shape (k, n) have one each.

    Raises
    ------
    KeyError, TypeError, ValueError
        As for `plot_partial_dependence`, or if two columns are held at the same time.
    """
    result, data = compute(individual_conditional_expectation, idata, X, columns, options)
    items = read_items(result, has_rows=True, maker="individual_conditional_expectation")
    _check_items(items)
    check_labels(labels, [name for item in items for name in (item.name, *item.columns)])
    labels = labels or {}
    drawn = [(item, k) for item in items for k in range(len(item.forests))]
    scales = [scale_of(item, 0, data, labels) for item, _ in drawn]
    panels = Panels(scales, axes, figsize)
    for place, (ax, (item, k), scale) in enumerate(zip(panels.axes, drawn, scales, strict=True)):
        _draw_rows(ax, scale, item, item.draws[:, k])
        rows = find_data(data, scale.column)
        if rows is not None and scale.labels is None:
            draw_rug(ax, scale.place_known(rows.values))
        finish_curves(ax, scale, panels.inches_wide(place))
        ax.set_title(item.forests[k], fontsize="medium")
    panels.share_y(range(len(drawn)), value_label(items, labels))
    panels.add_legend(range(len(drawn)))
    return panels.as_array()


def _check_items(items: list[Item]) -> None:
    for item in items:
        if len(item.columns) == 2:
            msg = (
                f"The variable {item.name!r} is about two columns at the same time, for which "
                "curves of single rows can't be drawn. Ask for one column after the other."
            )
            raise ValueError(msg)


def _draw_rows(ax: Axes, scale: Scale, item: Item, draws: NDArray[np.float64]) -> None:
    """Draw the curves of all rows from draws (draws, rows, m)."""
    f = draws.mean(axis=0)
    alpha = float(np.clip(12 / len(f), 0.1, 0.6))
    at = scale.place(item.points[0])
    missing = is_missing(item.points[0])
    # Lines between categories only help the eye to follow a row.
    is_dot = missing | (not scale.is_continuous)
    style = "steps-pre" if scale.is_continuous and len(draws) < MIN_SMOOTH else "default"
    look = {"color": GREY, "lw": 0.7, "ms": 3, "alpha": alpha}
    _draw(ax, at, f, missing, is_dot, style, "one row", **look)
    look = {"color": COLOURS[0], "lw": 2.0, "ms": 8}
    _draw(ax, at, f.mean(axis=0, keepdims=True), missing, is_dot, style, MEAN, **look)


def _draw(
    ax: Axes,
    at: NDArray[np.float64],
    curves: NDArray[np.float64],
    missing: NDArray[np.bool_],
    is_dot: NDArray[np.bool_],
    drawstyle: str,
    name: str,
    **look: Any,
) -> None:
    """Draw curves (rows, m) alike: a line through values, dots where these are single ones."""
    lines = ax.plot(at[~missing], curves[:, ~missing].T, drawstyle=drawstyle, **look)
    lines[0].set_label(name)
    ax.plot(at[is_dot], curves[:, is_dot].T, marker=".", **look | {"lw": 0})
