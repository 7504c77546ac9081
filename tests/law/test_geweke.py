"""Whole models under the steps of `pm.sample`, tuned: the joint law of parameters and data is kept.

Replications start from a draw of everything from the prior, so that they must end in one, see
`tests.helpers.geweke`. What is compared are uniform variates and numbers of leaves, which are
bounded, as half-Cauchy scales have no moments. There are some 150 comparisons, slow tests included,
each of which fails correct steps with probability 1e-6.
"""

import numpy as np
import pymc as pm
import pytest
from pymc.step_methods import NUTS
from scipy import stats

from pymc_xbart.forest.correction import Correction
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers import geweke, law

N = 12
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))  # no ties, so that the law of the number of leaves is known
Z = np.arange(N) // 2 % 2
WITH_BINARY = np.column_stack([X[:, 0], RNG.permutation(Z)])
GROUP = np.arange(N) % 3
ALPHA, BETA = 0.95, 0.2  # deep trees, which proposals that look one split ahead miss
ROUNDS = 4
DRAWS = 600  # replications of one test
FEW = 200  # enough to see a gross error
MANY, MANY_ROUNDS = 3000, 8
CORRECTIONS = {
    "tree": Correction("tree"),
    "tree-mtry": Correction("tree", mtry=1),
    "sweep": Correction("sweep"),
    "sweep-reversible": Correction("sweep", "reversible"),
}


def grouped_model():
    """A forest of random scale, group effects and noise."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 2.0)
        f = XBARTForest("f", X, sigma=scale, num_trees=2, alpha=ALPHA, beta=BETA)
        spread = pm.HalfNormal("spread", 1.0)
        a = pm.Normal("a", 0.0, spread, shape=3)
        noise = pm.HalfNormal("noise", 0.5)
        y = pm.Data("y_data", np.zeros(N))
        pm.Normal("y", f + a[GROUP], noise, observed=y)
    return model


def causal_model():
    """Two forests, one of them an effect; half-Cauchy scale, split weights of random sparsity."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        concentration = pm.Gamma("concentration", 2.0, 4.0)
        weights = pm.Dirichlet("weights", concentration * np.ones(2))
        mu = XBARTForest("mu", WITH_BINARY, sigma=scale, split_weights=weights, num_trees=2)
        effect_scale = pm.HalfCauchy("effect_scale", 1.0)
        tau = XBARTForest("tau", X, sigma=effect_scale, num_trees=2, alpha=ALPHA, beta=BETA)
        noise = pm.HalfNormal("noise", 0.5)
        y = pm.Data("y_data", np.zeros(N))
        pm.Normal("y", mu + tau * Z, noise, observed=y)
    return model


def grouped_failures(replicas, rng):
    """What does not follow the prior of `grouped_model`."""
    scale, spread, a, noise = (
        geweke.column_of(replicas, name) for name in ("scale", "spread", "a", "noise")
    )
    uniforms = {
        "scale": stats.halfnorm.cdf(scale / 2),
        "spread": stats.halfnorm.cdf(spread),
        "a": stats.norm.cdf(a / spread[:, None]).ravel(),
        "noise": stats.halfnorm.cdf(noise / 0.5),
    }
    uniforms |= geweke.of_errors(replicas)
    uniforms |= geweke.of_forest(replicas, "f", scale)
    return geweke.failures(uniforms) | leaf_failures(replicas, "f")


def causal_failures(replicas, rng):
    """What does not follow the prior of `causal_model`."""
    scale, concentration, weights, effect_scale, noise = (
        geweke.column_of(replicas, name)
        for name in ("scale", "concentration", "weights", "effect_scale", "noise")
    )
    uniforms = {
        "scale": stats.halfnorm.cdf(scale),
        "concentration": stats.gamma(2.0, scale=1 / 4.0).cdf(concentration),
        "weights": stats.beta(concentration, concentration).cdf(weights[:, 0]),
        "effect_scale": stats.halfcauchy.cdf(effect_scale),
        "noise": stats.halfnorm.cdf(noise / 0.5),
    }
    uniforms |= geweke.of_errors(replicas)
    uniforms |= geweke.of_forest(replicas, "mu", scale)
    uniforms |= geweke.of_forest(replicas, "tau", effect_scale)
    uniforms |= geweke.of_roots(replicas, "mu", 0.95, weights, rng)
    return geweke.failures(uniforms) | leaf_failures(replicas, "tau")


LEAVES = geweke.law_of_leaves(N, ALPHA, BETA)


def leaf_failures(replicas, name):
    numbers = geweke.numbers_of_leaves(replicas, name)
    try:
        law.assert_law(numbers, LEAVES, false_fail=1e-6)
    except AssertionError:
        return {f"numbers of leaves of {name}"}
    return set()


@pytest.fixture(scope="module")
def grouped():
    return geweke.Simulator(grouped_model(), np.random.default_rng(1))


@pytest.fixture(scope="module")
def causal():
    return geweke.Simulator(causal_model(), np.random.default_rng(1))


def test_steps_are_those_that_pymc_assigns_and_they_are_tuned(grouped):
    assert [type(step) for step in grouped.steps] == [NUTS, XBARTStep]
    assert not any(step.tune for step in grouped.steps)
    assert grouped.xbart.num_sweeps == geweke.TUNE


