"""What kind of log-probability a sweep has to deal with, tried out at random points (floor 2).

Sums over the rows of a leaf are all that a tree sees, which is right if the second derivatives H in
the rows of one forest are diagonal; and one evaluation of (g, h) serves a whole sweep if the
log-probability is quadratic in f. For a random vector v both show, almost surely, in a few
products:

    diagonal     H v = (H 1) * v
    quadratic    h(f + d) = h(f)  and  g(f + d) = g(f) - h(f) * d

The last one is needed too: an absolute error has h = 0 everywhere and is no quadratic. Graphs say
more of quadratics than points can, see `second_order`; a forest's log-probability is taken for one
if both agree.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymc.logprob.utils import ParameterValueError

from pymc_xbart.plugin.point_function import Point
from pymc_xbart.plugin.second_order import SecondOrder, flatten

NUM_POINTS = 3  # values of the other variables: those of the model's point, and two more
# Spread of the probes of f, in prior standard deviations: where f will be, far enough out to meet
# the kinks and tails of a log-probability that is nearly quadratic there, and so close that it is
# finite.
SPREADS = (1.0, 10.0, 0.01)
# Steps from the model's point in unconstrained space, where most variables have a scale of about 1.
# Small ones serve if the log-probability is not finite after a large one.
OTHER_STEPS = (1.0, 0.1, 0.01)
# Of the largest curvature: what rounding may leave where there is none.
ROUNDINGS = 10


class Kind(Enum):
    """Kinds of log-probability, as a function of one row of a forest."""

    QUADRATIC = "quadratic"
    SEPARABLE = "separable"  # a sum over rows
    COUPLED = "coupled"  # second derivatives are not diagonal
    RISING = "rising"  # quadratic, and curves upwards: no maximum in f


class Probe(NamedTuple):
    """Where to look: two values of f that differ in one row, and a direction in that row."""

    point: Point  # the other variables
    row: int
    f: NDArray[np.float64]  # the shape of the forest's value
    moved: NDArray[np.float64]
    direction: NDArray[np.float64]


def draw_probes(
    function: SecondOrder,
    f: NDArray[Any],
    mu: NDArray[np.float64],
    sigma: NDArray[np.float64],
    point: Point,
    rng: np.random.Generator,
) -> Iterator[Probe]:
    """Draw points to look at, one at a time: each is three times as large as f.

    Parameters
    ----------
    function : SecondOrder
        Asked whether other values of the other variables are possible.
    f : ndarray
        A value of the forest at which everything is finite, given `point`.
    mu, sigma : ndarray
        Prior mean and standard deviation of f, a number or one for each forest.
    point : dict
        Values of the other variables.
    rng : numpy.random.Generator
    """
    centre = np.broadcast_to(mu[..., None], f.shape)
    scale = np.broadcast_to(sigma[..., None], f.shape)
    points = [point]
    for _ in range(NUM_POINTS - 1):
        points += _other_point(function, f, point, rng)
    for other in points:
        for spread in SPREADS:
            for row in range(flatten(f).shape[0]):
                here = centre + spread * scale * rng.standard_normal(f.shape)
                moved = here.copy()
                flatten(moved)[row] = flatten(
                    centre + spread * scale * rng.standard_normal(f.shape)
                )[row]
                direction = np.zeros(f.shape)
                flatten(direction)[row] = rng.standard_normal(f.shape[-1])
                yield Probe(other, row, here, moved, direction)


def _other_point(
    function: SecondOrder, f: NDArray[Any], point: Point, rng: np.random.Generator
) -> list[Point]:
    """Other values of the other variables at which everything is finite; none if none was found."""
    for step in OTHER_STEPS:
        moved = dict(point)
        for name, dtype in function.other_dtypes.items():
            if dtype.kind == "f":  # whole numbers have no neighbours that are surely possible
                moved[name] = point[name] + step * rng.standard_normal(np.shape(point[name]))
        with np.errstate(all="ignore"), suppress(ParameterValueError):
            g, h = function(f, np.ones(f.shape), moved)
            if np.isfinite(g).all() and np.isfinite(h).all():
                return [moved]
    return []


def find_kind(function: SecondOrder, probes: Iterable[Probe]) -> Kind:
    """What the probes show of a log-probability: the worst, if they differ."""
    tolerance = float(np.sqrt(np.finfo(function.dtype).eps))
    with np.errstate(all="ignore"):
        kinds = {_kind_at(function, probe, tolerance) for probe in probes}
    if Kind.COUPLED in kinds:
        return Kind.COUPLED
    if Kind.SEPARABLE in kinds or not function.is_quadratic:
        return Kind.SEPARABLE
    return Kind.RISING if Kind.RISING in kinds else Kind.QUADRATIC


def _kind_at(function: SecondOrder, probe: Probe, tolerance: float) -> Kind:
    try:
        g, h = function.diagonal(probe.f, probe.row, probe.point)
        moved_g, moved_h = function.diagonal(probe.moved, probe.row, probe.point)
        hv = flatten(function(probe.f, probe.direction, probe.point)[1])[probe.row]
    except ParameterValueError:  # f is not possible there, so that nothing can be said
        return Kind.SEPARABLE
    step = flatten(probe.moved - probe.f)[probe.row]
    h_size = np.abs(h).max()
    # Row by row: next to a row that is known far better than others, these may be coupled, too.
    expected = h * flatten(probe.direction)[probe.row]
    size = np.abs(expected) + np.abs(hv)
    if _exceeds(hv - expected, tolerance * size + ROUNDINGS * tolerance**2 * h_size):
        return Kind.COUPLED
    # A quadratic is finite wherever f is.
    if not all(np.isfinite(x).all() for x in (g, h, moved_g, moved_h)):
        return Kind.SEPARABLE
    if _exceeds(moved_h - h, tolerance * h_size):
        return Kind.SEPARABLE
    # g may be a small difference of large terms, and has lost digits then
    g_size = max(np.abs(g).max(), np.abs(moved_g).max(), np.abs(h * step).max())
    if _exceeds(moved_g - g + h * step, 100 * tolerance * g_size):
        return Kind.SEPARABLE
    return Kind.RISING if h.min() < -tolerance * h_size else Kind.QUADRATIC


def _exceeds(difference: NDArray[np.float64], bound: float | NDArray[np.float64]) -> bool:
    """Whether some entry does; where a number is missing, nothing is known."""
    return bool(np.any(np.abs(difference) > bound))
