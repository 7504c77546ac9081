"""`predict` finds the draws wherever they are, and the columns under their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from pymc_xbart import predict, trees
from pymc_xbart.forest.schema import Schema
from pymc_xbart.forest.stored import StoredDraw, StoredForest, digest_of, read_draw, write_draw
from pymc_xbart.kernels import cut_values, draw_prior_forest, encode, rows_of_leaves, sum_of_trees
from tests.helpers import inside

NAMES = ["age", "size", "weight"]
CHAINS, DRAWS, ROWS, TREES = 2, 6, 40, 5


class Fit:
    """What a run leaves behind, drawn from the prior without PyMC."""

    def __init__(self, rng, names=NAMES, batch=(), dims=None):
        self.X = rng.standard_normal((ROWS, len(NAMES)))
        self.f = np.empty((CHAINS, DRAWS, *batch, ROWS))
        design = encode(self.X)
        prior = inside.make_prior(len(NAMES))
        text = np.empty((CHAINS, DRAWS, 1), object)
        for place in np.ndindex(CHAINS, DRAWS):
            forests = []
            for k in np.ndindex(batch):
                forest, leaf = draw_prior_forest(design, prior, TREES, rng)
                cuts = cut_values(design, forest.column, forest.cut)
                view = np.zeros(forest.column.size, np.int32)
                rows = rows_of_leaves(forest, leaf)
                forests.append(StoredForest(1.0, forest, view, cuts, rows))
                self.f[*place, *k] = 1.0 + sum_of_trees(forest, leaf)
            digest = digest_of(names)
            numbers = np.zeros(len(NAMES), np.bool_)
            draw = StoredDraw(ROWS, digest, 0, numbers, numbers, batch, forests)
            text[*place, 0] = write_draw(draw)
        labels = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS)}
        stats = xr.Dataset({"f_trees": (("chain", "draw", "f_trees_dim_0"), text)}, labels)
        stats["f_trees"] = stats["f_trees"].astype(np.dtypes.StringDType())
        schema = Schema(names, dims).to_bytes()
        constants = xr.Dataset({"f_schema": ("f_schema_dim_0", schema)})
        self.idata = xr.DataTree.from_dict({"sample_stats": stats, "constant_data": constants})

    @property
    def table(self):
        return pd.DataFrame(self.X, columns=NAMES)


@pytest.fixture(scope="module")
def fit():
    return Fit(np.random.default_rng(1))


def test_training_rows_give_the_same_bits(fit):
    f = predict(fit.idata, fit.X)
    assert f.name == "f"
    assert f.dims == ("chain", "draw", "f_dim_0")
    assert np.array_equal(f, fit.f)
    assert np.array_equal(predict(fit.idata, fit.X, "f", num_threads=3), fit.f)


def test_rows_may_be_few(fit):
    assert np.array_equal(predict(fit.idata, fit.X[7:8]), fit.f[..., 7:8])


def as_array(fit):
    return xr.DataArray(fit.X, {"feature": NAMES}, ("row", "feature"))


@pytest.mark.parametrize(
    "front",
    [
        lambda fit: fit.table,
        lambda fit: fit.table[NAMES[::-1]],
        lambda fit: pl.DataFrame(fit.table),
        lambda fit: pl.DataFrame(fit.table)[NAMES[::-1]],
        as_array,
        lambda fit: as_array(fit)[:, ::-1],
        lambda fit: as_array(fit).drop_vars("feature"),
        lambda fit: as_array(fit).to_dataset("feature"),
        lambda fit: as_array(fit).to_dataset("feature")[NAMES[::-1]],
        lambda fit: fit.X.tolist(),
    ],
)
def test_every_front_leads_to_the_same_rows(fit, front):
    assert np.array_equal(predict(fit.idata, front(fit)), fit.f)


def test_rows_keep_their_labels(fit):
    labelled = fit.table.set_index(pd.Index([f"row {i}" for i in range(ROWS)]))
    assert predict(fit.idata, labelled)["f_dim_0"].values.tolist() == labelled.index.tolist()
    assert "f_dim_0" not in predict(fit.idata, fit.table).coords


def test_missing_and_extra_columns_are_named(fit):
    for X, message in [
        (fit.table[["age"]], "Missing: 'size', 'weight'\\.$"),
        (fit.table.assign(shoe=1.0), "Not among them: 'shoe'"),
        (fit.table.rename(columns={"age": "Age"}), "Missing: 'age'. Not among them: 'Age'"),
        (fit.X[:, :2], r"2 column\(s\), but .* 3 \('age', 'size', 'weight'\)"),
        (fit.X[:, 0], "two dimensions"),
        (fit.X[:0], "no rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            predict(fit.idata, X)


def test_columns_without_names_go_by_position(rng):
    fit = Fit(rng, names=None)
    for X in (fit.X, fit.table, fit.table.rename(columns={"age": "x"})):
        assert np.array_equal(predict(fit.idata, X), fit.f)
    with pytest.raises(ValueError, match=r"2 column\(s\), but the forest 'f' was grown on 3\."):
        predict(fit.idata, fit.X[:, :2])


def test_names_that_can_not_be_checked_are_refused_rather_than_guessed(fit):
    stats = fit.idata["sample_stats"].to_dataset()
    assert np.array_equal(predict(stats, fit.table), fit.f)
    assert np.array_equal(predict(stats, fit.X), fit.f)
    with pytest.raises(ValueError, match=r"Pass all that pm\.sample returned"):
        predict(stats, fit.table[NAMES[::-1]])


def test_selections_of_draws_are_followed(fit):
    idata = fit.idata
    assert np.array_equal(predict(idata.isel(draw=slice(1, None, 2)), fit.X), fit.f[:, 1::2])
    assert np.array_equal(predict(idata.isel(chain=[1]), fit.X), fit.f[1:])
    one = predict(idata.sel(chain=0, draw=3), fit.X)
    assert one.dims == ("f_dim_0",)
    assert np.array_equal(one, fit.f[0, 3])
    stats = idata["sample_stats"].to_dataset()
    stacked = predict(stats.stack(sample=("chain", "draw")), fit.X)
    assert np.array_equal(stacked.unstack("sample").transpose("chain", "draw", ...), fit.f)
    both = xr.concat([stats, stats.assign_coords(chain=[2, 3])], "chain")
    assert np.array_equal(predict(both, fit.X), np.concatenate([fit.f, fit.f]))


def test_draws_are_thinned_evenly(fit):
    f = predict(fit.idata, fit.X, draws=3)
    assert f["draw"].values.tolist() == [0, 2, 5]
    assert np.array_equal(f, fit.f[:, [0, 2, 5]])
    assert predict(fit.idata, fit.X, draws=100).sizes["draw"] == DRAWS


def test_memory_is_bounded_and_rows_can_be_reduced(fit):
    some_rows = 8 * CHAINS * DRAWS * 7
    with pytest.raises(ValueError, match=r"`draws` to use fewer.*`reduce` to"):
        predict(fit.idata, fit.X, max_memory=some_rows)
    seen = []

    def mean(f):
        seen.append(f.sizes["f_dim_0"])
        return f.mean(("chain", "draw"))

    labelled = fit.table.set_index(pd.Index(range(100, 100 + ROWS)))
    means = predict(fit.idata, labelled, reduce=mean, max_memory=some_rows)
    assert seen == [7, 7, 7, 7, 7, 5]
    np.testing.assert_allclose(means, fit.f.mean((0, 1)))
    assert means["f_dim_0"].values.tolist() == list(range(100, 100 + ROWS))
    quantiles = predict(
        fit.idata, fit.X, reduce=lambda f: f.quantile([0.1, 0.9], ("chain", "draw")), max_memory=1
    )
    np.testing.assert_allclose(quantiles, np.quantile(fit.f, [0.1, 0.9], axis=(0, 1)))
    with pytest.raises(ValueError, match="reduce must keep the dimension of the rows, 'f_dim_0'"):
        predict(fit.idata, fit.X, reduce=lambda f: f.mean("f_dim_0"))


def test_several_forests_in_one_variable_have_a_dimension_of_their_own(rng):
    fit = Fit(rng, batch=(3,), dims=["class", "row"])
    f = predict(fit.idata, fit.X)
    assert f.dims == ("chain", "draw", "class", "row")
    assert np.array_equal(f, fit.f)


def test_dims_of_the_posterior_come_first(fit):
    f = xr.Dataset({"f": (("chain", "draw", "pupil"), fit.f)})
    idata = xr.DataTree.from_dict({"posterior": f, **dict(fit.idata.children)})
    assert predict(idata, fit.X).dims == ("chain", "draw", "pupil")


def test_the_forest_is_chosen_by_name(rng):
    one, other = Fit(rng), Fit(rng)
    stats = one.idata["sample_stats"].to_dataset()
    stats["g_trees"] = other.idata["sample_stats"]["f_trees"]
    idata = xr.DataTree.from_dict({"sample_stats": stats})
    assert np.array_equal(predict(idata, other.X, "g"), other.f)
    with pytest.raises(ValueError, match="several forests: f, g"):
        predict(idata, one.X)
    with pytest.raises(KeyError, match="var_name is 'h', but trees are stored of: f, g"):
        predict(idata, one.X, "h")


def test_results_without_trees_are_refused(fit):
    stats = fit.idata["sample_stats"].to_dataset()
    for idata, error, message in [
        (stats.drop_vars("f_trees"), KeyError, "store_trees=False"),
        (xr.DataTree.from_dict({"posterior": stats}), KeyError, "'sample_stats'.*posterior"),
        ([stats], TypeError, "idata is a list"),
        (stats.isel(draw=[]), ValueError, "selection is empty"),
    ]:
        with pytest.raises(error, match=message):
            predict(idata, fit.X)
    for options in ({"draws": 0}, {"max_memory": 0}, {"num_threads": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} is 0"):
            predict(fit.idata, fit.X, **options)


def value_by_table(nodes, x):
    """What a tree adds to f at one row, read off its table."""
    node = nodes.loc[0]
    while node["left"] >= 0:
        node = nodes.loc[
            node["left"] if x[NAMES.index(node["column"])] <= node["cut"] else node["right"]
        ]
    return node["value"]


def test_the_table_of_trees_adds_up_to_f(fit):
    table = trees(fit.idata, chain=1, draw=[2, 5])
    assert table["draw"].unique().tolist() == [2, 5]
    for draw, of_draw in table.groupby("draw"):
        f = sum(
            np.array([value_by_table(nodes.set_index("node"), x) for x in fit.X])
            for _, nodes in of_draw.groupby("tree")
        )
        np.testing.assert_allclose(table.attrs["mu"] + f, fit.f[1, draw])


def test_the_table_of_trees_counts_rows_and_depth(fit):
    for _, nodes in trees(fit.idata, draw=0).groupby(["chain", "tree"]):
        nodes = nodes.set_index("node")
        assert nodes.loc[0, ["parent", "depth", "rows"]].tolist() == [-1, 0, ROWS]
        for node, line in nodes.iloc[1:].iterrows():
            parent = nodes.loc[line["parent"]]
            assert node in (parent["left"], parent["right"])
            assert line["depth"] == parent["depth"] + 1
        for _, line in nodes[nodes["left"] >= 0].iterrows():
            assert line["rows"] == nodes.loc[[line["left"], line["right"]], "rows"].sum()
        is_leaf = nodes["left"] < 0
        assert nodes["column"].isna().equals(is_leaf)
        assert nodes["cut"].isna().equals(is_leaf)
        assert nodes["value"].notna().equals(is_leaf)


def test_the_table_of_trees_can_be_narrowed(fit):
    everything = trees(fit.idata)
    assert len(everything.groupby(["chain", "draw", "tree"])) == CHAINS * DRAWS * TREES
    one = trees(fit.idata, chain=0, draw=3, tree=4)
    keys = everything[["chain", "draw", "tree"]].eq([0, 3, 4]).all(axis=1)
    pd.testing.assert_frame_equal(one, everything[keys].reset_index(drop=True))
    for options, message in [
        ({"draw": 77}, "no draw 77: they run from 0 to 5"),
        ({"tree": 5}, "no tree 5: the forest has 5"),
        ({"chain": [0, 9]}, "no chain 9"),
    ]:
        with pytest.raises(KeyError, match=message):
            trees(fit.idata, **options)
    with pytest.raises(ValueError, match="no dimension 'draw'"):
        trees(fit.idata.isel(draw=0), draw=0)


def test_the_table_names_forests_and_unnamed_columns(rng):
    fit = Fit(rng, names=None, batch=(2,))
    table = trees(fit.idata, draw=0)
    assert table["forest"].unique().tolist() == [0, 1]
    first = read_draw(str(fit.idata["sample_stats"]["f_trees"].values[0, 0, 0]))
    assert table.attrs["mu"] == [forest.mu for forest in first.forests]
    with pytest.raises(ValueError, match="draw is empty"):
        trees(fit.idata, draw=[])
    assert set(table["column"].dropna()) <= {0, 1, 2}
    first = read_draw(str(fit.idata["sample_stats"]["f_trees"].values[0, 0, 0])).forests[1]
    ours = table.query("chain == 0 and forest == 1")
    np.testing.assert_array_equal(ours["cut"], first.cut_value)
