"""Levels that a group effect has not met (floor 2): drawn from their prior, draw by draw.

When the labels of a dimension change, as those of schools do where predictions are made for other
schools, draws of a variable along that dimension are put in the new order. Levels among them that
are new are drawn given the draw's own hyperparameters.
"""

from collections.abc import Collection
from typing import Any

import pymc as pm
import xarray as xr
from pymc.model import Model
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable

from pymc_xbart.plugin.inputs import evaluate
from pymc_xbart.plugin.labels import labels_now
from pymc_xbart.plugin.substitution import Substituted, with_posterior, without


def fit_levels(
    idata: xr.DataTree,
    draws: Substituted,
    model: Model,
    dims: Collection[str],
    random_seed: Any,
    **how: Any,
) -> tuple[xr.Dataset, list[str]]:
    """Give every variable along some dims the levels that the model has now.

    Parameters
    ----------
    idata : xarray.DataTree
    draws : Substituted
        As `substitute_forests` returns it for `idata`.
    model : pymc.Model
    dims : collection of str
        Dims whose labels have changed.
    random_seed : int, Generator or None
        Only looked at where levels are new, so that other results are those of PyMC.
    **how
        For `pm.sample_posterior_predictive`, which draws the new levels.

    Returns
    -------
    posterior : xarray.Dataset
        Draws of all variables, forests included.
    names : list of str
        Variables that have been given other levels.

    Raises
    ------
    NotImplementedError
        If levels of a variable are new and can't be drawn by themselves.
    """
    variables = {str(v.name): v for v in [*model.free_RVs, *model.deterministics]}
    moved = {
        name: {dim: labels_now(model, dim) for dim in _own_dims(name, model) if dim in dims}
        for name in variables
        if name in draws.rest
    }
    moved = {name: labels for name, labels in moved.items() if labels}
    posterior = xr.merge(
        [without(draws.rest, moved), *draws.forests.values()], join="exact", compat="override"
    )
    rng = None
    # One after the other, since levels may have levels of their own, as districts have schools: a
    # new one is drawn given the draws of the known ones.
    for name, labels in moved.items():
        known = draws.rest[name]
        if all(now.isin(known.indexes[dim]).all() for dim, now in labels.items()):
            posterior[name] = known.sel(labels)
            continue
        _check_levels(variables[name], labels, model)
        if rng is None:
            # Not a copy, whose stream would be that of what is drawn next.
            rng = get_random_generator(random_seed, copy=False)
        drawn = pm.sample_posterior_predictive(
            with_posterior(idata, posterior),
            model=model,
            var_names=[name],
            freeze_vars=list(posterior.data_vars),
            random_seed=rng,
            predictions=True,
            progressbar=False,
            **how,
        )["predictions"][name]
        posterior[name] = _known_or_new(known, drawn, labels)
    return posterior, list(moved)


def check_shapes(posterior: xr.Dataset, model: Model, sample_dims: Collection[str]) -> None:
    """Refuse draws that have another shape than their variable has in the model.

    Compiled code would index them beyond their end.
    """
    for rv in model.free_RVs:
        if rv.name not in posterior or rv.type.ndim == 0 or _own_dims(rv.name, model):
            continue  # where there are labels, draws have been put in their order
        have = tuple(n for dim, n in posterior[rv.name].sizes.items() if dim not in sample_dims)
        want = tuple(int(n) for n in evaluate(rv.shape, "A shape"))
        if have != want:
            msg = (
                f"idata holds draws of {rv.name!r} of shape {have}, but in the model it has shape "
                f"{want}. Give its dimensions names and labels (dims=..., coords), by which draws "
                "are found, or list it in sample_vars to have it drawn anew."
            )
            raise ValueError(msg)


def _own_dims(name: str, model: Model) -> tuple[str, ...]:
    return tuple(str(dim) for dim in model.named_vars_to_dims.get(name, ()))


def _check_levels(variable: Variable, labels: Collection[str], model: Model) -> None:
    """Refuse to draw levels of a variable where they are not independent of each other."""
    name = str(variable.name)
    if variable in model.deterministics:
        reason = "are not drawn, but computed from other variables"
        advice = f"Take {name!r} out of freeze_vars"
    else:
        num_dependent = variable.owner.op.ndim_supp
        dependent = _own_dims(name, model)[variable.type.ndim - num_dependent :]
        if not set(dependent) & set(labels):
            return
        reason = "are not independent of each other"
        advice = f"Leave {', '.join(labels)} as it was"
    msg = (
        f"{', '.join(labels)} has new labels, and the levels of {name!r} along it {reason}, so "
        f"that new ones can't be drawn beside those that are known. {advice}."
    )
    raise NotImplementedError(msg)


def _known_or_new(known: xr.DataArray, drawn: xr.DataArray, labels: dict[str, Any]) -> xr.DataArray:
    """Draws of the known levels where there are any, and new draws elsewhere."""
    is_known = xr.ones_like(known, bool).reindex(labels, fill_value=False)
    filled = known.reindex(labels, fill_value=0).where(is_known, drawn)
    return filled.transpose(*drawn.dims).astype(known.dtype)
