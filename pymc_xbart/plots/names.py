"""Names of categories along an axis (floor 3): level, slanted or upright, as large as they fit."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import FixedFormatter, FixedLocator

from pymc_xbart.plots.intervals import shorten

MAX_NAME = 18  # characters
LARGEST, SMALLEST = 9.0, 6.0  # points; smaller letters are not read
LINE, CHARACTER = 1.25, 0.62  # height of a line and width of a character, by size
SLANT = 45  # degrees
INCHES_A_CATEGORY = 0.17  # a line of the largest size
POINTS_AN_INCH = 72


class Layout(NamedTuple):
    """How names are written."""

    degrees: int  # 0: level
    size: float  # points
    every: int  # 1: all are written; 2: every second one, and so on


def lay_out(names: Sequence[str], inches: float, *, is_across: bool) -> Layout:
    """Find how names fit that are spread evenly over so many inches.

    Parameters
    ----------
    names : sequence of str
        Long ones are shortened.
    inches : float
    is_across : bool
        Whether they are beside each other; else one above the other, where all are level.
    """
    room = POINTS_AN_INCH * inches / max(1, len(names))
    if is_across:
        if (_longest(names) + 1) * CHARACTER * LARGEST <= room:
            return Layout(0, LARGEST, 1)
        if room * math.sin(math.radians(SLANT)) >= LINE * LARGEST:
            return Layout(SLANT, LARGEST, 1)
    size = min(LARGEST, max(SMALLEST, room / LINE))
    return Layout(90 if is_across else 0, size, math.ceil(LINE * size / room - 1e-9))


def _longest(names: Sequence[str]) -> int:
    return max((min(len(name), MAX_NAME) for name in names), default=0)


def inches_aside(names: Sequence[str], inches: float, *, is_across: bool) -> float:
    """How far names reach away from their axis, which is so many inches long."""
    layout = lay_out(names, inches, is_across=is_across)
    length = _longest(names) * CHARACTER * layout.size / POINTS_AN_INCH
    return length * (math.sin(math.radians(layout.degrees)) if is_across else 1.0)


def write_names(axis: Axis, at: Sequence[float], names: Sequence[str], inches: float) -> None:
    """Write names at the ticks `at` of an axis so many inches long."""
    layout = lay_out(names, inches, is_across=isinstance(axis, XAxis))
    shown = slice(None, None, layout.every)
    axis.set_major_locator(FixedLocator(list(at[shown])))
    axis.set_major_formatter(FixedFormatter([shorten(name, MAX_NAME) for name in names[shown]]))
    axis.set_tick_params(labelsize=layout.size)
    if layout.degrees:
        for label in axis.get_ticklabels():
            # All end below their ticks. By "top", those with accents would hang lower than others.
            label.set(
                rotation=layout.degrees, rotation_mode="anchor", ha="right", va="center_baseline"
            )
