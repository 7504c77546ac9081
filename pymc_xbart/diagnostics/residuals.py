"""Residuals of a fit (floor 2): y less its posterior mean, or their normal scores for counts."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri

from pymc_xbart.forest.draws import DRAW_DIMS
from pymc_xbart.forest.predict import predict
from pymc_xbart.forest.tables import as_numbers, first_rows

QUANTILE = "randomized quantile residual"


def residuals(
    idata: Any,
    X: Any,
    y: Any,
    *,
    var_name: str | None = None,
    draws: int | None = None,
    random_seed: Any = None,
) -> tuple[NDArray[np.float64], str]:
    """Residuals, and what they are called.

    Where `idata` has predictive draws of y (of these very numbers, if it knows what was observed),
    whole numbers have randomized quantile residuals: the share of draws below y, and a random part
    of those equal to it, as a normal score. If the model holds they are standard normal. Other y
    have y less the mean of these draws; and less the mean of f where there are none.

    Parameters
    ----------
    idata, X, var_name, draws
        See `predict`.
    y : array_like of shape (n,)
    random_seed : int or numpy.random.Generator, optional
        Of the random part.

    Returns
    -------
    residuals : ndarray of shape (n,)
    name : str

    References
    ----------
    Dunn & Smyth (1996). Randomized quantile residuals. Journal of Computational and Graphical
    Statistics 5, 236-244.
    """
    y = as_numbers(y, "y")
    unknown = np.flatnonzero(~np.isfinite(y))
    if unknown.size:
        msg = (
            f"y is not finite in {first_rows(unknown)} (counting from 0). Leave these rows out, "
            "here and in X."
        )
        raise ValueError(msg)
    predictive = _predictive(idata, y)
    if predictive is not None and predictive.dtype.kind in "iub":
        # A stream of its own: X made by the same seed would go along with the random part.
        (rng,) = np.random.default_rng(random_seed).spawn(1)
        return _quantile_residuals(y, predictive, rng), QUANTILE
    if predictive is not None:
        return y - predictive.mean(axis=0), "y less its predictive mean"
    mean = predict(
        idata, X, var_name, draws, reduce=lambda f: f.mean([d for d in f.dims if d in DRAW_DIMS])
    )
    if mean.shape != y.shape:
        msg = (
            f"y has the shape {y.shape}, but f at the rows of X {mean.shape}. Pass one number for "
            "each row; for several forests, add predictive draws of y to idata."
        )
        raise ValueError(msg)
    return y - mean.values, f"y less the posterior mean of {mean.name}"


def _predictive(idata: Any, y: NDArray[np.float64]) -> NDArray[Any] | None:
    """Predictive draws of y, (draws, n), if there is one variable that goes with it."""
    groups = getattr(idata, "children", {})
    if "posterior_predictive" not in groups:
        return None
    observed = groups["observed_data"].to_dataset() if "observed_data" in groups else {}
    found = []
    for name, each in groups["posterior_predictive"].to_dataset().data_vars.items():
        draws = each.transpose(*[dim for dim in DRAW_DIMS if dim in each.dims], ...)
        goes_with_y = name not in observed or np.array_equal(observed[name].values, y)
        if goes_with_y and draws.size and _row_shape(draws) == y.shape:
            found.append(draws.values.reshape(-1, y.size))
    return found[0] if len(found) == 1 else None


def _row_shape(draws: xr.DataArray) -> tuple[int, ...]:
    return tuple(size for dim, size in draws.sizes.items() if dim not in DRAW_DIMS)


def _quantile_residuals(
    y: NDArray[np.float64], predictive: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.float64]:
    below, equal = (predictive < y).mean(axis=0), (predictive == y).mean(axis=0)
    # So many draws tell nothing of what is rarer than one of them.
    rarest = 0.5 / predictive.shape[0]
    residuals: NDArray[np.float64]
    residuals = ndtri(np.clip(below + rng.uniform(size=y.size) * equal, rarest, 1.0 - rarest))
    return residuals
