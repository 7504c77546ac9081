"""Trees share what there is of f from the first sweep on, however small the noise starts."""

import numpy as np
import pymc as pm
import pytest

from pymc_xbart.plugin import ensemble
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.ensemble import soften
from tests.helpers.runs import sample_plainly

N, NUM_TREES, NOISE_SD = 1000, 50, 0.01


def leaves_of_first_sweep(rng, **options):
    """Of each tree, where the noise is known, and small beside f."""
    X = rng.uniform(size=(N, 3))
    f_true = np.sin(6.0 * X[:, 0]) + X[:, 1]
    y = f_true + NOISE_SD * rng.standard_normal(N)
    with pm.Model() as model:
        f = XBARTForest("f", X, y=y, num_trees=NUM_TREES)
        pm.Normal("y", f, NOISE_SD, observed=y)
    stats = sample_plainly(model, draws=2, discard_tuned_samples=False, **options)
    group = "warmup_sample_stats" if options["tune"] else "sample_stats"
    return float(stats[group]["f_leaves"].values[0, 0])


def test_no_tree_follows_f_alone_in_the_first_sweep_of_tuning(rng):
    assert leaves_of_first_sweep(rng, tune=30) < 5.0


def test_that_the_check_would_notice_if_one_did(rng, monkeypatch):
    monkeypatch.setattr(ensemble, "soften", lambda *_: None)
    assert leaves_of_first_sweep(rng, tune=30) > 7.0


def test_sweeps_that_are_kept_take_the_log_likelihood_as_it_is(rng, monkeypatch):
    def refuse(g, h):
        raise AssertionError

    monkeypatch.setattr(ensemble, "soften", refuse)
    leaves_of_first_sweep(rng, tune=0)
    leaves_of_first_sweep(rng, tune=0, xbart={"correction": "none"})


def test_residuals_are_expected_to_be_as_large_as_they_are(rng):
    noise_sd, residual = 0.1, rng.standard_normal(400)
    h = np.full(400, 1.0 / noise_sd**2)
    g, h = softened(residual * h, h)
    np.testing.assert_allclose(g / h, residual)
    np.testing.assert_allclose(1.0 / h, np.mean(residual**2))


@pytest.mark.parametrize("residual", [0.0, 0.5, 1.0])
def test_smaller_ones_are_left_alone(residual):
    g, h = np.full(5, residual), np.ones(5)
    np.testing.assert_array_equal(softened(g, h), (g, h))


def test_rows_without_curvature_do_not_count():
    g, h = np.array([3.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(softened(g, h), (g / 9.0, h / 9.0))
    nothing = np.zeros(2)
    np.testing.assert_array_equal(softened(nothing, nothing), (nothing, nothing))


def test_what_is_too_steep_to_be_squared_is_left_alone():
    g, h = np.full(2, 1e100), np.full(2, 1e-200)
    np.testing.assert_array_equal(softened(g, h), (g, h))


def softened(g, h):
    """What becomes of g and h, which stay as they are."""
    g, h = g.copy(), h.copy()
    soften(g, h)
    return g, h
