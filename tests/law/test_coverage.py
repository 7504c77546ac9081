"""Of intervals of f that hold 95 percent of the posterior, 95 percent hold the truth.

Data sets are drawn from the model itself, and fitted with the steps of `pm.sample`, until the draws
of every f are worth at least 400 independent ones. Coverage is the share of a set's rows in whose
interval f lies; rows of a set share their trees, so that errors are those over sets.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest
from arviz_stats.base import array_stats

from pymc_xbart.plugin.distribution import XBARTForest
from tests.helpers.many_fits import ManyFits

pytestmark = pytest.mark.slow

N = 50
RNG = np.random.default_rng(1)
X = np.column_stack([RNG.uniform(size=N), RNG.integers(0, 2, N), RNG.integers(0, 6, N)])
NUM_SETS = 60
TUNE, BLOCK, MAX_DRAWS = 200, 500, 20_000
MIN_ESS = 400
LEVEL = 0.95


def build():
    with pm.Model() as model:
        noise = pm.LogNormal("noise", -0.7, 0.3)
        f = XBARTForest("f", X, mu=0, sigma=1, num_trees=10, beta=0.5)
        pm.Normal("y", f, noise, observed=pm.Data("y_data", np.zeros(N)))
    return model


class Fitted(NamedTuple):
    """Of each data set: the truth, the bounds of intervals, and what draws are worth, (sets, N)."""

    truth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ess: np.ndarray


def fit_all(rng, change=None, min_ess=MIN_ESS):
    """Fit all sets, with a step that is changed first."""
    fits = ManyFits(build())
    if change is not None:
        change(fits.xbart)
    sets = fits.simulate(NUM_SETS, rng)
    draws, ess = zip(*(draw_enough(fits, s["y"], rng, min_ess) for s in sets), strict=True)
    # Bounds between which draws of the truth's own law would lie with that probability.
    tail = (1 - LEVEL) / 2
    bounds = [np.quantile(f, [tail, 1 - tail], axis=0, method="weibull") for f in draws]
    low, high = np.array(bounds).swapaxes(0, 1)
    return Fitted(np.array([s["f"] for s in sets]), low, high, np.array(ess))


def draw_enough(fits, y, rng, min_ess):
    """Draws of f, (draws, N), and their effective number, (N,)."""
    chain = fits.chain(y, rng, tune=TUNE, draws=MAX_DRAWS)
    f = []
    while block := [values["f"] for values in itertools.islice(chain, BLOCK)]:
        f += block
        ess = array_stats.ess(np.array(f)[None], chain_axis=0, draw_axis=1)
        if ess.min() >= min_ess:
            break
    return np.array(f), ess


def standard_errors_off(fitted, width=1.0):
    """Coverage less its nominal value, in standard errors over sets; intervals made `width` times
    as wide before.
    """
    centre, half = (fitted.high + fitted.low) / 2, width * (fitted.high - fitted.low) / 2
    coverage = np.mean(np.abs(fitted.truth - centre) <= half, axis=1)
    return (coverage.mean() - LEVEL) / (coverage.std(ddof=1) / NUM_SETS**0.5)


@pytest.fixture(scope="module")
def fitted():
    return fit_all(np.random.default_rng(1))


def test_every_f_has_enough_draws(fitted):
    assert fitted.ess.min() >= MIN_ESS


def test_95_percent_intervals_cover_in_95_percent(fitted):
    """Fails correct steps with probability 0.004 (three standard errors, 59 degrees of freedom)."""
    assert abs(standard_errors_off(fitted)) < 3


# Broken twins.


def test_that_it_would_catch_narrow_intervals(fitted):
    assert standard_errors_off(fitted, width=0.8) < -3


def test_that_it_would_catch_wide_intervals(fitted):
    assert standard_errors_off(fitted, width=1.25) > 3


def noise_var_halved(xbart):
    """Let the forest take the noise for less than it is."""
    (target,) = xbart._targets
    original = target.likelihood.gradient_curvature

    def gradient_curvature(f, point, row=0):
        g, h = original(f, point, row=row)
        return 2 * g, 2 * h

    target.likelihood.gradient_curvature = gradient_curvature


def test_that_it_would_catch_a_forest_that_takes_the_noise_for_less(rng):
    assert standard_errors_off(fit_all(rng, noise_var_halved, min_ess=0)) < -3
