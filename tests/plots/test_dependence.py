"""Pictures of f along its columns show the numbers of their Datasets, and where data are."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_xbart import (
    accumulated_local_effects,
    individual_conditional_expectation,
    partial_dependence,
    plot_ale,
    plot_ice,
    plot_partial_dependence,
)
from tests.helpers import prior_runs
from tests.helpers.figures import assert_texts_apart, band, drawn, legend_of, line

ROWS = 60


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    days = pd.date_range("2020-01-01", periods=ROWS, freq="5D")
    return prior_runs.mixed_table(rng, ROWS).assign(visit=days)


@pytest.fixture(scope="module")
def run(table):
    return prior_runs.draw_run(np.random.default_rng(2), table, trees=10, draws=60)


@pytest.fixture(scope="module")
def several(table):
    rng = np.random.default_rng(3)
    return prior_runs.draw_run(rng, table, draws=5, batch=(2,), dims=["class", "pupil"])


def ends(result, probability):
    tails = 0.5 - 0.5 * probability, 0.5 + 0.5 * probability
    return result.quantile(tails, ("chain", "draw")).T


def made_up(num_columns, name=lambda v: f"x{v}"):
    """What `partial_dependence` returns, made up."""
    rng = np.random.default_rng(num_columns)
    walks = rng.standard_normal((num_columns, 2, 100, 20)).cumsum(axis=-1)
    variables = {}
    for v, walk in enumerate(walks):
        dims = "chain", "draw", name(v)
        attrs = {"columns": [name(v)], "long_name": "f"}
        grid = np.linspace(0, 10.0 ** (v % 5), 20)
        variables[f"f_{name(v)}"] = xr.DataArray(walk, {name(v): grid}, dims, attrs=attrs)
    return xr.Dataset(variables)


@pytest.mark.parametrize(
    ("plot", "compute"),
    [(plot_partial_dependence, partial_dependence), (plot_ale, accumulated_local_effects)],
)
def test_curve_and_bands_are_the_mean_and_the_quantiles_of_the_draws(run, table, plot, compute):
    result = compute(run, table, "size")
    (ax,) = plot(run, table, "size")
    mean = result["f"].mean(("chain", "draw"))
    np.testing.assert_allclose(drawn(ax), [result["size"], mean])
    for label, probability in (("50 % interval", 0.5), ("94 % interval", 0.94)):
        x, drawn_ends = band(ax, label)
        np.testing.assert_allclose(x, result["size"])
        np.testing.assert_allclose(drawn_ends, ends(result["f"], probability))
    assert ax.get_xlabel() == "size"
    assert ax.get_ylabel() == ("f" if compute is partial_dependence else "local effect on f")
    assert legend_of(ax) == ["94 % interval", "50 % interval", "mean"]


def test_a_result_is_drawn_as_the_run_that_it_comes_from(run, table):
    (one,) = plot_partial_dependence(run, table, "income", grid=9)
    result = partial_dependence(run, table, "income", grid=9)
    (other,) = plot_partial_dependence(result, table)
    (bare,) = plot_partial_dependence(result)
    np.testing.assert_array_equal(drawn(one), drawn(other))
    np.testing.assert_array_equal(drawn(one), drawn(bare))
    np.testing.assert_array_equal(drawn(one, "_rug"), drawn(other, "_rug"))
    assert "_rug" not in [each.get_label() for each in bare.lines]


def test_results_still_draw_after_a_file(run, table, tmp_path):
    result = partial_dependence(run, table, ["colour", "size"])
    result.to_netcdf(tmp_path / "result.nc")
    with xr.open_dataset(tmp_path / "result.nc") as read:
        axes = plot_partial_dependence(read.load())
    assert [ax.get_xlabel() for ax in axes] == ["colour", "size"]


def test_probabilities_may_be_chosen(run, table):
    (ax,) = plot_partial_dependence(run, table, "size", probabilities=0.8)
    assert legend_of(ax) == ["80 % interval", "mean"]
    expected = ends(partial_dependence(run, table, "size")["f"], 0.8)
    np.testing.assert_allclose(band(ax, "80 % interval")[1], expected)


def test_few_draws_are_drawn_as_the_steps_of_trees(run, table):
    (few,) = plot_partial_dependence(run, table, "size", draws=3)
    (many,) = plot_partial_dependence(run, table, "size")
    assert line(few, "mean").get_drawstyle() == "steps-pre"
    assert line(many, "mean").get_drawstyle() == "default"


def test_categories_and_missing_values_are_points_with_intervals(run, table):
    (ax,) = plot_partial_dependence(run, table, "colour")
    f = partial_dependence(run, table, "colour")["f"]
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [*f["colour"].values[:-1], "missing"]
    x, y = drawn(ax)
    np.testing.assert_allclose(y, f.mean(("chain", "draw")))
    assert x[:-1].tolist() == list(range(x.size - 1))
    assert x[-1] > x[-2] + 1  # set apart
    [lines] = [each for each in ax.collections if each.get_label() == "94 % interval"]
    segments = np.array(lines.get_segments())
    np.testing.assert_allclose(segments[:, :, 1], ends(f, 0.94))


def test_the_missing_point_of_numbers_stands_on_the_right_with_its_own_tick(run, table):
    (ax,) = plot_partial_dependence(run, table, "income")
    f = partial_dependence(run, table, "income")["f"]
    curve, dot = drawn(ax), drawn(ax, "_")
    np.testing.assert_allclose(curve[1], f.mean(("chain", "draw"))[:-1])
    assert dot[1] == pytest.approx(float(f.mean(("chain", "draw"))[-1]))
    assert dot[0] > table["income"].max()
    assert ax.get_xticks(minor=True) == pytest.approx(dot[0])
    assert max(ax.get_xticks()) <= table["income"].max()
    assert [each.get_text() for each in ax.get_xticklabels(minor=True)] == ["missing"]


def test_few_numbers_are_points_too(run, table):
    (ax,) = plot_partial_dependence(run, table, "flag")
    assert line(ax, "mean").get_linestyle() == "None"
    assert ax.get_xticks().tolist() == [0, 1]


def test_the_rug_has_a_tick_for_each_row_but_no_more_than_300(run, table):
    (ax,) = plot_partial_dependence(run, table, "income")
    np.testing.assert_array_equal(drawn(ax, "_rug")[0], np.sort(table["income"].dropna()))
    result = made_up(1)
    X = pd.DataFrame({"x0": np.random.default_rng(1).uniform(size=5_000)})
    (ax,) = plot_partial_dependence(result, X)
    rug = drawn(ax, "_rug")[0]
    assert rug.size == 300
    np.testing.assert_array_equal(rug[[0, -1]], [X["x0"].min(), X["x0"].max()])


def test_forests_of_one_variable_have_a_curve_each(several, table):
    (ax,) = plot_partial_dependence(several, table, "size")
    f = partial_dependence(several, table, "size")["f"].mean(("chain", "draw"))
    for k in range(2):
        np.testing.assert_allclose(drawn(ax, f"class {k}")[1], f.isel({"class": k}))
    assert legend_of(ax) == ["class 0", "class 1"]


def test_panels_share_their_scale_and_their_place(run, table):
    axes = plot_partial_dependence(run, table)
    assert [ax.get_xlabel() for ax in axes] == list(table)
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert [ax.get_ylabel() for ax in axes] == ["f", "", "", "f", ""]


def test_two_numbers_are_cells_with_dots_of_the_data(run, table):
    (ax,) = plot_partial_dependence(run, table, ("size", "income"), grid=7)
    mean = partial_dependence(run, table, ("size", "income"), grid=7)["f"].mean(("chain", "draw"))
    [mesh] = ax.collections
    cells = mesh.get_array().reshape(9, 7)  # 7 values, the gap, and the missing one
    np.testing.assert_allclose(cells[:7], mean.values[:, :7].T)
    assert cells.mask[7].all()
    np.testing.assert_allclose(cells[8], mean.values[:, 7])
    dots = np.array(ax.lines[-1].get_data())
    np.testing.assert_array_equal(dots[0], table["size"])
    has_income = table["income"].notna()
    np.testing.assert_array_equal(dots[1, has_income], table.loc[has_income, "income"])
    assert (dots[1, ~has_income] > table["income"].max()).all()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "income")
    assert ax.figure.axes[-1].get_ylabel() == "f"


@pytest.mark.parametrize("pair", [("size", "colour"), ("colour", "size")])
def test_a_number_and_a_category_are_a_curve_for_each_category(run, table, pair):
    (ax,) = plot_partial_dependence(run, table, pair, grid=7)
    f = partial_dependence(run, table, pair, grid=7)["f"].mean(("chain", "draw"))
    assert legend_of(ax) == f["colour"].values.tolist()
    for colour in f["colour"].values:
        np.testing.assert_allclose(drawn(ax, colour)[1], f.sel(colour=colour))
    assert ax.get_xlabel() == "size"


def test_many_categories_are_cells(rng):
    letters = list("abcdefghijkl")
    X = pd.DataFrame({"x": rng.standard_normal(48), "place": pd.Categorical(letters * 4)})
    run = prior_runs.draw_run(rng, X)
    (ax,) = plot_partial_dependence(run, X, ("x", "place"), grid=5)
    mean = partial_dependence(run, X, ("x", "place"), grid=5)["f"].mean(("chain", "draw"))
    np.testing.assert_allclose(ax.collections[0].get_array(), mean.T)
    assert [label.get_text() for label in ax.get_yticklabels()] == letters


def test_large_numbers_of_categories_are_told_apart(rng):
    X = np.column_stack([rng.choice([1000001.0, 1000002.0, 1000003.0], 40), rng.normal(size=40)])
    run = prior_runs.draw_run(rng, X, categorical=[0])
    (ax,) = plot_partial_dependence(run, X, 0)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1000001", "1000002", "1000003"]
    assert line(ax, "mean").get_xdata().tolist() == [0, 1, 2]


def test_dots_of_many_series_differ_by_colour_or_shape(rng):
    table = pd.DataFrame(
        {"day": pd.Categorical(rng.choice(list("abcdefg"), 80)), "z": rng.integers(0, 3, 80)}
    )
    run = prior_runs.draw_run(rng, table)
    (ax,) = plot_partial_dependence(run, table, ("z", "day"))
    dots = [each for each in ax.lines if each.get_label() in list("abcdefg")]
    assert len({(each.get_markeredgecolor(), each.get_marker()) for each in dots}) == 7


def test_cells_of_missing_categories_are_theirs_wherever_the_grid_has_them(rng):
    letters = list("abcdefghij")
    table = pd.DataFrame({"x": rng.normal(size=200), "place": rng.choice(letters, 200)})
    table["place"] = table["place"].astype("category")
    table.loc[::9, "place"] = None
    run = prior_runs.draw_run(rng, table, trees=10, alpha=0.97)
    cells = []
    for places in ([None, *letters], [*letters, None]):
        (ax,) = plot_partial_dependence(run, table, ("x", "place"), grid={"place": places})
        cells.append(ax.collections[0].get_array().filled(np.nan))
    np.testing.assert_array_equal(*cells)
    mean = partial_dependence(run, table, ("x", "place"))["f"].mean(("chain", "draw"))
    np.testing.assert_allclose(cells[0][:10], mean.sel(place=letters).T)


def test_joint_local_effects_are_drawn_as_pairs(rng):
    grades = pd.Categorical(list("abc") * 20, list("abc"), ordered=True)
    X = pd.DataFrame(rng.standard_normal((60, 2)), columns=["size", "age"]).assign(grade=grades)
    run = prior_runs.draw_run(rng, X)
    asked = ["size", ("size", "age"), ("grade", "size")]
    result = accumulated_local_effects(run, X, asked, grid={"size": 4, "age": 3})
    single, cells, curves = plot_ale(result, X)
    mean = result.mean(("chain", "draw"))
    np.testing.assert_allclose(cells.collections[0].get_array(), mean["f_size_age"].T)
    assert (cells.get_xlabel(), cells.get_ylabel()) == ("size", "age")
    assert cells.figure.axes[-1].get_ylabel() == "joint local effect on f"
    assert curves.get_xlabel() == "size"
    for grade in "abc":
        np.testing.assert_allclose(drawn(curves, grade)[1], mean["f_grade_size"].sel(grade=grade))
    assert single.get_ylabel() == "local effect on f"
    assert curves.get_ylabel().replace("\n", " ") == "joint local effect on f"


def test_forests_have_a_panel_of_cells_each(several, table):
    axes = plot_partial_dependence(several, table, ("size", "visit"), grid=4)
    assert [ax.get_title() for ax in axes] == ["class 0", "class 1"]


def test_single_rows_are_drawn_by_their_posterior_means(run, table):
    (ax,) = plot_ice(run, table, "size", rows=6)
    f = individual_conditional_expectation(run, table, "size", rows=6)["f"]
    curves = f.mean(("chain", "draw")).values
    drawn_rows = [each for each in ax.lines if len(each.get_xdata()) == f.sizes["size"]]
    shown = np.array([each.get_ydata() for each in drawn_rows])
    np.testing.assert_allclose(shown, [*curves, curves.mean(axis=0)])
    np.testing.assert_allclose(drawn(ax, "mean of these rows")[1], curves.mean(axis=0))
    assert ax.get_ylabel() == "f"
    assert legend_of(ax) == ["one row", "mean of these rows"]


def test_labels_say_what_was_transformed(run, table):
    options = {"transform": np.exp, "grid": 4, "draws": 3}
    (ax,) = plot_partial_dependence(run, table, "size", **options)
    assert ax.get_ylabel() == "exp(f)"
    (ax,) = plot_ice(run, table, "size", kind="centred", grid=4, draws=3)
    assert ax.get_ylabel().replace("\n", " ") == "change of f from the first point"
    labels = {"f": "log rate", "size": "size (cm)"}
    (ax,) = plot_partial_dependence(run, table, "size", labels=labels)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size (cm)", "log rate")


def test_grids_of_any_order_are_drawn_in_that_of_the_axis(run, table):
    shuffled = plot_partial_dependence(run, table, ["size", "income"], grid={"size": [1, -1, 0]})
    ordered = plot_partial_dependence(run, table, ["size", "income"], grid={"size": [-1, 0, 1]})
    np.testing.assert_array_equal(drawn(shuffled[0]), drawn(ordered[0]))


@pytest.mark.parametrize("num_columns", [1, 2, 3, 12, 40])
def test_no_text_runs_into_another(num_columns):
    result = made_up(num_columns, lambda v: f"mean income of all the people in {1950 + v}")
    axes = plot_partial_dependence(result)
    assert axes.size == num_columns
    assert_texts_apart(axes)


def test_no_text_of_other_columns_runs_into_another(run, several, table):
    pairs = [("size", "income"), ("visit", "colour"), ("colour", "flag")]
    for axes in (
        plot_partial_dependence(run, table, grid=9),
        plot_partial_dependence(several, table, grid=9),
        plot_partial_dependence(run, table, pairs, grid=4),
        plot_ice(run, table, grid=9, rows=5),
    ):
        assert_texts_apart(axes)


def test_columns_without_names_are_numbered(rng):
    X = rng.standard_normal((40, 2))
    run = prior_runs.draw_run(rng, X)
    axes = plot_partial_dependence(run, X, [1, 0], grid=5)
    assert [ax.get_xlabel() for ax in axes] == ["column_1", "column_0"]
    np.testing.assert_array_equal(drawn(axes[0], "_rug")[0], np.sort(X[:, 1]))


def test_it_draws_where_it_is_told(run, table):
    _, grid = plt.subplots(1, 3)
    axes = plot_partial_dependence(run, table, ["size", "flag"], axes=grid[1:])
    assert axes.tolist() == grid[1:].tolist()
    assert not grid[0].lines
    (ax,) = plot_partial_dependence(run, table, "size", figsize=(3, 2))
    assert ax.figure.get_size_inches().tolist() == [3, 2]


def test_a_scale_that_panels_share_is_written_once(run, table):
    _, grid = plt.subplots(1, 2, sharey=True)
    axes = plot_partial_dependence(run, table, ["size", "flag"], axes=grid)
    assert [ax.get_ylabel() for ax in axes] == ["f", ""]
    _, grid = plt.subplots(1, 2)
    axes = plot_partial_dependence(run, table, ["size", "flag"], axes=grid)
    assert [ax.get_ylabel() for ax in axes] == ["f", "f"]


def test_bad_input_is_refused(run, table):
    result = partial_dependence(run, table, "size", grid=4)
    with pytest.raises(TypeError, match=r"grid: only with what pm\.sample returned"):
        plot_partial_dependence(result, grid=3)
    with pytest.raises(TypeError, match="'f' does not say that it comes from individual_cond"):
        plot_ice(result)
    with pytest.raises(TypeError, match="does not say that it comes from partial_dependence"):
        plot_partial_dependence(xr.Dataset({"f": ("x", [1.0])}))
    with pytest.raises(ValueError, match="X has no column 'size': its columns are 'flag'"):
        plot_partial_dependence(result, table[["flag"]])
    with pytest.raises(ValueError, match="axes holds 1 axes, but there are 5 panels"):
        plot_partial_dependence(run, table, axes=plt.gca())
    with pytest.raises(KeyError, match="labels names the column 'age'"):
        plot_partial_dependence(result, labels={"age": "Age"})
    with pytest.raises(ValueError, match="probabilities"):
        plot_partial_dependence(result, probabilities=94)
    with pytest.raises(ValueError, match="about two columns at the same time"):
        plot_ice(run, table, ("size", "flag"), grid=3, rows=3)
