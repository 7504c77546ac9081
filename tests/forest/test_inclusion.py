"""Columns of all kinds that say as much are split on as often."""

import numpy as np
import pandas as pd
import pytest

from pymc_xbart.forest.regressor import XBARTRegressor

N, DATA_SETS = 500, 4
KINDS = ["two", "six", "number", "category"]  # then as many that say nothing


def make_table(rng):
    """Two-valued, six-valued, continuous and categorical columns, with and without a signal."""

    def columns(prefix):
        return {
            f"{prefix}two": rng.integers(0, 2, N),
            f"{prefix}six": rng.integers(0, 6, N),
            f"{prefix}number": rng.normal(size=N),
            f"{prefix}category": pd.Categorical(rng.integers(0, 6, N)),
        }

    table = pd.DataFrame(columns("") | columns("no "))
    halves = [
        table["two"] > 0,
        table["six"] > 2,
        table["number"] > 0,
        np.isin(table["category"], rng.permutation(6)[:3]),
    ]
    return table, np.sum(halves, axis=0).astype(float)


def shares(rng, **options):
    """Share of splits on each column, mean over data sets, (8,)."""
    found = []
    for _ in range(DATA_SETS):
        table, f = make_table(rng)
        model = XBARTRegressor(
            num_trees=50, num_sweeps=250, burnin=100, correction="tree", random_state=rng, **options
        ).fit(table, f + rng.normal(size=N))
        counts = model.split_counts_.mean(axis=0)
        found.append(counts / counts.sum())
    return np.mean(found, axis=0)


def test_equal_signals_are_found_equally_often(rng):
    """Shares are 0.135 to 0.165, those of idle columns 0.115 to 0.134, with deviations of 0.004.

    So the first bound lies 4 to 5 deviations away, and the second 3 to 4.
    """
    share = shares(rng)
    told, idle = share[:4], share[4:]
    assert told.max() < 1.4 * told.min()
    assert (told > idle).all()


def test_that_equal_weight_for_all_cuts_would_hide_columns_of_few_values(rng):
    share = shares(rng, cut_prior="cuts")[:4]
    assert share[KINDS.index("number")] > 5 * share[KINDS.index("two")]


@pytest.mark.parametrize("values", [[0.0, 1.0], [1e-300, 1e300], [-np.inf, np.inf], [-0.0, 5e-324]])
def test_values_of_any_range_are_told_apart(values, rng):
    is_high = rng.integers(0, 2, 60)
    X = np.column_stack([np.asarray(values)[is_high], np.zeros(60)])
    y = 2.0 * is_high + rng.normal(0, 0.1, 60)
    model = XBARTRegressor(num_trees=10, random_state=1).fit(X, y)
    low, high = model.predict(np.column_stack([values, [0.0, 0.0]]))
    assert high - low == pytest.approx(2.0, abs=0.3)
    assert not model.split_counts_[:, 1].any()


def test_zero_has_one_sign(rng):
    X = rng.choice([-0.0, 0.0, 1.0], 60)[:, None]
    model = XBARTRegressor(num_trees=5, random_state=1).fit(X, X[:, 0] + rng.normal(0, 0.1, 60))
    assert len(set(model.predict([[-0.0], [0.0]]))) == 1


def test_single_precision_says_the_same(rng):
    X = rng.normal(size=(80, 3)).astype(np.float32)
    X[:, 2] = rng.integers(0, 4, 80)
    X[::7, 0] = np.nan
    y = X[:, 1] + X[:, 2]
    fits = [
        XBARTRegressor(num_trees=5, categorical=[2], random_state=1).fit(each, y).predict(each)
        for each in (X, X.astype(np.float64))
    ]
    np.testing.assert_array_equal(*fits)
