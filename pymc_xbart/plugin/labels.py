"""Labels of dimensions, in the model and in the draws (floor 2): which have changed."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_xbart.plugin.inputs import evaluate

GROUPS = ("posterior", "observed_data", "constant_data")  # what was written when sampling


def labels_now(model: Model, dim: str) -> Any:
    """Labels of a dimension of the model, as a pandas.Index; numbers from 0 if it has none."""
    labels = model.coords.get(dim)
    if labels is None:
        labels = np.arange(int(evaluate(model.dim_lengths[dim], "The length of a dimension")))
    # By xarray, which turns dates into what they are in the draws.
    return xr.Dataset(coords={dim: list(labels)}).indexes[dim]


def labels_then(idata: xr.DataTree, dim: str) -> Any:
    """Labels that a dimension had when the model was sampled, or None if nothing was along it."""
    for name in GROUPS:
        if name in idata.children and dim in idata[name].indexes:
            return idata[name].indexes[dim]
    return None


def relabelled_dims(idata: xr.DataTree, model: Model) -> list[str]:
    """Dims of the model whose labels, or number of them, are not those of the draws and data."""
    then = {dim: labels_then(idata, dim) for dim in model.coords}
    return [
        dim
        for dim, labels in then.items()
        if labels is not None and not labels.equals(labels_now(model, dim))
    ]
