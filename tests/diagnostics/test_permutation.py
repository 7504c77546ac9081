"""Losses are those of f at shuffled rows."""

import numpy as np
import pytest
import xarray as xr

from pymc_xbart import permutation_importance, predict
from tests.helpers import prior_runs

NAMES = ["size", "income", "colour", "flag"]
ROWS = 30


class Example:
    def __init__(self, seed, batch=(), **options):
        rng = np.random.default_rng(seed)
        X = prior_runs.mixed_table(rng, 50)
        self.run = prior_runs.draw_run(rng, X, draws=3, batch=batch, **options)
        self.X = prior_runs.mixed_table(rng, ROWS)
        self.y = rng.standard_normal((*batch, ROWS))

    def orders(self, seed, repeats):
        rng = np.random.default_rng(seed)
        return [rng.permutation(ROWS) for _ in range(repeats)]

    def slow_loss(self, score, orders):
        """Score every draw at rows and at shuffled rows; (chain, draw, column, repeat)."""

        def scores(X):
            f = predict(self.run, X).values
            return np.array([[score(self.y, each) for each in chain] for chain in f])

        losses = []
        for name in NAMES:
            for order in orders:
                shuffled = self.X.copy()
                shuffled[name] = self.X[name].to_numpy()[order]
                if name == "colour":
                    shuffled[name] = self.X[name].array[order]
                losses.append(scores(self.X) - scores(shuffled))
        return np.moveaxis(losses, 0, -1).reshape(2, 3, len(NAMES), len(orders))


def slow_r2(y, f):
    y, f = np.atleast_2d(y), np.atleast_2d(f)
    total = sum(np.sum((each - each.mean()) ** 2) for each in y)
    return 1 - np.sum((y - f) ** 2) / total


def absolute_error(y, f):
    return -np.abs(y - np.exp(f)).mean()


@pytest.fixture(scope="module", params=["one forest", "two forests"])
def example(request):
    options = {"batch": (2,), "dims": ["class", "row"]} if request.param == "two forests" else {}
    return Example(6, **options)


@pytest.mark.parametrize("score", ["r2", absolute_error])
def test_losses_are_those_of_predictions_at_shuffled_rows(example, score):
    found = permutation_importance(
        example.run, example.X, example.y, score=score, repeats=3, random_seed=8
    )
    assert found["loss"].dims == ("chain", "draw", "column", "repeat")
    assert found["score"].dims == ("chain", "draw")
    slow_score = slow_r2 if score == "r2" else score
    expected = example.slow_loss(slow_score, example.orders(8, 3))
    np.testing.assert_allclose(found["loss"].sel(column=NAMES), expected, atol=1e-12)
    f = predict(example.run, example.X).values
    scores = [[slow_score(example.y, each) for each in chain] for chain in f]
    np.testing.assert_allclose(found["score"], scores, rtol=1e-12)


def test_the_same_seed_shuffles_in_the_same_way(example):
    once, again = (
        permutation_importance(example.run, example.X, example.y, random_seed=1) for _ in range(2)
    )
    xr.testing.assert_identical(once, again)
    assert once.sizes["repeat"] == 5
    other = permutation_importance(example.run, example.X, example.y, random_seed=2)
    assert not np.array_equal(once["loss"], other["loss"])


@pytest.fixture(scope="module")
def plain():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 3))
    return prior_runs.draw_run(rng, X, split_weights=[1, 1, 0]), X, rng.standard_normal(40)


def test_columns_that_no_tree_splits_on_lose_nothing(plain):
    found = permutation_importance(*plain, random_seed=1)
    assert found["column"].values.tolist() == [0, 1, 2]
    assert (found["loss"].sel(column=2) == 0).all()
    assert (found["loss"].sel(column=0) != 0).any()


def test_files_and_single_draws_say_the_same(plain, tmp_path):
    run, X, y = plain
    found = permutation_importance(run, X, y, random_seed=1)
    run.to_netcdf(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc") as opened:
        xr.testing.assert_identical(permutation_importance(opened, X, y, random_seed=1), found)
    one = permutation_importance(run.isel(chain=0, draw=1), X, y, random_seed=1)
    assert one["loss"].dims == ("column", "repeat")
    np.testing.assert_array_equal(one["loss"], found["loss"][0, 1])


def test_a_score_of_ones_own_is_given_y_and_f_as_they_are(example):
    seen = []

    def score(y, f):
        seen.append((y, f.shape))
        return 0.0

    y = {"time": 1, "event": 2}
    permutation_importance(example.run, example.X, y, score=score, draws=1, repeats=1)
    assert all(each == (y, example.y.shape) for each in seen)
    assert len(seen) == 2 * (1 + len(NAMES))


def test_bad_input_is_refused(plain):
    run, X, y = plain
    with_gap = y.copy()
    with_gap[3] = np.nan
    for arguments, options, error, message in [
        ((X, y[:7]), {}, ValueError, r"y has shape \(7,\), but f has \(40,\)"),
        ((X, with_gap), {}, ValueError, "y is not finite in row 3"),
        ((X, np.ones(40)), {}, ValueError, "y is constant"),
        ((X, ["a"] * 40), {}, TypeError, "y holds values that are not real numbers"),
        ((X[:, :2], y), {}, ValueError, r"X has 2 column\(s\)"),
        ((X, y), {"score": "rmse"}, TypeError, "score is 'rmse'"),
        ((X, y), {"score": lambda y, f: y - f}, ValueError, r"single number.*shape \(40,\)"),
        ((X, y), {"repeats": 0}, ValueError, "repeats is 0"),
        ((X, y), {"draws": 0}, ValueError, "draws is 0"),
    ]:
        with pytest.raises(error, match=message):
            permutation_importance(run, *arguments, **options)
