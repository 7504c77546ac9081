"""`treatment_effects`: average and conditional effects from the draws of a forest (floor 2)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.grid import MISSING
from pymc_xbart.forest.draws import DRAW_DIMS, evenly_spaced, find_draws
from pymc_xbart.forest.predict import predict
from pymc_xbart.forest.prior import real_number, whole_number
from pymc_xbart.forest.tables import as_numbers

ALL = "all"  # name of the group that holds every row


def treatment_effects(
    idata: Any,
    X: Any = None,
    *,
    groups: Any = None,
    weights: Any = None,
    scale: float | xr.DataArray = 1.0,
    var_name: str | None = None,
    draws: int | None = None,
) -> xr.Dataset:
    """Effects in a model ``mu + tau * z``: of each row, and averages over rows.

    The forest tau is the effect of z, from one unit to the next, on the scale on which the model
    adds it up. That of a row is called conditional: on the columns that tau sees.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (n, p), optional
        Rows at which to evaluate the stored trees. By default the rows of the fit, whose f must
        then be among the variables kept in ``idata.posterior``.
    groups : array_like of shape (n,) or mapping, optional
        Rows to average over, beside all of them: a label for each row, or a mask for each name,
        ``{"treated": z == 1, "above 60": age > 60}``, which may overlap.
    weights : array_like of shape (n,), optional
        Of the rows in averages, for instance those of a survey, >= 0. Equal by default.
    scale : float or xarray.DataArray, default 1.0
        What tau is multiplied by: a number, for instance the step of z or the standard deviation of
        a y that was standardised; or draws of a variable, ``idata.posterior["b"]``.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Returns
    -------
    xarray.Dataset
        ``conditional`` (chain, draw, row), and ``average`` (chain, draw, group), whose groups are
        "all" and those asked for; for a variable of shape (k, n), both have its further dimension
        before the last one. ``rows`` (group,) counts the rows of each, and ``weights`` (row,) are
        those that were given, if any. As a table, for instance,
        ``az.summary(effects, var_names="average", kind="stats")``.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there are no such draws, or groups, weights or scale do not fit them.

    Notes
    -----
    Intervals of averages are about the rows that are given. Those about a population that the rows
    come from are wider: for these, weight the rows of ``conditional`` by a Bayesian bootstrap,
    which draws Dirichlet weights for each draw.

    References
    ----------
    Hahn, Murray & Carvalho (2020). Bayesian regression tree models for causal inference, section
    3. Bayesian Analysis 15, 965-1056.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X, z = rng.uniform(size=(100, 2)), rng.integers(0, 2, 100)
    >>> y = X[:, 0] * z + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     mu = pxb.XBARTForest("mu", X, y=y, num_trees=10)
    ...     tau = pxb.XBARTForest("tau", X, sigma=0.5, num_trees=10)
    ...     _ = pm.Normal("y", mu + tau * z, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> effects = pxb.treatment_effects(idata, var_name="tau", groups={"treated": z == 1})
    >>> effects["average"].sizes
    Frozen({'chain': 2, 'draw': 50, 'group': 2})
    """
    tau = _find_forest(idata, X, var_name, draws)
    row = tau.dims[-1]
    taken = {"group", "rows", "weights", "conditional", "average"} & set(map(str, tau.dims))
    if taken:
        msg = (
            f"The forest {tau.name!r} has a dimension {min(taken)!r}, which is what the result "
            f"calls something else. Rename it: idata.rename({{{min(taken)!r}: ...}}) of the groups "
            "that have it, or `dims` of the forest."
        )
        raise ValueError(msg)
    conditional = _scaled(tau, scale)
    masks = _read_groups(groups, tau.sizes[row])
    weight_of_row = _read_weights(weights, tau.sizes[row])
    shares = np.array(list(masks.values())) * weight_of_row
    totals = shares.sum(axis=1, keepdims=True)
    if (totals == 0).any():
        name = list(masks)[int(np.argmin(totals))]
        msg = f"The group {name!r} has no rows with a weight above 0. Leave it out."
        raise ValueError(msg)
    by_group = xr.DataArray(shares / totals, {"group": list(masks)}, ("group", row))
    data = {
        "conditional": conditional,
        "average": conditional.dot(by_group, dim=[row]),
        "rows": ("group", [int(mask.sum()) for mask in masks.values()]),
    }
    if weights is not None:
        data["weights"] = (row, weight_of_row)
    return xr.Dataset(data, attrs={"forest": str(tau.name)})


def _find_forest(idata: Any, X: Any, var_name: str | None, draws: int | None) -> xr.DataArray:
    """Draws of the forest, rows last."""
    if X is not None:
        return predict(idata, X, var_name, draws)
    posterior = idata["posterior"] if "posterior" in getattr(idata, "children", ()) else {}
    if var_name is None:
        var_name = find_draws(idata).name
    if var_name not in posterior:
        msg = (
            f"The forest {var_name!r} is not among the variables kept in idata.posterior. Pass X, "
            "so that its trees are evaluated there, or keep it."
        )
        raise KeyError(msg)
    kept: xr.DataArray = posterior[var_name]
    of_draws = [dim for dim in DRAW_DIMS if dim in kept.dims]
    if len(of_draws) == kept.ndim:
        msg = f"{var_name!r} is a single number in each draw, not an effect for each row."
        raise ValueError(msg)
    kept = kept.transpose(*of_draws, ...)
    if draws is None or "draw" not in kept.dims:
        return kept
    return kept.isel(draw=evenly_spaced(kept.sizes["draw"], whole_number(draws, "draws")))


def _scaled(tau: xr.DataArray, scale: float | xr.DataArray) -> xr.DataArray:
    if not isinstance(scale, xr.DataArray):
        return tau * real_number(scale, "scale")
    scaled: xr.DataArray = tau * scale
    if dict(scaled.sizes) != dict(tau.sizes):
        msg = (
            f"scale has the dimensions {dict(scale.sizes)}, which do not go with those of "
            f"{tau.name!r}, {dict(tau.sizes)}: it must have draws of the same run, and no other "
            "dimensions."
        )
        raise ValueError(msg)
    return scaled.transpose(*tau.dims)


def _read_weights(weights: Any, num_rows: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(num_rows)
    read = as_numbers(weights, "weights")
    if read.shape != (num_rows,) or not (np.isfinite(read) & (read >= 0)).all():
        msg = f"weights must hold a finite number >= 0 for each of the {num_rows} rows."
        raise ValueError(msg)
    return read


def _read_groups(groups: Any, num_rows: int) -> dict[str, NDArray[np.bool_]]:
    """Rows of each group, by name."""
    masks = {ALL: np.ones(num_rows, np.bool_)}
    if groups is None:
        return masks
    asked = groups if isinstance(groups, Mapping) else _masks_of_labels(groups)
    for name, mask in asked.items():
        read = np.asarray(mask)
        if read.dtype != np.bool_ or read.shape != (num_rows,) or name == ALL:
            msg = (
                f"groups: {name!r} must be a mask, True or False for each of the {num_rows} rows, "
                f"and not be called {ALL!r}, which every row belongs to. Or pass one label for "
                "each row."
            )
            raise ValueError(msg)
        masks[str(name)] = read
    return masks


def _masks_of_labels(labels: Any) -> dict[str, NDArray[np.bool_]]:
    """A group for each label: in the order of categories if they have one, else ascending."""
    order = getattr(getattr(labels, "dtype", None), "categories", None)
    values = np.asarray(labels, dtype=object)
    is_missing = np.array([value is None or value != value for value in values.ravel()])
    distinct = set(values.ravel()[~is_missing].tolist())
    ordered = sorted(distinct) if order is None else [name for name in order if name in distinct]
    masks = {str(name): values == name for name in ordered}
    return masks | ({MISSING: is_missing} if is_missing.any() else {})
