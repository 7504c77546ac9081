"""A row that counts w times is the row w times over: the same law, written in three ways."""

import numpy as np
import pymc as pm
import pytest

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.likelihood import Likelihood

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(6, 2)), RNG.poisson(2, size=6)
TIMES = np.array([1, 3, 2, 1, 5, 2])
REPEATED = np.repeat(np.arange(6), TIMES)


def by_index(law):
    def model(f, noise):
        law("y", f[REPEATED], noise, observed=Y[REPEATED])

    return model


def by_weight(law):
    def model(f, noise):
        pm.Potential("y", TIMES * pm.logp(law.dist(f, noise), Y))

    return model


class Counts:
    """Negative binomial counts, with the signature of `pm.Normal`."""

    def __new__(cls, name, f, noise, observed):
        return pm.NegativeBinomial(name, mu=pm.math.exp(f), alpha=noise, observed=observed)

    @staticmethod
    def dist(f, noise):
        return pm.NegativeBinomial.dist(mu=pm.math.exp(f), alpha=noise)


@pytest.mark.parametrize("law", [pm.Normal, Counts])
def test_weights_are_repeated_rows(law, rng):
    logps, derivatives = [], []
    points = [{"f": rng.normal(size=6), "noise_log__": rng.normal()} for _ in range(3)]
    for rest in (by_index(law), by_weight(law)):
        with pm.Model() as model:
            f = XBARTForest("f", X, sigma=1.0, num_trees=3)
            rest(f, pm.HalfNormal("noise", 1))
        logp = model.compile_logp(mode="FAST_COMPILE")
        likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
        logps.append([logp(point) for point in points])
        derivatives.append([likelihood.gradient_curvature(point["f"], point) for point in points])
    np.testing.assert_allclose(*logps)  # of f and noise, hence the posterior of both
    np.testing.assert_allclose(*derivatives)  # what the step reads


def test_that_precision_weights_are_something_else():
    """With sigma / sqrt(w) a row of weight 3 is one precise observation, not three."""
    logps = []
    for rest in (
        by_weight(pm.Normal),
        lambda f, noise: pm.Normal("y", f, noise / np.sqrt(TIMES), observed=Y),
    ):
        with pm.Model() as model:
            f = XBARTForest("f", X, sigma=1.0, num_trees=3)
            rest(f, pm.HalfNormal("noise", 1))
        logp = model.compile_logp(mode="FAST_COMPILE")
        one, other = ({"f": np.zeros(6), "noise_log__": np.array(x)} for x in (0.0, 1.0))
        logps.append(logp(one) - logp(other))
    assert abs(logps[0] - logps[1]) > 1.0
