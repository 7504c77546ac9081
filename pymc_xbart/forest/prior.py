"""Settings of the tree prior (floor 1): checked where they come in, then handed to the kernels."""

import math
import numbers
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.calibration import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    default_num_cutpoints,
)
from pymc_xbart.forest.tables import as_numbers
from pymc_xbart.kernels import CUT_PRIORS, Prior

NO_MAX_DEPTH = 2**31 - 1  # no tree is as deep: every level takes a row
LEAST_SHARE = 1e-150  # of the largest split weight


class TreeSettings(NamedTuple):
    """What defines the prior of a forest beside mu, sigma and the split weights."""

    num_trees: int = 100
    alpha: float = 0.95  # a node at depth d splits with probability alpha * (1 + d) ** -beta
    beta: float = 1.25
    num_cutpoints: int | None = None  # None: max(floor(sqrt(n)), 100)
    min_samples_leaf: int = 1
    max_depth: int | None = None  # None: unlimited
    cut_prior: str = "columns"  # or "cuts", "paper": how prior weight is shared among cuts
    categorical: tuple[int, ...] = ()  # columns of X whose values are categories


def check_settings(
    *,
    num_trees: Any = 100,
    alpha: Any = 0.95,
    beta: Any = 1.25,
    num_cutpoints: Any = None,
    min_samples_leaf: Any = 1,
    max_depth: Any = None,
    cut_prior: Any = "columns",
    categorical: tuple[int, ...] = (),
) -> TreeSettings:
    """Refuse settings out of range; return the others as plain Python numbers.

    Raises
    ------
    ValueError, TypeError
        In a sentence that names the setting, its value and its range.
    """
    check_choice(cut_prior, "cut_prior", CUT_PRIORS)
    alpha = real_number(alpha, "alpha")
    beta = real_number(beta, "beta")
    if not 0.0 < alpha < 1.0:
        msg = (
            f"alpha is {alpha:g}, but must lie strictly between 0 and 1: it is the probability "
            "that the root of a tree splits."
        )
        raise ValueError(msg)
    if not 0.0 <= beta < math.inf:
        msg = (
            f"beta is {beta:g}, but must be finite and at least 0: a node at depth d splits with "
            "probability alpha * (1 + d) ** -beta."
        )
        raise ValueError(msg)
    return TreeSettings(
        whole_number(num_trees, "num_trees"),
        alpha,
        beta,
        None if num_cutpoints is None else whole_number(num_cutpoints, "num_cutpoints"),
        whole_number(min_samples_leaf, "min_samples_leaf"),
        None if max_depth is None else whole_number(max_depth, "max_depth"),
        cut_prior,
        categorical,
    )


