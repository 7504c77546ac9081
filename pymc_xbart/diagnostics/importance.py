"""`variable_importance`: how many columns it takes to say what the forest says (floor 2)."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_xbart.diagnostics.columns import COLUMN, label, names_of
from pymc_xbart.diagnostics.submodels import (
    Submodels,
    make_submodels,
    r2_of_neighbours,
    r2_of_submodel,
    splits_of_columns,
)
from pymc_xbart.forest.draws import evenly_spaced, find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from pymc_xbart.forest.prior import check_choice, whole_number

METHODS = ("forward", "backward", "inclusion")


def variable_importance(
    idata: Any,
    X: Any,
    *,
    method: str = "forward",
    var_name: str | None = None,
    draws: int | None = 50,
    max_rows: int = 500,
    max_searched: int = 40,
) -> xr.Dataset:
    """Order columns by how much of f they explain, and see how many of them are enough.

    A submodel keeps some columns of the fitted forest and averages the others out: at a split on
    one of these both children count, by the share of the rows of the fit that went there. Nothing
    is fitted again.

    R^2 is the squared correlation over rows between a draw of the submodel and another draw of the
    whole forest, half the draws further on. The ``reference`` is that between the two draws of the
    whole forest. A submodel whose R^2 has come up to the reference says as much as the whole does.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (m, p)
        Rows to compare at, as for `predict`; those of the fit as a rule.
    method : {"forward", "backward", "inclusion"}
        How columns are ordered: "forward" begins with none and takes in, time and again, the one
        with which R^2 (mean of the draws) is largest; "backward" begins with all and leaves out the
        one without which it is largest; "inclusion" goes by the number of splits on a column. What
        columns say only together is seen by "backward" at once, by "forward" late.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional, default 50
        How many draws of each chain to use, evenly spaced; all for None.
    max_rows : int, default 500
        Rows of X to use, evenly spaced, if it has more.
    max_searched : int, default 40
        A search is among so many columns, those with the most splits; the others come behind, in
        the order of their splits.

    Returns
    -------
    xarray.Dataset
        Columns come in order of importance.

        - ``r2``: (chain, draw, column), of the submodel of this column and those before it, in [0,
          1]; 0 if it is constant
        - ``reference``: (chain, draw)

        The coordinate ``num_columns`` counts the columns of each submodel, from 1. Of a variable of
        shape (k, n) all forests are taken together, each about its own mean.

    Raises
    ------
    KeyError, TypeError, ValueError
        If X does not fit the forest, there are fewer than two draws, or no draws at all.

    Notes
    -----
    A search takes one step for each column. A step evaluates each tree once for each column that
    the tree splits on, at every draw and row, so that the time grows with
    draws x rows x nodes x columns, not with its square.

    pymc-bart's ``compute_variable_importance`` has the methods "VI" (here "inclusion"), "backward",
    and "backward_VI" (here "backward" with `max_searched`).

    References
    ----------
    Quiroga, Garay, Alonso, Loyola & Martin (2023). Bayesian additive regression trees for
    probabilistic programming. arXiv:2206.03619 (submodels).

    Friedman (2001). Greedy function approximation. Annals of Statistics 29, section 8.2 (weighted
    traversal).

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 3))
    >>> y = 3 * X[:, 0] + X[:, 2] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> importance = pxb.variable_importance(idata, X)
    >>> importance["column"].values
    array([0, 2, 1])
    """
    check_choice(method, "method", METHODS)
    max_searched = whole_number(max_searched, "max_searched")
    found = find_draws(idata, var_name, draws)
    if found.text.size < 2:
        msg = "There is one draw only, but R^2 compares draws with each other. Pass at least two."
        raise ValueError(msg)
    matrix = read_new_rows(X, found).X
    matrix = matrix[evenly_spaced(matrix.shape[0], whole_number(max_rows, "max_rows"))]
    submodels = make_submodels(found, matrix)
    order = _order_columns(submodels, method, max_searched)
    steps = range(1, len(order) + 1)
    r2 = np.column_stack([r2_of_submodel(submodels, order[:step]) for step in steps])
    names = names_of(found)
    importance = xr.Dataset(
        {
            "r2": label(found, r2, {COLUMN: [names[v] for v in order]}),
            "reference": label(found, r2[:, -1]),  # with all columns,
        }
    )
    return importance.assign_coords(num_columns=(COLUMN, np.array(steps)))


def _order_columns(submodels: Submodels, method: str, max_searched: int) -> list[int]:
    """Columns, the most important first."""
    by_splits: list[int] = np.argsort(-splits_of_columns(submodels), stable=True).tolist()
    searched, others = by_splits[:max_searched], by_splits[max_searched:]
    if method == "forward":
        searched = _search_forward(submodels, searched)
    elif method == "backward":
        searched = _search_backward(submodels, searched)
    return searched + others


def _search_forward(submodels: Submodels, columns: list[int]) -> list[int]:
    """Order columns by taking in the best of the rest; of equals, the first."""
    order: list[int] = []
    rest = list(columns)
    while rest:
        r2 = r2_of_neighbours(submodels, order, rest).mean(axis=0)
        order.append(rest.pop(int(r2.argmax())))
    return order


def _search_backward(submodels: Submodels, columns: list[int]) -> list[int]:
    """Order columns by leaving out what is missed least; of equals, the last."""
    left_out: list[int] = []
    rest = columns[::-1]
    while rest:
        r2 = r2_of_neighbours(submodels, rest, rest).mean(axis=0)
        left_out.append(rest.pop(int(r2.argmax())))
    return left_out[::-1]
