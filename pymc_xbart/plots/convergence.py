"""`plot_convergence`: how well chains agree, quantity by quantity (floor 3)."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from pymc_xbart.diagnostics.agreement import ConvergenceSummary, names_of_elements
from pymc_xbart.diagnostics.convergence import convergence_summary
from pymc_xbart.diagnostics.quantities import DRAW_DIMS, labels_of
from pymc_xbart.diagnostics.verdict import ESS, R_HAT, mean_name, variance_name
from pymc_xbart.plots import curves
from pymc_xbart.plots.intervals import COLOUR, GREY, shorten

COLOURS = *curves.COLOURS, "black"
LIMITS = {"r_hat": R_HAT, "ess_bulk": ESS, "ess_tail": ESS}
TITLES = {
    "r_hat": f"R-hat (aim: below {R_HAT})",
    "ess_bulk": f"effective draws, bulk (aim: over {ESS})",
    "ess_tail": f"effective draws, tails (aim: over {ESS})",
}
INCHES_WIDE, INCHES_A_PANEL, INCHES_A_NAME, INCHES_AROUND = 10.5, 2.2, 0.2, 0.7
R_HAT_TICKS = 1.001, 1.01, 1.03, 1.1, 1.3, 2.0, 4.0, 10.0  # all below the first are drawn there
MOST = {"r_hat": R_HAT_TICKS[-1], "ess_bulk": math.inf, "ess_tail": math.inf}  # to draw
ESS_TICKS = [10**power for power in range(7)]
MAX_NAMED = 10  # elements of a quantity that have a line each; of more there is a distribution


def plot_convergence(
    idata: Any,
    X: Any = None,
    *,
    var_names: str | Iterable[str] | None = None,
    figsize: tuple[float, float] | None = None,
    axes: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Draw R-hat and effective sample sizes, and how chains move.

    The first row shows quantities of more than 10 elements, as f at its rows: for each value, the
    share of elements that have at most this one. The second shows all others under their names.
    Dashed lines mark where R-hat should stay below (1.01), and effective draws above (400). Then
    follows a row for each forest: mean and variance of f over its rows, and leaves a tree, one line
    a chain. Chains that agree cover each other.

    Parameters
    ----------
    idata : xarray.DataTree or ConvergenceSummary
        What `pm.sample` or `convergence_summary` returned.
    X, var_names
        See `convergence_summary`; of no use with its result.
    figsize : tuple of float, optional
        Inches; by default as high as the names and forests ask for.
    axes : ndarray of matplotlib.axes.Axes, optional
        Where to draw, one row for each of the above and three columns; a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (rows, 3)
        Without the first row, or the second, where there is nothing to show there.

    Raises
    ------
    KeyError, TypeError, ValueError
        As `convergence_summary`; or if `axes` have another shape.
    """
    summary = idata
    if not isinstance(idata, ConvergenceSummary):
        summary = convergence_summary(idata, X, var_names=var_names)
    many = {name: each for name, each in summary.elements.items() if _is_many(each)}
    few = {name: each for name, each in summary.elements.items() if name not in many}
    lines = _lines(few)
    traces = _traces(summary)
    heights = [INCHES_A_PANEL] * bool(many)
    heights += [INCHES_AROUND + INCHES_A_NAME * len(lines)] * bool(lines)
    heights += [INCHES_A_PANEL] * len(traces)
    axes = _make_axes(heights, figsize, axes)
    rows = iter(axes)
    if many:
        row = next(rows)
        _draw_distributions(row, many)
        _scale(row, summary)
    if lines:
        row = next(rows)
        _draw_numbers(row, lines)
        _scale(row, summary)
    for row, draws in zip(rows, traces, strict=True):
        _draw_traces(row, draws)
    return axes


def _is_many(each: xr.Dataset) -> bool:
    return each["r_hat"].size > MAX_NAMED


def _lines(few: Mapping[str, xr.Dataset]) -> dict[str, dict[str, float]]:
    """R-hat and effective sample sizes of each element under its name."""
    lines: dict[str, dict[str, float]] = {}
    for name, each in few.items():
        values = {which: each[which].values.ravel() for which in LIMITS}
        for k, element in enumerate(names_of_elements(name, each["r_hat"])):
            lines[element] = {which: float(values[which][k]) for which in LIMITS}
    return lines


def _traces(summary: ConvergenceSummary) -> list[dict[str, xr.DataArray]]:
    """For each forest three numbers of each draw, (chain, draw), under their names."""
    traces = []
    mixing = summary.mixing
    for forest in summary.forests:
        leaves = f"{forest}_leaves"
        names = [mean_name(forest), variance_name(forest), leaves]
        if names[0] not in mixing:
            names = [leaves, f"{forest}_depth", f"{forest}_acceptance"]
        of_forest = [mixing[name].transpose(..., *DRAW_DIMS) for name in names]
        labels = labels_of(of_forest[0].isel(dict.fromkeys(DRAW_DIMS, 0)))
        for k, place in enumerate(np.ndindex(*of_forest[0].shape[:-2])):
            # Statistics of the trees are those of all forests of a variable together.
            traces.append(
                {
                    f"{name}[{labels[k]}]" if draws.ndim > 2 else name: draws[
                        place if draws.ndim > 2 else ...
                    ]
                    for name, draws in zip(names, of_forest, strict=True)
                }
            )
    return traces


