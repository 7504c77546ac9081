"""The forest as a PyTensor random variable (floor 2).

Its inputs are what the model may compute (X, mu, sigma, split_weights), its properties what defines
the trees beside them. Nothing mutable is kept on the Op: it is shared by copies of a model, by
processes and by compiled functions.
"""

import inspect
import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from pymc_xbart.forest.design import check_design
from pymc_xbart.forest.prior import (
    TreeSettings,
    check_mu,
    check_settings,
    check_sigma,
    check_split_weights,
    tree_prior,
)
from pymc_xbart.forest.views import Views, encode_views, share_weights
from pymc_xbart.kernels import Design, draw_prior_forest, forest_values
from pymc_xbart.plugin.inputs import evaluate, is_random

NUMBA_CACHE_VERSION = 1  # PyTensor reuses compiled code from disk until this number changes


class ForestInputs(NamedTuple):
    """What the inputs of a forest variable hold at the moment."""

    X: NDArray[np.float64]  # (n, p)
    mu: NDArray[np.float64]  # () or, for k forests, (k,)
    sigma: NDArray[np.float64] | None  # () or (k,); None if it is random
    split_weights: NDArray[np.float64] | None  # (p,) or (k, p); None if they are random


class XBARTForestRV(RandomVariable):
    """Sum of regression trees at the rows of X, drawn from the tree prior.

    Inputs are X (n, p), mu, sigma and split_weights (p,); the output is f, (n,).
    The properties are the fields of `TreeSettings`, with the same defaults.
    """

    name = "xbart_forest"
    signature = "(n,p),(),(),(p)->(n)"
    dtype = "floatX"
    _print_name = ("XBARTForest", "\\operatorname{XBARTForest}")
    __props__ = (*RandomVariable.__props__, *TreeSettings._fields)  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = {name: kwargs.pop(name) for name in TreeSettings._fields if name in kwargs}
        for name, value in check_settings(**given)._asdict().items():
            setattr(self, name, value)
        super().__init__(*args, **kwargs)

    @property
    def settings(self) -> TreeSettings:
        """What defines the trees beside the inputs."""
        return TreeSettings(*(getattr(self, name) for name in TreeSettings._fields))

    def rng_fn(
        self,
        rng: np.random.Generator,
        X: NDArray[Any],
        mu: NDArray[Any],
        sigma: NDArray[Any],
        split_weights: NDArray[Any],
        size: tuple[int, ...] | None,
    ) -> NDArray[np.float64]:
        """Draw f from the prior, one forest for each element of the batch, in C order."""
        batch = size
        if batch is None:
            batch = np.broadcast_shapes(
                X.shape[:-2], mu.shape, sigma.shape, split_weights.shape[:-1]
            )
        one_design = None
        if math.prod(X.shape[:-2]) == 1:
            one_design = _encode(X.reshape(X.shape[-2:]), self.settings)
        X = np.broadcast_to(X, (*batch, *X.shape[-2:]))
        mu = np.broadcast_to(mu, batch)
        sigma = np.broadcast_to(sigma, batch)
        split_weights = np.broadcast_to(split_weights, (*batch, split_weights.shape[-1]))
        f = np.empty((*batch, X.shape[-2]))
        for k in np.ndindex(batch):
            design = _encode(X[k], self.settings) if one_design is None else one_design
            f[k] = _draw(
                self.settings, rng, *design, float(mu[k]), float(sigma[k]), split_weights[k]
            )
        return f


def forest_inputs(rv: Variable, *, min_rows: int = 1) -> ForestInputs:
    """Evaluate and check the inputs of a forest variable.

    Parameters
    ----------
    rv : TensorVariable
        An `XBARTForest`.
    min_rows : int, default 1
        Of X. Data may have been replaced by a single row, which is all right for draws from the
        prior, but not for trees that are to learn.
    """
    X, mu, sigma, split_weights = rv.owner.op.dist_params(rv.owner)
    matrix = check_design(_unpad(evaluate(X, "X"), 2), min_rows=min_rows, copy=False)
    sigma_now = weights = None
    if not is_random(sigma):
        sigma_now = check_sigma(_unpad(evaluate(sigma, "sigma"), 0))
    if not is_random(split_weights):
        weights = _unpad(evaluate(split_weights, "split_weights"), 1)
        check_columns(rv, matrix.shape[1], weights.shape[-1])
        weights = check_split_weights(weights, matrix.shape[1])
    return ForestInputs(matrix, check_mu(_unpad(evaluate(mu, "mu"), 0)), sigma_now, weights)


def data_behind(rv: Variable) -> list[SharedVariable]:
    """Data that inputs of a forest variable, apart from random ones, are made of."""
    inputs = [x for x in rv.owner.op.dist_params(rv.owner) if not is_random(x)]
    return [x for x in ancestors(inputs) if isinstance(x, SharedVariable)]


