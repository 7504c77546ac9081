"""`plot_tree`: one tree as a figure (floor 3)."""

import math
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from pymc_xbart.diagnostics.columns import names_of
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.inspection import trees

MAX_NAME = 18  # characters of a column's name; more would run into the neighbour
INCHES_A_LEAF, INCHES_A_LEVEL = 1.15, 1.1
LARGEST_WHOLE = 1e9
COLOURS = "PuOr"  # two colours that colour-blind readers can tell apart, white between


def plot_tree(
    idata: Any,
    var_name: str | None = None,
    *,
    chain: int | None = None,
    draw: int | None = None,
    tree: int = 0,
    forest: int = 0,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one tree of a stored forest.

    A split shows its condition, and the rows that meet it go left; cuts of dates are dates. A leaf
    shows what it adds to f, on the scale of f, and is coloured by it. Both show how many rows of
    the fit they hold.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned.
    var_name : str, optional
        Name of the forest; needed if there are several.
    chain, draw : int, optional
        Labels of the chain and of the draw; by default chain 0, and the last draw.
    tree : int, default 0
        Number of the tree.
    forest : int, default 0
        Number of the forest in a variable of shape (k, n).
    figsize : tuple of float, optional
        Inches; by default as wide as the leaves, and as high as the levels, ask for.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    dims = (idata["sample_stats"] if hasattr(idata, "children") else idata).dims
    if draw is None and "draw" in dims:  # by its place: runs put together have labels twice
        idata = idata.isel(draw=[-1])
    if chain is None and "chain" in dims:
        chain = 0
    nodes = trees(idata, var_name, chain=chain, draw=draw, tree=tree)
    origin = [f"{dim} {nodes[dim].iloc[0]}" for dim in ("chain", "draw") if dim in nodes]
    num_forests = int(nodes["forest"].max()) + 1 if "forest" in nodes else 1
    if forest not in range(num_forests):
        msg = f"forest is {forest}, but the variable has {num_forests}, counted from 0."
        raise ValueError(msg)
    if "forest" in nodes:
        nodes = nodes[nodes["forest"] == forest]
    if not nodes["node"].is_unique:
        msg = "These are several draws. Select one, for instance idata.isel(sample=[0])."
        raise ValueError(msg)
    nodes = nodes.set_index("node")
    x = _positions(nodes)
    if ax is None:
        num_leaves = int((nodes["left"] < 0).sum())
        size = (
            max(3.0, INCHES_A_LEAF * num_leaves),
            INCHES_A_LEVEL * (1.2 + float(nodes["depth"].max())),
        )
        _, ax = plt.subplots(figsize=figsize or size, layout="constrained")
    found = find_draws(idata, var_name, 1)
    names = names_of(found)
    dates = {names[v] for v in found.schema.dates or ()}
    _draw(ax, nodes, x, dates, {names[v] for v in found.first.categorical})
    origin = [*([f"forest {forest}"] if num_forests > 1 else []), *origin]
    title = f"tree {tree} of {', '.join(origin)}" if origin else f"tree {tree}"
    ax.set_title(title, fontsize="medium")
    return ax


def _positions(nodes: pd.DataFrame) -> dict[int, float]:
    """Place leaves side by side, and splits in the middle above their children."""
    x: dict[int, float] = {}
    waiting = [0]
    order = []
    while waiting:
        node = waiting.pop()
        order.append(node)
        if nodes.at[node, "left"] < 0:
            x[node] = len(x)
        else:
            waiting += [nodes.at[node, "right"], nodes.at[node, "left"]]
    for node in reversed(order):
        if node not in x:
            x[node] = 0.5 * (x[nodes.at[node, "left"]] + x[nodes.at[node, "right"]])
    return x


def _draw(
    ax: Axes, nodes: pd.DataFrame, x: dict[int, float], dates: set[Any], categories: set[Any]
) -> None:
    largest = float(nodes["value"].abs().max()) or 1.0
    norm = TwoSlopeNorm(0.0, -largest, largest)
    colours = plt.get_cmap(COLOURS)
    for node, line in nodes.iterrows():
        y = -float(line["depth"])
        for child, answer in ((line["left"], "yes"), (line["right"], "no")):
            if child >= 0:
                ax.plot([x[node], x[child]], [y, y - 1], color="0.6", lw=1, zorder=1)
                if node == 0:
                    at = 0.5 * (x[node] + x[child]), y - 0.5
                    ax.text(
                        *at,
                        answer,
                        ha="center",
                        va="center",
                        fontsize="small",
                        color="0.35",
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                    )
        if line["left"] >= 0:
            column = line["column"]
            condition = _condition(line, is_date=column in dates, is_nominal=column in categories)
            text, face, ink = f"{_short(line['column'])}\n{condition}", "white", "black"
        else:
            face = colours(norm(line["value"]))
            ink = "white" if abs(line["value"]) > 0.75 * largest else "black"
            text = f"{line['value']:+.3g}"
        text += f"\n{line['rows']} row{'s' if line['rows'] != 1 else ''}"
        box = {"boxstyle": "round", "facecolor": face, "edgecolor": "0.6"}
        ax.text(x[node], y, text, ha="center", va="center", fontsize="small", color=ink, bbox=box)
    ax.set_xlim(-0.6, max(x.values()) + 0.6)
    ax.set_ylim(-float(nodes["depth"].max()) - 0.5, 0.5)
    ax.set_axis_off()


def _condition(split: pd.Series, *, is_date: bool, is_nominal: bool) -> str:
    """What holds for the rows that go left."""
    if split["cut"] == -math.inf:
        return "is missing"
    or_missing = " or missing" if split["missing"] == "left" else ""
    if split["categories"] is not None:
        return f"in {{{_short(', '.join(split['categories']))}}}{or_missing}"
    if is_nominal:  # numbers stand for them, and the cut is a place in one of their orders
        return f"some categories{or_missing}"
    cut = _text_of_date(split["cut"]) if is_date else _text_of_number(split["cut"])
    return f"≤ {cut}{or_missing}"


def _text_of_number(cut: float) -> str:
    """A cut is a value of the column: a whole number is told as such."""
    is_whole = cut == int(cut) and abs(cut) < LARGEST_WHOLE
    return f"{cut:.0f}" if is_whole else f"{cut:.4g}"


def _text_of_date(seconds: float) -> str:
    """Day, and the time of it unless that is midnight."""
    time = pd.Timestamp(seconds, unit="s")
    return f"{time:%Y-%m-%d}" if time == time.normalize() else f"{time:%Y-%m-%d %H:%M}"


def _short(name: Any) -> str:
    text = name if isinstance(name, str) else f"column {name}"
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
