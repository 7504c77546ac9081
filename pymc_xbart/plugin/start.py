"""Trees to start chains from: of an earlier run, or of a fast fit by `XBARTRegressor` (floor 2).

The second is what the authors of XBART call a warm start: the paper's algorithm finds good trees
quickly, and chains that begin there need not.
"""

from typing import Any

import numpy as np

from pymc_xbart.forest.covariates import Labels
from pymc_xbart.forest.draws import find_draws, stored_forests
from pymc_xbart.forest.regressor import XBARTRegressor
from pymc_xbart.forest.stored import StoredDraw, StoredForest, digest_of, read_draw
from pymc_xbart.forest.views import to_columns
from pymc_xbart.plugin.ensemble import EnsembleState
from pymc_xbart.plugin.target import Target


def read_start(start: Any, target: Target) -> list[list[StoredForest]]:
    """Trees of one forest variable to start from, for each chain in turn.

    Parameters
    ----------
    start : xarray.DataTree, xarray.Dataset or XBARTRegressor
    target : Target

    Raises
    ------
    TypeError, KeyError, ValueError
        If there are no trees in it, or they are not of this forest's kind.
    """
    is_regressor = isinstance(start, XBARTRegressor)
    draws, labels = _of_regressor(start) if is_regressor else _of_draws(start, target.name)
    for draw in draws[:1]:
        _check_fits(draw, target)
        _check_labels(labels, target)
    return [draw.forests for draw in draws]


def start_chain(
    starts: list[list[StoredForest]], chain: int, target: Target
) -> list[EnsembleState]:
    """Trees for one chain, put on the rows of the model's X."""
    pairs = zip(target.ensembles, starts[chain % len(starts)], strict=True)
    return [ensemble.transplant(stored) for ensemble, stored in pairs]


def number_of_chain(rng: np.random.Generator, is_alone: bool) -> int:
    """Number of the chain that a step has been given this generator for, counted from 0.

    PyMC spawns one generator for each chain and, where there are several step methods, from it one
    for each of them. It does not tell a step its chain, but spawned generators know their place.
    """
    key = getattr(rng.bit_generator.seed_seq, "spawn_key", ())
    place = -1 if is_alone else -2
    return int(key[place]) if len(key) >= -place else 0


def _of_draws(start: Any, name: str) -> tuple[list[StoredDraw], Labels | None]:
    """Last draw of each chain, and labels of categories as far as they are known."""
    if not (hasattr(start, "children") or hasattr(start, "data_vars")):
        msg = (
            f"start is a {type(start).__name__}, but must be what pm.sample returns (an "
            "xarray.DataTree), its group 'sample_stats', or an XBARTRegressor."
        )
        raise TypeError(msg)
    stored = stored_forests(start)
    if name not in stored:
        msg = (
            f"start holds no trees of the forest {name!r}, only of: {', '.join(stored) or 'none'}. "
            "Start from a run in which a forest of this name was sampled with its trees stored."
        )
        raise KeyError(msg)
    text, schema = find_draws(start, name)[1:3]
    if "draw" in text.dims:
        text = text.isel(draw=-1)
    elif "sample" in text.dims:
        text = text.isel(sample=[-1])
    return [read_draw(str(each)) for each in text.values.flat], schema.labels


def _of_regressor(regressor: XBARTRegressor) -> tuple[list[StoredDraw], Labels | None]:
    """Kept sweeps, the last one first, and labels of categories."""
    if not regressor.__sklearn_is_fitted__():
        msg = "start is an XBARTRegressor that is not fitted yet. Call its fit(X, y) first."
        raise ValueError(msg)
    pairs = zip(regressor.forests_, regressor.cut_values_, strict=True)
    uncounted = np.zeros(0, np.int64)
    views = regressor.views_
    sweeps = [
        StoredForest(regressor.mean_, *to_columns(forest, cuts, views), cuts, uncounted)
        for forest, cuts in pairs
    ]
    names = digest_of(getattr(regressor, "feature_names_in_", None))
    of_columns = views.is_categorical, views.has_missing
    draws = [StoredDraw(0, names, 0, *of_columns, (), [each]) for each in reversed(sweeps)]
    return draws, regressor.labels_


def _check_fits(draw: StoredDraw, target: Target) -> None:
    ensemble = target.ensembles[0]
    num_columns = ensemble.views.is_categorical.size
    num_trees = draw.forests[0].forest.tree_start.size - 1
    for what, have, want in (
        ("shape before its rows", draw.batch, target.batch),
        ("number of columns", draw.num_columns, num_columns),
        (
            "list of columns of categories (counting from 0)",
            draw.categorical,
            ensemble.views.categorical,
        ),
        ("number of trees", num_trees, ensemble.num_trees),
    ):
        if have != want:
            msg = (
                f"The forest {target.name!r} can't start from these trees: its {what} is {want}, "
                f"and theirs is {have}. Start from a fit with the same."
            )
            raise ValueError(msg)
    if draw.columns_digest and target.digests[0] and draw.columns_digest != target.digests[0]:
        msg = (
            f"The forest {target.name!r} can't start from these trees: they were grown on columns "
            "of other names, or in another order. Start from a fit to the same columns."
        )
        raise ValueError(msg)


def _check_labels(labels: Labels | None, target: Target) -> None:
    if labels is None or target.labels is None or labels == target.labels:
        return
    msg = (
        f"The forest {target.name!r} can't start from these trees: they were grown on columns with "
        "other categories, or in another order. Start from a fit to columns with the same ones."
    )
    raise ValueError(msg)
