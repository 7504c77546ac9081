"""`trees`: stored trees as a table (floor 1)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.draws import Draws, find_draws
from pymc_xbart.forest.stored import StoredDraw, StoredForest, read_draw
from pymc_xbart.forest.views import place_in_order, place_missing

if TYPE_CHECKING:
    import pandas as pd

Labels = int | Sequence[int] | None


def trees(
    idata: Any,
    var_name: str | None = None,
    *,
    chain: Labels = None,
    draw: Labels = None,
    tree: Labels = None,
) -> "pd.DataFrame":
    """Trees of a forest as a table with one line for each node.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    var_name : str, optional
        Name of the forest; needed if there are several.
    chain, draw : int or sequence of int, optional
        Labels of the chains and draws to read; all by default.
    tree : int or sequence of int, optional
        Numbers of the trees to read, from 0; all by default.

    Returns
    -------
    pandas.DataFrame
        With the columns

        - ``chain``, ``draw``: label of the draw (those dimensions that the draws have)
        - ``forest``: number of the forest, where the variable holds several
        - ``tree``: number of the tree, from 0
        - ``node``, ``parent``: number of the node in its tree, and of its parent; level by level,
          from 0 at the root, whose parent is -1
        - ``depth``: 0 at the root
        - ``column``: name of the column that a split looks at, its number where columns have no
          names; missing at leaves
        - ``cut``: in the units of X; rows with x <= cut go to the left child. NaN at leaves; where
          a column holds categories, their numbers, or a place in one of their orders
        - ``categories``: those that go to the left child, as a tuple, where a column has labels for
          them
        - ``missing``: "left" or "right", where rows without a value went, if the column had some
        - ``left``, ``right``: nodes that rows go to; -1 at leaves
        - ``rows``: rows of X, those that the forest was grown on, in the node
        - ``value``: what a leaf adds to f; NaN at splits

        f is the sum of the values of the leaves that a row reaches, plus the prior mean mu, which
        is the table's ``attrs["mu"]``: a list, one for each forest, where there are several.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such trees.
    """
    import pandas as pd

    draws = find_draws(idata, var_name)
    for dim, labels in (("chain", chain), ("draw", draw)):
        draws = draws._replace(text=_select(draws.text, dim, labels))
    parts = []
    mu: float | list[float] = np.nan
    for place in np.ndindex(draws.text.shape):
        stored = read_draw(str(draws.text.values[place]))
        mu = [forest.mu for forest in stored.forests] if stored.batch else stored.forests[0].mu
        for k, forest in enumerate(stored.forests):
            nodes = _table(forest, stored, draws, tree)
            if stored.batch:
                nodes = {"forest": np.full(nodes["node"].size, k)} | nodes
            size = nodes["node"].size
            parts.append(_labels(draws.text[place], size) | nodes)
    names = list(parts[0])
    table = pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in names})
    # One type and one way to be missing, whatever is in it: pandas would choose by the content.
    for name in ("column", "categories", "missing"):
        table[name] = table[name].astype(object).where(table[name].notna(), None)
    table.attrs["mu"] = mu
    return table


def _select(text: Any, dim: str, labels: Labels) -> Any:
    """Select draws by label; a single label keeps its dimension."""
    if labels is None:
        return text
    if dim not in text.dims:
        msg = f"{dim} is {labels!r}, but these draws have no dimension {dim!r}. Leave it out."
        raise ValueError(msg)
    wanted = np.atleast_1d(labels)
    if wanted.size == 0:
        msg = f"{dim} is empty. Name at least one, or leave it out for all of them."
        raise ValueError(msg)
    known = text.coords[dim].values if dim in text.coords else np.arange(text.sizes[dim])
    missing = [label for label in wanted.tolist() if label not in known]
    if missing:
        msg = f"There is no {dim} {missing[0]!r}: they run from {known.min()} to {known.max()}."
        raise KeyError(msg)
    return text.isel({dim: [int(np.flatnonzero(known == label)[0]) for label in wanted]})


def _labels(draw: Any, size: int) -> dict[str, NDArray[Any]]:
    """Chain and draw, as far as a draw has these labels, for each of its nodes."""
    return {
        dim: np.full(size, draw.coords[dim].item())
        for dim in ("chain", "draw")
        if dim in draw.coords
    }


def _sides(stored: StoredForest, draw: StoredDraw, draws: Draws) -> dict[str, NDArray[Any]]:
    """Categories that go left, and where missing values go, at each node."""
    column, view, cut = stored.forest.column, stored.view, stored.cut_value
    categories, missing = np.full((2, column.size), None, object)
    labels = draws.schema.labels or [None] * draw.num_columns
    for node in np.flatnonzero(column >= 0):
        known = labels[column[node]]
        values = np.array([np.nan, *range(len(known or ()))])
        place = place_in_order if draw.is_categorical[column[node]] else place_missing
        goes_left, *are_left = place(values, view[node]) <= cut[node]
        if known is not None:
            pairs = zip(known, are_left, strict=True)
            categories[node] = tuple(label for label, is_left in pairs if is_left)
        if draw.has_missing[column[node]]:
            missing[node] = "left" if goes_left else "right"
    return {"categories": categories, "missing": missing}


def _table(
    stored: StoredForest, draw: StoredDraw, draws: Draws, tree: Labels
) -> dict[str, NDArray[Any]]:
    """Nodes of one forest, by name of the table's column."""
    _, forest, _, cut_value, rows = stored
    sizes = np.diff(forest.tree_start)
    number = np.repeat(np.arange(sizes.size), sizes)
    start = np.repeat(forest.tree_start[:-1], sizes)
    node = np.arange(number.size) - start
    is_split = forest.left >= 0
    parent = np.full(number.size, -1)
    depth = np.zeros(number.size, np.int64)
    rows = rows.copy()
    splits = np.flatnonzero(is_split)
    children = start[splits] + forest.left[splits]
    for child in (children, children + 1):
        parent[child] = node[splits]
    for split, child in zip(splits, children, strict=True):  # parents come before their children
        depth[child : child + 2] = depth[split] + 1
    for split, child in zip(splits[::-1], children[::-1], strict=True):
        rows[split] = rows[child] + rows[child + 1]
    names = draws.schema.columns
    column = np.full(number.size, None, object)
    column[splits] = [names[v] if names else int(v) for v in forest.column[splits]]
    table = {
        "tree": number,
        "node": node,
        "parent": parent,
        "depth": depth,
        "column": column,
        "cut": cut_value,
        **_sides(stored, draw, draws),
        "left": np.where(is_split, forest.left, -1),
        "right": np.where(is_split, forest.left + 1, -1),
        "rows": rows,
        "value": np.where(is_split, np.nan, forest.value),
    }
    if tree is None:
        return table
    wanted = np.atleast_1d(tree)
    if not np.isin(wanted, np.arange(sizes.size)).all():
        msg = f"There is no tree {tree!r}: the forest has {sizes.size}, counted from 0."
        raise KeyError(msg)
    is_wanted = np.isin(number, wanted)
    return {name: values[is_wanted] for name, values in table.items()}
