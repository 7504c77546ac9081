import multiprocessing
import threading

import cloudpickle
import numpy as np
import pymc as pm
import pytest

from pymc_xbart.kernels import helpers
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.kept import texts
from tests.helpers.runs import sample_plainly

# On a machine with one core.
pytestmark = pytest.mark.filterwarnings("ignore:num_threads is 2, but this process")

N, P, NUM_TREES = 4500, 5, 50  # enough for helpers to be started
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, P))
F = np.sin(2.0 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def model():
    y = F + RNG.normal(scale=0.3, size=N)
    with pm.Model() as model:
        pm.Normal("y", XBARTForest("f", X, y=y, num_trees=NUM_TREES), 0.3, observed=y)
    return model


@pytest.fixture
def names_of_started(monkeypatch):
    """Names of the threads that have been started in this process."""
    names = []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: (names.append(thread.name), start(thread))
    )
    return names


def sample_with(model, num_threads, **kwargs):
    options = {"num_threads": num_threads} | kwargs.pop("xbart", {})
    return sample_plainly(model, tune=6, draws=3, xbart=options, **kwargs)


def assert_same(one, other):
    assert texts(one).tolist() == texts(other).tolist()
    np.testing.assert_array_equal(one["posterior"]["f"], other["posterior"]["f"])


@pytest.mark.parametrize("xbart", [{}, {"correction": "none"}, {"correction": "sweep"}])
def test_draws_do_not_depend_on_threads(model, xbart, names_of_started):
    one = sample_with(model, 1, xbart=xbart)
    assert helpers.NAME not in names_of_started
    two = sample_with(model, 2, xbart=xbart)
    assert helpers.NAME in names_of_started
    assert_same(one, two)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="not on this platform"
)
def test_nor_do_they_in_processes_that_are_forked_after_helpers_have_worked(model):
    here = sample_with(model, 2, chains=2)
    there = sample_with(model, 2, chains=2, cores=2, mp_ctx="fork")
    assert_same(there, here)


def test_threads_travel_with_a_step(model):
    with model:
        step = XBARTStep(num_threads=2)
    [target] = cloudpickle.loads(cloudpickle.dumps(step))._targets
    assert [ensemble.num_threads for ensemble in target.ensembles] == [2]


def test_counts_have_the_same_draws_with_threads_too(names_of_started):
    """One tree at a time, so that fewer columns than a thousand would not be worth a helper."""
    wide = np.random.default_rng(2).normal(size=(1100, 1000))
    counts = np.random.default_rng(3).poisson(np.exp(wide[:, 0]))
    with pm.Model() as model:
        pm.Poisson(
            "y", pm.math.exp(XBARTForest("f", wide, sigma=1.0, num_trees=2)), observed=counts
        )
    one = sample_with(model, 1)
    assert helpers.NAME not in names_of_started
    assert_same(sample_with(model, 2), one)
    assert helpers.NAME in names_of_started


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (0, ValueError, "num_threads is 0, but must be at least 1"),
        ("2", TypeError, "num_threads is '2', but must be a whole number"),
    ],
)
def test_a_number_of_threads_is_checked_before_sampling(model, wrong, error, message):
    with pytest.raises(error, match=message):
        sample_with(model, wrong)
