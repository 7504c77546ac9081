"""What was put into simulated data comes out again: forests beside group effects, and two at once.

Bounds are for seeded runs on data with a known answer. They leave room for the noise that the data
holds, and none for a forest or group effects that have not seen each other's residuals: those end
up at correlations below 0.9, and at errors of the size of the effects.
"""

import numpy as np
import pymc as pm
import pytest

from pymc_xbart.plugin.distribution import XBARTForest
from tests.helpers.runs import correlation, posterior_mean, sample

N = 800
GROUPS = 8
NOISE = 0.5
RNG = np.random.default_rng(20190416)
X = RNG.uniform(-1, 1, size=(N, 4))
F = 2.0 * np.sin(np.pi * X[:, 0]) * (X[:, 1] > 0) + X[:, 2] ** 2 + 10.0  # the last column is idle
GROUP = RNG.integers(0, GROUPS, size=N)
EFFECT = RNG.normal(0.0, 1.5, size=GROUPS)


@pytest.fixture(scope="module")
def hierarchical():
    y = F + EFFECT[GROUP] + RNG.normal(0.0, NOISE, size=N)
    with pm.Model(coords={"row": np.arange(N), "group": np.arange(GROUPS)}) as model:
        f = XBARTForest("f", X, y=y, num_trees=30, dims="row")
        scale = pm.HalfNormal("scale", 2.0)
        a = pm.Normal("a", 0.0, scale, dims="group")
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f + a[GROUP], noise, observed=y, dims="row")
    return sample(model, chains=2, tune=200, draws=150)


def test_forest_follows_the_truth(hierarchical):
    f = posterior_mean(hierarchical)
    assert correlation(f, F) > 0.95
    # Up to the level that f and the group effects share, the error is a fraction of the noise.
    assert np.std(f - F) < 0.6 * NOISE


def test_group_effects_are_recovered_up_to_their_common_level(hierarchical):
    # f + c and a - c have the same likelihood, and only the priors tell them apart. What the data
    # knows about a group, a mean of 100 residuals, has a standard error of 0.05.
    a = posterior_mean(hierarchical, "a")
    np.testing.assert_allclose(a - a.mean(), EFFECT - EFFECT.mean(), atol=0.25)
    level = a.mean() - EFFECT.mean()
    np.testing.assert_allclose(posterior_mean(hierarchical).mean() + level, F.mean(), atol=0.1)


def test_scales_are_recovered(hierarchical):
    assert abs(posterior_mean(hierarchical, "noise") - NOISE) < 0.1
    true_scale = np.std(EFFECT)
    assert 0.6 * true_scale < posterior_mean(hierarchical, "scale") < 1.7 * true_scale


def test_two_forests_are_told_apart_by_the_treatment():
    prognosis = 1.0 + 2.0 * np.abs(X[:, 0])
    effect = np.where(X[:, 1] > 0, 2.0, 0.5)
    z = RNG.integers(0, 2, size=N)
    y = prognosis + effect * z + RNG.normal(0.0, NOISE, size=N)
    with pm.Model() as model:
        mu = XBARTForest("mu", X, y=y, num_trees=30)
        tau = XBARTForest("tau", X, mu=1.0, sigma=1.0, num_trees=20)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", mu + tau * z, noise, observed=y)
    idata = sample(model, tune=200, draws=150)
    assert correlation(posterior_mean(idata, "mu"), prognosis) > 0.95
    assert correlation(posterior_mean(idata, "tau"), effect) > 0.95
    assert abs(posterior_mean(idata, "tau").mean() - effect.mean()) < 0.15
    assert abs(posterior_mean(idata, "noise") - NOISE) < 0.1
