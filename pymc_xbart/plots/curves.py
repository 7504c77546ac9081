"""Curves with intervals over draws along one column (floor 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pymc_xbart.forest.draws import evenly_spaced
from pymc_xbart.forest.prior import positive_number
from pymc_xbart.plots.intervals import GREY, PROBABILITIES, ends_of, text_of_interval
from pymc_xbart.plots.read import is_missing
from pymc_xbart.plots.scales import Scale

# Okabe & Ito (2008): eight that colour-blind readers can tell apart, the palest and black left out.
COLOURS = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
STYLES = "-", "--", ":", "-."
MARKERS = "o", "s", "^", "D"
MIN_SMOOTH = 100  # draws; the mean of fewer shows the steps of single trees
MAX_TICKS = 300  # of a rug


def read_probabilities(probabilities: Any) -> tuple[float, ...]:
    """Probabilities of intervals in ascending order.

    Raises
    ------
    ValueError
        If there is none, or one is not inside (0, 1).
    """
    given = np.atleast_1d(probabilities).tolist()
    if not given or any(positive_number(p, "probabilities") >= 1 for p in given):
        msg = f"probabilities is {probabilities!r}, but must hold numbers between 0 and 1."
        raise ValueError(msg)
    return tuple(sorted(given))


def colour_of(k: int) -> str:
    """Colour of the k-th of several curves."""
    return COLOURS[k % len(COLOURS)]


def style_of(k: int) -> str:
    """Its line: colours that come again have another."""
    return STYLES[k // len(COLOURS) % len(STYLES)]


def marker_of(k: int) -> str:
    """Its dots, likewise."""
    return MARKERS[k // len(COLOURS) % len(MARKERS)]


def draw_series(
    ax: Axes,
    scale: Scale,
    points: NDArray[Any],
    series: Sequence[NDArray[np.float64]],
    names: Sequence[str],
    probabilities: tuple[float, ...] = PROBABILITIES,
) -> None:
    """Draw one curve, or several in different colours, with the intervals of each.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    scale : Scale
    points : ndarray of shape (m,)
    series : sequence of ndarray of shape (draws, m)
    names : sequence of str
        For the legend; a single one is called the mean, and its intervals are named instead.
    probabilities : tuple of float
    """
    at = scale.place(points)
    is_point = is_missing(points) | (not scale.is_continuous)
    # Beside each other, where they would hide each other.
    room = 0.5 * (scale.step or scale.at_missing - scale.high)
    for k, draws in enumerate(series):
        several = len(series) > 1
        shift = room * ((k + 0.5) / len(series) - 0.5)
        name = names[k] if several else "mean"
        if not is_point.all():
            is_line = ~is_point
            _draw_line(ax, at[is_line], draws[:, is_line], name, k, probabilities, len(series))
        if is_point.any():
            shown = name if is_point.all() else "_"
            draw_points(
                ax,
                at[is_point] + shift,
                draws[:, is_point],
                shown,
                k,
                probabilities,
                name_intervals=bool(is_point.all()) and not several,
            )


def _draw_line(
    ax: Axes,
    x: NDArray[np.float64],
    draws: NDArray[np.float64],
    name: str,
    k: int,
    probabilities: tuple[float, ...],
    num_series: int,
) -> None:
    # Rows at a cut go left: what holds at a value holds from the value before it on.
    has_steps = draws.shape[0] < MIN_SMOOTH
    for probability in probabilities[::-1]:
        low, high = ends_of(draws, probability)
        ax.fill_between(
            x,
            low,
            high,
            color=colour_of(k),
            alpha=max(0.05, 0.22 / num_series),
            lw=0,
            step="pre" if has_steps else None,
            label="_" if num_series > 1 else text_of_interval(probability),
        )
    ax.plot(
        x,
        draws.mean(axis=0),
        color=colour_of(k),
        ls=style_of(k),
        lw=1.6,
        drawstyle="steps-pre" if has_steps else "default",
        marker="o" if x.size == 1 else None,
        label=name,
    )


def draw_points(
    ax: Axes,
    x: NDArray[np.float64],
    draws: NDArray[np.float64],
    name: str,
    k: int,
    probabilities: tuple[float, ...],
    *,
    name_intervals: bool,
) -> None:
    """Draw means as dots and intervals as lines, the thicker the less probable."""
    widths = np.linspace(1.2, 3.5, len(probabilities)) if len(probabilities) > 1 else [1.6]
    for probability, width in zip(probabilities[::-1], widths, strict=True):
        label = text_of_interval(probability) if name_intervals else "_"
        ax.vlines(x, *ends_of(draws, probability), color=colour_of(k), lw=width, label=label)
    mean, edge = draws.mean(axis=0), colour_of(k)
    ax.plot(x, mean, marker_of(k), ms=4, mfc="white", mec=edge, mew=1.2, label=name)


def draw_rug(ax: Axes, x: NDArray[np.float64]) -> None:
    """Mark where rows of X are, by ticks along the bottom; evenly spaced ones if there are many."""
    x = np.sort(x[~np.isnan(x)])
    x = x[evenly_spaced(x.size, MAX_TICKS)]
    transform = ax.get_xaxis_transform()
    ax.plot(
        x,
        np.full(x.size, 0.015),
        "|",
        color=GREY,
        ms=5,
        mew=0.6,
        alpha=0.6,
        label="_rug",
        transform=transform,
        scaley=False,
        zorder=0.5,
    )


def finish_curves(ax: Axes, scale: Scale, inches: float) -> None:
    """Axis, limits and frame of a panel of curves."""
    scale.set_up(ax.xaxis, inches)
    if scale.labels is not None:
        ax.set_xlim(-0.6, (scale.at_missing if scale.has_missing else scale.high) + 0.6)
    elif scale.has_missing:
        ax.axvline(0.5 * (scale.high + scale.at_missing), color="0.8", lw=0.8, ls=":")
        gap = scale.at_missing - scale.high
        ax.set_xlim(scale.low - 0.6 * gap, scale.at_missing + 0.8 * gap)
    elif scale.few:
        ax.set_xlim(scale.low - 0.6 * scale.step, scale.high + 0.6 * scale.step)
    ax.spines[["top", "right"]].set_visible(False)
