"""Trees that a chain can't start from are refused when the step is made, in words that help."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from pymc_xbart.forest.regressor import XBARTRegressor
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, sample_plainly

N = 30
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=N)


def make_model(X=X, num_trees=6):
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=num_trees)
        pm.Normal("y", f, 1.0, observed=Y)
    return model


def make_regressor(X=X):
    return XBARTRegressor(num_trees=6, num_sweeps=3, burnin=1, random_state=1).fit(X, Y)


def make_step(model, start):
    with model:
        return XBARTStep(start=start, compile_kwargs={"mode": PLAIN})


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def idata(model):
    return sample_plainly(model, draws=2)


@pytest.fixture(scope="module")
def regressor():
    return make_regressor()


def test_what_holds_no_draws_is_refused(model):
    with pytest.raises(TypeError, match=r"start is a list, but must be what pm\.sample returns"):
        make_step(model, [Y])


def test_a_regressor_must_be_fitted(model):
    with pytest.raises(ValueError, match=r"not fitted yet\. Call its fit"):
        make_step(model, XBARTRegressor())


def test_steps_within_steps_are_given_no_trees(idata):
    with make_model() as model:
        pm.Normal("another")
        XBARTStep([model["f"]], start=idata, blocked=False, compile_kwargs={"mode": PLAIN})
        XBARTForest("g", X, sigma=1.0, num_trees=6)
        with pytest.raises(ValueError, match=r"With blocked=False.*which of the given trees"):
            XBARTStep([model["f"]], start=idata, blocked=False, compile_kwargs={"mode": PLAIN})


def test_forests_that_were_not_sampled_are_named(idata):
    with pm.Model() as model:
        g = XBARTForest("g", X, y=Y, num_trees=6)
        pm.Normal("y", g, 0.2, observed=Y)
    with pytest.raises(KeyError, match="no trees of the forest 'g', only of: f"):
        make_step(model, idata)
    with pytest.raises(KeyError, match="'sample_stats', which is not among those given"):
        make_step(model, xr.DataTree.from_dict({"posterior": idata["posterior"].to_dataset()}))


def test_runs_without_trees_are_refused(model):
    run = sample_plainly(model, draws=2, xbart={"store_trees": False})
    with pytest.raises(KeyError, match="no trees of the forest 'f', only of: none"):
        make_step(model, run)


def test_draws_of_the_tuning_hold_no_trees(model):
    run = sample_plainly(model, draws=2, discard_tuned_samples=False)
    with pytest.raises(ValueError, match="holds no trees: it is one of the tuning"):
        make_step(model, run["warmup_sample_stats"].to_dataset())


def test_another_number_of_trees_is_refused(idata, regressor):
    model = make_model(num_trees=7)
    for start in (idata, regressor):
        with pytest.raises(ValueError, match="its number of trees is 7, and theirs is 6"):
            make_step(model, start)


def test_another_number_of_columns_is_refused(idata, regressor):
    model = make_model(X[:, [0, 1, 1]])
    for start in (idata, regressor):
        with pytest.raises(ValueError, match="its number of columns is 3, and theirs is 2"):
            make_step(model, start)


def test_another_shape_is_refused(idata, regressor):
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=1.0, num_trees=6, shape=(2, N))
        pm.Normal("y", f[0] + f[1], 0.2, observed=Y)
    for start in (idata, regressor):
        with pytest.raises(ValueError, match=r"its shape before its rows is \(2,\), .* is \(\)"):
            make_step(model, start)


def test_other_names_of_columns_are_refused(idata):
    table = pd.DataFrame(X, columns=["a", "b"])
    run, regressor = sample_plainly(make_model(table), draws=2), make_regressor(table)
    for columns in (["a", "c"], ["b", "a"]):
        other = make_model(table.set_axis(columns, axis=1))
        for start in (run, regressor):
            with pytest.raises(ValueError, match="columns of other names, or in another order"):
                make_step(other, start)
    # Columns without names fit any.
    make_step(make_model(), run)
    make_step(make_model(table), idata)
