"""Which columns trees split on, alone and together (floor 2)."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_xbart.diagnostics.columns import COLUMN, OTHER_COLUMN, label, names_of, read_all
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.kernels import count_meetings
from pymc_xbart.kernels.records import NO_COLUMN

MAX_PAIRS = 3e8  # numbers, of 12 bytes with their shares


def variable_inclusion(
    idata: Any, *, var_name: str | None = None, draws: int | None = None
) -> xr.Dataset:
    """How often the trees of each draw split on each column.

    The more trees there are, the more of their splits go to columns that say nothing: a forest of
    few trees, 10 or 20, tells them apart best. Columns that say the same share their splits.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        With the dims of the draws and ``column``, (chain, draw, column), or (chain, draw, k,
        column) for a variable of shape (k, n). Columns without names are numbered from 0.

        - ``count``: splits on the column
        - ``share``: of all splits of the draw, in [0, 1]. NaN in a draw without any split, which
          xarray leaves out of means and quantiles

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws.

    References
    ----------
    Chipman, George & McCulloch (2010). BART: Bayesian additive regression trees, section 3.2 (use)
    and 5.2 (example). Annals of Applied Statistics 4, 266-298.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 3))
    >>> y = 3 * X[:, 0] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> inclusion = pxb.variable_inclusion(idata)
    >>> int(inclusion["share"].mean(("chain", "draw")).idxmax())
    0
    """
    found = find_draws(idata, var_name, draws)
    names = names_of(found)
    counts = np.array(
        [
            [
                np.bincount(column[column != NO_COLUMN], minlength=len(names))
                for column in (stored.forest.column for stored in draw.forests)
            ]
            for draw in read_all(found)
        ]
    )
    count = label(found, counts, {COLUMN: names}, of_each_forest=True)
    total = count.sum(COLUMN)
    return xr.Dataset({"count": count, "share": count / total.where(total > 0)})


def interaction_inclusion(
    idata: Any, *, var_name: str | None = None, draws: int | None = None
) -> xr.Dataset:
    """How many trees of each draw use two columns together.

    A tree does if a split on one lies somewhere below a split on the other, so that some row meets
    both. Where no tree does, f is additive in the two: it has no interaction of them at all. The
    reverse does not hold, since two such splits need not make more than a sum.

    Parameters
    ----------
    idata, var_name, draws
        See `variable_inclusion`.

    Returns
    -------
    xarray.Dataset
        With the dims of the draws, ``column`` and ``column2``, symmetric in these:
        (chain, draw, column, column2), or (chain, draw, k, column, column2) for a variable of shape
        (k, n). On the diagonal, trees that split on a column twice along a path.

        - ``count``: trees that use both, int32
        - ``share``: of all trees, in [0, 1]

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, or their pairs are too many to hold.

    References
    ----------
    Kapelner & Bleich (2016). bartMachine: machine learning with Bayesian additive regression trees.
    Journal of Statistical Software 70(4), whose ``interaction_investigator`` counts the same.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.choice([-1, 1], size=(100, 3))
    >>> y = 3 * X[:, 0] * X[:, 1] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> together = pxb.interaction_inclusion(idata)["share"].mean(("chain", "draw"))
    >>> bool(together.sel(column=0, column2=1) > together.sel(column=0, column2=2))
    True
    """
    found = find_draws(idata, var_name, draws)
    names = names_of(found)
    first = found.first
    _check_size(found.text.size * len(first.forests), len(names))
    counts = np.empty((found.text.size, len(first.forests), len(names), len(names)), np.int32)
    for d, draw in enumerate(read_all(found)):
        for k, stored in enumerate(draw.forests):
            counts[d, k] = count_meetings(stored.forest, len(names))
    count = label(found, counts, {COLUMN: names, OTHER_COLUMN: names}, of_each_forest=True)
    num_trees = first.forests[0].forest.tree_start.size - 1
    return xr.Dataset({"count": count, "share": count / num_trees})


def _check_size(num_forests: int, num_columns: int) -> None:
    if num_forests * num_columns**2 > MAX_PAIRS:
        msg = (
            f"{num_columns} columns make {num_columns**2} pairs, of which {num_forests} draws take "
            f"{12e-9 * num_forests * num_columns**2:.2g} GB. Pass `draws` to use fewer of them."
        )
        raise ValueError(msg)
