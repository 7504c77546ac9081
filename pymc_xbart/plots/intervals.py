"""Intervals of one number for each column of X, one below the other (floor 3)."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

PROBABILITIES = 0.5, 0.94  # of the thick line and of the thin one
MAX_NAME = 32  # characters of a column's name
INCHES_A_COLUMN, INCHES_AROUND, INCHES_WIDE = 0.25, 1.2, 6.4
COLOUR = "#0072B2"  # a blue that colour-blind readers can tell from the grey of references
GREY = "0.45"


def draws_by_column(values: xr.DataArray) -> NDArray[np.float64]:
    """All draws of a number for each column, (draws, columns), without draws that have none."""
    draws = values.transpose(..., "column").values.reshape(-1, values.sizes["column"])
    kept: NDArray[np.float64] = draws[~np.isnan(draws).any(axis=1)]
    return kept


def make_axes(num_lines: int, figsize: tuple[float, float] | None, ax: Axes | None) -> Axes:
    """Axes to draw on, new ones with room for so many lines unless there are some."""
    if ax is None:
        size = INCHES_WIDE, INCHES_AROUND + INCHES_A_COLUMN * num_lines
        _, ax = plt.subplots(figsize=figsize or size, layout="constrained")
    return ax


def ends_of(draws: NDArray[np.float64], probability: float) -> NDArray[np.float64]:
    """Ends of the equal-tailed interval over draws, (2, ...)."""
    tails = 0.5 - 0.5 * probability, 0.5 + 0.5 * probability
    ends: NDArray[np.float64] = np.quantile(draws, tails, axis=0)
    return ends


def text_of_interval(probability: float) -> str:
    """What a legend calls an interval."""
    return f"{100 * probability:.4g} % interval"


def draw_intervals(
    ax: Axes, draws: NDArray[np.float64], names: list[str], num_left_out: int
) -> None:
    """Draw mean and equal-tailed intervals of each column of draws (draws, columns).

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    draws : ndarray of shape (draws, columns)
        From top to bottom.
    names : list of str
        One for each.
    num_left_out : int
        Columns that are not shown, which a last line says.
    """
    y = np.arange(len(names))
    for probability, width in zip(PROBABILITIES, (3.5, 1.2), strict=True):
        label = text_of_interval(probability)
        ax.hlines(y, *ends_of(draws, probability), color=COLOUR, lw=width, label=label)
    ax.plot(draws.mean(axis=0), y, "o", ms=6, mfc="white", mec=COLOUR, mew=1.4, label="mean")
    more = [f"{num_left_out} more column{'s' if num_left_out > 1 else ''}"] if num_left_out else []
    ax.set_yticks(np.arange(len(names) + len(more)), names + more)
    if more:
        ax.get_yticklabels()[-1].set(color=GREY, style="italic")
    ax.set_ylim(len(names) + len(more) - 0.4, -0.6)
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    ax.margins(x=0.02)  # a dot at the edge is then whole
    ax.spines[["top", "right"]].set_visible(False)
    # Above the axes, where it hides nothing, and to the left, where the names leave room.
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        fontsize="small",
        frameon=False,
        columnspacing=1.0,
        handlelength=1.5,
    )


def shown_names(columns: xr.DataArray, labels: Mapping[Any, str] | None) -> list[str]:
    """Names as an axis shows them: by `labels`, the middle of long ones left out.

    Raises
    ------
    KeyError
        If `labels` names other columns.
    """
    known = columns.values.tolist()
    check_labels(labels, known)
    return [
        shorten(labels[name] if labels and name in labels else _text_of(name)) for name in known
    ]


def check_labels(labels: Mapping[Any, str] | None, known: list[Any]) -> None:
    """Refuse labels of what is not there."""
    unknown = [name for name in labels or {} if name not in known]
    if unknown:
        msg = f"labels names the column {unknown[0]!r}, but the columns are {known}."
        raise KeyError(msg)


def _text_of(name: Any) -> str:
    return name if isinstance(name, str) else f"column {name}"


def shorten(name: str, limit: int = MAX_NAME) -> str:
    """Keep both ends: names that begin alike often differ at the end."""
    if len(name) <= limit:
        return name
    end = limit // 2 - 1
    return f"{name[: limit - end - 1]}…{name[-end:]}"
