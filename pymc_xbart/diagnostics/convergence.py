"""`convergence_summary`: do the chains agree, and are there enough draws? (floor 2)."""

from collections.abc import Iterable, Iterator
from typing import Any

import xarray as xr

from pymc_xbart.diagnostics.agreement import WHICH, ConvergenceSummary
from pymc_xbart.diagnostics.mixing import MIN_DRAWS, r_hat_and_ess
from pymc_xbart.diagnostics.quantities import (
    DRAW_DIMS,
    STATISTICS,
    RowMoments,
    evaluate_blocks,
    read_group,
    sampled_forests,
    select_blocks,
)
from pymc_xbart.diagnostics.verdict import Run, advise, mean_name, variance_name


def convergence_summary(
    idata: Any, X: Any = None, *, var_names: str | Iterable[str] | None = None, num_threads: int = 1
) -> ConvergenceSummary:
    """R-hat and effective sample sizes of all that was sampled, and in words what to do.

    f has a value at each of many rows, so that some R-hat is always large and the largest says
    little. So f is judged by the share of its rows, beside what should mix if anything does: mean
    and variance of f over the rows, size of the trees, and the share of proposed trees that were
    accepted.

    Parameters
    ----------
    idata : xarray.DataTree
        What `pm.sample` returned, or a selection of its chains and draws.
    X : array_like, DataFrame, xarray.DataArray or dict of these, optional
        Rows at which to take f, from its stored trees, as for `predict`; {name: X} if forests
        differ in their columns. By default f is that of the posterior; a forest that was left out
        there is judged by its trees alone.
    var_names : str or iterable of str, optional
        What to summarise, of the variables in the posterior and the forests. All by default.
    num_threads : int, default 1
        Threads that evaluate f at `X`. The result is the same.

    Returns
    -------
    ConvergenceSummary
        Its text says it all. Its attributes: `elements`, R-hat and effective sample sizes of each
        element of each quantity, as labelled datasets (``summary["f"]["r_hat"]``); `table`, a line
        for each quantity; `worst()`, the elements with the largest R-hat; `mixing`, draws of what
        should mix; `advice`, in words.

    Raises
    ------
    TypeError, KeyError, ValueError
        If `idata` has no such variables, or fewer than 4 draws a chain; or if X does not fit.

    Notes
    -----
    R-hat is the larger of the rank-normalised split R-hats of the draws and of their distances from
    the median; effective sample sizes are those of ranks (bulk), and the smaller of those of the
    5 % and 95 % quantiles (tail). They are what `arviz.rhat`, `arviz.ess`, and the latter with
    ``method="tail", prob=(0.05, 0.95)`` give, to rounding; but R-hat of a single chain compares its
    halves. (`arviz.summary` takes the quantiles 11 % and 89 % as tails, by its setting
    ``stats.ci_prob``.) Quantities whose draws are all the same have no R-hat, and are not held
    against the run.

    Advice takes R-hat above 1.01, or fewer than 400 effective draws, for too little. Of a quantity
    with many elements, one in 20 may be beyond.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021). Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16,
    667-718.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> summary = pxb.convergence_summary(idata)
    >>> summary["f"]["r_hat"].sizes
    Frozen({'f_dim_0': 100})
    >>> print(summary.advice[0])
    50 draws a chain are too few to judge by. Sample 4 chains of 100 or more.
    """
    posterior, statistics = read_group(idata, "posterior"), read_group(idata, "sample_stats")
    forests = sampled_forests(statistics)
    names = _choose(var_names, [*posterior, *(name for name in forests if name not in posterior)])
    num_chains, num_draws = _check_draws(posterior or statistics)
    forests = [name for name in forests if name in names]
    rows = _rows_of(X, forests)
    elements: dict[str, xr.Dataset] = {}
    mixing = xr.Dataset()
    for name in names:
        if name in rows:
            blocks = evaluate_blocks(idata, rows[name], name, num_threads)
        else:
            blocks = select_blocks(posterior[name]) if name in posterior else iter(())
        moments = RowMoments() if name in forests else None
        elements |= _measure_all(name, blocks, moments)
        if moments is not None:
            mixing = mixing.assign(_should_mix(name, moments, statistics))
    for summary, draws in mixing.items():
        elements |= _measure_all(str(summary), iter([draws]))
    if not elements:
        msg = f"There are no draws of {', '.join(names)}: nothing has an element."
        raise ValueError(msg)
    run = Run(num_chains, num_draws, tuple(forests), statistics)
    return ConvergenceSummary(elements, mixing, run.forests, advise(elements, run))


def _choose(var_names: str | Iterable[str] | None, known: list[Any]) -> list[str]:
    if not known:
        msg = (
            "idata holds neither a posterior nor statistics of a forest. Pass what pm.sample "
            "returned."
        )
        raise KeyError(msg)
    if var_names is None:
        return known
    chosen = [var_names] if isinstance(var_names, str) else list(dict.fromkeys(var_names))
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        what = repr(unknown[0]) if unknown else "no name"
        msg = f"var_names has {what}, but these were sampled: {', '.join(map(str, known))}."
        raise KeyError(msg)
    return chosen


def _check_draws(draws: xr.Dataset) -> tuple[int, int]:
    num_chains, num_draws = (draws.sizes[dim] for dim in DRAW_DIMS)
    if num_draws < MIN_DRAWS or num_chains == 0:
        msg = (
            f"There are {num_chains} chain(s) of {num_draws} draw(s), but R-hat needs at least "
            f"{MIN_DRAWS} draws of each chain. Sample more of them."
        )
        raise ValueError(msg)
    return num_chains, num_draws


def _rows_of(X: Any, forests: list[str]) -> dict[str, Any]:
    """X for each forest that is to be evaluated at rows."""
    if X is None:
        return {}
    if not isinstance(X, dict):
        return dict.fromkeys(forests, X)
    unknown = [name for name in X if name not in forests]
    if unknown:
        msg = f"X is for {unknown[0]!r}, but the forests are: {', '.join(forests) or 'none'}."
        raise KeyError(msg)
    return X


def _measure_all(
    name: str, blocks: Iterator[xr.DataArray], moments: RowMoments | None = None
) -> dict[str, xr.Dataset]:
    """R-hat and effective sample sizes of a quantity under its name; nothing if it is empty."""
    parts: list[xr.Dataset] = []
    dims: list[Any] = []
    for block in blocks:
        if block.size:
            dims = [dim for dim in block.dims if dim not in DRAW_DIMS]
            parts.append(_measure(block))
            if moments is not None:
                moments.add(block)
    if not parts:
        return {}
    return {name: parts[0] if len(parts) == 1 else xr.concat(parts, dims[-1])}


def _measure(draws: xr.DataArray) -> xr.Dataset:
    """R-hat and effective sample sizes over the other dims of some draws."""
    draws = draws.transpose(..., *DRAW_DIMS)
    one = draws.isel(dict.fromkeys(DRAW_DIMS, 0), drop=True)
    numbers = r_hat_and_ess(draws.values.reshape(-1, *draws.shape[-2:]))
    return xr.Dataset(
        {
            which: one.copy(data=values.reshape(one.shape))
            for which, values in zip(WHICH, numbers, strict=True)
        }
    )


def _should_mix(name: str, moments: RowMoments, statistics: xr.Dataset) -> dict[str, xr.DataArray]:
    """Draws of what should mix if anything of a forest does."""
    of_trees = {f"{name}_{what}": statistics[f"{name}_{what}"] for what in STATISTICS}
    if not moments.num_rows:
        return of_trees
    return {mean_name(name): moments.mean, variance_name(name): moments.variance} | of_trees
