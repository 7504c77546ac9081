"""Responses of PyMC that are not quadratic in a forest.

On few rows: trees and data, drawn in turn, keep their joint law (see `tests.helpers.geweke`); each
comparison fails correct steps with probability 1e-6. On many rows: a known function is found, with
intervals that hold it, and trees are accepted.
"""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_xbart.forest.surrogate import LEAST_SIZE, MIN_SEEN, Surrogate
from pymc_xbart.plugin import ensemble
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers import geweke, law
from tests.helpers.likelihoods import RESPONSES, Response
from tests.helpers.runs import sample

N, NUM_TREES = 10, 2
X = np.random.default_rng(1).normal(size=(N, 2))  # no ties, so that the law of leaves is known
ALPHA, BETA = 0.95, 0.3
LEAVES = geweke.law_of_leaves(N, ALPHA, BETA)
DRAWS, ROUNDS = 400, 4
QUICK_IN_BLOCKS = ("negative binomial", "mean and log scale")
TREE_BY_TREE = ("median", "quantile")  # of which nothing quadratic comes near
QUICK = ("weibull, censored", "quantile", "categorical", "mean and log scale")

MANY_ROWS = 2_000
MIN_ACCEPTANCE = 0.3
# Of 95 % intervals. The function is no draw from the prior, and draws are few: this asks for no
# more than that intervals are not far off.
COVERAGE = (0.8, 1.0)


def shape_of(response, num_rows):
    return (num_rows,) if response.num_forests is None else (response.num_forests, num_rows)


def build(response, X, y, **options):
    with pm.Model() as model:
        f = XBARTForest("f", X, shape=shape_of(response, len(X)), **options)
        response.build(f, pm.Data("y_data", y))
    return model


class Simulator:
    """A model of nothing but forests, and the step that `pm.sample` gives it."""

    def __init__(self, response: Response, surrogate: Surrogate | None = None):
        self.response = response
        self.surrogate = surrogate  # as if it had been learnt in tuning
        y = np.zeros(N, np.int64 if response.is_count else np.float64)
        how = {"sigma": 1.0, "num_trees": NUM_TREES, "alpha": ALPHA, "beta": BETA}
        self.model = build(response, X, y + (not response.is_count), **how)
        with self.model:
            self.step = XBARTStep(store_trees=False)
        (self.target,) = self.step._targets

    def replicate(self, count, rounds, rng):
        self.step.setup_chain(rng, tune=0, draws=count * rounds)
        return [self._replica(rounds, rng) for _ in range(count)]

    def _replica(self, rounds, rng):
        state = self.step.sampling_state
        state.forests["f"] = [
            forest._replace(surrogate=self.surrogate) for forest in self.target.draw_prior(rng)
        ]
        self.step.sampling_state = state
        point = {"f": self.target.values(state.forests["f"]).reshape(shape_of(self.response, N))}
        for _ in range(rounds):
            y = self.model["y_data"]
            y.set_value(self.response.draw(point["f"], rng).astype(y.type.dtype))
            point, _ = self.step.step(point)
        forests = {"f": self.step.forests["f"][0].forest}
        f = point["f"].reshape(-1, N)[0]
        return geweke.Replica({"f": f}, forests, np.zeros(0))


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in RESPONSES],
)
def test_joint_law_is_kept(name, rng):
    replicas = Simulator(RESPONSES[name]).replicate(DRAWS, ROUNDS, rng)
    assert geweke.failures(geweke.of_forest(replicas, "f", np.ones(DRAWS))) == set()
    law.assert_law(geweke.numbers_of_leaves(replicas, "f"), LEAVES)


@pytest.mark.parametrize(
    "name",
    [
        n if n in QUICK_IN_BLOCKS else pytest.param(n, marks=pytest.mark.slow)
        for n in RESPONSES
        if n not in TREE_BY_TREE
    ],
)
def test_joint_law_is_kept_in_blocks(name, rng, monkeypatch):
    monkeypatch.setattr(ensemble, "ONE_BY_ONE", 0.0)
    learnt = Surrogate(np.zeros(N), np.ones(N), MIN_SEEN, math.log(LEAST_SIZE), 1)
    replicas = Simulator(RESPONSES[name], learnt).replicate(DRAWS, ROUNDS, rng)
    assert geweke.failures(geweke.of_forest(replicas, "f", np.ones(DRAWS))) == set()
    law.assert_law(geweke.numbers_of_leaves(replicas, "f"), LEAVES)


def test_that_it_would_catch_a_response_of_another_law(rng):
    simulator = Simulator(RESPONSES["quantile"])
    simulator.response = RESPONSES["median"]
    replicas = simulator.replicate(DRAWS, ROUNDS, rng)
    assert geweke.failures(geweke.of_forest(replicas, "f", np.ones(DRAWS)))


def wave(X):
    f = 2 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 6 * (X[:, 2] - 0.5) ** 2 + X[:, 3]
    return (f - f.mean()) / f.std()


@pytest.mark.slow
@pytest.mark.parametrize("name", RESPONSES)
def test_a_known_function_is_found(name, rng):
    response = RESPONSES[name]
    X = rng.uniform(size=(MANY_ROWS, 6))
    truth = response.sd * np.stack([wave(X), wave(X[:, ::-1]), -wave(X)])
    truth = truth[0] if response.num_forests is None else truth[: response.num_forests]
    model = build(response, X, response.draw(truth, rng), sigma=response.sd, num_trees=50)
    idata = sample(model, tune=300, draws=500, random_seed=rng)
    f = idata["posterior"]["f"].to_numpy()[0]
    if name == "categorical":  # what is added to all of them makes no difference
        f, truth = f - f.mean(axis=1, keepdims=True), truth - truth.mean(axis=0)
    low, high = np.quantile(f, [0.025, 0.975], axis=0)
    acceptance = float(idata["sample_stats"]["f_acceptance"].mean())
    correlation = np.corrcoef(f.mean(axis=0).ravel(), truth.ravel())[0, 1]
    coverage = np.mean((low < truth) & (truth < high))
    print(f"{name}: accepted {acceptance:.2f}, r {correlation:.3f}, covered {coverage:.3f}")
    assert acceptance >= MIN_ACCEPTANCE
    assert correlation > 0.9
    assert COVERAGE[0] <= coverage <= COVERAGE[1]
