"""f over two columns, as cells of colour (floor 3)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.forest.draws import evenly_spaced
from pymc_xbart.plots.read import Column
from pymc_xbart.plots.scales import Scale

COLOURS = "cividis"  # even steps of lightness, for colour-blind readers and in print
MAX_DOTS = 500


def draw_surface(
    ax: Axes,
    scales: tuple[Scale, Scale],
    points: tuple[NDArray[Any], NDArray[Any]],
    mean: NDArray[np.float64],
    label: str,
) -> None:
    """Draw the posterior mean at the points of two columns, the first across.

    Each cell has the colour of its point: nothing is made up between points.
    """
    edges = [scale.edges(each) for scale, each in zip(scales, points, strict=True)]
    for axis, scale in enumerate(scales):
        if scale.has_missing and mean.shape[axis] > 1:
            mean = np.insert(mean, -1, np.nan, axis=axis)
    mesh = ax.pcolormesh(*edges, np.ma.masked_invalid(mean.T), cmap=COLOURS, rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label=label)


def draw_dots(ax: Axes, scales: tuple[Scale, Scale], columns: tuple[Column, Column]) -> None:
    """Mark where rows of X are; evenly spaced ones if there are many."""
    x, y = (s.place_data(column.values) for s, column in zip(scales, columns, strict=True))
    chosen = np.flatnonzero(~np.isnan(x + y))
    chosen = chosen[evenly_spaced(chosen.size, MAX_DOTS)]
    ax.plot(x[chosen], y[chosen], "o", ms=2.5, mfc="white", mec="black", mew=0.4, alpha=0.8)