def check_split_weights(split_weights: Any, num_columns: int) -> NDArray[np.float64]:
    """Relative probabilities with which columns are split on; equal ones for None.

    Parameters
    ----------
    split_weights : array_like of shape (p,) or (..., p), or None
        Finite and not negative, at least one of each p positive. They need not sum to one.
    num_columns : int
        Columns of X, p.

    Returns
    -------
    ndarray
        float64, of the same shape.
    """
    if split_weights is None:
        return np.full(num_columns, 1.0 / num_columns)
    weights = as_numbers(split_weights, "split_weights")
    if weights.ndim == 0 or weights.shape[-1] != num_columns:
        msg = (
            f"split_weights has shape {weights.shape}, but X has {num_columns} column(s). Pass one "
            "weight for each column of X."
        )
        raise ValueError(msg)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        at = int(np.argwhere(~(np.isfinite(weights) & (weights >= 0)))[0][-1])
        msg = (
            f"split_weights[{at}] (counting from 0) is negative or not finite. Weights are "
            "relative probabilities of splitting on a column: 0 excludes it."
        )
        raise ValueError(msg)
    if not (weights.max(axis=-1) > 0).all():
        msg = (
            "split_weights are all 0, which leaves no column to split on. Make at least one of "
            "them positive."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        totals = weights.sum(axis=-1)
    if not np.isfinite(totals).all():
        msg = (
            "The sum of split_weights is beyond the range of floating-point numbers. Rescale them."
        )
        raise ValueError(msg)
    # Less makes no difference but where there is nothing else to split on, and there its logarithm
    # must be a number.
    least = LEAST_SHARE * weights.max(axis=-1, keepdims=True)
    return np.where((weights > 0) & (weights < least), least, weights)


def check_sigma(sigma: Any) -> NDArray[np.float64]:
    """Prior standard deviation of f at a point, > 0; a number, or one for each of k forests."""
    values = as_numbers(sigma, "sigma")
    if not (np.isfinite(values).all() and (values > 0).all()):
        bad = values[~(np.isfinite(values) & (values > 0))][0]
        msg = (
            f"sigma is {bad:g}, but must be positive and finite: it is the prior standard "
            "deviation of f at a point, on the scale of f."
        )
        raise ValueError(msg)
    if values.min() < SMALLEST_SIGMA or values.max() > LARGEST_SIGMA:
        bad = values[(values < SMALLEST_SIGMA) | (values > LARGEST_SIGMA)][0]
        msg = (
            f"sigma is {bad:g}, but must lie between {SMALLEST_SIGMA:g} and {LARGEST_SIGMA:g} for "
            "its square and what is computed with it to be floating-point numbers. Express f, and "
            "with it the response, in other units."
        )
        raise ValueError(msg)
    return values


def check_mu(mu: Any) -> NDArray[np.float64]:
    """Prior mean of f at a point; a number, or one for each of k forests."""
    values = as_numbers(mu, "mu")
    if not np.isfinite(values).all():
        msg = "mu must be finite: it is the prior mean of f at a point, on the scale of f."
        raise ValueError(msg)
    return values


def tree_prior(
    settings: TreeSettings, *, sigma: float, split_weights: NDArray[np.float64], num_rows: int
) -> Prior:
    """What the kernels need to know of the prior, for one forest over n rows.

    Parameters
    ----------
    settings : TreeSettings
        As `check_settings` returns them.
    sigma : float
        Prior standard deviation of f at a point, > 0; each of the trees has a variance of
        ``sigma**2 / num_trees``.
    split_weights : ndarray of shape (q,)
        Of views, as `views.share_weights` returns them.
    num_rows : int
        Rows of X, n. Sets the default of `num_cutpoints`.
    """
    num_cutpoints = settings.num_cutpoints or default_num_cutpoints(num_rows)
    return Prior(
        alpha=settings.alpha,
        beta=settings.beta,
        leaf_var=float(sigma) ** 2 / settings.num_trees,
        # A copy can be written to, and Numba compiles anew for arrays that can't.
        split_weights=np.array(split_weights, dtype=np.float64, order="C"),
        # n rows have at most n - 1 cuts, all of them candidates from there on: a larger number only
        # costs memory.
        num_cutpoints=min(num_cutpoints, max(num_rows - 1, 1)),
        min_samples_leaf=settings.min_samples_leaf,
        max_depth=NO_MAX_DEPTH if settings.max_depth is None else settings.max_depth,
        cut_prior=CUT_PRIORS[settings.cut_prior],
    )


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuse anything but one of these words."""
    if not isinstance(value, str) or value not in choices:
        msg = f"{name} is {value!r}, but must be one of {', '.join(map(repr, choices))}."
        raise ValueError(msg)


def whole_number(value: Any, name: str, *, at_least: int = 1) -> int:
    """Whole number in range. `True` would count as 1, and is more likely a slip."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        msg = f"{name} is {value!r}, but must be a whole number, at least {at_least}."
        raise TypeError(msg)
    if value < at_least:
        msg = f"{name} is {value}, but must be at least {at_least}."
        raise ValueError(msg)
    return int(value)


def real_number(value: Any, name: str) -> float:
    """Real number, in any range. `True` would count as 1, and is more likely a slip."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        msg = f"{name} is {value!r}, but must be a real number."
        raise TypeError(msg)
    return float(value)


def positive_number(value: Any, name: str) -> float:
    """Real number, positive and finite."""
    number = real_number(value, name)
    if not 0.0 < number < math.inf:
        msg = f"{name} is {number:g}, but must be positive and finite."
        raise ValueError(msg)
    return number
