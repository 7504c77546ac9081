"""A quadratic stand-in for a log-likelihood that is not quadratic (floor 1).

Kernels update many trees at once under a quadratic function of f. Here is one that is close to the
log-likelihood not at one f but over all the values that f takes: with N(m, s^2) for the law of f in
a row, its gradient is the straight line in f that comes closest to the log-likelihood's own on
average (statistical linearisation),

    E[g] - c (f - m),    c = cov(f, g) / s^2 = -E[d g / d f].

For log-likelihoods with one curvature everywhere that is the log-likelihood itself. It is also what
the Gaussian variational approximation uses (Opper & Archambeau 2009, "The variational Gaussian
approximation revisited"), and it needs no second derivative, so that kinks do no harm. Expectations
are taken at three nodes (Gauss-Hermite). m and s are learnt in tuning and stay as they are
afterwards: what depends on trees at hand could not be their target law.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.nonquadratic import LogLikelihood
from pymc_xbart.kernels import STEEPEST, whole_multiples

Array = NDArray[np.float64]

MIN_SEEN = 20  # values of f that say where it is
NODE = math.sqrt(3.0)  # m and m +- NODE s, with weights 2/3, 1/6, 1/6
# Curvatures are rounded to multiples of their mean over this. More would take larger tables, and
# fewer would make the stand-in a worse one.
COARSE = 4.0
NARROWEST = 1e-6  # a variance, relative to the prior's: where f has hardly moved

TARGET = 0.7  # of the probability that a block is accepted
LEAST_SIZE = 4.0  # trees in a block; smaller ones take longer than trees one by one
GAIN = 2.0


class Surrogate(NamedTuple):
    """What tuning has learnt: where f is, and how many trees can be updated at once."""

    mean: Array  # (n,) of f
    var: Array  # (n,)
    num_seen: int  # values of f
    log_size: float  # of the number of trees in a block
    num_judged: int  # sweeps by which that number was judged

    @property
    def is_known(self) -> bool:
        """Whether f has been seen often enough."""
        return self.num_seen >= MIN_SEEN

    @property
    def pays(self) -> bool:
        """Whether blocks are large enough to be faster than trees one by one."""
        return self.log_size >= math.log(LEAST_SIZE)


def unlearnt_surrogate(num_rows: int, num_trees: int) -> Surrogate:
    """Begin to learn: blocks are as large as can be until they prove too large."""
    return Surrogate(np.zeros(num_rows), np.zeros(num_rows), 0, math.log(num_trees), 0)


def learn_values(surrogate: Surrogate, f: Array) -> Surrogate:
    """Take a value of f, (n,), into account.

    The k-th counts k times as much as the first, since a chain has yet to arrive when it starts.
    """
    num_seen = surrogate.num_seen + 1
    share = 2.0 / (num_seen + 1)
    change = f - surrogate.mean
    mean = surrogate.mean + share * change
    var = (1.0 - share) * (surrogate.var + share * change**2)
    return surrogate._replace(mean=mean, var=var, num_seen=num_seen)


def learn_size(surrogate: Surrogate, acceptance: float, num_trees: int) -> Surrogate:
    """Take into account how likely blocks were to be accepted (Robbins & Monro 1951)."""
    gain = GAIN / math.sqrt(1 + surrogate.num_judged)
    log_size = surrogate.log_size + gain * (acceptance - TARGET)
    # Half of the least size, so that one lucky sweep brings blocks back.
    log_size = min(max(log_size, math.log(LEAST_SIZE / 2)), math.log(num_trees))
    return surrogate._replace(log_size=log_size, num_judged=surrogate.num_judged + 1)


def num_blocks(surrogate: Surrogate, num_trees: int) -> int:
    """Count the blocks of a sweep."""
    return max(1, round(num_trees / max(LEAST_SIZE, math.exp(surrogate.log_size))))


class Quadratic(NamedTuple):
    """A sum over rows of quadratic functions of f."""

    center: Array  # (n,)
    slope: Array  # (n,) there
    curvature: Array  # (n,), >= 0

    def gradient(self, f: Array) -> Array:
        """Evaluate the gradient at f, (n,)."""
        return self.slope - self.curvature * (f - self.center)

    def log_p(self, f: Array) -> float:
        """Evaluate the sum, up to a constant."""
        distance = f - self.center
        return float(distance @ (self.slope - 0.5 * self.curvature * distance))


def linearise(surrogate: Surrogate, likelihood: LogLikelihood, prior_var: float) -> Quadratic:
    """Stand-in for a log-likelihood, for f where it was seen.

    Rows where the gradient is unknown or above `STEEPEST` have no say in it.
    """
    mean = surrogate.mean
    sd = np.sqrt(np.maximum(surrogate.var, NARROWEST * prior_var))
    below, here, above = (
        likelihood.gradient_curvature(mean + step * sd)[0] for step in (-NODE, 0.0, NODE)
    )
    with np.errstate(invalid="ignore", over="ignore"):
        slope = (4.0 * here + below + above) / 6.0
        curvature = (below - above) / (2.0 * NODE * sd)
    is_usable = (np.abs(slope) <= STEEPEST) & (np.abs(curvature) <= STEEPEST)  # false for NaN
    slope = np.where(is_usable, slope, 0.0)
    return Quadratic(mean, slope, np.where(is_usable, np.maximum(curvature, 0.0), 0.0))


def coarsen(quadratic: Quadratic, rng: np.random.Generator) -> Quadratic:
    """Round curvatures at random, without bias, to what a tally can hold."""
    if not quadratic.curvature.any():
        return quadratic
    return quadratic._replace(curvature=whole_multiples(quadratic.curvature, COARSE, rng))
