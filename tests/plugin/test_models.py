"""Forests in models of many kinds: none of them is a special case for the step."""

import numpy as np
import pymc as pm
import pymc.dims as named
import pytest
from pymc.exceptions import ImputationWarning
from pytensor.xtensor import as_xtensor

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, correlation, posterior_mean, sample_plainly

N = 80
RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, size=(N, 2))
TRUTH = np.sin(3.0 * X[:, 0])  # standard deviation 0.75
NOISE = 0.2
Y = TRUTH + RNG.normal(scale=NOISE, size=N)
Z = RNG.integers(0, 2, size=N)

# Of a posterior mean of f with the truth. The runs are seeded, so the bound decides nothing but
# whether f has been learned: a forest that sees wrong residuals stays far below it.
LEARNED = 0.9


def forest(name="f", X=X, num_trees=10, sigma=0.8, **kwargs):
    return XBARTForest(name, X, sigma=sigma, num_trees=num_trees, **kwargs)


def run(build, **kwargs):
    with pm.Model() as model:
        build()
    return sample_plainly(model, **({"tune": 20, "draws": 40} | kwargs))


def test_two_outcomes_share_covariates():
    other = np.where(X[:, 1] > 0, 1.0, -1.0)

    def build():
        f = forest(shape=(2, N))
        pm.Normal("y0", f[0], NOISE, observed=Y)
        pm.Normal("y1", f[1], NOISE, observed=other)

    idata = run(build)
    first, second = posterior_mean(idata)
    assert correlation(first, TRUTH) > LEARNED
    assert correlation(second, other) > LEARNED
    assert idata["sample_stats"]["f_leaves"].dims == ("chain", "draw")


def test_two_outcomes_by_dims():
    with pm.Model(coords={"outcome": ["a", "b"], "row": np.arange(N)}) as model:
        f = forest(dims=("outcome", "row"))
        pm.Normal("y", f, NOISE, observed=np.stack([Y, -Y]), dims=("outcome", "row"))
    f = sample_plainly(model)["posterior"]["f"]
    assert f.dims == ("chain", "draw", "outcome", "row")
    assert correlation(f.mean(("chain", "draw")).sel(outcome="b"), -TRUTH) > LEARNED


def test_forest_that_multiplies_a_treatment():
    effect = np.where(X[:, 1] > 0, 2.0, 1.0)
    y = Y + Z * effect

    def build():
        pm.Normal("y", forest("f0") + Z * forest("f1", mu=1.0), NOISE, observed=y)

    idata = run(build, draws=100)
    assert correlation(posterior_mean(idata, "f0"), TRUTH) > LEARNED
    assert correlation(posterior_mean(idata, "f1"), effect) > LEARNED
    assert {"f0_leaves", "f1_leaves"} < set(idata["sample_stats"].data_vars)