def _make_axes(
    heights: list[float], figsize: tuple[float, float] | None, axes: NDArray[Any] | None
) -> NDArray[Any]:
    shape = len(heights), len(LIMITS)
    if axes is None:
        _, axes = plt.subplots(
            *shape,
            figsize=figsize or (INCHES_WIDE, sum(heights)),
            height_ratios=heights,
            squeeze=False,
            layout="constrained",
        )
    elif np.shape(axes) != shape:
        msg = f"axes have shape {np.shape(axes)}, but there is something to draw for {shape}."
        raise ValueError(msg)
    return np.asarray(axes)


def _draw_distributions(row: NDArray[Any], many: Mapping[str, xr.Dataset]) -> None:
    """Draw the shares of elements below each value."""
    for ax, which in zip(row, LIMITS, strict=True):
        for k, (name, each) in enumerate(many.items()):
            # Where all draws are the same there is nothing to agree on.
            values = np.sort(each[which].values[each["r_hat"].notnull().values])
            share = np.arange(1, values.size + 1) / max(1, values.size)
            values = values[values <= MOST[which]]  # the line then ends below 1
            ax.step(
                np.concatenate([values[:1], values]),
                np.concatenate([np.zeros(values[:1].size), share[: values.size]]),
                where="post",
                color=COLOURS[k % len(COLOURS)],
                ls=curves.STYLES[k // len(COLOURS) % len(curves.STYLES)],
                label=f"{shorten(name)} ({each[which].size})",
            )
        ax.set_ylim(-0.02, 1.02)
    row[0].set_ylabel("share of elements")
    row[0].legend(fontsize="small", frameon=False, loc="best")


def _draw_numbers(row: NDArray[Any], lines: Mapping[str, Mapping[str, float]]) -> None:
    """Draw single numbers, one below the other."""
    y = np.arange(len(lines))
    for ax, which in zip(row, LIMITS, strict=True):
        for k, line in enumerate(lines.values()):
            _draw_number(ax, k, line[which], MOST[which], has_r_hat=not math.isnan(line["r_hat"]))
        ax.set_yticks(y, [shorten(name) for name in lines] if ax is row[0] else [""] * len(lines))
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.grid(axis="y", color="0.92")
        ax.set_axisbelow(True)


def _draw_number(ax: Axes, y: int, value: float, most: float, *, has_r_hat: bool) -> None:
    across = ax.get_yaxis_transform()
    if not has_r_hat:
        style: dict[str, Any] = {"fontsize": "small", "color": GREY, "va": "center"}
        ax.text(0.02, y, "no R-hat: always the same, or NaN", transform=across, **style)
    elif value > most:
        ax.plot(0.98, y, ">", color=COLOUR, transform=across)
    else:
        ax.plot(value, y, "o", ms=5, color=COLOUR, clip_on=False)


def _scale(row: NDArray[Any], summary: ConvergenceSummary) -> None:
    """Give axes the same scale in each row: R-hat by how far it is above 1, sizes by magnitude."""
    for ax, (which, limit) in zip(row, LIMITS.items(), strict=True):
        values = np.concatenate([each[which].values.ravel() for each in summary.elements.values()])
        values = np.append(values[values <= MOST[which]], limit)
        ax.axvline(limit, color=GREY, ls="--", lw=1)
        ax.set_xlabel(TITLES[which])
        ax.spines[["top", "right"]].set_visible(False)
        (_scale_r_hat if which == "r_hat" else _scale_ess)(ax, values)


def _scale_r_hat(ax: Axes, values: NDArray[np.float64]) -> None:
    right = 1 + 1.5 * (values.max() - 1)
    ticks = [tick for tick in R_HAT_TICKS if tick < right]
    ax.set_xscale("function", functions=(_log_above_one, _from_log_above_one))
    ax.set_xlim(R_HAT_TICKS[0], right)
    ax.set_xticks(ticks, [f"≤ {ticks[0]:g}", *(f"{tick:g}" for tick in ticks[1:])])


def _scale_ess(ax: Axes, values: NDArray[np.float64]) -> None:
    low, high = min(values.min() / 1.5, 90), max(values.max() * 1.5, 1100)
    ticks = [tick for tick in ESS_TICKS if low < tick < high]
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.set_xticks(ticks, [f"{tick:,}".replace(",", " ") for tick in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())


def _log_above_one(r_hat: NDArray[np.float64]) -> NDArray[np.float64]:
    log: NDArray[np.float64] = np.log(np.maximum(np.asarray(r_hat), R_HAT_TICKS[0]) - 1)
    return log


def _from_log_above_one(log: NDArray[np.float64]) -> NDArray[np.float64]:
    r_hat: NDArray[np.float64] = 1 + np.exp(log)
    return r_hat


def _draw_traces(row: NDArray[Any], traces: Mapping[str, xr.DataArray]) -> None:
    """Draw three numbers, a line for each chain."""
    for ax, (name, draws) in zip(row, traces.items(), strict=True):
        for k, chain in enumerate(draws.values):
            style = {"color": COLOURS[k % len(COLOURS)], "lw": 0.6, "alpha": 0.8}
            ax.plot(np.arange(chain.size), chain, **style)
        ax.set_title(shorten(name), fontsize="medium")
        ax.set_xlabel("draw")
        ax.margins(x=0)
        ax.spines[["top", "right"]].set_visible(False)
