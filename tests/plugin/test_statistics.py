"""What the model's log-probability says of random hyperparameters is what the trees at hand say."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers import exact, slow
from tests.helpers.runs import PLAIN

N = 20
NUM_TREES = 4
RNG = np.random.default_rng(1)
# Columns that run out of cuts in small nodes, or have none.
X = np.column_stack([RNG.normal(size=N), np.arange(N) % 2, RNG.integers(0, 3, N), np.ones(N)])
Y = 2.0 * X[:, 0] + X[:, 1] + RNG.normal(size=N)


def scale(**kwargs):
    return pm.HalfNormal("scale", 2.0, **kwargs)


def weights(**kwargs):
    return pm.Dirichlet("weights", np.ones(4), **kwargs)


CASES = {
    "sigma": lambda: {"sigma": scale()},
    "split weights": lambda: {"sigma": 1.0, "split_weights": weights()},
    "both": lambda: {"sigma": scale(), "split_weights": weights()},
    "cut prior": lambda: {"sigma": scale(), "split_weights": weights(), "cut_prior": "cuts"},
    "large leaves": lambda: {"sigma": 1.0, "split_weights": weights(), "min_samples_leaf": 3},
    "functions": lambda: {"sigma": 1.0 + 2.0 * scale(), "split_weights": weights() ** 2},
    "shared": lambda: {"sigma": scale(), "split_weights": weights(), "shape": (2, N)},
    "own": lambda: {
        "sigma": scale(shape=2),
        "split_weights": weights(shape=(2, 4)),
        "shape": (2, N),
    },
}


def make(case):
    with pm.Model() as model:
        settings = CASES[case]()
        f = XBARTForest("f", X, num_trees=NUM_TREES, alpha=0.9, beta=0.3, **settings)
        pm.Normal("y", f.sum(axis=0) if "shape" in settings else f, 0.5, observed=Y)
        step = XBARTStep(compile_kwargs={"mode": PLAIN})
    step.setup_chain(np.random.default_rng(1), tune=2, draws=10)
    return model, step


def log_density(target, states, point):
    """Log-density of trees given the hyperparameters at a point, from the definition."""
    total = 0.0
    for prior, state in zip(target.priors(point), states, strict=True):
        problem = slow.Problem(slow.ranks(X), np.zeros(N), np.zeros(N), prior)
        for tree, values in exact.read_trees(state.forest):
            total += slow.tree_log_prob(problem, tree, slow.prior_options)
            total += stats.norm.logpdf(values, scale=np.sqrt(prior.leaf_var)).sum()
    return total


def checker(model, step):
    """Function of a point that fails unless both change alike with the hyperparameters there.

    Constants are left out of the model's log-probability.
    """
    logp = model.compile_logp(vars=[model["f"]], jacobian=False, mode=PLAIN)
    [target] = step._targets
    rng = np.random.default_rng(2)

    def check(point):
        others = [name for name in point if name != "f"]
        points = [
            point | {name: rng.normal(size=np.shape(point[name])) for name in others}
            for _ in range(4)
        ]
        expected = np.diff([log_density(target, step.forests["f"], p) for p in points])
        assert np.abs(expected).max() > 0.5
        observed = np.diff([logp(p) for p in points])
        np.testing.assert_allclose(observed, expected, rtol=1e-9, atol=1e-9)

    return check


@pytest.mark.parametrize("case", CASES)
def test_before_the_first_and_after_every_sweep(case):
    model, step = make(case)
    check, point = checker(model, step), model.initial_point()
    check(point)
    for _ in range(4):
        point, _ = step.step(point)
        check(point)


def test_after_another_state_has_been_set():
    model, step = make("both")
    point = model.initial_point()
    first = step.sampling_state
    for _ in range(3):
        point, _ = step.step(point)
    step.sampling_state = first
    checker(model, step)(point)


def test_after_rejected_sweeps():
    model, step = make("both")
    check, point = checker(model, step), model.initial_point()
    step.correction = step.correction._replace(kind="sweep")
    step.stop_tuning()
    acceptance = []
    for _ in range(6):
        point, [sweep] = step.step(point)
        acceptance.append(sweep["f_acceptance"])
        check(point)
    assert 0.0 in acceptance