def digest_of_data(data: SharedVariable) -> int:
    """Number that tells apart what data holds at different times."""
    value = np.asarray(data.get_value(borrow=True))
    return zlib.crc32(np.ascontiguousarray(value).data, zlib.crc32(repr(value.shape).encode()))


def check_columns(rv: Variable, num_columns: int, num_weights: int) -> None:
    """Refuse an X that has been replaced by one with other columns."""
    if num_weights != num_columns:
        msg = (
            f"X of the forest {rv.name!r} has {num_columns} column(s) now, but the forest was "
            f"made for {num_weights}. Pass the same columns in the same order, or write the model "
            "anew."
        )
        raise ValueError(msg)


def _unpad(array: NDArray[Any], num_core_dims: int) -> NDArray[Any]:
    """Drop the dimensions of length one that PyTensor puts in front to match a `size`."""
    num_batch_dims = array.ndim - num_core_dims
    if all(length == 1 for length in array.shape[:num_batch_dims]):
        return array.reshape(array.shape[num_batch_dims:])
    return array


def _encode(X: NDArray[Any], settings: TreeSettings) -> tuple[Design, Views]:
    # X may have been replaced since the model was built; a single row is then a legal question.
    return encode_views(check_design(X, min_rows=1, copy=False), settings.categorical)


def _draw(
    settings: TreeSettings,
    rng: np.random.Generator,
    design: Design,
    views: Views,
    mu: float,
    sigma: float,
    split_weights: NDArray[Any],
) -> NDArray[np.float64]:
    """Draw one f, (n,)."""
    _refuse_predictions()
    if np.isnan(split_weights).all():
        msg = (
            "Split weights drawn from their prior are all NaN. If they are a pm.Dirichlet with "
            "concentrations near 0: compiled by Numba, it divides zero by zero. Draw without, by "
            "compile_kwargs={'mode': 'FAST_COMPILE'}, or take split_weights='sparse'."
        )
        raise ValueError(msg)
    num_rows = design.codes.shape[1]
    weights = check_split_weights(split_weights, views.is_categorical.size)
    prior = tree_prior(
        settings,
        sigma=float(check_sigma(sigma)),
        split_weights=share_weights(weights, views),
        num_rows=num_rows,
    )
    forest, leaf_of_row = draw_prior_forest(design, prior, settings.num_trees, rng)
    f = np.empty(num_rows)
    forest_values(forest, leaf_of_row, f)
    return mu + f


def _refuse_predictions() -> None:
    """Refuse to draw from the prior where predictions from the posterior are meant.

    `pm.sample_posterior_predictive` draws whatever it is told to, or finds no draws of. An Op does
    not learn what its value is for, but who asks can be seen from here.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "sample_posterior_predictive" and (
            frame.f_globals.get("__name__") == "pymc.sampling.forward"
        ):
            msg = (
                "pm.sample_posterior_predictive would draw this forest from its prior: it knows "
                "nothing of the trees of the posterior. Use pymc_xbart.sample_posterior_predictive "
                "instead, which takes the same arguments."
            )
            raise NotImplementedError(msg)
        frame = frame.f_back


def _draw_in_object_mode(
    rng: np.random.Generator,
    X: NDArray[Any],
    mu: float,
    sigma: float,
    split_weights: NDArray[Any],
    *settings: Any,
) -> NDArray[np.float64]:
    """Twin of `rng_fn` for one element of the batch, called from compiled code."""
    tree_settings = TreeSettings(*settings)
    return _draw(tree_settings, rng, *_encode(X, tree_settings), mu, sigma, split_weights)


@numba_core_rv_funcify.register(XBARTForestRV)
def _numba_core_of_forest(op: XBARTForestRV, node: Apply) -> tuple[Callable[..., Any], int]:
    """Let Numba-compiled PyTensor graphs draw forests.

    Coding X and putting trees together is NumPy's work, so the draw leaves compiled code for the
    one in `rng_fn`; with a dispatch of its own it does so without PyTensor's warning, and its draws
    are the same.
    """
    num_trees, alpha, beta, num_cutpoints, min_samples_leaf, max_depth, cut_prior = op.settings[:-1]
    categorical = op.settings.categorical
    out_dtype = node.outputs[1].type.numpy_dtype

    @numba_njit
    def draw(rng, X, mu, sigma, split_weights):  # type: ignore[no-untyped-def]
        with numba.objmode(f="float64[::1]"):
            f = _draw_in_object_mode(
                rng,
                X,
                mu,
                sigma,
                split_weights,
                num_trees,
                alpha,
                beta,
                num_cutpoints,
                min_samples_leaf,
                max_depth,
                cut_prior,
                categorical,
            )
        return f.astype(out_dtype)

    return draw, NUMBA_CACHE_VERSION
