"""Simulation-based calibration: among posterior draws, the truth has every rank equally often.

Talts et al. (2018, arXiv 1804.06788), of a forest, its sigma and the noise under the steps of
`pm.sample`, with every data set drawn from the model itself. The log-likelihood is ranked, too: it
depends on the data, and sees errors that no parameter shows by itself (Modrak et al. 2023, Bayesian
Analysis).

simuk 0.3 does not fit. It ranks free variables, one by one, so that there is no log-likelihood,
and calls `pm.sample` for each data set: 1.0 of 2.3 seconds go to building functions and steps anew.
"""

import math

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_xbart.plugin.distribution import XBARTForest
from tests.helpers import law
from tests.helpers.many_fits import ManyFits

pytestmark = pytest.mark.slow

N = 50
RNG = np.random.default_rng(1)
X = np.column_stack([RNG.uniform(size=N), RNG.integers(0, 2, N), RNG.integers(0, 6, N)])
ROWS = (0, 10, 20, 30, 40)
NAMES = ["scale", "noise", "log-likelihood", *(f"f[{row}]" for row in ROWS)]
NUM_SETS = 240
# Few draws to a set, but far from each other: more would hardly sharpen a rank.
DRAWS, THIN, TUNE = 9, 70, 300
CELLS = 5
RANKS_TO_A_CELL = (DRAWS + 1) // CELLS
UNIFORM = dict.fromkeys(range(CELLS), -math.log(CELLS))
MAX_CORRELATION = 0.2


def build():
    # Trees that are deep for n = 50, and little noise: there, proposals that look one split ahead
    # are far from the posterior, and leaving out the correction shows.
    with pm.Model() as model:
        scale = pm.LogNormal("scale", 0.0, 0.4)
        noise = pm.LogNormal("noise", -1.0, 0.3)
        f = XBARTForest("f", X, mu=0, sigma=scale, num_trees=10, beta=0.3)
        pm.Normal("y", f, noise, observed=pm.Data("y_data", np.zeros(N)))
    return model


def quantities(values, y):
    """What is ranked, of one draw or of many, (..., number of quantities)."""
    f, noise = values["f"], values["noise"]
    log_likelihood = stats.norm.logpdf(y, f, noise[..., None]).sum(axis=-1)
    return np.stack(
        [values["scale"], noise, log_likelihood, *(f[..., row] for row in ROWS)], axis=-1
    )


def fit_all(rng, tune=TUNE, thin=THIN, **options):
    """Quantities of the truth, (sets, quantities), and of draws, (sets, draws, quantities)."""
    fits = ManyFits(build(), **options)
    sets = fits.simulate(NUM_SETS, rng)
    draws = [fits.fit(s["y"], rng, tune=tune, draws=DRAWS, thin=thin) for s in sets]
    return (
        np.array([quantities(s, s["y"]) for s in sets]),
        np.array([quantities(d, s["y"]) for d, s in zip(draws, sets, strict=True)]),
    )


def miscalibrated(truth, draws):
    """Names of the quantities whose ranks are not uniform, by a test of level 1e-6 for each."""
    cells = (draws < truth[:, None]).sum(axis=1) // RANKS_TO_A_CELL
    return {name for name, cell in zip(NAMES, cells.T, strict=True) if not is_uniform(cell)}


def is_uniform(cells):
    try:
        law.assert_law(cells.tolist(), UNIFORM, false_fail=1e-6)
    except AssertionError:
        return False
    return True


def neighbour_correlation(draws):
    """Rank correlation within a set of a draw with the next, by quantity; 0 if independent.

    The mean square of differences between successive ranks, beside what it is on average when all
    orders are equally likely (Bartels 1982, JASA 77).
    """
    rank = draws.argsort(axis=1).argsort(axis=1)
    num_draws = draws.shape[1]
    return 1 - 6 * np.mean(np.diff(rank, axis=1) ** 2, axis=(0, 1)) / (num_draws * (num_draws + 1))


@pytest.fixture(scope="module")
def fitted():
    return fit_all(np.random.default_rng(1))


def test_the_truth_ranks_uniformly_among_posterior_draws(fitted):
    """Fails correct steps with probability 8e-6, 1e-6 for each quantity.

    That is of independent draws. With all correlations of neighbours at the bound of the next test
    it would be 4e-5 (chains of an autoregression).
    """
    assert miscalibrated(*fitted) == set()


def test_kept_draws_hardly_know_of_each_other(fitted):
    assert neighbour_correlation(fitted[1]).max() < MAX_CORRELATION


def test_what_this_is_sure_to_see():
    # In total variation of a rank, with probability 0.999 at the level of 1e-6.
    assert law.smallest_visible_error(UNIFORM, NUM_SETS) < 0.34


# Broken twins.


@pytest.mark.parametrize("factor", [1 / 3, 3.0])
def test_that_it_would_catch_another_width(fitted, factor):
    truth, draws = fitted
    centre = draws.mean(axis=1, keepdims=True)
    assert miscalibrated(truth, centre + factor * (draws - centre)) == set(NAMES)


@pytest.mark.parametrize("sign", [-1, 1])
def test_that_it_would_catch_another_location(fitted, sign):
    truth, draws = fitted
    shift = sign * draws.std(axis=1, keepdims=True)
    assert miscalibrated(truth, draws + shift) == set(NAMES)


def test_that_it_would_catch_uncorrected_sweeps(rng):
    # A likelihood ratio of some 130 (by resampling of sets, above 67 in 3000 of 3000), and 33 is
    # the bound.
    truth, draws = fit_all(rng, tune=100, thin=20, correction="none")
    assert "log-likelihood" in miscalibrated(truth, draws)
    # It is the law that is wrong, for these chains mix fast.
    assert neighbour_correlation(draws).max() < MAX_CORRELATION


def test_that_it_would_catch_draws_that_know_of_each_other(rng):
    fits = ManyFits(build())
    draws = [
        quantities(fits.fit(s["y"], rng, tune=50, draws=DRAWS), s["y"])
        for s in fits.simulate(NUM_SETS, rng)
    ]
    assert neighbour_correlation(np.array(draws)).max() > MAX_CORRELATION


def test_fits_are_those_of_pm_sample(rng):
    model = build()
    fits = ManyFits(model)
    first, second = fits.simulate(2, rng)
    for data in (first, second, first):
        (chain_rng,) = np.random.default_rng(7).spawn(1)
        draws = fits.fit(data["y"], chain_rng, tune=40, draws=20)
        expected = pm.sample(
            20,
            tune=40,
            chains=1,
            cores=1,
            random_seed=7,
            model=model,
            quiet=True,
            compute_convergence_checks=False,
        )
        for name, values in draws.items():
            np.testing.assert_array_equal(values, expected["posterior"][name].values[0])
