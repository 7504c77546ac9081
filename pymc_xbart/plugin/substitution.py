"""A result of `pm.sample` as if its forests had been evaluated at the model's current X (floor 2).

Every draw of a forest is computed from that draw's trees, and takes the place of what was stored.
What depends on it must be computed anew, and is left out, so that PyMC does so.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_xbart.forest.draws import Draws, find_draws, stored_forests
from pymc_xbart.forest.prediction import evaluate_draws
from pymc_xbart.forest.stored import digest_of_rows
from pymc_xbart.plugin.random_variable import forest_inputs
from pymc_xbart.plugin.target import is_forest


def substitute_forests(
    idata: Any, model: Model, keep: Collection[str] = (), num_threads: int = 1
) -> xr.DataTree:
    """Evaluate all forests of a model for every draw.

    Parameters
    ----------
    idata : xarray.DataTree
        With trees of each of the model's forests, and posterior draws of everything else.
    model : pymc.Model
        Its X may have been replaced since.
    keep : collection of str, optional
        Variables that keep their draws although a forest they depend on is another now.
    num_threads : int, default 1

    Returns
    -------
    xarray.DataTree
        Without what depends on forests: deterministics, and random variables where X has changed.
    """
    _check_tree(idata)
    rvs = forests_of(model)
    found = {rv: find_draws(idata, rv.name) for rv in rvs if _is_stored(rv, idata)}
    values = {rv: _evaluate(rv, draws, model, num_threads) for rv, draws in found.items()}
    changed = {rv for rv, draws in found.items() if _has_changed(rv, draws)}
    gone = {str(v.name) for v in model.deterministics if _depends(v, rvs)}
    gone |= {str(v.name) for v in model.free_RVs if v not in rvs and _depends(v, changed)}
    gone -= set(keep)
    posterior = idata["posterior"].to_dataset()
    posterior = without(posterior, {*gone, *(str(rv.name) for rv in rvs)})
    for f in values.values():
        posterior[f.name] = f
    return with_posterior(idata, posterior)


def forests_of(model: Model) -> list[Variable]:
    """Forest variables of a model."""
    return [rv for rv in model.free_RVs if is_forest(rv)]


def with_posterior(idata: xr.DataTree, posterior: xr.Dataset) -> xr.DataTree:
    """The same data beside other draws."""
    groups = {"posterior": posterior}
    for name in ("observed_data", "constant_data"):  # PyMC looks up there what data has changed
        if name in idata.children:
            groups[name] = idata[name].to_dataset()
    return xr.DataTree.from_dict(groups)


def _check_tree(idata: Any) -> None:
    if not isinstance(idata, xr.DataTree) or "posterior" not in idata.children:
        what = "has no group 'posterior'" if isinstance(idata, xr.DataTree) else "is none"
        msg = (
            "idata must be the xarray.DataTree that pm.sample returns, with the groups 'posterior' "
            f"and 'sample_stats', but this {type(idata).__name__} {what}."
        )
        raise TypeError(msg)


def _is_stored(rv: Variable, idata: xr.DataTree) -> bool:
    """Whether there are trees of a forest; refuse to go on without."""
    stored = stored_forests(idata)
    if rv.name not in stored:
        msg = (
            f"idata holds no trees of the forest {rv.name!r}"
            + (f", only of: {', '.join(stored)}." if stored else ".")
            + " Sample the model with XBARTStep, and store_trees left at True."
        )
        raise KeyError(msg)
    return True


def _evaluate(rv: Variable, draws: Draws, model: Model, num_threads: int) -> xr.DataArray:
    """Draws of one forest at the model's current X, with the model's dims and coords."""
    X = forest_inputs(rv).X
    first = draws.first
    if X.shape[1] != first.num_columns:
        msg = (
            f"X of the forest {rv.name!r} has {X.shape[1]} column(s) now, but the stored trees "
            f"were grown on {first.num_columns}. Pass the same columns in the same order."
        )
        raise ValueError(msg)
    texts = [str(text) for text in draws.text.values.flat]
    f = evaluate_draws(texts, np.ascontiguousarray(X.T), num_threads)
    default = [f"{rv.name}_dim_{k}" for k in range(rv.type.ndim)]
    dims = [str(dim) for dim in model.named_vars_to_dims.get(rv.name, default)]
    shape = (*draws.text.shape, *_batch(rv, first.batch), X.shape[0])
    coords = dict(draws.text.coords)
    coords |= {dim: list(c) for dim in dims if (c := model.coords.get(dim)) is not None}
    f = f.reshape(shape).astype(rv.type.dtype)
    return xr.DataArray(f, coords, (*draws.text.dims, *dims), name=rv.name)


def _batch(rv: Variable, stored: tuple[int, ...]) -> tuple[int, ...]:
    """Leading dimensions of a forest, which the model and the stored trees must agree on."""
    if rv.type.ndim != len(stored) + 1:
        msg = (
            f"The forest {rv.name!r} has {rv.type.ndim} dimension(s) in this model, but "
            f"{len(stored) + 1} in idata. Pass the model that was sampled, or its like."
        )
        raise ValueError(msg)
    return stored


def _has_changed(rv: Variable, draws: Draws) -> bool:
    """Whether X is another than the one that the trees were grown on."""
    return digest_of_rows(forest_inputs(rv).X) != draws.first.rows_digest


def _depends(variable: Variable, forests: Collection[Variable]) -> bool:
    return bool(set(forests) & set(ancestors([variable])))


def without(posterior: xr.Dataset, gone: Collection[str]) -> xr.Dataset:
    """The other variables, in a dataset that keeps no dims or coords of those left out."""
    return xr.Dataset({name: v for name, v in posterior.data_vars.items() if name not in gone})
