"""Response and weights of a regressor at the door (floor 1)."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.calibration import Calibration, calibrate, read_response
from pymc_xbart.forest.estimator import conversion_warning
from pymc_xbart.forest.tables import as_numbers, first_rows

MIN_ROWS = 2
LARGEST_WEIGHT = 1e100  # of all rows together; kernels square sums of it
MAX_GROWTH = 2  # as many rows may come of repetition as there are, this many times
ONE_AT_A_TIME = "Fit one regressor for each response."
NOTHING_TO_LEARN = "That leaves nothing to learn from X. (Rows of weight 0 don't count.)"


class Training(NamedTuple):
    """What a regressor is fitted to beside X."""

    y: NDArray[np.float64]  # (n,)
    weight: NDArray[np.float64]  # (n,), >= 0, how many times each row counts


def read_training(y: Any, sample_weight: Any, num_rows: int) -> Training:
    """Convert a response and its weights to numbers, or say why that can't be done.

    Parameters
    ----------
    y : array_like, Series or one-column DataFrame of shape (n,)
        Finite real numbers. Shape (n, 1) is taken with a warning.
    sample_weight : array_like or Series of shape (n,), or None
        Finite, >= 0; all 1 for None.
    num_rows : int
        Rows of X, n.
    """
    if y is None:
        msg = "XBARTRegressor requires y to be passed, but the target y is None."
        raise ValueError(msg)
    numbers = read_response(y, several=ONE_AT_A_TIME)
    if np.asarray(y).ndim == 2:
        msg = (
            "A column-vector y was passed when a 1d array was expected. Change the shape of y to "
            "(n,), for instance with y.ravel()."
        )
        warnings.warn(msg, conversion_warning(), stacklevel=3)
    _check_length(numbers, "y", num_rows)
    refused = np.flatnonzero(~np.isfinite(numbers))
    if refused.size:
        kind = "NaN" if np.isnan(numbers[refused[0]]) else "infinite"
        msg = (
            f"y is {kind} in {first_rows(refused)} (counting from 0). Leave these rows out of X "
            "and y, or fill in finite numbers."
        )
        raise ValueError(msg)
    return Training(numbers, read_weight(sample_weight, num_rows))


def read_weight(sample_weight: Any, num_rows: int) -> NDArray[np.float64]:
    """Weights as numbers, (n,); all 1 for None."""
    if sample_weight is None:
        return np.ones(num_rows)
    weight = as_numbers(sample_weight, "sample_weight")
    if weight.ndim != 1:
        msg = f"sample_weight has shape {weight.shape}, but must be one number for each row of X."
        raise ValueError(msg)
    _check_length(weight, "sample_weight", num_rows)
    refused = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if refused.size:
        msg = (
            f"sample_weight is negative or not finite in {first_rows(refused)} (counting from 0). "
            "A weight says how many times its row counts; 0 leaves it out."
        )
        raise ValueError(msg)
    if not weight.any():
        msg = "All entries of sample_weight are zero, so that no row counts."
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not total <= LARGEST_WEIGHT:
        msg = f"The sum of sample_weight is beyond {LARGEST_WEIGHT:g}. Rescale it."
        raise ValueError(msg)
    return weight


def weigh_rows(X: NDArray[np.float64], training: Training) -> tuple[NDArray[np.float64], Training]:
    """Leave out rows of weight 0, and repeat those of whole weight where that costs little.

    Repetition is what a weight means. In its place, a likelihood to the power of the weight gives
    the same law of trees, but neither `min_samples_leaf` nor defaults that depend on the number of
    rows would know of it, and random numbers would be spent in another order.
    """
    y, weight = training
    if (weight == 1).all():
        return X, training
    is_whole = bool((weight == np.floor(weight)).all())
    if is_whole and weight.sum() <= MAX_GROWTH * weight.size:
        times = weight.astype(np.intp)
        unit = np.ones(times.sum())
    else:
        times = (weight > 0).astype(np.intp)
        unit = weight[weight > 0]
    if unit.size < MIN_ROWS:
        msg = (
            f"Only one entry of sample_weight is positive, but a tree needs {MIN_ROWS} rows to "
            "split. Give weight to more rows."
        )
        raise ValueError(msg)
    return np.repeat(X, times, axis=0), Training(np.repeat(y, times), unit)


def calibrate_training(training: Training) -> tuple[Calibration, float]:
    """Prior mean and scale of f, and the variance of y; rows count by weight."""
    y, weight = training
    calibration = calibrate(y, weight, instead=NOTHING_TO_LEARN)
    return calibration, float(np.average((y - calibration.mu) ** 2, weights=weight))


def _check_length(numbers: NDArray[np.float64], name: str, num_rows: int) -> None:
    if numbers.size != num_rows:
        msg = (
            f"{name} has {numbers.size} entries, but X has {num_rows} rows. Pass one for each row."
        )
        raise ValueError(msg)
