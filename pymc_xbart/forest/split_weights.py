"""Split weights given the trees, where their prior is a Dirichlet law (floor 1).

The prior of a tree draws the column of each split by the split weights s, among those that have
cuts in its node. In the notation of `plugin.statistics`,

    p(trees | s)  =  prod_v s_v^count_v  /  prod over splits of A(split),   A = sum_v a_v s_v.

Were all columns available everywhere, A would be 1, and s Dirichlet again. Elsewhere a split may be
thought of as drawn by trial: columns are drawn by s, whether they have cuts or not, until one is
accepted. The draws that were not count like splits: given them, s is Dirichlet with

    concentration_v + count_v + refused_v.

Drawn in turn, refused columns given s and s given them, these leave the law of s given the trees as
it is. Draws of a Dirichlet law with concentrations far below 1, as in Linero (2018, "Bayesian
regression trees for high-dimensional prediction and variable selection", JASA 113), are mostly
smaller than the smallest floating-point number, so that they are drawn as logarithms.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Array = NDArray[np.float64]

LARGEST_RATE = 1e15  # of a Poisson law, above which it is its mean to seven digits
SLICE_WIDTH = 8.0  # on a logarithmic scale, as a rule; one that is too wide costs little


class SplitCounts(NamedTuple):
    """What the trees of all forests with the same split weights say about them."""

    counts: Array  # (p,), splits on each column
    availability: Array  # (m, p), of the distinct splits, >= 0
    occurrences: Array  # (m,), how often each of those occurs


def draw_refused(splits: SplitCounts, split_weights: Array, rng: np.random.Generator) -> Array:
    """Columns that were drawn where they have no cuts, and how often, (p,).

    With availabilities scaled to at most 1, refusals before a split on an available column are
    geometric. Those of many splits are drawn as Poisson variates of a Gamma-distributed rate.
    """
    has_occurred = splits.occurrences > 0
    available = splits.availability[has_occurred]
    available = available / available.max(axis=1, keepdims=True)
    tries = rng.gamma(splits.occurrences[has_occurred]) / (available @ split_weights)
    rate = (tries @ (1.0 - available)) * split_weights
    return np.where(rate < LARGEST_RATE, rng.poisson(np.minimum(rate, LARGEST_RATE)), rate)


def draw_log_dirichlet(concentration: Array, rng: np.random.Generator) -> Array:
    """Logarithm of a draw from a Dirichlet law, (p,)."""
    # A Gamma variate of shape c is one of shape c + 1 times U^(1 / c).
    shrinkage = rng.standard_exponential(concentration.size) / concentration
    log_gamma = np.log(rng.standard_gamma(concentration + 1.0)) - shrinkage
    log_weights: Array = log_gamma - logsumexp(log_gamma)
    return log_weights


def log_evidence(counts: Array, concentration: Array) -> float:
    """Log-probability of a sequence of columns with these counts, the weights integrated out."""
    total = float(concentration.sum())
    seen = counts > 0  # the others contribute nothing
    ratios = gammaln(concentration[seen] + counts[seen]) - gammaln(concentration[seen])
    return float(gammaln(total) - gammaln(total + counts.sum()) + ratios.sum())


def slice_sample(
    log_density: Callable[[float], float], value: float, rng: np.random.Generator
) -> float:
    """Move by slice sampling, from an interval placed at random around `value`.

    Neal (2003, "Slice sampling", Annals of Statistics 31), without stepping out.
    """
    level = log_density(value) - rng.standard_exponential()
    if math.isnan(level):
        msg = (
            f"The log-density of a concentration is not a number at {value:g}, where the chain is. "
            "Check its prior and its initial value."
        )
        raise ValueError(msg)
    low = value - SLICE_WIDTH * rng.random()
    high = low + SLICE_WIDTH
    while True:
        new = float(rng.uniform(low, high))
        if log_density(new) >= level:
            return new
        if new < value:
            low = new
        else:
            high = new
