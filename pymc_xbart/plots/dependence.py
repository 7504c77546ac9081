"""`plot_partial_dependence` and `plot_ale`: f along its columns (floor 3)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.diagnostics.accumulated_local_effects import accumulated_local_effects
from pymc_xbart.diagnostics.partial_dependence import partial_dependence
from pymc_xbart.plots.curves import draw_rug, draw_series, finish_curves, read_probabilities
from pymc_xbart.plots.intervals import PROBABILITIES, check_labels, shorten
from pymc_xbart.plots.panels import INCHES_WIDE, PAIR_INCHES, Panels, value_label
from pymc_xbart.plots.read import Column, Item, compute, find_data, read_items
from pymc_xbart.plots.scales import Scale, scale_of, text_of
from pymc_xbart.plots.surfaces import draw_dots, draw_surface

MAX_SERIES = 8  # categories that are told apart by curves; more are cells of colour
BESIDE_BAR = 0.7  # of its width that a panel has left beside a bar of colours
LEGEND_BESIDE: dict[str, Any] = {
    "loc": "upper left",
    "bbox_to_anchor": (1.0, 1.0),
    "frameon": False,
}


def plot_partial_dependence(
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
    """Draw partial dependence, a panel for each column or pair of columns.

    One column: the posterior mean and equal-tailed intervals over draws, as a curve along numbers
    and dates, as dots and lines at categories and at missing values, which stand apart on the
    right. Curves are straight from point to point; with fewer than 100 draws, they are the steps
    that trees make. All have one vertical scale. Forests of a variable of shape (k, n) have a curve
    each.

    Two columns: the posterior mean as cells of colour, without what lies between points; if one
    of them holds up to 8 categories, a curve for each. Forests have a panel each.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` or `partial_dependence` returned.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        Rows to average over. Beside what `partial_dependence` returned it is optional: it tells
        where rows are. Those are ticks along the bottom, at most 300, or dots on cells.
    columns : int, str, tuple or list, optional
        See `partial_dependence`; all columns by default. Only with what `pm.sample` returned.
    probabilities : float or sequence of float, default (0.5, 0.94)
        Of the intervals.
    labels : mapping, optional
        What to write instead of some columns' names, or of the variable's, {name: text}. Long
        names lose their middle.
    figsize : tuple of float, optional
        Inches; by default as large as the panels ask for.
    axes : matplotlib.axes.Axes or array_like of them, optional
        Where to draw, one for each panel; a new figure by default.
    **options
        Those of `partial_dependence`, for instance ``grid``, ``kind`` or ``transform``. Only with
        what `pm.sample` returned.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each panel.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such columns or draws, X does not fit, or `axes` are too few.

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
    >>> pxb.plot_partial_dependence(idata, X, [0, 1]).size
    2
    >>> surface = pxb.partial_dependence(idata, X, (0, 1), grid=20)
    >>> pxb.plot_partial_dependence(surface, X).size
    1
    """
    result, data = compute(partial_dependence, idata, X, columns, options)
    items = read_items(result, has_rows=False, maker="partial_dependence")
    return _draw_items(items, data, read_probabilities(probabilities), labels, figsize, axes)


def plot_ale(
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
    """Draw accumulated local effects, a panel for each column or pair of columns.

    It looks as `plot_partial_dependence` does. Of pairs it is what they do together, beyond what
    each column does.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` or `accumulated_local_effects` returned.
    X, probabilities, labels, figsize, axes
        See `plot_partial_dependence`.
    columns : int, str, tuple or list, optional
        See `accumulated_local_effects`.
    **options
        Those of `accumulated_local_effects`.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each panel.

    Raises
    ------
    KeyError, TypeError, ValueError
        As for `plot_partial_dependence`.
    """
    result, data = compute(accumulated_local_effects, idata, X, columns, options)
    items = read_items(result, has_rows=False, maker="accumulated_local_effects")
    return _draw_items(items, data, read_probabilities(probabilities), labels, figsize, axes)


class _Panel(NamedTuple):
    """Curves, or cells if it has two scales."""

    item: Item
    draws: NDArray[np.float64]  # (draws, series, m), or (draws, m, m2)
    axes: list[int]  # numbers of the item's columns: along the axis, then along the second one
    names: list[str]  # of the series
    title: str


def _draw_items(
    items: list[Item],
    data: dict[str, Column],
    probabilities: tuple[float, ...],
    labels: Mapping[str, str] | None,
    figsize: tuple[float, float] | None,
    axes: Any,
) -> NDArray[np.object_]:
    check_labels(labels, [name for item in items for name in (item.name, *item.columns)])
    labels = labels or {}
    drawn = [panel for item in items for panel in _panels_of(item)]
    scales = [[scale_of(panel.item, axis, data, labels) for axis in panel.axes] for panel in drawn]
    panels = Panels(
        [along[0] for along in scales],
        axes,
        figsize,
        up=[along[1] for along in scales if len(along) == 2],
        inches=PAIR_INCHES if any(len(item.columns) == 2 for item in items) else INCHES_WIDE,
    )
    for k, (ax, panel, along) in enumerate(zip(panels.axes, drawn, scales, strict=True)):
        if len(along) == 1:
            _draw_curves(ax, panel, along[0], data, probabilities, panels.inches_wide(k))
        else:
            inches = BESIDE_BAR * panels.inches_wide(k), panels.inches_high(k)
            _draw_cells(ax, panel, along, data, labels, inches)
        ax.set_title(panel.title, fontsize="medium")
    curves = [k for k, panel in enumerate(drawn) if len(panel.axes) == 1]
    shown = {k: value_label([drawn[k].item], labels) for k in curves}
    for label in dict.fromkeys(shown.values()):
        panels.share_y([k for k in curves if shown[k] == label], label)
    for k in curves:
        if len(drawn[k].item.columns) == 2:
            other = drawn[k].item.columns[1 - drawn[k].axes[0]]
            name = shorten(labels.get(other, other))
            panels.axes[k].legend(
                title=name, fontsize="small", title_fontsize="small", **LEGEND_BESIDE
            )
    panels.add_legend([k for k in curves if len(drawn[k].item.columns) == 1])
    return panels.as_array()


def _panels_of(item: Item) -> list[_Panel]:
    """One for all forests of one column; one for each forest of two."""
    draws = item.draws[:, :, 0]
    if len(item.columns) == 1:
        return [_Panel(item, draws, [0], item.forests, "")]
    sizes = [
        points.size if is_categorical else np.inf
        for points, is_categorical in zip(item.points, item.is_categorical, strict=True)
    ]
    other = 1 if sizes[1] <= sizes[0] else 0  # the one that curves may be told apart by
    panels = []
    for k, forest in enumerate(item.forests):
        values = draws[:, k]
        if sizes[other] <= MAX_SERIES:
            names = [shorten(text_of(point), 20) for point in item.points[other]]
            panels.append(
                _Panel(item, np.moveaxis(values, 1 + other, 1), [1 - other], names, forest)
            )
        else:
            panels.append(_Panel(item, values, [0, 1], [], forest))
    return panels


def _draw_curves(
    ax: Axes,
    panel: _Panel,
    scale: Scale,
    data: Mapping[str, Column],
    probabilities: tuple[float, ...],
    inches: float,
) -> None:
    points = panel.item.points[panel.axes[0]]
    draw_series(ax, scale, points, list(np.moveaxis(panel.draws, 1, 0)), panel.names, probabilities)
    rows = find_data(data, scale.column)
    if rows is not None and scale.labels is None:
        draw_rug(ax, scale.place_known(rows.values))
    finish_curves(ax, scale, inches)


def _draw_cells(
    ax: Axes,
    panel: _Panel,
    scales: list[Scale],
    data: Mapping[str, Column],
    labels: Mapping[str, str],
    inches: tuple[float, float],
) -> None:
    pair = scales[0], scales[1]
    points = panel.item.points[0], panel.item.points[1]
    draw_surface(ax, pair, points, panel.draws.mean(axis=0), value_label([panel.item], labels))
    rows = [find_data(data, scale.column) for scale in scales]
    if rows[0] is not None and rows[1] is not None and not any(s.labels for s in scales):
        draw_dots(ax, pair, (rows[0], rows[1]))
    for axis, scale, length in zip((ax.xaxis, ax.yaxis), scales, inches, strict=True):
        scale.set_up(axis, length)
