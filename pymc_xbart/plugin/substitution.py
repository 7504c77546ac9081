"""Forests of a result of `pm.sample` at the model's current X (floor 2).

Every draw of a forest is computed from that draw's trees, and takes the place of what was stored.
What depends on it must be computed anew, and is left out, so that PyMC does so.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pymc.model import Model
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.forest.covariates import relabel, warn_of_gaps
from pymc_xbart.forest.draws import Draws, find_draws, stored_forests
from pymc_xbart.forest.prediction import evaluate_draws
from pymc_xbart.forest.prior import whole_number
from pymc_xbart.forest.schema import Schema
from pymc_xbart.forest.stored import StoredDraw, digest_of, digest_of_rows
from pymc_xbart.plugin.inputs import evaluate
from pymc_xbart.plugin.labels import GROUPS, labels_now, labels_then
from pymc_xbart.plugin.random_variable import forest_inputs
from pymc_xbart.plugin.storage import find_schema
from pymc_xbart.plugin.target import is_forest


class Substituted(NamedTuple):
    """Draws of a model's variables, as far as they still hold."""

    rest: xr.Dataset  # of random variables
    forests: dict[str, xr.DataArray]  # at the model's current X, in its dims and coords
    num_rows_changed: bool  # whether X of some forest has another number of rows


def substitute_forests(
    idata: Any,
    model: Model,
    keep: Collection[str] = (),
    anew: Collection[str] = (),
    num_threads: int = 1,
    sample_dims: Sequence[str] = ("chain", "draw"),
) -> Substituted:
    """Evaluate all forests of a model for every draw.

    Parameters
    ----------
    idata : xarray.DataTree
        With trees of each of the model's forests, and posterior draws of everything else.
    model : pymc.Model
        Its X may have been replaced since.
    keep : collection of str, optional
        Variables that keep their draws although something they depend on is another now.
    anew : collection of str, optional
        Variables that do not, in any case.
    num_threads : int, default 1
    sample_dims : sequence of str
        Dims that draws have. Those that the trees lack, which posterior draws have been repeated
        along, are added.

    Returns
    -------
    Substituted
        Without deterministics, which follow from the rest, without random variables that depend on
        a forest whose X has changed, and without what the model doesn't have.
    """
    _check_tree(idata)
    num_threads = whole_number(num_threads, "num_threads")
    posterior = idata["posterior"].to_dataset()
    found = [_found(rv, _find(rv, idata, posterior), model) for rv in forests_of(model)]
    changed = {each.rv for each in found if digest_of_rows(each.X) != each.first.rows_digest}
    holds = {v.name for v in model.free_RVs if not set(ancestors([v])) & changed} | set(keep)
    holds -= {*anew, *(each.rv.name for each in found)}
    forests = {}
    for each in found:
        f = _in_order(_evaluate(each, model, num_threads), each.rv, idata, model)
        repeated = [dim for dim in sample_dims if dim not in f.dims and dim in posterior.sizes]
        forests[each.draws.name] = f.expand_dims({dim: posterior.sizes[dim] for dim in repeated})
    return Substituted(
        without(posterior, [name for name in posterior.data_vars if name not in holds]),
        forests,
        any(each.X.shape[0] != each.first.num_rows for each in found),
    )


class _Found(NamedTuple):
    """A forest of a model, and its draws."""

    rv: TensorVariable
    draws: Draws
    X: NDArray[np.float64]  # (n, p), what the model holds now, numbered as the trees know it

    @property
    def first(self) -> StoredDraw:
        return self.draws.first


def _found(rv: TensorVariable, draws: Draws, model: Model) -> _Found:
    """Read the X of a forest in terms of its stored trees."""
    X = forest_inputs(rv).X
    _check_columns(rv, X.shape[1], draws, model)
    schema = find_schema(model, str(rv.name))
    if draws.schema != Schema():
        categorical = rv.owner.op.settings.categorical
        X = relabel(X, schema.labels, draws.schema.labels, schema.columns, categorical)
    warn_of_gaps(X, draws.first.has_missing, schema.columns)
    return _Found(rv, draws, X)


def forests_of(model: Model) -> list[TensorVariable]:
    """Forest variables of a model."""
    return [rv for rv in model.free_RVs if is_forest(rv)]


def with_posterior(idata: xr.DataTree, posterior: xr.Dataset) -> xr.DataTree:
    """The same data beside other draws."""
    # PyMC looks up in the other groups what data has changed.
    others = [name for name in GROUPS if name in idata.children and name != "posterior"]
    groups = {name: idata[name].to_dataset() for name in others}
    return xr.DataTree.from_dict(groups | {"posterior": posterior})


def without(posterior: xr.Dataset, gone: Collection[Any]) -> xr.Dataset:
    """The other variables, in a dataset that keeps no dims or coords of those left out."""
    return xr.Dataset({name: v for name, v in posterior.data_vars.items() if name not in gone})


