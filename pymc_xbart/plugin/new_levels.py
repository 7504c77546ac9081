"""Levels that a group effect has not met (floor 2): drawn from their prior, draw by draw.

When the labels of a dimension change, as those of schools do where predictions are made for other
schools, draws of a variable along that dimension are put in the new order. Levels among them that
are new are drawn given the draw's own hyperparameters.
"""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_xbart.plugin.substitution import with_posterior, without


def relabelled_dims(idata: xr.DataTree, model: Model) -> list[str]:
    """Dims of the model whose labels, or number of them, are not those of the draws and data."""
    dims = []
    for dim in model.coords:
        then = _labels_then(idata, dim)
        if then is not None and not np.array_equal(then, labels_now(model, dim)):
            dims.append(dim)
    return dims


def fit_levels(
    idata: xr.DataTree, model: Model, dims: list[str], random_seed: Any = None, **kwargs: Any
) -> tuple[xr.DataTree, list[str]]:
    """Give every variable along some dims the levels that the model has now.

    Parameters
    ----------
    idata : xarray.DataTree
        As `substitute_forests` returns it.
    model : pymc.Model
    dims : list of str
        As `relabelled_dims` finds them.
    random_seed : optional
    **kwargs
        For `pm.sample_posterior_predictive`, which draws the new levels.

    Returns
    -------
    idata : xarray.DataTree
    names : list of str
        Variables that have been given new levels.

    Raises
    ------
    NotImplementedError
        If the levels of a variable are not independent given its parameters.
    """
    posterior = idata["posterior"].to_dataset()
    moved = [rv for rv in model.free_RVs if _is_along(rv, posterior, model, dims)]
    if not moved:
        return idata, []
    for rv in moved:
        _check_levels(rv, model, dims)
    names = [str(rv.name) for rv in moved]
    stale = {
        str(v.name)
        for v in [*model.deterministics, *model.free_RVs]
        if v not in moved and v.name in posterior and set(moved) & set(ancestors([v]))
    }
    rest = without(posterior, {*names, *stale})
    drawn = pm.sample_posterior_predictive(
        with_posterior(idata, rest),
        model=model,
        var_names=names,
        freeze_vars=[str(rv.name) for rv in model.free_RVs if rv.name in rest],
        random_seed=random_seed,
        predictions=True,
        **kwargs,
    )["predictions"].to_dataset()
    for name in names:
        rest[name] = _known_or_new(posterior[name], drawn[name])
    return with_posterior(idata, rest), names


def labels_now(model: Model, dim: str) -> np.ndarray:
    """Labels of a dimension of the model; numbers from 0 if it has none."""
    labels = model.coords.get(dim)
    if labels is not None:
        return np.asarray(labels)
    return np.arange(int(model.dim_lengths[dim].eval()))


def _labels_then(idata: xr.DataTree, dim: str) -> np.ndarray | None:
    """Labels of a dimension where there are draws or data along it."""
    for group in idata.children.values():
        if dim in group.coords:
            return np.asarray(group.coords[dim].values)
    return None


def _is_along(rv: Variable, posterior: xr.Dataset, model: Model, dims: list[str]) -> bool:
    own = model.named_vars_to_dims.get(rv.name, ())
    return (
        rv.name in posterior
        and bool(set(own) & set(dims))
        and not _is_current(posterior[rv.name], model)
    )


def _is_current(draws: xr.DataArray, model: Model) -> bool:
    """Whether draws have the model's labels already, as those of substituted forests do."""
    return all(
        np.array_equal(draws.coords[dim], labels_now(model, str(dim)))
        for dim in draws.dims
        if dim in model.coords and dim in draws.coords
    )


def _check_levels(rv: Variable, model: Model, dims: list[str]) -> None:
    if rv.owner.op.ndim_supp > 0:
        along = ", ".join(dim for dim in model.named_vars_to_dims[rv.name] if dim in dims)
        msg = (
            f"The labels of {along} have changed, and the levels of {rv.name!r} along it are not "
            "independent of each other, so that new ones can't be drawn beside those that are "
            f"known. Leave {along} as it was, or pass draws of {rv.name!r} for the new labels in "
            "idata['posterior']."
        )
        raise NotImplementedError(msg)


def _known_or_new(known: xr.DataArray, drawn: xr.DataArray) -> xr.DataArray:
    """Draws of the known levels where there are any, and new draws elsewhere."""
    labels = {dim: drawn.coords[dim] for dim in drawn.dims if dim in known.coords}
    is_known = xr.ones_like(known, bool).reindex(labels, fill_value=False)
    filled = known.reindex(labels, fill_value=0).where(is_known, drawn)
    return filled.transpose(*drawn.dims).astype(known.dtype)
