"""Where values of a column lie along an axis (floor 3): numbers, dates, categories, and none."""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.dates
import numpy as np
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import FixedFormatter, FixedLocator, Locator, MaxNLocator
from numpy.typing import NDArray

from pymc_xbart.plots.intervals import shorten
from pymc_xbart.plots.names import write_names
from pymc_xbart.plots.read import Column, Item, find_data, is_missing

dates: Any = matplotlib.dates  # has no types
SECONDS_A_DAY = 86_400  # matplotlib counts dates in days since 1970
GAP = 0.15  # of the range, from the last number to the point of missing values
MAX_FEW = 6  # numbers that are shown as single ones, not as a curve
NAME_CHARACTERS = 11  # of a column's name on a line, by inch
NUMBER_INCHES = 0.45
MISSING_INCHES = 0.5  # half of the word "missing", and half of a number beside it


class Scale(NamedTuple):
    """Axis of one column."""

    column: str
    name: str  # as shown
    labels: list[str] | None  # of categories, from 0; None: numbers
    low: float
    high: float  # of what is not missing
    is_date: bool
    has_missing: bool
    few: tuple[float, ...] = ()  # positions of numbers that are so few as to be shown one by one

    @property
    def names(self) -> list[str]:
        """What stands at its categories, and at their missing values behind them."""
        missing = ["missing"] if self.has_missing else []
        return [] if self.labels is None else [*self.labels, *missing]

    @property
    def is_continuous(self) -> bool:
        """Whether there is something between its points."""
        return self.labels is None and not self.few and self.high > self.low

    @property
    def at_missing(self) -> float:
        """Where missing values are, set apart on the far side."""
        return self.high + (1.3 if self.labels else self.step or GAP * (self.high - self.low or 1))

    @property
    def step(self) -> float:
        """Least distance of points that are shown one by one, 0 if there is something between."""
        if self.labels is not None or len(self.few) == 1:
            return 1.0
        return float(np.diff(self.few).min()) if self.few else 0.0

    def place(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Positions of the points of a grid."""
        missing = is_missing(points)
        at = np.full(points.size, self.at_missing)
        known = points[~missing]
        if self.labels is not None:
            at[~missing] = [self.labels.index(text_of(label)) for label in known]
        else:
            at[~missing] = self.place_known(known)
        return at

    def place_known(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of numbers, missing ones left as NaN."""
        return values / (SECONDS_A_DAY if self.is_date else 1)

    def place_data(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of numbers, missing ones at their own if there is one."""
        at = self.place_known(values)
        return np.where(np.isnan(at) & self.has_missing, self.at_missing, at)

    def edges(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Edges of cells around the points, with an empty one before that of missing values."""
        half = 0.35 * (self.at_missing - self.high)
        last = [self.at_missing - half, self.at_missing + half] if self.has_missing else []
        known = self.place(points[~is_missing(points)])
        if known.size == 0:
            return np.array(last)
        middle = 0.5 * (known[1:] + known[:-1])
        half = 0.5 * self.step
        return np.concatenate([[self.low - half], middle, [self.high + half], last])

    def set_up(self, axis: Axis, inches: float) -> None:
        """Give an axis so many inches long its label and ticks."""
        axis.set_label_text(textwrap.fill(self.name, max(18, int(inches * NAME_CHARACTERS))))
        if self.labels is not None:
            at = [*range(len(self.labels)), *([self.at_missing] if self.has_missing else [])]
            write_names(axis, at, self.names, inches)
            return
        locator: Locator = MaxNLocator(max(2, min(8, int(inches / 0.6))), steps=[1, 2, 2.5, 5, 10])
        if self.is_date:
            # With room for fewer, Matplotlib would find no unit for some spans of time, and warn.
            locator = dates.AutoDateLocator(minticks=2, maxticks=max(5, int(inches / 0.6)))
            axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        span = (self.at_missing if self.has_missing else self.high) - self.low + self.step
        if self.few and inches * self.step > NUMBER_INCHES * span:
            locator = FixedLocator(self.few)
        axis.set_major_locator(locator)
        if self.has_missing:
            _set_missing(axis, self, locator, inches)


def _set_missing(axis: Axis, scale: Scale, locator: Locator, inches: float) -> None:
    """Ticks of numbers end where they do; missing values have one of their own."""
    if scale.is_date:
        ends = dates.num2date([scale.low, scale.high])
        ticks = np.asarray(locator.tick_values(*ends))
    else:
        ticks = np.asarray(locator.tick_values(scale.low, scale.high))
    # The last number makes room for the word beside it.
    room = MISSING_INCHES / inches if isinstance(axis, XAxis) else 0.0
    last = min(scale.high, scale.at_missing - room * (scale.at_missing - scale.low))
    is_inside = (ticks >= scale.low) & (ticks <= last)
    axis.set_major_locator(FixedLocator(ticks[is_inside].tolist()))
    axis.set_minor_locator(FixedLocator([scale.at_missing]))
    axis.set_minor_formatter(FixedFormatter(["missing"]))
    axis.set_tick_params(which="minor", length=3.5)


def text_of(point: Any) -> str:
    """What a category is called."""
    if isinstance(point, str):
        return point
    if point != point:
        return "missing"
    return str(int(point)) if point == int(point) else f"{point:.15g}"


def make_scale(
    column: str, name: str, points: NDArray[Any], *, is_categorical: bool, is_date: bool = False
) -> Scale:
    """Axis for the points of a grid."""
    missing = is_missing(points)
    known = points[~missing]
    if is_categorical or known.dtype.kind not in "fiu":
        labels = [text_of(point) for point in known]
        return Scale(column, name, labels, 0.0, known.size - 1.0, False, bool(missing.any()))
    x = known / (SECONDS_A_DAY if is_date else 1)
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    few = tuple(np.unique(x).tolist()) if x.size <= MAX_FEW else ()
    return Scale(column, name, None, low, high, is_date, bool(missing.any()), few)


def scale_of(item: Item, axis: int, data: Mapping[str, Column], labels: Mapping[str, str]) -> Scale:
    """Axis of one column of an item."""
    column = item.columns[axis]
    rows = find_data(data, column)
    return make_scale(
        column,
        shorten(labels.get(column, column)),
        item.points[axis],
        is_categorical=item.is_categorical[axis],
        is_date=item.is_date[axis] or (rows is not None and rows.is_date),
    )
