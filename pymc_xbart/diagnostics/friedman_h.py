"""`friedman_h`: how much of f is interaction (floor 2).

With F_S the partial dependence on the columns S at the values of a sample of rows, less its mean
over them, columns j and k do not interact if F_jk = F_j + F_k, and column j with no other if
F = F_j + F_rest. H is the root mean square of the difference of both sides, over that of the left
one. Trees that do not split on both sides' columns cancel out of the difference, so that only few
are looked at.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import COLUMN, OTHER_COLUMN, label, names_of, read_all
from pymc_xbart.diagnostics.grid import read_columns
from pymc_xbart.diagnostics.held import Held, mean_over_rows, some_trees, splits_of_trees
from pymc_xbart.diagnostics.profiles import choose_rows
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.views import Seen, see

NUM_ROWS = 200
# What differences between sums over trees can be for rounding alone, in parts of what leaves add up
# to. Where columns do not matter at all, it would be divided by itself.
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

        overall : of each column with all others together, (chain, draw, column)
        pair : of each column with each other one, (chain, draw, column, column2), symmetric, NaN
            where both are the same

        H is 0 without interaction, and 1 if a pair says nothing but together; it can exceed 1 where
        columns depend on each other. It is the root of the H squared of the reference. Where f does
        not depend on the columns at all, it is 0.

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
    num_columns = table.X.shape[1]
    if num_columns < 2:
        msg = "X has one column, and an interaction needs two."
        raise ValueError(msg)
    items, _ = read_columns(columns, table)
    chosen = list(dict.fromkeys(v for item in items for v in item))
    sample = table.X[choose_rows(rows, table.X.shape[0])]
    seen = see(sample, found.first.is_categorical)
    strengths = [
        [
            _Interactions(forest, seen, num_columns).among(chosen, relative)
            for forest in draw.forests
        ]
        for draw in read_all(found)
    ]
    names = [names_of(found)[v] for v in chosen]
    overall, pair = (np.array([[h[i] for h in draw] for draw in strengths]) for i in (0, 1))
    coords = {COLUMN: names, OTHER_COLUMN: names}
    return xr.Dataset(
        {
            "overall": label(found, overall, {COLUMN: names}, of_each_forest=True),
            "pair": label(found, pair, coords, of_each_forest=True),
        }
    )


class _Strengths(NamedTuple):
    overall: NDArray[np.float64]  # (columns,)
    pair: NDArray[np.float64]  # (columns, columns)


class _Interactions:
    """Interactions in one forest, at rows that stand for their distribution."""

    def __init__(self, stored: StoredForest, seen: Seen, num_columns: int) -> None:
        self.stored = stored
        self.seen = seen
        self.num_columns = num_columns
        self.splits = splits_of_trees(stored, num_columns)

    def among(self, chosen: list[int], relative: bool) -> _Strengths:
        """H of each of some columns, and of each pair."""
        rest = [[u for u in range(self.num_columns) if u != v] for v in chosen]
        whole = self.dependence(range(self.num_columns))
        interactions = [
            self.interaction([v], others) for v, others in zip(chosen, rest, strict=True)
        ]
        overall = np.array([_share(each, whole, relative) for each in interactions])
        alone = [self.dependence([v]) for v in chosen]
        pair = np.full((len(chosen), len(chosen)), np.nan)
        for a, b in combinations(range(len(chosen)), 2):
            interaction = self.interaction([chosen[a]], [chosen[b]])
            share = _share(interaction, alone[a] + alone[b] + interaction, relative)
            pair[a, b] = pair[b, a] = share
        return _Strengths(overall, pair)

    def dependence(
        self, columns: Sequence[int], is_wanted: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """F of some columns, of all trees or some, (rows,)."""
        if is_wanted is None:
            is_wanted = self.splits[:, columns].any(axis=1)
        is_held = np.isin(np.arange(self.num_columns), columns)
        f = mean_over_rows(some_trees(self.stored, is_wanted), Held(is_held, self.seen, self.seen))
        return f - f.mean()

    def interaction(self, some: list[int], others: list[int]) -> NDArray[np.float64]:
        """F of both less F of either, (rows,)."""
        both = self.splits[:, some].any(axis=1) & self.splits[:, others].any(axis=1)
        if not both.any():
            return np.zeros(self.seen.rows.shape[1])
        f = self.dependence([*some, *others], both)
        f = f - self.dependence(some, both) - self.dependence(others, both)
        return f if abs(f).max() > ROUNDING * abs(self.stored.forest.value).sum() else 0.0 * f


def _share(interaction: NDArray[np.float64], whole: NDArray[np.float64], relative: bool) -> float:
    size = float(np.sqrt(np.mean(interaction**2)))
    if not relative or size == 0.0:
        return size
    return size / float(np.sqrt(np.mean(whole**2)))