def test_rows_by_index_with_repeats_and_held_out_rows():
    is_seen = np.arange(N) % 4 > 0
    index = np.tile(np.flatnonzero(is_seen), 2)
    y = TRUTH[index] + np.tile([NOISE, -NOISE], index.size // 2)

    def build():
        pm.Normal("y", forest()[index], NOISE, observed=y)

    f = posterior_mean(run(build))
    assert correlation(f[is_seen], TRUTH[is_seen]) > LEARNED
    assert correlation(f[~is_seen], TRUTH[~is_seen]) > LEARNED


def test_latent_child():
    def build():
        latent = pm.Normal("latent", forest(), 0.1, shape=N)
        pm.Normal("y", latent, NOISE, observed=Y)

    idata = run(build, tune=60)
    assert correlation(posterior_mean(idata), TRUTH) > LEARNED
    assert correlation(posterior_mean(idata, "latent"), Y) > LEARNED


def test_weights_of_observations():
    is_junk = Z == 1
    y = np.where(is_junk, 50.0, Y)
    weight = np.where(is_junk, 1e-8, 1.0)

    def build():
        pm.Normal("y", forest(), NOISE / np.sqrt(weight), observed=y)

    assert correlation(posterior_mean(run(build)), TRUTH) > LEARNED


def test_potentials_count_as_likelihoods():
    def build():
        pm.Potential("y", pm.logp(pm.Normal.dist(forest(), NOISE), Y).sum())

    assert correlation(posterior_mean(run(build)), TRUTH) > LEARNED


def test_group_effects_and_an_offset():
    group = np.arange(N) % 4
    y = Y + np.array([-3.0, -1.0, 1.0, 3.0])[group] + 100.0

    def build():
        a = pm.Normal("a", 0.0, 3.0, shape=4)
        pm.Normal("y", 100.0 + forest() + a[group], NOISE, observed=y)

    idata = run(build, tune=100)
    # Their level is shared: f moves up where all of a move down.
    difference = np.diff(posterior_mean(idata, "a"))
    np.testing.assert_allclose(difference, [2.0, 2.0, 2.0], atol=0.3)
    assert correlation(posterior_mean(idata), TRUTH) > LEARNED


def test_missing_responses_are_imputed():
    y = Y.copy()
    y[:8] = np.nan
    with pm.Model() as model:
        f = XBARTForest("f", X, y=y, num_trees=10)
        with pytest.warns(ImputationWarning):
            pm.Normal("y", f, NOISE, observed=y)
    idata = sample_plainly(model, tune=60, draws=60)
    assert correlation(posterior_mean(idata), TRUTH) > LEARNED
    imputed = posterior_mean(idata, "y_unobserved")
    assert np.abs(imputed - TRUTH[:8]).max() < 5 * NOISE


def test_discrete_variables_keep_their_own_steps():
    def build():
        shift = pm.Bernoulli("shift", 0.5)
        pm.Normal("y", forest() + 20.0 * shift, NOISE, observed=Y + 20.0)

    idata = run(build)
    assert (idata["posterior"]["shift"][:, -1] == 1).all()
    assert correlation(posterior_mean(idata), TRUTH) > LEARNED


def test_nested_models():
    with pm.Model(name="exam") as model:
        pm.Normal("y", forest(), NOISE, observed=Y)
    idata = sample_plainly(model, quiet=False)
    assert correlation(posterior_mean(idata, "exam::f"), TRUTH) > LEARNED
    assert "exam::f_leaves" in idata["sample_stats"]


def test_likelihoods_with_named_dimensions():
    with pm.Model(coords={"row": np.arange(N)}) as model:
        f = forest(dims="row")
        y = named.Data("y_data", Y, dims="row")
        named.Normal("y", as_xtensor(f, dims=("row",)), NOISE, observed=y)
    assert correlation(posterior_mean(sample_plainly(model)), TRUTH) > LEARNED


def test_constant_columns_are_never_split():
    with pm.Model() as model:
        f = forest(X=np.column_stack([np.ones(N), X[:, 0], np.full(N, -7.0)]))
        pm.Normal("y", f, NOISE, observed=Y)
        step = XBARTStep(compile_kwargs={"mode": PLAIN})
    point = model.initial_point()
    for _ in range(5):
        point, _ = step.step(point)
    column = step.forests["f"][0].forest.column
    assert set(column[column >= 0]) == {1}
    assert correlation(point["f"], TRUTH) > LEARNED


def test_nothing_but_constant_columns_leaves_a_level():
    def build():
        pm.Normal("y", forest(X=np.ones((N, 2)), mu=3.0), NOISE, observed=Y)

    idata = run(build)
    f = idata["posterior"]["f"].values
    np.testing.assert_array_equal(f, f[..., :1] * np.ones(N))
    assert abs(f[0, :, 0].mean() - Y.mean()) < 5 * NOISE / np.sqrt(N)
    assert (idata["sample_stats"]["f_leaves"] == 1.0).all()
