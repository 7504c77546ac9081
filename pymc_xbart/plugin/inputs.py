"""Inputs of a forest variable: checked on the way in, evaluated on demand (floor 2).

Symbolic inputs are kept as they are, so that `pm.set_data` reaches them; what they hold at the
moment is evaluated and checked like any other input.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.data import MinibatchOp
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import MissingInputError
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.forest.calibration import Calibration, calibrate, read_response
from pymc_xbart.forest.covariates import choose_columns, read_covariates
from pymc_xbart.forest.prior import check_mu, check_sigma, check_split_weights
from pymc_xbart.plugin.dirichlet import mark_split_weights
from pymc_xbart.plugin.statistics import with_leaves, with_splits
from pymc_xbart.plugin.storage import names_of_data

# Through which a forest is made: a warning points at whoever does.
_LIBRARIES = str(Path(pm.__file__).parent), str(Path(__file__).parents[1])


def evaluate(variable: Variable, what: str) -> NDArray[Any]:
    """Value of a constant, of data, or of a graph of them."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    _refuse_masked(variable, what)
    try:
        return np.asarray(variable.eval(mode="FAST_COMPILE"))
    except MissingInputError as error:
        msg = (
            f"{what} is a symbolic tensor without a value. Pass numbers, or `pm.Data` where they "
            "will be replaced later."
        )
        raise TypeError(msg) from error


def _refuse_masked(variable: Variable, what: str) -> None:
    """Refuse data that `pm.set_data` has turned into something PyTensor can't compute with."""
    for x in ancestors([variable]):
        if isinstance(x, SharedVariable) and np.ma.isMaskedArray(x.get_value(borrow=True)):
            msg = (
                f"{what} has missing values in {x.name!r}, but data of PyMC can't hold them. Give "
                "a forest its X as a table or an array in place of pm.Data, and predict at other "
                "rows with pymc_xbart.predict, or with a model written for them."
            )
            raise NotImplementedError(msg)


def covariates(
    X: Any, categorical: Any = None
) -> tuple[TensorVariable, NDArray[np.float64], tuple[int, ...]]:
    """X as a float64 tensor, what it holds at the moment, (n, p), and its columns of categories."""
    if not isinstance(X, Variable):
        current, *_, chosen = read_covariates(X, categorical, min_rows=1)
        return pt.as_tensor_variable(current), current, chosen
    if not isinstance(X, TensorVariable):
        msg = (
            f"X is a symbolic variable of type {X.type}, but must be a tensor, as `pm.Data` gives. "
            "Pass its values."
        )
        raise TypeError(msg)
    if any(v.owner is not None and isinstance(v.owner.op, MinibatchOp) for v in ancestors([X])):
        msg = (
            "X is a pm.Minibatch, but a forest is grown on all rows at once and can't be fitted to "
            "batches. Pass all rows."
        )
        raise NotImplementedError(msg)
    if rvs_in_graph([X]):
        msg = (
            "X depends on a random variable of the model, but the rows of a forest must be known: "
            "the step method takes X as data and would ignore what f says about that variable. "
            "Pass data."
        )
        raise NotImplementedError(msg)
    current, *_ = read_covariates(evaluate(X, "X"), min_rows=1, copy=False)
    model = Model.get_context(error_if_none=False)
    names = None if model is None else names_of_data(X, model)
    chosen = choose_columns(categorical, names, current.shape[1])
    return X.astype("float64"), current, chosen


def location_and_scale(
    y: Any, mu: Any, sigma: Any, num_rows: int, batch: tuple[int, ...]
) -> tuple[TensorVariable, TensorVariable]:
    """Prior mean and scale as tensors, from `y` or from themselves."""
    if y is None and sigma is None:
        msg = (
            "XBARTForest needs a scale: pass `sigma`, the prior standard deviation of f at a "
            "point, or `y`, a response on the scale of f to calibrate mu and sigma by."
        )
        raise ValueError(msg)
    if y is not None and sigma is not None:
        msg = (
            "XBARTForest got both `y` and `sigma`, but `y` only serves to set mu and sigma. Leave "
            "one of them out."
        )
        raise ValueError(msg)
    if y is not None and mu is not None:
        msg = (
            "XBARTForest got both `y` and `mu`, but `y` sets mu as well as sigma. Leave y out and "
            "pass `sigma`, for instance sigma=np.sqrt(0.3 * np.var(y))."
        )
        raise ValueError(msg)
    if y is None:
        return _location(0.0 if mu is None else mu), _scale(sigma, batch)
    if isinstance(y, Variable):
        if rvs_in_graph([y]):
            msg = (
                "y depends on a random variable of the model, but the prior of a forest is "
                "calibrated by data. Pass the data, or `mu` and `sigma`."
            )
            raise NotImplementedError(msg)
        y = evaluate(y, "y")
    numbers = read_response(y)
    if numbers.size > num_rows:
        msg = (
            f"y has {numbers.size} entries, but X has {num_rows} rows. Pass the response that "
            "belongs to these rows; it may be shorter than X where that of some rows is held out."
        )
        raise ValueError(msg)
    calibration = calibrate(numbers)
    _warn_of_binary(numbers, calibration)
    return pt.as_tensor_variable(calibration.mu), pt.as_tensor_variable(calibration.sigma)


