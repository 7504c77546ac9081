"""Panels side by side (floor 3): how many in a row, a common scale, one legend."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.plots.names import INCHES_A_CATEGORY, inches_aside
from pymc_xbart.plots.read import Item
from pymc_xbart.plots.scales import Scale

INCHES_WIDE, INCHES_HIGH = 2.6, 2.3  # of one panel among many
ALONE_WIDE, ALONE_HIGH = 6.4, 4.4  # of a single one
MAX_ACROSS, MAX_WIDE = 5, 15.0  # panels, inches
PAIR_INCHES = 3.6  # width of a panel that has a bar of colours or a legend of its own
INSIDE = 0.8  # part of a panel's width that is between the ends of its axis, about
INCHES_A_CHARACTER, INCHES_A_HANDLE = 0.075, 0.6  # of a legend
LEGEND_INCHES = 0.4
LABEL_CHARACTERS = 13  # of a vertical label on a line, by inch


class Panels:
    """Axes to draw on, those given or new ones.

    Parameters
    ----------
    across : sequence of Scale or None
        What is along the horizontal axis of each panel; new ones get room for its names.
    axes : matplotlib.axes.Axes or array_like of them, optional
    figsize : tuple of float, optional
    up : sequence of Scale
        What is along the vertical axes of some.
    inches : float
        Least width of a panel.

    Attributes
    ----------
    axes : list of matplotlib.axes.Axes
        One for each panel, row by row.
    num_across : int
    """

    def __init__(
        self,
        across: Sequence[Scale | None],
        axes: Any = None,
        figsize: Any = None,
        *,
        up: Sequence[Scale] = (),
        inches: float = INCHES_WIDE,
    ) -> None:
        count = len(across)
        wide, high = _panel_size(across, up, inches)
        self.is_new = axes is None
        self.num_across = min(_across(count), max(1, int(MAX_WIDE / wide)))
        if axes is None:
            rows = [across[k : k + self.num_across] for k in range(0, count, self.num_across)]
            height = sum(high + _inches_below(row, wide) for row in rows) + LEGEND_INCHES
            size = figsize or (wide * self.num_across, height)
            self.axes = _make_axes(count, self.num_across, size)
        else:
            self.axes = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())[:count]
        if len(self.axes) < count:
            msg = f"axes holds {len(self.axes)} axes, but there are {count} panels to draw."
            raise ValueError(msg)

    def inches_wide(self, k: int) -> float:
        """Width of a panel, about."""
        ax = self.axes[k]
        return float(ax.get_position().width * _size_of(ax)[0])

    def inches_high(self, k: int) -> float:
        """Height of a panel, about."""
        ax = self.axes[k]
        return float(ax.get_position().height * _size_of(ax)[1])

    def _label_width(self, k: int) -> int:
        return max(24, int(self.inches_high(k) * LABEL_CHARACTERS))

    def share_y(self, which: Sequence[int], label: str) -> None:
        """Give some panels one vertical scale, written at the first one of a row.

        Of panels that were given, at all whose numbers are shown.
        """
        if not which:
            return
        limits = np.array([self.axes[k].get_ylim() for k in which])
        for k in which:
            self.axes[k].set_ylim(limits[:, 0].min(), limits[:, 1].max())
            has_neighbour = self.is_new and k % self.num_across > 0 and k - 1 in which
            if has_neighbour:
                self.axes[k].tick_params(labelleft=False)
            elif self.axes[k].yaxis.get_tick_params()["labelleft"]:
                self.axes[k].set_ylabel(textwrap.fill(label, self._label_width(k)))

    def add_legend(self, which: Sequence[int]) -> None:
        """One legend above new panels; in those that were given, what no panel before has."""
        style: dict[str, Any] = {"fontsize": "small"}
        known: dict[str, Any] = {}
        for k in which:
            handles = dict(zip(*self.axes[k].get_legend_handles_labels()[::-1], strict=True))
            new = {label: handles[label] for label in handles if label not in known}
            known |= new
            if new and not self.is_new:
                self.axes[k].legend(new.values(), list(new), **style)
        if known and self.is_new:
            width = _size_of(self.axes[0])[0]
            longest = max(map(len, known)) * INCHES_A_CHARACTER + INCHES_A_HANDLE
            style |= {"loc": "outside upper right", "frameon": False}
            columns = max(1, min(len(known), int(width / longest)))
            self.axes[0].figure.legend(known.values(), list(known), ncols=columns, **style)

    def as_array(self) -> NDArray[np.object_]:
        """The axes as what is returned."""
        array = np.empty(len(self.axes), dtype=object)
        array[:] = self.axes
        return array


def _size_of(ax: Axes) -> tuple[float, float]:
    """Inches of its whole figure, width and height."""
    figure = ax.get_figure(root=True)
    width, height = (0.0, 0.0) if figure is None else figure.get_size_inches()
    return float(width), float(height)


def _across(count: int) -> int:
    return count if count <= 3 else min(MAX_ACROSS, math.ceil(math.sqrt(1.3 * count)))


def _panel_size(
    across: Sequence[Scale | None], up: Sequence[Scale], inches: float
) -> tuple[float, float]:
    """Width and height that suit all panels, without what names of categories take below."""
    wide, high = (
        (max(inches, ALONE_WIDE), ALONE_HIGH) if len(across) == 1 else (inches, INCHES_HIGH)
    )
    most_across = max(len(scale.names) if scale else 0 for scale in across)
    most_up = max((len(scale.names) for scale in up), default=0)
    wide = max(wide, min(MAX_WIDE, INCHES_A_CATEGORY * most_across))
    high = max(high, INCHES_A_CATEGORY * most_up)
    beside = [inches_aside(scale.names, high, is_across=False) for scale in up]
    return wide + max(beside, default=0.0), high


def _inches_below(row: Sequence[Scale | None], wide: float) -> float:
    """What names of categories take below the panels of a row."""
    names = [scale.names for scale in row if scale]
    return max((inches_aside(each, INSIDE * wide, is_across=True) for each in names), default=0.0)


def _make_axes(count: int, num_across: int, size: tuple[float, float]) -> list[Axes]:
    _, grid = plt.subplots(
        math.ceil(count / num_across),
        num_across,
        figsize=size,
        layout="constrained",
        squeeze=False,
    )
    axes = list(grid.ravel())
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def value_label(items: list[Item], labels: Mapping[str, str]) -> str:
    """What curves show."""
    first = items[0]
    return labels.get(first.name, first.long_name)
