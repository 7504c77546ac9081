"""Residuals are what is left of y; those of counts are standard normal if the model holds."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kstest, norm

from pymc_xbart import predict
from pymc_xbart.diagnostics.residuals import residuals
from tests.helpers.prior_runs import draw_run

ROWS = 30


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).standard_normal((ROWS, 2))


@pytest.fixture(scope="module")
def run(X):
    return draw_run(np.random.default_rng(2), X)


def with_predictive(run, y):
    group = xr.Dataset({"y": (("chain", "draw", "row"), y)})
    return xr.DataTree.from_dict({**run.to_dict(), "posterior_predictive": group})


def test_they_are_y_less_the_mean_of_f_or_of_predictive_draws(run, X, rng):
    y = rng.standard_normal(ROWS)
    left, name = residuals(run, X, y)
    f = predict(run, X).values.reshape(-1, ROWS)
    np.testing.assert_allclose(left, [y[i] - np.mean(f[:, i]) for i in range(ROWS)])
    assert name == "y less the posterior mean of f"
    draws = rng.standard_normal((2, 5, ROWS))
    left, name = residuals(with_predictive(run, draws), X, y)
    np.testing.assert_allclose(left, [y[i] - draws[:, :, i].mean() for i in range(ROWS)])
    assert name == "y less its predictive mean"


def test_rows_without_y_are_refused(run, X, rng):
    y = rng.standard_normal(ROWS)
    y[[3, 7]] = np.nan, np.inf
    for idata in (run, with_predictive(run, rng.poisson(2.0, (2, 5, ROWS)))):
        with pytest.raises(ValueError, match=r"y is not finite in rows 3 and 7 .*Leave these rows"):
            residuals(idata, X, y)


def test_predictive_draws_of_another_y_are_none_of_these(run, X, rng):
    y, other = rng.standard_normal((2, ROWS))
    idata = with_predictive(run, rng.standard_normal((2, 5, ROWS)))
    idata["observed_data"] = xr.DataTree(xr.Dataset({"y": ("row", other)}))
    assert residuals(idata, X, other)[1] == "y less its predictive mean"
    assert residuals(idata, X, y)[1] == "y less the posterior mean of f"
    # One chain has fewer dims, and the same draws.
    alone = residuals(idata.isel(chain=0), X, other)
    both = residuals(idata.isel(chain=[0]), X, other)
    np.testing.assert_array_equal(alone[0], both[0])


def test_those_of_counts_lie_between_the_shares_of_draws_below_and_up_to_y(run, X, rng):
    draws = rng.poisson(2.0, (2, 50, ROWS))
    y = rng.poisson(2.0, ROWS)
    left, name = residuals(with_predictive(run, draws), X, y, random_seed=1)
    assert name == "randomized quantile residual"
    for i in range(ROWS):
        share = norm.cdf(left[i])
        below, up_to = np.mean(draws[:, :, i] < y[i]), np.mean(draws[:, :, i] <= y[i])
        assert min(max(below, 0.005), 0.995) <= share + 1e-12
        assert share - 1e-12 <= max(min(up_to, 0.995), 0.005)
    again, _ = residuals(with_predictive(run, draws), X, y, random_seed=1)
    np.testing.assert_array_equal(left, again)


@pytest.mark.parametrize(("rate", "is_right"), [(2.0, True), (3.0, False)])
def test_those_of_counts_are_standard_normal_if_the_model_holds(rate, is_right, rng):
    # False-fail rate 1e-6 of the right rate; the wrong one is found beyond all doubt.
    num_rows = 3_000
    X = rng.standard_normal((num_rows, 1))
    run = with_predictive(draw_run(rng, X), rng.poisson(rate, (2, 1_000, num_rows)))
    left, _ = residuals(run, X, rng.poisson(2.0, num_rows), random_seed=rng)
    assert (kstest(left, norm.cdf).pvalue > 1e-6) == is_right


def test_their_random_part_has_a_stream_of_its_own():
    # Correlations of 3 000 independent pairs stay below 0.1 but for 4 in 1e8.
    num_rows = 3_000
    X = np.random.default_rng(1).uniform(size=(num_rows, 1))
    run = draw_run(np.random.default_rng(2), X)
    run = with_predictive(run, np.zeros((2, 500, num_rows), int))
    left, _ = residuals(run, X, np.zeros(num_rows), random_seed=1)
    assert abs(np.corrcoef(left, X[:, 0])[0, 1]) < 0.1


def test_y_of_another_shape_is_refused(run, X):
    with pytest.raises(ValueError, match=r"y has the shape \(3,\)"):
        residuals(run, X, np.zeros(3))
