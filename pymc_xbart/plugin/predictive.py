"""Posterior predictive draws with the forest of each draw at the model's current X (floor 2)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pymc as pm
import xarray as xr
from pymc.model import Model, modelcontext

from pymc_xbart.plugin.indices import check_indices
from pymc_xbart.plugin.labels import relabelled_dims
from pymc_xbart.plugin.new_levels import check_shapes, fit_levels
from pymc_xbart.plugin.substitution import substitute_forests, with_posterior

OTHER_LENGTH = (
    "X of a forest has another number of rows than the forest was grown on. Variables of the model "
    "that are as long as X must follow: give the likelihood shape=f.shape, or dims, unless it is "
    "observed in pm.Data; replace data that has a row for each row of X as well. Observations that "
    "are partly missing (NaN) can't follow."
)


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
        model. Draws of f itself are not needed. Other random variables without draws are drawn
        from their prior, as PyMC does.
    model : pymc.Model, optional
        Taken from the context by default.
    num_threads : int, default 1
        Threads that evaluate forests. The result is the same.
    random_seed : int, Generator or None
    predictions : bool, optional
        Whether the result is a group ``predictions``, without the observed data, rather than
        ``posterior_predictive``. By default it is where X of a forest has another number of rows
        than it was grown on, or the labels of a dimension are not those of `idata`: as many other
        rows, without labels, can't be told from the same rows with other values.
    extend_inferencedata : bool, default False
        Whether to add the result to `idata` and return that.
    **kwargs
        As for `pm.sample_posterior_predictive`. Forests may be named in `var_names`, `sample_vars`
        and `freeze_vars`; they are evaluated at the current X in any case.

    Returns
    -------
    xarray.DataTree
        As `pm.sample_posterior_predictive` returns it.

    Raises
    ------
    KeyError, TypeError, ValueError
        If trees are missing, or X has other columns than they were grown on, or draws have another
        shape than their variable has in the model.
    IndexError
        If data names a level that a variable does not have, such as a[school] with a new school.
    NotImplementedError
        If new levels of a variable can't be drawn beside known ones.

    Notes
    -----
    Draws of a variable along a dimension whose labels have changed are found by label. Labels that
    are new are drawn from the prior, given the hyperparameters of the same draw: a new school gets
    ``a ~ Normal(0, s_a)``, with s_a from the posterior. Labels of a dimension that no data has, as
    that of schools, are changed by ``model.set_dim("school", len(labels), labels)``; `pm.set_data`
    ignores them. Forests of shape (k, n) are found by label as well, but there are none for new
    labels.

    Deterministics are computed anew. A random variable that depends on a forest, and is no data,
    keeps its draws while X is the one that the forest was grown on; with another X it is drawn
    anew. Named in `freeze_vars`, variables keep their draws, those of known labels where labels
    have changed.

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
    frozen = _names(kwargs.pop("freeze_vars", None))
    wanted = _names(kwargs.get("sample_vars"))
    current = _current_draws(
        idata, model, random_seed, keep=frozen, anew=wanted, num_threads=num_threads, **_how(kwargs)
    )
    if kwargs.get("sample_vars") is not None:
        # A forest is evaluated anew in any case; PyMC would draw it from its prior.
        kwargs["sample_vars"] = [name for name in wanted if name not in current.forests]
        kwargs.setdefault("var_names", wanted)
    try:
        result = pm.sample_posterior_predictive(
            current.draws,
            model=model,
            freeze_vars=[*frozen, *current.forests, *current.relabelled],
            random_seed=random_seed,
            predictions=current.has_new_rows if predictions is None else predictions,
            **kwargs,
        )
    except (AssertionError, IndexError, TypeError, ValueError) as error:
        if current.num_rows_changed:
            error.add_note(OTHER_LENGTH)
        raise
    if not extend_inferencedata or not isinstance(result, xr.DataTree):
        return result
    idata.update(result.children)
    return idata


def compute_log_likelihood(
    idata: xr.DataTree,
    model: Model | None = None,
    *,
    num_threads: int = 1,
    random_seed: Any = None,
    extend_inferencedata: bool = True,
    **kwargs: Any,
) -> Any:
    """Log-likelihood of the observed data, for every draw, where f need not be stored.

    f is evaluated at the model's current X. Plain `pm.compute_log_likelihood` takes stored draws of
    f, whatever X is now, and fails where there are none.

    Parameters
    ----------
    idata : xarray.DataTree
        As for `sample_posterior_predictive`. A group ``log_likelihood`` is added to it.
    model : pymc.Model, optional
        Taken from the context by default. Its data may be others than it was fitted to.
    num_threads : int, default 1
        Threads that evaluate forests.
    random_seed : int, Generator or None
        For new levels of group effects, which are drawn as `sample_posterior_predictive` does.
    extend_inferencedata : bool, default True
        Whether to add the result to `idata`.
    **kwargs
        As for `pm.compute_log_likelihood`.

    Returns
    -------
    xarray.DataTree
        `idata`; with ``extend_inferencedata=False``, the log-likelihood alone, a Dataset.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError, NotImplementedError
        As `sample_posterior_predictive`; KeyError also if draws of a random variable are missing.
    """
    model = modelcontext(model)
    current = _current_draws(
        idata, model, random_seed, keep=(), anew=(), num_threads=num_threads, **_how(kwargs)
    )
    missing = [rv.name for rv in model.free_RVs if rv.name not in current.draws["posterior"]]
    if missing:
        msg = (
            f"The log-likelihood needs draws of {', '.join(missing)}. They were not stored, or "
            "belong to other rows of X than it has now."
        )
        raise KeyError(msg)
    result = pm.compute_log_likelihood(
        current.draws, model=model, extend_inferencedata=False, **kwargs
    )
    if not extend_inferencedata:
        return result
    idata["log_likelihood"] = xr.DataTree(result)
    return idata


class _Current(NamedTuple):
    """A result of `pm.sample`, as it would be with the model's current data."""

    draws: xr.DataTree
    forests: list[str]
    relabelled: list[str]  # variables that have been given other levels
    has_new_labels: bool
    num_rows_changed: bool

    @property
    def has_new_rows(self) -> bool:
        """Whether what was observed is of other rows, as far as can be told."""
        return self.has_new_labels or self.num_rows_changed


def _current_draws(
    idata: xr.DataTree,
    model: Model,
    random_seed: Any,
    *,
    keep: Sequence[str],
    anew: Sequence[str],
    num_threads: int,
    **how: Any,
) -> _Current:
    check_indices(model)
    sample_dims = _names(how.get("sample_dims")) or ["chain", "draw"]
    draws = substitute_forests(idata, model, keep, anew, num_threads, sample_dims)
    dims = relabelled_dims(idata, model)
    posterior, moved = fit_levels(idata, draws, model, dims, random_seed, **how)
    check_shapes(posterior, model, sample_dims)
    tree = with_posterior(idata, posterior)
    return _Current(tree, list(draws.forests), moved, bool(dims), draws.num_rows_changed)


def _how(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of PyMC that say how to draw, not what."""
    names = ("sample_dims", "backend", "compile_kwargs")
    return {name: kwargs[name] for name in names if name in kwargs}


def _names(names: Any) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)
