import threading

import numpy as np
import pytest

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest import threads
from pymc_xbart.forest.threads import check_num_threads
from pymc_xbart.kernels import helpers

# On a machine with one core.
pytestmark = pytest.mark.filterwarnings("ignore:num_threads is [23]")

N, P, NUM_TREES = 4500, 6, 40  # enough for helpers to be started


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, P))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = X[:, 2] > 0.0
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(N)


def fit(X, y, num_threads, weight=None, **options):
    options = {"num_sweeps": 4, "burnin": 2, "random_state": 1, **options}
    return XBARTRegressor(num_trees=NUM_TREES, num_threads=num_threads, **options).fit(X, y, weight)


def assert_same(one, other):
    np.testing.assert_array_equal(one.noise_sd_, other.noise_sd_)
    np.testing.assert_array_equal(one.split_counts_, other.split_counts_)
    for a, b in zip(one.forests_, other.forests_, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mtry": 3},
        {"noise_update": "tree"},
        {"cut_prior": "cuts"},
        {"cut_prior": "paper", "max_depth": 6},
        {"correction": "tree"},
        {"correction": "sweep"},
    ],
)
def test_fits_do_not_depend_on_threads(data, options):
    one = fit(*data, 1, **options)
    for num_threads in (2, 3):
        assert_same(fit(*data, num_threads, **options), one)


def test_nor_do_fits_with_weights(data):
    weight = np.random.default_rng(2).gamma(2.0, size=N)
    assert_same(fit(*data, 2, weight), fit(*data, 1, weight))


def test_helpers_are_there(data, monkeypatch):
    started = []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread))
    )
    fit(*data, 3)
    assert started == [helpers.NAME] * (4 * 2)  # two a sweep
    fit(*data, 1)
    assert len(started) == 8


def test_a_fit_may_go_on_with_other_threads(data):
    model = fit(*data, 2, warm_start=True, num_sweeps=3)
    model.set_params(num_threads=1, num_sweeps=4).fit(*data)
    assert_same(model, fit(*data, 1))


def test_fits_in_threads_may_have_threads(data):
    expected = fit(*data, 1)
    found = [None, None]

    def run(k):
        found[k] = fit(*data, 2)

    runners = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    for model in found:
        assert_same(model, expected)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (0, ValueError, "num_threads is 0, but must be at least 1"),
        (-1, ValueError, "num_threads is -1, but must be at least 1"),
        (1.5, TypeError, r"num_threads is 1\.5, but must be a whole number"),
        (None, TypeError, "num_threads is None, but must be a whole number"),
        (True, TypeError, "num_threads is True, but must be a whole number"),
    ],
)
def test_a_number_of_threads_is_checked(data, wrong, error, message):
    with pytest.raises(error, match=message):
        fit(*data, wrong)


def test_more_threads_than_cores_are_worth_a_warning(monkeypatch):
    monkeypatch.setattr(threads, "num_cores", lambda: 4)
    assert check_num_threads(np.int64(4)) == 4
    with pytest.warns(UserWarning, match="num_threads is 5, but this process may use 4"):
        assert check_num_threads(5) == 5
