"""Data frames in a model: categories and missing values are fitted, kept, and predicted at."""

import subprocess
import sys

import arviz as az
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest

from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.inspection import trees
from pymc_xbart.forest.predict import predict
from pymc_xbart.forest.regressor import XBARTRegressor
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.predictive import sample_posterior_predictive
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import sample

N = 120
EFFECTS = {"north": 2.0, "south": -1.0, "east": 0.0, "west": -2.0}


def make_table(rng, n=N):
    """A table whose response depends on a category, on a gap, and on a number."""
    age = rng.uniform(20, 60, n)
    age[rng.random(n) < 0.3] = np.nan
    region = rng.choice(list(EFFECTS), n)
    table = pd.DataFrame(
        {
            "age": age,
            "region": pd.Categorical(region),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "member": pd.array(rng.integers(0, 2, n).astype(bool), "boolean"),
        }
    )
    f = table["region"].astype(object).map(EFFECTS).to_numpy(float)
    return table, f + np.where(np.isnan(age), 1.5, (age > 40) - 0.5)


@pytest.fixture(scope="module")
def fit():
    """A table, the model, its draws, and the true f."""
    rng = np.random.default_rng(4)
    table, f = make_table(rng)
    with pm.Model(coords={"row": np.arange(N)}) as model:
        forest = XBARTForest("f", table, y=f, num_trees=20, dims="row")
        pm.Normal("y", forest, 0.2, observed=f + rng.normal(0, 0.2, N), dims="row")
    return table, model, sample(model, draws=150, tune=100, random_seed=rng), f


def test_what_the_response_depends_on_is_found(fit):
    _, _, idata, f = fit
    mean = idata["posterior"]["f"].mean(("chain", "draw")).to_numpy()
    assert np.corrcoef(mean, f)[0, 1] > 0.98


def test_a_run_knows_which_columns_are_dates(fit):
    assert find_draws(fit[2]).schema.dates == [3]


def test_training_rows_are_predicted_to_the_last_bit(fit):
    table, _, idata, _ = fit
    f = idata["posterior"]["f"].to_numpy()
    shuffled = table[["member", "since", "region", "size", "age"]]
    for X in (table, shuffled, table.astype({"region": object, "size": object})):
        np.testing.assert_array_equal(predict(idata, X), f)


def test_other_kinds_of_table_say_the_same(fit):
    table, _, idata, _ = fit
    polars = pl.DataFrame(
        {
            "age": pl.Series(table["age"].to_numpy(), nan_to_null=True),
            "region": pl.Series(table["region"].to_list(), dtype=pl.Categorical),
            "size": pl.Series(table["size"].to_list()),
            "since": pl.Series(table["since"].to_list()),
            "member": pl.Series(table["member"].to_list()),
        }
    )
    np.testing.assert_array_equal(predict(idata, polars), predict(idata, table))


def test_new_tables_need_not_have_all_categories(fit):
    table, _, idata, _ = fit
    some = table[table["region"] == "east"].copy()
    some["region"] = some["region"].cat.remove_unused_categories()
    np.testing.assert_array_equal(predict(idata, some), predict(idata, table)[..., some.index])


def test_unseen_categories_are_predicted_with_a_warning(fit):
    table, _, idata, _ = fit
    new = table[:2].assign(region=["west", "moon"])
    with pytest.warns(UserWarning, match="'region' of X has categories .*'moon', in row 1"):
        f = predict(idata, new)
    spread = f.std(("chain", "draw")).to_numpy()
    assert spread[1] > 2 * spread[0]


def test_values_may_be_missing_where_none_were(fit):
    table, _, idata, _ = fit
    new = table.assign(member=table["member"].where(table.index != 7))
    with pytest.warns(
        UserWarning, match="Column 'member' of X has missing values, in row 7 .*none"
    ):
        f = predict(idata, new)
    rest = table.index != 7
    np.testing.assert_array_equal(f[..., rest], predict(idata, table)[..., rest])
    assert np.isfinite(f).all()


SCRIPT = """
import sys
import arviz as az, numpy as np, pandas as pd
from pymc_xbart import predict
folder = sys.argv[1]
f = predict(az.from_netcdf(folder + "/fit.nc"), pd.read_pickle(folder + "/table.pkl"))
np.save(folder + "/f.npy", f)
"""


def test_another_process_reads_the_same_table(fit, tmp_path):
    table, _, idata, _ = fit
    idata.to_netcdf(tmp_path / "fit.nc")
    table.astype({"region": object}).to_pickle(tmp_path / "table.pkl")
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), predict(idata, table))
    az.from_netcdf(tmp_path / "fit.nc")


def test_trees_say_which_categories_go_left(fit):
    table, _, idata, _ = fit
    nodes = trees(idata)
    splits = nodes[nodes["column"] == "region"]
    assert len(splits) > 100
    assert splits["categories"].map(set).map(lambda left: left <= set(EFFECTS)).all()
    on_size = nodes[nodes["column"] == "size"]
    assert set(on_size["categories"]) == {("S",), ("S", "M")}
    on_age = nodes[nodes["column"] == "age"]
    assert set(on_age["missing"]) == {"left", "right"}
    assert on_age["categories"].isna().all()
    assert on_size["missing"].isna().all()
    roots = splits[(splits["node"] == 0) & (splits["left"] == 1)]
    for (draw, tree), line in roots.set_index(["draw", "tree"]).iloc[:20].iterrows():
        below = nodes[(nodes["draw"] == draw) & (nodes["tree"] == tree) & (nodes["node"] == 1)]
        assert below["rows"].item() == table["region"].isin(line["categories"]).sum()