def _check_tree(idata: Any) -> None:
    if not isinstance(idata, xr.DataTree) or "posterior" not in idata.children:
        what = "has no group 'posterior'" if isinstance(idata, xr.DataTree) else "is none"
        msg = (
            "idata must be the xarray.DataTree that pm.sample returns, with the groups 'posterior' "
            f"and 'sample_stats', but this {type(idata).__name__} {what}."
        )
        raise TypeError(msg)


def _find(rv: TensorVariable, idata: xr.DataTree, posterior: xr.Dataset) -> Draws:
    """Trees of a forest, for the draws that are in the posterior."""
    stored = stored_forests(idata)
    if rv.name not in stored:
        msg = (
            f"idata holds no trees of the forest {rv.name!r}"
            + (f", only of: {', '.join(stored)}." if stored else ".")
            + " Sample the model with XBARTStep, and store_trees left at True."
        )
        raise KeyError(msg)
    draws = find_draws(idata, rv.name)
    text = draws.text
    for dim in text.dims:
        have, want = text.indexes.get(dim), posterior.indexes.get(dim)
        if have is None or want is None or have.equals(want):
            continue
        if not have.is_unique or not want.isin(have).all():
            msg = (
                f"The trees of the forest {rv.name!r} in idata['sample_stats'] are not those of "
                f"the draws in idata['posterior']: their labels along {dim!r} differ. Select from "
                "both groups at once, as by idata.isel(draw=...)."
            )
            raise ValueError(msg)
        text = text.sel({dim: want})
    return draws._replace(text=text)


def _evaluate(found: _Found, model: Model, num_threads: int) -> xr.DataArray:
    """Draws of one forest at the model's current X, with the model's dims and labels of rows."""
    rv, draws, X = found
    first = found.first
    if rv.type.ndim != len(first.batch) + 1:
        msg = (
            f"The forest {rv.name!r} has {rv.type.ndim} dimension(s) in this model, but "
            f"{len(first.batch) + 1} in idata. Pass the model that was sampled, or its like."
        )
        raise ValueError(msg)
    texts = [str(text) for text in draws.text.values.flat]
    f = evaluate_draws(texts, X, num_threads)
    f = f.reshape((*draws.text.shape, *first.batch, X.shape[0])).astype(rv.type.dtype)
    dims = _dims(rv, model)
    coords = dict(draws.text.coords)
    if model.coords.get(dims[-1]) is not None:
        coords[dims[-1]] = labels_now(model, dims[-1])
    return xr.DataArray(f, coords, (*draws.text.dims, *dims), name=rv.name)


def _dims(rv: TensorVariable, model: Model) -> list[str]:
    given = model.named_vars_to_dims.get(rv.name, [None] * rv.type.ndim)
    return [f"{rv.name}_dim_{k}" if dim is None else str(dim) for k, dim in enumerate(given)]


def _check_columns(rv: TensorVariable, num_columns: int, draws: Draws, model: Model) -> None:
    """Refuse an X whose columns are not those that the trees were grown on."""
    first = draws.first
    if num_columns != first.num_columns:
        msg = (
            f"X of the forest {rv.name!r} has {num_columns} column(s) now, but the stored trees "
            f"were grown on {first.num_columns}. Pass the same columns in the same order."
        )
        raise ValueError(msg)
    categorical = list(rv.owner.op.settings.categorical)
    if first.categorical != categorical:
        msg = (
            f"The stored trees were grown on categories in columns {first.categorical} (counting "
            f"from 0), but the forest {rv.name!r} has them in {categorical}. "
            "Pass the same columns, or `categorical`, as in the fit."
        )
        raise ValueError(msg)
    names = find_schema(model, str(rv.name)).columns
    if names is not None and first.columns_digest not in (0, digest_of(names)):
        known = draws.schema.columns
        msg = (
            f"The columns of X of the forest {rv.name!r} have other names than those that the "
            "stored trees were grown on, or another order. Pass the same columns in the same order"
            + (f": {', '.join(known)}." if known else ".")
        )
        raise ValueError(msg)


def _in_order(
    f: xr.DataArray, rv: TensorVariable, idata: xr.DataTree, model: Model
) -> xr.DataArray:
    """Put the forests of a variable of shape (k, n) in the order that the model has them in."""
    for axis, dim in enumerate(_dims(rv, model)[:-1]):
        then = labels_then(idata, dim)
        if model.coords.get(dim) is None:
            now = np.arange(int(evaluate(rv.shape[axis], "The shape of a forest")))
        else:
            now = labels_now(model, dim)
        if then is None:
            # Nothing that was kept is along it. As many forests are those of the model, in order.
            then = now if len(now) == f.sizes[dim] else np.arange(f.sizes[dim])
        unknown = [label for label in now if label not in then]
        if unknown:
            msg = (
                f"The model has the forest {rv.name!r} for {unknown[0]!r} of {dim!r}, but there "
                f"are trees for {', '.join(str(label) for label in then)} only. Forests can't be "
                "drawn for new labels; leave them out."
            )
            raise ValueError(msg)
        f = f.assign_coords({dim: then}).sel({dim: now})
    return f
