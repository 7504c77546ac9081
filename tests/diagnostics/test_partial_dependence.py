"""Partial dependence is the mean of predictions for rows moved to each point."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy.special import expit

from pymc_xbart import partial_dependence, predict
from pymc_xbart.diagnostics import partial_dependence as module
from tests.helpers.moved import each_point
from tests.helpers.prior_runs import COLOURS, draw_run, mixed_table

ROWS = 40


@pytest.fixture(scope="module")
def table():
    table = mixed_table(np.random.default_rng(5), ROWS)
    grades = pd.Categorical(list("abcd") * (ROWS // 4), list("abcd"), ordered=True)
    return table.assign(grade=grades)


@pytest.fixture(scope="module")
def idata(table):
    return draw_run(np.random.default_rng(6), table, trees=12, alpha=0.97)


@pytest.fixture(scope="module")
def several(table):
    return draw_run(np.random.default_rng(7), table, batch=(3,), dims=["class", "pupil"])


def brute_force(idata, table, result, transform=lambda f: f, **options):
    """Mean over rows of f at the points of a result."""
    dims = [dim for dim in result.dims if dim in table]
    f = each_point(idata, table, {dim: result[dim].to_numpy() for dim in dims}, **options)
    return transform(f).mean(axis=-1 - len(dims))


@pytest.mark.parametrize("column", ["size", "income", "colour", "flag", "grade"])
def test_one_column_is_brute_force(idata, table, column):
    result = partial_dependence(idata, table, column)
    assert list(result.data_vars) == ["f"]
    assert result["f"].dims == ("chain", "draw", column)
    np.testing.assert_allclose(
        result["f"], brute_force(idata, table, result["f"]), rtol=1e-12, atol=1e-12
    )
    assert result["f"].std(column).max() > 0.01


@pytest.mark.parametrize("pair", [("size", "income"), ("colour", "size"), ("grade", "colour")])
def test_two_columns_are_brute_force(idata, table, pair):
    result = partial_dependence(idata, table, pair, grid=6)["f"]
    assert result.dims == ("chain", "draw", *pair)
    np.testing.assert_allclose(result, brute_force(idata, table, result), rtol=1e-12, atol=1e-12)


def test_the_rows_may_be_others_than_those_of_the_fit(idata, rng):
    others = mixed_table(rng, 17).assign(grade=pd.Categorical(["b"] * 17, list("abcd")))
    others["size"] *= 3
    result = partial_dependence(idata, others, "size")["f"]
    np.testing.assert_allclose(result, brute_force(idata, others, result), rtol=1e-12, atol=1e-12)


def test_several_forests_have_a_dimension_of_their_own(several, table):
    result = partial_dependence(several, table, "colour")["f"]
    assert result.dims == ("chain", "draw", "class", "colour")
    np.testing.assert_allclose(result, brute_force(several, table, result), rtol=1e-12, atol=1e-12)


def test_a_list_gives_a_variable_for_each(idata, table):
    asked = ["size", ("colour", "flag")]
    result = partial_dependence(idata, table, asked)
    assert list(result.data_vars) == ["f_size", "f_colour_flag"]
    for name, columns in zip(result.data_vars, asked, strict=True):
        xr.testing.assert_identical(
            result[name].rename("f"), partial_dependence(idata, table, columns)["f"]
        )
    everything = partial_dependence(idata, table)
    assert list(everything.data_vars) == [f"f_{name}" for name in table]
    assert list(partial_dependence(idata, table, ["size"]).data_vars) == ["f_size"]


def test_draws_are_thinned_as_for_predictions(idata, table):
    result = partial_dependence(idata, table, "size", draws=2)["f"]
    assert result["draw"].to_numpy().tolist() == [0, 3]
    brute = brute_force(idata, table, result, draws=2)
    np.testing.assert_allclose(result, brute, rtol=1e-12, atol=1e-12)


def test_selections_of_draws_are_followed(idata, table, monkeypatch):
    monkeypatch.setattr(module, "BYTES_AT_ONCE", 1)
    every = partial_dependence(idata, table, "size", transform=expit)["f"]
    one = partial_dependence(idata.sel(chain=1, draw=2), table, "size", transform=expit)["f"]
    assert one.dims == ("size",)
    np.testing.assert_array_equal(one, every.sel(chain=1, draw=2))
    stats = idata["sample_stats"].to_dataset().stack(sample=("chain", "draw"))
    idata = xr.DataTree.from_dict({"sample_stats": stats, "constant_data": idata["constant_data"]})
    stacked = partial_dependence(idata, table, "size", transform=expit)["f"]
    np.testing.assert_array_equal(stacked.unstack("sample").transpose(*every.dims), every)


@pytest.mark.parametrize("columns", ["colour", ("size", "income")])
def test_a_function_of_f_is_averaged_after_it_is_taken(idata, table, columns, monkeypatch):
    result = partial_dependence(idata, table, columns, grid=4, transform=expit)["f"]
    brute = brute_force(idata, table, result, expit)
    np.testing.assert_allclose(result, brute, rtol=1e-12, atol=1e-12)
    mean = partial_dependence(idata, table, columns, grid=4)["f"]
    assert abs(result - expit(mean)).max() > 1e-3  # the function of the mean is something else
    monkeypatch.setattr(module, "BYTES_AT_ONCE", 1)
    in_parts = partial_dependence(idata, table, columns, grid=4, transform=expit)["f"]
    xr.testing.assert_identical(in_parts, result)


def test_a_function_sees_draws_and_forests_by_name(several, table):
    def softmax(f):
        odds = np.exp(f)
        return (odds / odds.sum("class")).isel({"class": 1})

    result = partial_dependence(several, table, "flag", transform=softmax)["f"]
    assert result.dims == ("chain", "draw", "flag")
    f = each_point(several, table, {"flag": result["flag"].to_numpy()})
    brute = (np.exp(f) / np.exp(f).sum(axis=2, keepdims=True))[:, :, 1].mean(axis=2)
    np.testing.assert_allclose(result, brute, rtol=1e-12)
    scale = xr.DataArray([[1.0], [2.0]], {"chain": [0, 1], "draw": [2]}, ("chain", "draw"))
    some = several.sel(draw=[2])
    scaled = partial_dependence(some, table, "flag", transform=lambda f: f * scale)["f"]
    plain = partial_dependence(some, table, "flag")["f"]
    np.testing.assert_allclose(scaled, plain * scale, rtol=1e-12)


def test_a_function_may_drop_labels_but_no_dimension(idata, table):
    bare = partial_dependence(idata, table, "flag", transform=lambda f: np.exp(f.to_numpy()))
    xr.testing.assert_equal(bare, partial_dependence(idata, table, "flag", transform=np.exp))
    for transform, missing in [
        (lambda f: f.mean("f_dim_0"), "'f_dim_0'"),
        (lambda f: f.to_numpy().mean(-1), "'f_dim_0', 'flag'"),
    ]:
        with pytest.raises(ValueError, match=f"without {missing}"):
            partial_dependence(idata, table, "flag", transform=transform)


def test_rows_can_be_thinned(idata, table):
    thinned = partial_dependence(idata, table, "size", rows=5)["f"]
    chosen = [0, 10, 20, 29, 39]
    xr.testing.assert_identical(thinned, partial_dependence(idata, table, "size", rows=chosen)["f"])
    brute = brute_force(idata, table.iloc[chosen], thinned)
    np.testing.assert_allclose(thinned, brute, rtol=1e-12, atol=1e-12)
    assert thinned.sizes["size"] == ROWS  # points are those of all rows
    for rows in (0, -1, [40], [-1], [], [0.5], [True], [[1]]):
        with pytest.raises(ValueError, match="rows is"):
            partial_dependence(idata, table, "size", rows=rows)


def test_a_function_is_averaged_over_so_many_rows_by_default(rng):
    X = rng.standard_normal((module.TRANSFORMED_ROWS + 500, 1))
    idata = draw_run(rng, X, draws=1, chains=1)
    seen = []

    def look(f):
        seen.append(f.sizes["f_dim_0"])
        return f

    partial_dependence(idata, X, 0, grid=2, transform=look)
    partial_dependence(idata, X, 0, grid=2, transform=look, rows=1_200)
    assert seen == [module.TRANSFORMED_ROWS, 1_200]


def test_centred_draws_begin_at_zero(idata, table):
    plain = partial_dependence(idata, table, ["size", ("colour", "flag")])
    centred = partial_dependence(idata, table, ["size", ("colour", "flag")], kind="centred")
    xr.testing.assert_allclose(
        centred["f_size"], plain["f_size"] - plain["f_size"].isel(size=0, drop=True)
    )
    first = plain["f_colour_flag"].isel(colour=0, flag=0, drop=True)
    xr.testing.assert_allclose(centred["f_colour_flag"], plain["f_colour_flag"] - first)
    with pytest.raises(ValueError, match="kind"):
        partial_dependence(idata, table, "size", kind="median")


def test_points_are_values_of_the_column(idata, table):
    by_default = partial_dependence(idata, table)
    assert by_default["size"].to_numpy().tolist() == sorted(table["size"])
    assert by_default["flag"].to_numpy().tolist() == [0, 1]
    assert by_default["grade"].to_numpy().tolist() == list("abcd")
    known = [colour for colour in COLOURS if (table["colour"] == colour).any()]
    assert by_default["colour"].to_numpy().tolist() == [*known, "(missing)"]
    income = by_default["income"].to_numpy()
    assert income[:-1].tolist() == sorted(table["income"].dropna())
    assert np.isnan(income[-1])
    few = partial_dependence(idata, table, grid=5)
    quantiles = np.quantile(table["size"], np.linspace(0, 1, 5), method="inverted_cdf")
    assert few["size"].to_numpy().tolist() == quantiles.tolist()
    assert few["income"].size == 6
    assert few["colour"].size == by_default["colour"].size


def test_points_can_be_given(idata, table):
    result = partial_dependence(idata, table, "size", grid=[3.0, -9.0, 0.5])["f"]
    assert result["size"].to_numpy().tolist() == [3.0, -9.0, 0.5]
    np.testing.assert_allclose(result, brute_force(idata, table, result), rtol=1e-12, atol=1e-12)
    grid = {"colour": ["blue", None, "red"], "income": 3}
    result = partial_dependence(idata, table, ("income", "colour"), grid=grid)["f"]
    assert result["colour"].to_numpy().tolist() == ["blue", "(missing)", "red"]
    assert result.sizes["income"] == 4
    np.testing.assert_allclose(result, brute_force(idata, table, result), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "grid", "error", "message"),
    [
        ("weight", None, ValueError, "columns names the column 'weight', but .* are 'size'"),
        (9, None, ValueError, "columns holds 9, but the 5 columns"),
        (["size", 1.5], None, TypeError, "columns holds 1.5"),
        ([], None, ValueError, "columns is empty"),
        (("size", "size"), None, ValueError, "two different columns"),
        (("size", "flag", "grade"), None, ValueError, "two different columns"),
        ("size", 0, ValueError, "grid is 0"),
        ("size", [], ValueError, "grid of the column 'size' must be a list"),
        ("size", ["large"], TypeError, "grid of the column 'size'"),
        ("colour", ["pink"], ValueError, "the category 'pink', but .*'red', 'green'"),
        (("size", "flag"), [1.0], ValueError, r"Pass \{column: values\}"),
        (["size", "flag"], [1.0], ValueError, r"Pass \{column: values\}"),
        ("size", {"flag": [1.0]}, ValueError, "'flag', which is not among"),
        ("size", {"weight": [1.0]}, ValueError, "grid names the column 'weight'"),
    ],
)
def test_what_is_no_column_or_point_is_refused(idata, table, columns, grid, error, message):
    with pytest.raises(error, match=message):
        partial_dependence(idata, table, columns, grid=grid)


def test_every_front_says_the_same(rng, tmp_path):
    names = ["a", "b"]
    frame = pd.DataFrame(rng.standard_normal((30, 2)), columns=names)
    idata = draw_run(rng, frame)
    expected = partial_dependence(idata, frame, "b")
    array = xr.DataArray(frame, dims=("row", "feature"), coords={"feature": names})
    for X in (pl.DataFrame(frame), frame[["b", "a"]], frame.to_numpy(), array):
        xr.testing.assert_identical(partial_dependence(idata, X, "b"), expected)
    xr.testing.assert_identical(partial_dependence(idata, frame, 1), expected)
    idata.to_netcdf(tmp_path / "idata.nc")
    with xr.open_datatree(tmp_path / "idata.nc") as stored:
        xr.testing.assert_equal(partial_dependence(stored, frame, "b"), expected)


def test_columns_without_names_are_numbered(rng):
    X = rng.standard_normal((30, 2))
    result = partial_dependence(draw_run(rng, X), X, (1, 0), grid=3)
    assert result["f"].dims == ("chain", "draw", "column_1", "column_0")
    with pytest.raises(ValueError, match=r"columns names the column 'a', but .* have no names"):
        partial_dependence(draw_run(rng, X), X, "a")


def test_no_two_results_have_the_same_name(rng):
    frame = pd.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "a_b"])
    idata = draw_run(rng, frame)
    for columns in (["a_b", ("a", "b")], ["b", "b"]):
        with pytest.raises(ValueError, match="columns asks twice for what is called 'f_"):
            partial_dependence(idata, frame, columns, grid=3)


def test_names_that_are_taken_are_told_apart(rng):
    frame = pd.DataFrame(rng.standard_normal((30, 2)), columns=["f", "draw"])
    result = partial_dependence(draw_run(rng, frame), frame, ("f", "draw"), grid=3)
    assert result["f"].dims == ("chain", "draw", "f_column", "draw_column")


def test_new_categories_are_points_too(idata, table):
    others = table.astype({"colour": object})
    others.loc[:5, "colour"] = "pink"
    with pytest.warns(UserWarning, match="categories that no tree has seen: 'pink'"):
        result = partial_dependence(idata, others, "colour")["f"]
    assert result["colour"].to_numpy()[-2:].tolist() == ["pink", "(missing)"]
    with pytest.warns(UserWarning, match="categories that no tree has seen"):
        brute = brute_force(idata, others, result)
    np.testing.assert_allclose(result, brute, rtol=1e-12, atol=1e-12)


def test_where_nothing_else_matters_it_is_f_itself(rng):
    X = rng.standard_normal((25, 1))
    idata = draw_run(rng, X)
    np.testing.assert_allclose(
        partial_dependence(idata, X, 0)["f"], predict(idata, np.sort(X, axis=0)), rtol=1e-12
    )


def test_points_of_dates_may_be_dates(rng):
    days = pd.date_range("2020-01-01", periods=40, freq="9D")
    X = pd.DataFrame({"visit": days, "x": rng.standard_normal(40)})
    idata = draw_run(rng, X)
    points = ["2020-02-03", "2020-08-01", None]
    seconds = [*(pd.to_datetime(points[:2]) - pd.Timestamp(0)).total_seconds(), np.nan]
    for grid in (points, pd.to_datetime(points), [pd.Timestamp(point) for point in points]):
        result = partial_dependence(idata, X, "visit", grid=grid)
        xr.testing.assert_identical(result, partial_dependence(idata, X, "visit", grid=seconds))
    with pytest.raises(TypeError, match="'visit' holds values that are not real numbers in row 0"):
        partial_dependence(idata, X, "visit", grid=["someday"])