@pytest.mark.parametrize("name", CORRECTIONS)
def test_joint_law_with_group_effects_is_kept(grouped, name, rng, monkeypatch):
    monkeypatch.setattr(grouped.xbart, "correction", CORRECTIONS[name])
    assert grouped_failures(grouped.replicate(DRAWS, ROUNDS, rng), rng) == set()


def test_joint_law_of_two_forests_is_kept(causal, rng):
    assert causal_failures(causal.replicate(DRAWS, ROUNDS, rng), rng) == set()


def test_what_these_tests_are_sure_to_see():
    # Differences between distribution functions, for what occurs once in each replication; total
    # variation, for the number of leaves.
    assert 2 * law.cdf_limit(DRAWS) < 0.22
    assert law.smallest_visible_error(LEAVES, 2 * DRAWS) < 0.16


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECTIONS)
@pytest.mark.parametrize(
    ("build", "find_failures"),
    [(grouped_model, grouped_failures), (causal_model, causal_failures)],
    ids=["grouped", "causal"],
)
def test_joint_law_is_kept_to_a_few_hundredths(build, find_failures, name, rng):
    kind, scan, mtry = CORRECTIONS[name]
    simulator = geweke.Simulator(build(), rng, correction=kind, scan=scan, mtry=mtry)
    assert find_failures(simulator.replicate(MANY, MANY_ROUNDS, rng), rng) == set()
    assert 2 * law.cdf_limit(MANY) < 0.1
    assert law.smallest_visible_error(LEAVES, 2 * MANY) < 0.08


# Broken twins.


def uncorrected(simulator, monkeypatch):
    monkeypatch.setattr(simulator.xbart, "correction", Correction("none"))


def leaf_sd_doubled(simulator, monkeypatch):
    for target in simulator.targets.values():
        (ensemble,) = target.ensembles
        original = ensemble.sweep

        def sweep(state, g, h, prior, rng, correction, original=original):
            wrong = prior._replace(leaf_var=4 * prior.leaf_var)
            return original(state, g, h, wrong, rng, correction)

        monkeypatch.setattr(ensemble, "sweep", sweep)


def noise_sees_the_forest_of_before(simulator, monkeypatch):
    original = simulator.nuts.step
    last = {}

    def step(point):
        new, stats = original(point | {"f": last.get("f", point["f"])})
        last["f"] = point["f"]
        return new | {"f": point["f"]}, stats

    monkeypatch.setattr(simulator.nuts, "step", step)


def effect_sees_the_other_forest_of_before(simulator, monkeypatch):
    mu, tau = (simulator.targets[name].likelihood for name in ("mu", "tau"))
    of_mu, of_tau = mu.gradient_curvature, tau.gradient_curvature
    seen = {}

    def gradient_of_mu(f, point, row=0):
        seen["mu"] = f.copy()
        return of_mu(f, point, row=row)

    def gradient_of_tau(f, point, row=0):
        return of_tau(f, point | seen, row=row)

    monkeypatch.setattr(mu, "gradient_curvature", gradient_of_mu)
    monkeypatch.setattr(tau, "gradient_curvature", gradient_of_tau)


def statistics_are_those_of_tuning(simulator, monkeypatch):
    for target in simulator.targets.values():
        monkeypatch.setattr(target.hyperparameters, "publish", lambda *_: None)


def statistics_with(simulator, monkeypatch, change):
    for target in simulator.targets.values():
        original = target.hyperparameters.publish

        def publish(forests, availability, original=original):
            original(*change(forests, availability))

        monkeypatch.setattr(target.hyperparameters, "publish", publish)


def squares_doubled(simulator, monkeypatch):
    def change(forests, availability):
        return [f._replace(value=f.value * 2**0.5) for f in forests], availability

    statistics_with(simulator, monkeypatch, change)


def columns_always_available(simulator, monkeypatch):
    def change(forests, splits):
        if splits is None:
            return forests, None
        return forests, [s._replace(availability=np.ones_like(s.availability)) for s in splits]

    statistics_with(simulator, monkeypatch, change)


@pytest.mark.parametrize(
    ("broken", "seen", "count"),
    [
        (uncorrected, "numbers of leaves of f", DRAWS),
        (leaf_sd_doubled, "squares of f", 2 * FEW),
        (noise_sees_the_forest_of_before, "noise", FEW),
    ],
)
def test_that_they_would_catch_wrong_steps(grouped, rng, monkeypatch, broken, seen, count):
    broken(grouped, monkeypatch)
    assert seen in grouped_failures(grouped.replicate(count, ROUNDS, rng), rng)


@pytest.mark.parametrize(
    ("broken", "seen", "count"),
    [
        (statistics_are_those_of_tuning, {"weights", "effect_scale"}, FEW),
        (squares_doubled, {"squares of mu", "squares of tau"}, FEW),
        (columns_always_available, {"weights"}, FEW),
        (effect_sees_the_other_forest_of_before, {"squares of errors"}, 2 * FEW),
    ],
)
def test_that_they_would_catch_wrong_forests(causal, rng, monkeypatch, broken, seen, count):
    broken(causal, monkeypatch)
    assert seen <= causal_failures(causal.replicate(count, ROUNDS, rng), rng)