def test_categories_in_data_that_can_be_replaced():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    X[:, 1] = rng.integers(0, 4, 40)
    y = X[:, 0] + (X[:, 1] == 2)
    with pm.Model() as model:
        f = XBARTForest("f", pm.Data("X", X), y=y, num_trees=5, categorical=[1])
        pm.Normal("y", f, 0.3, observed=pm.Data("Y", y), shape=f.shape)
    idata = sample(model, draws=20, tune=20, random_seed=rng)
    np.testing.assert_array_equal(predict(idata, X), idata["posterior"]["f"])
    with model:
        pm.set_data({"X": X[:7], "Y": y[:7]})
        new = sample_posterior_predictive(idata, var_names=["f"], predictions=True)
    np.testing.assert_array_equal(new["predictions"]["f"], predict(idata, X[:7]))


def test_columns_of_data_are_named_by_its_coords():
    with pm.Model(coords={"row": range(3), "column": ["a", "b"]}):
        data = pm.Data("X", np.arange(6.0).reshape(3, 2), dims=("row", "column"))
        f = XBARTForest("f", data, sigma=1.0, categorical=["b"])
    assert f.owner.op.settings.categorical == (1,)


def test_prior_draws_split_on_categories_and_gaps():
    table, _ = make_table(np.random.default_rng(2))
    with pm.Model():
        XBARTForest("f", table[["region"]], sigma=1.0, num_trees=30)
        prior = pm.sample_prior_predictive(200, random_seed=1)
    f = prior["prior"]["f"].to_numpy()[0]
    codes = table["region"].cat.codes.to_numpy()
    assert np.unique(f[0]).size == len(EFFECTS)
    by_region = np.stack([f[:, codes == k][:, 0] for k in range(4)])
    correlations = np.corrcoef(by_region)[np.triu_indices(4, 1)]
    assert np.ptp(correlations) < 0.5  # orders are arbitrary, so that no two are neighbours


def make_model(table, y=None):
    y = np.zeros(len(table)) if y is None else y
    with pm.Model() as model:
        f = XBARTForest("f", table, sigma=2.0, num_trees=20)
        pm.Normal("y", f, 0.2, observed=y, shape=f.shape)
    return model


@pytest.fixture(scope="module")
def regions():
    """Draws of a forest over regions."""
    table, f = make_table(np.random.default_rng(5))
    return table, sample(make_model(table, f), draws=20, tune=20, random_seed=1)


def test_a_model_of_other_rows_knows_its_categories_by_their_labels(regions):
    table, idata = regions
    some = table[table["region"].isin(["west", "south"])].copy()
    some["region"] = some["region"].cat.remove_unused_categories()
    with make_model(some):
        new = sample_posterior_predictive(idata, var_names=["f"], predictions=True)
    np.testing.assert_array_equal(new["predictions"]["f"], predict(idata, some))
    some["region"] = some["region"].cat.rename_categories({"west": "moon"})
    with make_model(some), pytest.warns(UserWarning, match="'region' of X .* no tree .*'moon'"):
        sample_posterior_predictive(idata, var_names=["f"], predictions=True)


def test_a_model_in_which_categories_are_numbers_is_refused(regions):
    table, idata = regions
    for other in (table.assign(region=1.0), table.assign(member=pd.Categorical(["x"] * N))):
        with make_model(other), pytest.raises(ValueError, match=r"grown on categories in columns"):
            sample_posterior_predictive(idata, var_names=["f"])
    sizes = table.assign(size=2.0)
    with make_model(sizes), pytest.raises(TypeError, match="'size' of X holds numbers, but"):
        sample_posterior_predictive(idata, var_names=["f"])


def test_chains_start_at_trees_over_the_same_categories_only(regions):
    table, idata = regions
    model = make_model(table)
    with model:
        XBARTStep(start=idata)
    other = table.copy()
    other["region"] = other["region"].cat.reorder_categories(["west", "south", "north", "east"])
    with make_model(other), pytest.raises(ValueError, match="other categories, or in another"):
        XBARTStep(start=idata)
    with make_model(table.assign(region=1.0)), pytest.raises(ValueError, match="columns of categ"):
        XBARTStep(start=idata)


def test_a_regressor_is_where_a_chain_over_a_table_starts(regions):
    table, _ = regions
    _, f = make_table(np.random.default_rng(5))
    regressor = XBARTRegressor(num_trees=20, random_state=1).fit(table, f)
    model = make_model(table, f)
    with model:
        step = XBARTStep(start=regressor)
        idata = pm.sample(
            2, tune=0, chains=1, step=step, random_seed=1, progressbar=False, quiet=True
        )
    start = idata["posterior"]["f"].to_numpy()[0, 0]
    assert np.corrcoef(start, f)[0, 1] > 0.98
    np.testing.assert_array_equal(
        regressor.predict(table.astype({"region": object})), regressor.predict(table)
    )
