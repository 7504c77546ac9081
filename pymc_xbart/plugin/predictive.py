"""Posterior predictive draws with the forest of each draw at the model's current X (floor 2)."""

from typing import Any

import pymc as pm
import xarray as xr
from pymc.model import Model, modelcontext
from pymc.util import get_random_generator

from pymc_xbart.plugin.indices import check_indices
from pymc_xbart.plugin.new_levels import fit_levels, relabelled_dims
from pymc_xbart.plugin.substitution import forests_of, substitute_forests


def sample_posterior_predictive(
    idata: xr.DataTree,
    model: Model | None = None,
    *,
    num_threads: int = 1,
    random_seed: Any = None,
    predictions: bool | None = None,
    extend_inferencedata: bool = False,
    **kwargs: Any,
) -> Any:
    """Posterior predictive draws of a model with forests, at its current data.

    Draw k of everything is made with the forests of draw k, evaluated at the rows that X has now:
    after `pm.set_data`, in a copy made by `pm.do`, or in the model written anew, also in another
    process. What depends on a forest is computed anew.

    Plain `pm.sample_posterior_predictive` can't do that: PyMC keeps the stored values of every
    random variable, so that it goes on with f at the training rows.

    Parameters
    ----------
    idata : xarray.DataTree
        What `pm.sample` returned, fresh or read from a file, with the trees of every forest of the
        model. Draws of f itself are not needed.
    model : pymc.Model, optional
        Taken from the context by default.
    num_threads : int, default 1
        Threads that evaluate forests. The result is the same.
    random_seed : int, Generator or None
    predictions : bool, optional
        Whether the result is a group ``predictions`` rather than ``posterior_predictive``. By
        default it is where the labels of a dimension are not those of `idata`.
    extend_inferencedata : bool, default False
        Whether to add the result to `idata` and return that.
    **kwargs
        As for `pm.sample_posterior_predictive`. Forests may be named in `var_names` and
        `sample_vars`.

    Returns
    -------
    xarray.DataTree
        As `pm.sample_posterior_predictive` returns it.

    Raises
    ------
    KeyError, TypeError, ValueError
        If trees are missing, or X has other columns than they were grown on.
    IndexError
        If data names a level that a variable does not have, such as a[school] with a new school.
    NotImplementedError
        If new levels of a variable can't be drawn beside known ones.

    Notes
    -----
    Draws of a variable along a dimension whose labels have changed are found by label. Labels that
    are new are drawn from the prior, given the hyperparameters of the same draw: a new school gets
    ``a ~ Normal(0, s_a)``, with s_a from the posterior. Labels of a dimension that no data has, as
    that of schools, are changed by ``model.set_dim("school_id", len(labels), labels)``;
    `pm.set_data` ignores them.

    A random variable that depends on a forest, and is no data, keeps its draws while X is the one
    that the forest was grown on; at other rows it is drawn anew.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 2))
    >>> with pm.Model() as model:
    ...     data = pm.Data("X", X)
    ...     f = pxb.XBARTForest("f", data, sigma=1, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=np.sin(6 * X[:, 0]), shape=f.shape)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    ...     pm.set_data({"X": rng.uniform(size=(7, 2))})
    ...     new = pxb.sample_posterior_predictive(idata, predictions=True, progressbar=False)
    >>> new["predictions"]["y"].shape
    (2, 50, 7)
    """
    model = modelcontext(model)
    forests = [str(rv.name) for rv in forests_of(model)]
    frozen = _names(kwargs.pop("freeze_vars", None))
    current = substitute_forests(idata, model, frozen, num_threads)
    relabelled = relabelled_dims(idata, model)
    frozen += forests
    if relabelled:
        # Two calls must not share a stream.
        random_seed = get_random_generator(random_seed)
        levels_seed, random_seed = (int(seed) for seed in random_seed.integers(2**30, size=2))
        current, moved = fit_levels(current, model, relabelled, levels_seed, progressbar=False)
        frozen += moved
    check_indices(model)
    if predictions is None:
        predictions = bool(relabelled)
    if kwargs.get("sample_vars") is not None:
        # A forest is evaluated anew in any case; PyMC would draw it from its prior.
        wanted = _names(kwargs["sample_vars"])
        kwargs["sample_vars"] = [name for name in wanted if name not in forests]
        kwargs.setdefault("var_names", wanted)
    result = pm.sample_posterior_predictive(
        current,
        model=model,
        freeze_vars=frozen,
        random_seed=random_seed,
        predictions=predictions,
        **kwargs,
    )
    if not extend_inferencedata:
        return result
    idata.update(result.children)
    return idata


def compute_log_likelihood(
    idata: xr.DataTree, model: Model | None = None, *, num_threads: int = 1, **kwargs: Any
) -> Any:
    """Log-likelihood of the observed data, for every draw, where f need not be stored.

    Parameters
    ----------
    idata : xarray.DataTree
        As for `sample_posterior_predictive`. A group ``log_likelihood`` is added to it.
    model : pymc.Model, optional
        Taken from the context by default.
    num_threads : int, default 1
        Threads that evaluate forests.
    **kwargs
        As for `pm.compute_log_likelihood`.

    Returns
    -------
    xarray.DataTree
        `idata`; with ``extend_inferencedata=False``, the log-likelihood alone.
    """
    model = modelcontext(model)
    is_extended = kwargs.pop("extend_inferencedata", True)
    current = substitute_forests(idata, model, num_threads=num_threads)
    result = pm.compute_log_likelihood(current, model=model, extend_inferencedata=False, **kwargs)
    if not is_extended:
        return result
    idata["log_likelihood"] = xr.DataTree(result)
    return idata


def _names(names: Any) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)
