"""Log-probabilities that are not quadratic, as functions of one row of a forest."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.likelihood import Likelihood
from tests.helpers.runs import sample

N = 6
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
COUNTS = np.arange(N)


def likelihood_of(rest, rng, **options):
    with pm.Model() as model:
        rest(XBARTForest("f", X, **{"sigma": 1.0, "num_trees": 3} | options))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    likelihood.check(model.initial_point(), rng)
    return likelihood, model.initial_point()


def test_differences_are_those_of_the_model(rng):
    likelihood, point = likelihood_of(
        lambda f: pm.Poisson("y", pt.exp(pm.Normal("a") + f), observed=COUNTS), rng
    )
    point["a"] = np.array(0.3)
    f, moved = rng.normal(size=(2, N))
    here = likelihood.at(f, point)
    expected = np.sum(COUNTS * (moved - f) - np.exp(0.3 + moved) + np.exp(0.3 + f))
    assert here.log_p(moved) - here.log_p(f) == pytest.approx(expected)
    g, h = here.gradient_curvature(f)
    np.testing.assert_allclose(g, COUNTS - np.exp(0.3 + f))
    np.testing.assert_allclose(h, np.exp(0.3 + f))


def test_other_rows_stay_as_they_are(rng):
    likelihood, point = likelihood_of(
        lambda f: pm.Normal("y", f[0], pt.exp(f[1]), observed=COUNTS), rng, shape=(2, N)
    )
    f = rng.normal(size=(2, N))
    mean, log_sd = f.copy()
    here = likelihood.at(f, point, row=1)
    moved = rng.normal(size=N)

    def log_p(log_sd):
        return np.sum(-log_sd - 0.5 * ((COUNTS - mean) * np.exp(-log_sd)) ** 2)

    assert here.log_p(moved) - here.log_p(log_sd) == pytest.approx(log_p(moved) - log_p(log_sd))
    g, _ = here.gradient_curvature(log_sd)
    np.testing.assert_allclose(g, ((COUNTS - mean) * np.exp(-log_sd)) ** 2 - 1)


def as_sd(f):
    pm.Normal("y", 0, f, observed=COUNTS)


def test_what_is_impossible_has_no_probability_and_no_finite_gradient(rng):
    likelihood, point = likelihood_of(as_sd, rng, mu=3.0)
    here = likelihood.at(np.full(N, 2.0), point)
    below = np.array([2.0, -1.0, 2.0, 2.0, 2.0, 2.0])
    assert here.log_p(below) == -np.inf
    assert here.log_p(np.full(N, 2.0)) > -np.inf
    assert not np.isfinite(here.gradient_curvature(np.zeros(N))).any()


def test_a_chain_that_stands_where_nothing_is_possible_stops(rng):
    likelihood, point = likelihood_of(as_sd, rng, mu=3.0)
    with pytest.raises(SamplingError, match=r"log-probability of 'y' is not finite .*forest 'f'"):
        likelihood.at(np.full(N, -1.0), point)


@pytest.mark.parametrize("kind", ["fixed", "random scale", "sparse"])
def test_a_forest_that_must_be_positive_is_sampled(kind, rng):
    # Where hyperparameters are random, chains start from trees of the prior, which are not.
    with pm.Model() as model:
        how = {
            "fixed": {"sigma": 1.0},
            "random scale": {"sigma": pm.HalfNormal("s", 4.0) if kind == "random scale" else None},
            "sparse": {"sigma": 4.0, "split_weights": "sparse"},
        }[kind]
        as_sd(XBARTForest("f", X, mu=3.0, num_trees=8, **how))
    idata = sample(model, tune=10, draws=30, random_seed=rng)
    assert (idata["posterior"]["f"] > 0).all()


def test_walls_are_heeded(rng):
    with pm.Model() as model:
        f = XBARTForest("f", X, mu=1.0, sigma=1.0, num_trees=8)
        pm.Normal("y", f, 1.0, observed=np.full(len(X), -1.0))
        pm.Potential("wall", pm.math.switch(f > 0.0, 0.0, -np.inf))
    idata = sample(model, tune=10, draws=30, random_seed=rng)
    assert (idata["posterior"]["f"] > 0).all()
    assert (idata["posterior"]["f"] < 1).mean() > 0.9
