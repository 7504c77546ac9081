"""Where values of a column lie along an axis (floor 3): numbers, dates, categories, and none."""

import textwrap
from typing import Any, NamedTuple

import matplotlib.dates as mdates
import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import FixedFormatter, FixedLocator, Locator, MaxNLocator
from numpy.typing import NDArray

from pymc_xbart.plots.intervals import shorten
from pymc_xbart.plots.read import Column, is_missing

SECONDS_A_DAY = 86_400  # matplotlib counts dates in days since 1970
GAP = 0.15  # of the range, from the last number to the point of missing values
MAX_LABEL = 14  # characters of a category
NAME_WIDTH = 24  # characters of a column's name on a line
INCHES_A_CHARACTER = 0.08


class Scale(NamedTuple):
    """Axis of one column."""

    column: str
    name: str  # as shown
    labels: list[str] | None  # of categories, from 0; None: numbers
    low: float
    high: float  # of what is not missing
    is_date: bool
    has_missing: bool

    @property
    def at_missing(self) -> float:
        """Where missing values are, set apart on the far side."""
        return self.high + (1.3 if self.labels else GAP * (self.high - self.low or 1.0))

    def place(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Positions of the points of a grid."""
        missing = is_missing(points)
        at = np.full(points.size, self.at_missing)
        known = points[~missing]
        if self.labels is not None:
            at[~missing] = [self.labels.index(text_of(label)) for label in known]
        else:
            at[~missing] = known / (SECONDS_A_DAY if self.is_date else 1)
        return at

    def place_data(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of numbers of X, missing ones where they have a place, else left out as NaN."""
        at = values / (SECONDS_A_DAY if self.is_date else 1)
        return np.where(np.isnan(at) & self.has_missing, self.at_missing, at)

    def edges(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Edges of cells around the points, with an empty one before that of missing values."""
        known = self.place(points[~is_missing(points)])
        middle = 0.5 * (known[1:] + known[:-1])
        width = 1.0 if self.labels or self.high == self.low else 0.0
        edges = np.concatenate([[self.low - 0.5 * width], middle, [self.high + 0.5 * width]])
        if not self.has_missing:
            return edges
        half = 0.5 if self.labels else 0.35 * (self.at_missing - self.high)
        return np.append(edges, [self.at_missing - half, self.at_missing + half])

    def set_up(self, axis: Axis, inches: float) -> None:
        """Give an axis so many inches long its label and ticks."""
        axis.set_label_text("\n".join(textwrap.wrap(self.name, NAME_WIDTH)))
        if self.labels is not None:
            names = [*self.labels, *(["missing"] if self.has_missing else [])]
            at = [*range(len(self.labels)), *([self.at_missing] if self.has_missing else [])]
            _set_categories(axis, at, [shorten(name, MAX_LABEL) for name in names], inches)
            return
        locator: Locator = MaxNLocator(max(2, min(8, int(inches / 0.6))))
        if self.is_date:
            locator = mdates.AutoDateLocator(maxticks=max(3, int(inches / 0.6)))
            axis.set_major_formatter(mdates.ConciseDateFormatter(locator))
        axis.set_major_locator(locator)
        if self.has_missing:
            _set_missing(axis, self, locator)


def _set_categories(axis: Axis, at: list[float], names: list[str], inches: float) -> None:
    axis.set_major_locator(FixedLocator(at))
    axis.set_major_formatter(FixedFormatter(names))
    size = min(9.0, 72 * inches / len(names) / 1.15)
    axis.set_tick_params(labelsize=size)
    longest = max(map(len, names), default=0)
    if axis.axis_name == "x" and longest * len(names) * INCHES_A_CHARACTER > inches:
        for label in axis.get_ticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")


def _set_missing(axis: Axis, scale: Scale, locator: Locator) -> None:
    """Ticks of numbers end where they do; missing values have one of their own."""
    if scale.is_date:
        ends = mdates.num2date([scale.low, scale.high])
        ticks = np.asarray(locator.tick_values(*ends))
    else:
        ticks = np.asarray(locator.tick_values(scale.low, scale.high))
    step = 0.01 * (scale.high - scale.low)
    # The last number makes room for the word beside it.
    is_inside = (ticks >= scale.low - step) & (ticks <= scale.high - GAP * (scale.high - scale.low))
    axis.set_major_locator(FixedLocator(ticks[is_inside]))
    axis.set_minor_locator(FixedLocator([scale.at_missing]))
    axis.set_minor_formatter(FixedFormatter(["missing"]))
    axis.set_tick_params(which="minor", length=3.5)


def text_of(point: Any) -> str:
    """What a category is called."""
    return point if isinstance(point, str) else f"{point:g}"


def make_scale(
    column: str, name: str, points: NDArray[Any], data: Column | None, *, is_categorical: bool
) -> Scale:
    """Axis for the points of a grid, and for data if there are any."""
    missing = is_missing(points)
    known = points[~missing]
    is_date = data is not None and data.is_date
    if is_categorical or known.dtype.kind not in "fiu":
        labels = [text_of(point) for point in known]
        return Scale(column, name, labels, 0.0, known.size - 1.0, False, bool(missing.any()))
    x = known / (SECONDS_A_DAY if is_date else 1)
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    return Scale(column, name, None, low, high, is_date, bool(missing.any()))
