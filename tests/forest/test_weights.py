"""A row of weight w is the row w times."""

import numpy as np
import pytest

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest.training import read_training, weigh_rows
from tests.helpers import law, slow

# Drawn anew in every sweep, all given next to the same noise variance of 0.5.
PINNED = {"noise_shape": 1e9, "noise_rate": 0.5e9}


def data(rng, n=30):
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + 0.5 * rng.standard_normal(n)


def fitted(X, y, weight=None, **options):
    defaults = {"num_trees": 4, "num_sweeps": 10, "burnin": 5, "random_state": 1}
    return XBARTRegressor(**(defaults | options)).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("noise_update", ["sweep", "tree"])
def test_equal_weights_are_rows_many_times(rng, noise_update):
    """Of weight 3, so that they are not carried out by repetition; all else is equal by order."""
    X, y = data(rng)
    how = {"noise_update": noise_update}
    weighted = fitted(X, y, np.full(30, 3), **how)
    repeated = fitted(np.repeat(X, 3, axis=0), np.repeat(y, 3), **how)
    np.testing.assert_allclose(weighted.noise_sd_, repeated.noise_sd_, rtol=1e-9)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    assert abs(weighted.predict(X) - fitted(X, y).predict(X)).max() > 1e-3


def trees_of(X, y, weight=None):
    """Trees of sweeps that know nothing of each other: one tree, and the noise as good as given."""
    options = {"num_trees": 1, "num_sweeps": 8000, "burnin": 1, "max_depth": 2, "leaf_var": 1.0}
    model = fitted(X, y, weight, **options, **PINNED)
    return [slow.as_tree(forest, 0) for forest in model.forests_]


def test_unequal_weights_give_the_law_of_rows_many_times(rng):
    X, y = data(rng, n=7)
    weight = np.array([1, 4, 0, 2, 3, 7, 1])  # too many to be carried out by repetition
    assert weight.sum() > 2 * weight.size
    weighted = trees_of(X, y, weight)
    law.assert_same_law(weighted, trees_of(X.repeat(weight, 0), y.repeat(weight)))
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_same_law(weighted, trees_of(X[weight > 0], y[weight > 0]))


def test_rows_of_weight_zero_are_left_out(rng):
    X, y = data(rng)
    weight = rng.uniform(0.5, 2.0, 30)
    weight[[3, 17]] = 0.0
    spoilt_X, spoilt_y = X.copy(), y.copy()
    spoilt_X[3], spoilt_y[17] = 1e9, -1e9
    expected = fitted(np.delete(X, [3, 17], 0), np.delete(y, [3, 17]), np.delete(weight, [3, 17]))
    np.testing.assert_array_equal(
        fitted(spoilt_X, spoilt_y, weight).predict(X), expected.predict(X)
    )


def test_repetition_is_carried_out_where_it_costs_little(rng):
    X, y = data(rng, n=4)
    few = read_training(y, [2, 0, 1, 3], 4)
    repeated_X, training = weigh_rows(X, few)
    np.testing.assert_array_equal(repeated_X, X[[0, 0, 2, 3, 3, 3]])
    np.testing.assert_array_equal(training.y, y[[0, 0, 2, 3, 3, 3]])
    np.testing.assert_array_equal(training.weight, np.ones(6))
    for weight in ([2, 0, 1, 60], [2, 0, 1.5, 3]):
        kept_X, training = weigh_rows(X, read_training(y, weight, 4))
        np.testing.assert_array_equal(kept_X, X[[0, 2, 3]])
        np.testing.assert_array_equal(training.weight, np.delete(weight, 1))


def test_mean_and_variance_count_rows_by_weight(rng):
    X, y = data(rng)
    weight = rng.uniform(0.0, 5.0, 30)
    model = fitted(X, y, weight)
    mean = np.average(y, weights=weight)
    assert model.mean_ == pytest.approx(mean)
    assert model.leaf_var_ == pytest.approx(0.3 * np.average((y - mean) ** 2, weights=weight) / 4)


def test_weights_that_average_one_are_precisions(rng):
    """Half of the rows are noisier by a factor of 3, and sigma is that of a row of weight 1."""
    X = rng.uniform(size=(2000, 1))
    noise_sd = np.where(np.arange(2000) % 2, 0.3, 0.9)
    y = np.sin(5 * X[:, 0]) + noise_sd * rng.standard_normal(2000)
    weight = 1 / noise_sd**2
    sigma = np.sqrt(1 / weight.mean())
    model = fitted(X, y, weight / weight.mean(), num_trees=20, num_sweeps=30)
    assert model.noise_sd_[10:].mean() == pytest.approx(sigma, rel=0.1)


def test_the_score_counts_rows_by_weight(rng):
    X, y = data(rng)
    model = fitted(X, y)
    weight = rng.integers(1, 4, 30)
    repeated = model.score(X.repeat(weight, 0), y.repeat(weight))
    assert model.score(X, y, weight) == pytest.approx(repeated)
    assert model.score(X, y) == pytest.approx(1 - np.mean((y - model.predict(X)) ** 2) / y.var())
