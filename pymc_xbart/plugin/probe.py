"""Is a log-probability of the kind that a sweep can handle? Tried out at random points (floor 2).

Sums over the rows of a leaf are all that a tree sees, which is right if the second derivatives H in
the rows of one forest are diagonal; and one evaluation of (g, h) serves a whole sweep, which is
right if the log-probability is quadratic in f. For a random vector v both show, almost surely, in a
few products:

    diagonal     H v = (H 1) * v
    quadratic    h(f + d) = h(f)  and  g(f + d) = g(f) - h(f) * d

The last one is needed too: an absolute error has h = 0 everywhere and is no quadratic.
"""

from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.plugin.second_order import Point, SecondOrder, flatten

NUM_POINTS = 3  # values of the other variables: those of the model's point, and two more
# Spread of the probes of f, in prior standard deviations: where f will be, and far enough out to
# meet the kinks and tails of a log-probability that is nearly quadratic there.
SPREADS = (1.0, 10.0)
# Steps from the model's point in unconstrained space, where most variables have a scale of about 1.
# Small ones serve if the log-probability is not finite after a large one.
OTHER_STEPS = (1.0, 0.1, 0.01)


class Problem(Enum):
    """What a log-probability can have against a sweep."""

    COUPLED = "coupled"  # second derivatives are not diagonal
    NOT_QUADRATIC = "not quadratic"
    NEGATIVE = "negative"  # curves upwards: no maximum in f


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
) -> list[Probe]:
    """Draw points to look at.

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
    probes = []
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
                probes.append(Probe(other, row, here, moved, direction))
    return probes


def _other_point(
    function: SecondOrder, f: NDArray[Any], point: Point, rng: np.random.Generator
) -> list[Point]:
    """Other values of the other variables at which everything is finite; none if none was found."""
    for step in OTHER_STEPS:
        moved = dict(point)
        for name, dtype in function.other_dtypes.items():
            if dtype.kind == "f":  # whole numbers have no neighbours that are surely possible
                moved[name] = point[name] + step * rng.standard_normal(np.shape(point[name]))
        with np.errstate(all="ignore"):
            g, h = function(f, np.ones(f.shape), moved)
        if np.isfinite(g).all() and np.isfinite(h).all():
            return [moved]
    return []


def find_problem(function: SecondOrder, probes: list[Probe]) -> Problem | None:
    """First problem that shows at one of the probes."""
    tolerance = float(np.sqrt(np.finfo(function.dtype).eps))
    with np.errstate(all="ignore"):
        for probe in probes:
            problem = _problem_at(function, probe, tolerance)
            if problem is not None:
                return problem
    return None


def _problem_at(function: SecondOrder, probe: Probe, tolerance: float) -> Problem | None:
    g, h = function.diagonal(probe.f, probe.row, probe.point)
    moved_g, moved_h = function.diagonal(probe.moved, probe.row, probe.point)
    hv = flatten(function(probe.f, probe.direction, probe.point)[1])[probe.row]
    step = flatten(probe.moved - probe.f)[probe.row]
    # A quadratic is finite wherever f is.
    if not all(np.isfinite(x).all() for x in (g, h, moved_g, moved_h, hv)):
        return Problem.NOT_QUADRATIC
    h_size = np.abs(h).max()
    if _exceeds(hv - h * flatten(probe.direction)[probe.row], tolerance * h_size):
        return Problem.COUPLED
    if _exceeds(moved_h - h, tolerance * h_size):
        return Problem.NOT_QUADRATIC
    # g may be a small difference of large terms, and has lost digits then
    g_size = max(np.abs(g).max(), np.abs(moved_g).max(), np.abs(h * step).max())
    if _exceeds(moved_g - g + h * step, 100 * tolerance * g_size):
        return Problem.NOT_QUADRATIC
    if h.min() < -tolerance * h_size:
        return Problem.NEGATIVE
    return None


def _exceeds(difference: NDArray[np.float64], bound: float) -> bool:
    return bool(np.abs(difference).max() > bound)
