"""All ways to ask which columns matter agree on a sampled model with columns of all kinds."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_xbart as pxb

NAMES = ["dose", "group", "gap", "noise", "more noise"]


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A run read from its file, with X and y.

    The least that a column says is 20 standard deviations of the noise, so that any seed will do.
    """
    rng = np.random.default_rng(1)
    n = 200
    X = pd.DataFrame(rng.uniform(size=(n, 5)), columns=NAMES)
    X["group"] = pd.Categorical(rng.choice(["a", "b", "c", "d"], n))
    X.loc[rng.random(n) < 0.3, "gap"] = np.nan
    f = 6 * X["dose"] + 2 * X["group"].isin(["a", "d"]) + 2 * X["gap"].isna()
    y = f.to_numpy() + rng.normal(0, 0.1, n)
    with pm.Model(coords={"row": range(n), "class": ["one", "other"]}):
        f = pxb.XBARTForest("f", X, y=y, num_trees=20, dims="row")
        g = pxb.XBARTForest("g", X, mu=y.mean(), sigma=2.0, num_trees=15, dims=("class", "row"))
        pm.Normal("y", f, 0.2, observed=y, dims="row")
        pm.Normal("z", g, 0.2, observed=np.stack([y, y[::-1]]), dims=("class", "row"))
        idata = pm.sample(
            draws=40,
            tune=60,
            chains=2,
            cores=1,
            random_seed=1,
            quiet=True,
            compute_convergence_checks=False,
        )
    path = tmp_path_factory.mktemp("run") / "run.nc"
    idata.to_netcdf(path)
    with xr.open_datatree(path) as opened:
        yield opened, X, y


def largest(values, count=3):
    """Names of the columns with the largest means."""
    means = values.mean([dim for dim in values.dims if dim != "column"])
    return set(means.sortby(means, ascending=False)["column"].values[:count].tolist())


def test_columns_that_say_something_are_found(fit):
    idata, X, y = fit
    saying = {"dose", "group", "gap"}
    assert (
        largest(pxb.permutation_importance(idata, X, y, var_name="f", random_seed=1)["loss"])
        == saying
    )
    for method in ("forward", "backward"):
        importance = pxb.variable_importance(idata, X, method=method, var_name="f")
        order = importance["column"].values.tolist()
        assert order[0] == "dose"
        assert set(order[:3]) == saying
        reference = float(importance["reference"].mean())
        means = importance["r2"].mean(("chain", "draw")).values
        assert means[1] < reference - 0.03
        assert means[2] > reference - 0.03


def test_shares_and_pairs_of_a_variable_of_two_forests(fit):
    idata, X, _ = fit
    share = pxb.variable_inclusion(idata, var_name="g")["share"]
    assert share.dims == ("chain", "draw", "class", "column")
    assert share["column"].values.tolist() == NAMES
    np.testing.assert_allclose(share.sum("column"), 1)
    together = pxb.interaction_inclusion(idata, var_name="g")["count"]
    assert together.dims == ("chain", "draw", "class", "column", "column2")
    assert pxb.variable_importance(idata, X, var_name="g").sizes["column"] == 5


def test_x_may_come_in_any_order(fit):
    idata, X, _ = fit
    one, other = (
        pxb.variable_importance(idata, table, var_name="f") for table in (X, X[NAMES[::-1]])
    )
    xr.testing.assert_identical(one, other)
