"""Of intervals of f that hold 95 percent of the posterior, 95 percent hold the truth.

Data sets are drawn from the model itself, and fitted with the steps of `pm.sample` until the draws
of every f are worth at least 400 independent ones. Coverage is the share of a set's rows whose f
lies in its interval. Rows of a set share their trees, so that standard errors are those over sets.

Coverages named below are averages over two runs, with how far off they are in standard errors;
resampling the sets of those runs 400 000 times, no twin ever passed. Uncorrected sweeps are left to
`test_sbc`, which sees them surely: on so few rows their intervals of f err little.
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
NUM_SETS, FEW = 60, 30
TUNE, BLOCK, MAX_DRAWS = 200, 500, 20_000
MIN_ESS = 400
LEVEL = 0.95


def build(sigma=1.0):
    with pm.Model() as model:
        noise = pm.LogNormal("noise", -0.7, 0.3)
        f = XBARTForest("f", X, mu=0, sigma=sigma, num_trees=20, beta=0.5)
        pm.Normal("y", f, noise, observed=pm.Data("y_data", np.zeros(N)))
    return model


class Fitted(NamedTuple):
    """Of each data set: the truth, bounds of intervals, and what the draws are worth, (sets, N)."""

    truth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ess: np.ndarray


def fit_all(sets, model, rng):
    fits = ManyFits(model)
    draws, ess = zip(*(draw_enough(fits, s["y"], rng) for s in sets), strict=True)
    # Of m draws with the law of the truth, a share of k / (m + 1) lies below the k-th smallest on
    # average: that is "weibull".
    tail = (1 - LEVEL) / 2
    bounds = [np.quantile(f, [tail, 1 - tail], axis=0, method="weibull") for f in draws]
    low, high = np.array(bounds).swapaxes(0, 1)
    return Fitted(np.array([s["f"] for s in sets]), low, high, np.array(ess))


def draw_enough(fits, y, rng):
    """Draws of f, (draws, N), and their effective number, (N,)."""
    chain = fits.chain(y, rng, tune=TUNE, draws=MAX_DRAWS)
    f = []
    while block := [values["f"] for values in itertools.islice(chain, BLOCK)]:
        f += block
        ess = array_stats.ess(np.array(f)[None], chain_axis=0, draw_axis=1)
        if ess.min() >= MIN_ESS:
            break
    return np.array(f), ess


def standard_errors_off(fitted, width=1.0):
    """Coverage less its nominal value, in standard errors, of intervals `width` times as wide."""
    centre, half_width = (fitted.high + fitted.low) / 2, (fitted.high - fitted.low) / 2
    coverage = np.mean(np.abs(fitted.truth - centre) <= width * half_width, axis=1)
    return (coverage.mean() - LEVEL) / (coverage.std(ddof=1) / coverage.size**0.5)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    model = build()
    return fit_all(ManyFits(model).simulate(NUM_SETS, rng), model, rng)


def test_every_f_has_enough_draws(fitted):
    assert fitted.ess.min() >= MIN_ESS


def test_intervals_of_95_percent_cover_in_95_percent(fitted):
    """Fails correct steps with probability 0.01, almost always by covering too much.

    By resampling, for a t-test with 59 degrees of freedom would have 0.004: coverages are skewed.
    """
    assert abs(standard_errors_off(fitted)) < 3


# Broken twins.


def test_that_it_would_catch_narrow_intervals(fitted):
    """They cover 0.89, 8 standard errors off."""
    assert standard_errors_off(fitted, width=0.8) < -3


def test_that_it_would_catch_wide_intervals(fitted):
    """They cover 0.986, 15 standard errors off."""
    assert standard_errors_off(fitted, width=1.25) > 3


def test_that_it_would_catch_a_forest_of_half_the_sigma(rng):
    """It covers 0.81, 10 standard errors off."""
    sets = ManyFits(build()).simulate(FEW, rng)
    assert standard_errors_off(fit_all(sets, build(sigma=0.5), rng)) < -3
