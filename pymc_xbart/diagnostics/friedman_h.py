"""`friedman_h`: how much of f is interaction (floor 2).

With F_S the partial dependence on the columns S at the values of a sample of rows, less its mean
over them, columns j and k do not interact if F_jk = F_j + F_k, and column j with no other if
F = F_j + F_rest. H is the root mean square of the difference of both sides, over that of the left
one. Trees that do not split on both cancel out of the difference, so that few are looked at.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import COLUMN, OTHER_COLUMN, label, read_all
from pymc_xbart.diagnostics.grid import read_columns
from pymc_xbart.diagnostics.held import Held, means_of_trees
from pymc_xbart.diagnostics.profiles import choose_rows
from pymc_xbart.diagnostics.selection import some_trees, splits_of_trees
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.views import Seen, see

NUM_ROWS = 200
# of a difference between sums over trees, in parts of what all leaves add up to
ROUNDING = 16 * np.finfo(np.float64).eps


def friedman_h(
    idata: Any,
    X: Any,
    columns: Any = None,
    *,
    relative: bool = True,
    rows: int | Sequence[int] | None = NUM_ROWS,
    var_name: str | None = None,
    draws: int | None = None,
) -> xr.Dataset:
    """Friedman's H: the share of interaction in what columns do to f.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p)
        As `predict` takes it; p >= 2.
    columns : int, str or list, optional
        Names or numbers of columns; all by default, whose pairs take a while if they are many.
    relative : bool, default True
        Whether to divide by what the columns do altogether. Without, it is the root mean square of
        the interaction on the scale of f. Columns that do next to nothing can have a high share:
        look at both.
    rows : int or sequence of int, default 200
        How many rows of X to average over, evenly spaced, or their numbers. All for None. The time
        goes with it.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        By draw, and by forest for a variable of shape (k, n):

        - ``overall``: of each column with all others together, (chain, draw, column)
        - ``pair``: of each column with each other one, (chain, draw, column, column2), symmetric,
          NaN where both are the same

        H is 0 without interaction, and 1 if two columns matter only together; it can exceed 1 where
        columns depend on each other. Where f does not depend on them at all, it is 0. The reference
        defines its square.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, X has other columns, there are no such columns, or X has only
        one.

    References
    ----------
    Friedman & Popescu (2008). Predictive learning via rule ensembles, section 8.1. Annals of
    Applied Statistics 2, 916-954.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 3))
    >>> y = 4 * (X[:, 0] > 0.5) * (X[:, 1] > 0.5) + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> h = pxb.friedman_h(idata, X)
    >>> int(h["pair"].mean(("chain", "draw")).sel(column=0).idxmax())
    1
    """
    found = find_draws(idata, var_name, draws)
    table = read_new_rows(X, found)
    if table.X.shape[1] < 2:
        msg = "X has one column, and an interaction needs two."
        raise ValueError(msg)
    items, _ = read_columns(columns, table)
    chosen = list(dict.fromkeys(v for item in items for v in item))
    sample = table.X[choose_rows(rows, table.X.shape[0])]
    seen = see(sample, found.first.is_categorical)
    strengths = [
        [_Forest(forest, seen).strengths(chosen, relative) for forest in draw.forests]
        for draw in read_all(found)
    ]
    names = [table.names[v] if table.names else v for v in chosen]
    overall, pair = (np.array([[h[i] for h in draw] for draw in strengths]) for i in (0, 1))
    coords = {COLUMN: names, OTHER_COLUMN: names}
    return xr.Dataset(
        {
            "overall": label(found, overall, {COLUMN: names}, of_each_forest=True),
            "pair": label(found, pair, coords, of_each_forest=True),
        }
    )


class _Forest:
    """Partial dependence of each tree of one forest, at rows that stand for their distribution."""

    def __init__(self, stored: StoredForest, seen: Seen) -> None:
        self.stored = stored
        self.seen = seen
        self.num_columns = seen.place.shape[0]
        self.splits = splits_of_trees(stored, self.num_columns)
        self.every_tree = np.ones(self.splits.shape[0], np.bool_)
        self.whole = self.dependence(list(range(self.num_columns)), self.every_tree)

    def dependence(self, columns: list[int], is_wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """F of some columns, for each of some trees, (trees, rows)."""
        is_held = np.zeros(self.num_columns, np.bool_)
        is_held[columns] = True
        held = Held(is_held, self.seen, self.seen)
        f = means_of_trees(some_trees(self.stored, is_wanted), held)
        return f - f.mean(axis=1, keepdims=True)

    def strengths(
        self, chosen: list[int], relative: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """H of each of some columns, (columns,), and of each two, (columns, columns)."""
        alone = {v: self.dependence([v], self.every_tree) for v in chosen}
        overall = np.array([self._overall(v, alone[v], relative) for v in chosen])
        pair = np.full((len(chosen), len(chosen)), np.nan)
        for (a, u), (b, v) in combinations(enumerate(chosen), 2):
            pair[a, b] = pair[b, a] = self._pair((u, alone[u]), (v, alone[v]), relative)
        return overall, pair

    def _overall(self, v: int, alone: NDArray[np.float64], relative: bool) -> float:
        rest = [u for u in range(self.num_columns) if u != v]
        both = self.splits[:, v] & self.splits[:, rest].any(axis=1)
        interaction = (self.whole - alone)[both] - self.dependence(rest, both)
        return self._share(interaction.sum(axis=0), self.whole.sum(axis=0), relative)

    def _pair(
        self,
        one: tuple[int, NDArray[np.float64]],
        other: tuple[int, NDArray[np.float64]],
        relative: bool,
    ) -> float:
        (u, of_u), (v, of_v) = one, other
        both = self.splits[:, u] & self.splits[:, v]
        if not both.any():
            return 0.0
        alone = of_u + of_v
        interaction = (self.dependence([u, v], both) - alone[both]).sum(axis=0)
        return self._share(interaction, alone.sum(axis=0) + interaction, relative)

    def _share(
        self, interaction: NDArray[np.float64], whole: NDArray[np.float64], relative: bool
    ) -> float:
        """Size of the interaction, or its share of the whole; 0 if it is nothing but rounding.

        Where columns do not matter at all, rounding would be divided by itself.
        """
        size = float(np.sqrt(np.mean(interaction**2)))
        if size <= ROUNDING * abs(self.stored.forest.value).sum():
            return 0.0
        return size / float(np.sqrt(np.mean(whole**2))) if relative else size