def _warn_of_binary(y: NDArray[np.float64], calibration: Calibration) -> None:
    """Warn of a response that has probably been meant for the other side of a link."""
    if not np.isin(y[np.isfinite(y)], (0.0, 1.0)).all():
        return
    msg = (
        "y holds only 0 and 1, which a forest takes for numbers on its own scale: mu = "
        f"{calibration.mu:.3g} and sigma = {calibration.sigma:.3g}. Under a logit or probit link "
        "that leaves f hardly any room: pass sigma=1.5, say, instead of y. If it is meant, pass "
        "these two numbers."
    )
    warnings.warn(msg, UserWarning, skip_file_prefixes=_LIBRARIES)


def column_weights(split_weights: Any, num_columns: int, batch: tuple[int, ...]) -> TensorVariable:
    """Split weights as a tensor; equal ones for None. Random ones carry what trees say of them."""
    if isinstance(split_weights, str):
        msg = (
            f"split_weights is {split_weights!r}, but must be one weight for each column of X, or "
            "'sparse' where a forest is added to a model, which takes two more variables."
        )
        raise ValueError(msg)
    if is_random(split_weights):
        check_split_weights(np.ones(_shape_of(split_weights, "split_weights")), num_columns)
        mark_split_weights(split_weights)
        return with_splits(pt.as_tensor_variable(split_weights), batch, num_columns)

    def check(weights: Any) -> NDArray[np.float64]:
        return check_split_weights(weights, num_columns)

    return _as_tensor(split_weights, check, "split_weights")


def is_random(value: Any) -> bool:
    """Whether a parameter depends on a random variable."""
    return isinstance(value, Variable) and rvs_in_graph([value])


def _location(mu: Any) -> TensorVariable:
    if is_random(mu):
        msg = (
            "mu depends on a random variable of the model, but the prior mean of a forest is a "
            "constant. Give the model an intercept of its own instead, for instance "
            "a = pm.Normal('a', 0, 1), and use a + f where f stood."
        )
        raise NotImplementedError(msg)
    return _as_tensor(mu, check_mu, "mu")


def _scale(sigma: Any, batch: tuple[int, ...]) -> TensorVariable:
    if is_random(sigma):
        return with_leaves(pt.as_tensor_variable(sigma), batch)
    return _as_tensor(sigma, check_sigma, "sigma")


def _as_tensor(
    value: Any, check: Callable[[Any], NDArray[np.float64]], what: str
) -> TensorVariable:
    """Check a parameter; keep it symbolic if it was."""
    if not isinstance(value, Variable):
        return pt.as_tensor_variable(check(value))
    check(evaluate(value, what))
    return pt.as_tensor_variable(value)


def batch_shape(shape: tuple[Any, ...] | None) -> tuple[int, ...]:
    """Leading dimensions of a forest's shape, as they are now."""
    return () if shape is None else tuple(_length(entry) for entry in shape[:-1])


def check_shape(shape: tuple[Any, ...] | None, num_rows: int) -> None:
    """Refuse a shape, or the lengths of dims in its place, that doesn't end in the rows of X."""
    if shape is None:
        return
    if not shape:
        msg = f"shape is (), but a forest has one value for each of the {num_rows} rows of X."
        raise ValueError(msg)
    length = _length(shape[-1])
    if length != num_rows:
        name = getattr(shape[-1], "name", None)
        named = f"dimension {name!r}" if name else "dimension of the forest's shape"
        msg = (
            f"The last {named} has length {length}, but X has {num_rows} rows. A forest has one "
            "value for each row of X; for k forests over the same X, k comes first, as in "
            "shape=(k, n) or dims=('forest', 'row')."
        )
        raise ValueError(msg)


def check_batch(
    value: TensorVariable, num_core_dims: int, shape: tuple[Any, ...] | None, what: str
) -> None:
    """Refuse parameters that would silently turn one forest into several."""
    batch = value.type.ndim - num_core_dims
    if batch == 0:
        return
    have = _shape_of(value, what)[:batch]
    want = batch_shape(shape)
    try:
        fits = np.broadcast_shapes(have, want) == want
    except ValueError:
        fits = False
    if not fits:
        each = "one number" if num_core_dims == 0 else "one weight for each column"
        msg = (
            f"{what} has shape {have} before its last dimension, "
            if num_core_dims
            else f"{what} has shape {have}, "
        ) + (
            f"but the forest asks for shape {want}. Pass {each}, or, for k forests with shape=(k, "
            "n), as many as there are forests."
        )
        raise ValueError(msg)


def _shape_of(value: TensorVariable, what: str) -> tuple[int, ...]:
    """Shape of a tensor. What is random is drawn for it only where nothing else tells."""
    known = value.type.shape
    return known if None not in known else evaluate(value, what).shape


def _length(entry: Any) -> int:
    return int(evaluate(entry, "shape")) if isinstance(entry, Variable) else int(entry)
