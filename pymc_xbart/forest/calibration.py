"""Prior mean and scale of f from a response, and other defaults that depend on the data (floor 1).

Chipman, George & McCulloch (2010) and He, Yalov & Hahn (2019) let the data set the scale of the
prior. Here that is a convenience on the way in: what the model holds are the two numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from pymc_xbart.forest.tables import as_numbers, first_rows, is_table

VARIANCE_SHARE = 0.3  # of var(y) that the forest explains a priori: He, Yalov & Hahn's default
# Where a standard deviation's square, its inverse, and their products with sums over rows are
# floating-point numbers.
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-40, 1e40
MIN_NUM_CUTPOINTS = 100  # He, Yalov & Hahn: max(sqrt(n), 100)
# Prior probability that the noise has a smaller variance than y: Chipman, George & McCulloch (2010)
PROB_NOISE_BELOW_Y = 0.9

FOREST_TAKES = "For k responses over one X, pass `sigma` and shape=(k, n) instead of y."
FOREST_CAN_DO_WITHOUT = "Pass `sigma`, the prior standard deviation of f, and `mu` instead of y."


class Calibration(NamedTuple):
    """Prior mean and standard deviation of f at a point, on the scale of the response."""

    mu: float
    sigma: float


def read_response(y: Any, *, several: str = FOREST_TAKES) -> NDArray[np.float64]:
    """Convert a response to one row of numbers.

    Parameters
    ----------
    y : array_like, Series or DataFrame of shape (n,) or (n, 1)
        Real numbers. Missing entries (NaN, None, masked) are allowed.
    several : str
        What to do with more than one response, as the end of the error message.

    Returns
    -------
    ndarray of shape (n,)
        A copy, with NaN where the response is missing.
    """
    if is_table(y):
        if len(y.columns) != 1:
            msg = (
                f"y is a DataFrame with {len(y.columns)} columns, but a forest has one response. "
                "Pass the column, for instance y['name']."
            )
            raise ValueError(msg)
        y = y.iloc[:, 0] if hasattr(y, "iloc") else y.get_columns()[0]
    numbers = as_numbers(y, "y")
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        msg = (
            f"y has shape {numbers.shape}, but must be one number for each observation, shape "
            f"(n,). {several}"
        )
        raise ValueError(msg)
    return numbers


def calibrate(
    y: Any,
    weight: NDArray[np.float64] | None = None,
    *,
    instead: str = FOREST_CAN_DO_WITHOUT,
) -> Calibration:
    """Prior mean and standard deviation of f that suit a response.

    `mu` is the mean and `sigma` the square root of 0.3 times the variance of the entries that are
    not missing (He, Yalov & Hahn 2019).

    Parameters
    ----------
    y : array_like, Series or DataFrame of shape (n,) or (n, 1)
        Finite numbers; missing entries are left out.
    weight : ndarray of shape (n,), optional
        Weights of mean and variance, > 0; equal by default.
    instead : str
        What to do without a usable y, as the end of an error message.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If an entry is infinite, or fewer than two different ones remain.
    """
    numbers = read_response(y)
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        msg = (
            f"y has infinite values in {first_rows(infinite)} (counting from 0), which leave no "
            f"mean and no scale to calibrate the forest by. Correct them. {instead}"
        )
        raise ValueError(msg)
    is_present = np.isfinite(numbers)
    present = numbers[is_present]
    if present.size == 0:
        msg = (
            f"None of the {numbers.size} entries of y is a number, so that y can't calibrate the "
            f"forest. {instead}"
        )
        raise ValueError(msg)
    if present.min() == present.max():
        msg = (
            f"All entries of y equal {present[0]:g}, so that y tells no scale for the forest. "
            f"{instead}"
        )
        raise ValueError(msg)
    share = None if weight is None else weight[is_present]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        mean = np.average(present, weights=share)
        variance = np.average((present - mean) ** 2, weights=share)
        calibration = Calibration(float(mean), math.sqrt(VARIANCE_SHARE * variance))
    if not SMALLEST_SIGMA <= calibration.sigma <= LARGEST_SIGMA:
        msg = (
            f"The standard deviation of y asks for one of {calibration.sigma:.1g} for f, but only "
            f"between {SMALLEST_SIGMA:g} and {LARGEST_SIGMA:g} is all that is computed with it a "
            "floating-point number. Rescale y."
        )
        raise ValueError(msg)
    return calibration


def default_num_cutpoints(num_rows: int) -> int:
    """Candidate cuts of a column in a node, unless said otherwise: max(floor(sqrt(n)), 100)."""
    return max(math.isqrt(num_rows), MIN_NUM_CUTPOINTS)


def default_num_trees(num_rows: int) -> int:
    """Trees of a forest that is fitted by the paper's rule: (log n)^(log log n) / 4, rounded.

    He, Yalov & Hahn (2019, "Grow-from-root backfitting"). At least 1; 35 for n = 10 000. Needs n >=
    2.
    """
    log_n = math.log(num_rows)
    return max(1, round(math.pow(log_n, math.log(log_n)) / 4))


def default_noise_rate(noise_shape: float, variance: float) -> float:
    """Rate of the noise variance's prior under which it is below `variance` with probability 0.9.

    The prior is inverse gamma with shape ``noise_shape / 2`` and rate ``noise_rate / 2``, that is,
    ``noise_rate`` divided by a chi-square variable with `noise_shape` degrees of freedom.
    """
    quantile = 2.0 * gammaincinv(noise_shape / 2.0, 1.0 - PROB_NOISE_BELOW_Y)
    return float(quantile * variance)
