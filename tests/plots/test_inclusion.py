"""The picture of inclusion shows every column's share, the largest first."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from pymc_xbart import interaction_inclusion, plot_inclusion, variable_inclusion
from tests.helpers import prior_runs
from tests.helpers.figures import ends_of, line, names_of


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(1)
    return prior_runs.draw_run(rng, prior_runs.mixed_table(rng, 50), draws=20)


def counted(num_columns, name=lambda v: f"x{v}"):
    """What `variable_inclusion` returns, made up: 200 splits a draw."""
    rng = np.random.default_rng(num_columns)
    weights = rng.dirichlet(np.full(num_columns, 0.5))
    count = rng.multinomial(200, weights, size=(2, 50))
    names = [name(v) for v in range(num_columns)]
    dims = "chain", "draw", "column"
    data = {"count": (dims, count), "share": (dims, count / 200)}
    return xr.Dataset(data, {"column": names})


def test_columns_are_in_order_with_their_means_and_intervals(run):
    ax = plot_inclusion(run)
    share = variable_inclusion(run)["share"]
    means = share.mean(("chain", "draw"))
    order = means.sortby(means, ascending=False)["column"].values.tolist()
    assert names_of(ax) == order
    x, y = line(ax, "mean").get_data()
    np.testing.assert_allclose(x, means.sel(column=order))
    assert y.tolist() == [0, 1, 2, 3]
    assert ax.yaxis_inverted()
    for label, tails in (("50 % interval", (0.25, 0.75)), ("94 % interval", (0.03, 0.97))):
        expected = share.quantile(tails, ("chain", "draw")).sel(column=order)
        np.testing.assert_allclose(ends_of(ax, label), expected.T)
    assert ax.get_xlabel() == "share of splits"
    assert line(ax, "equal shares").get_xdata()[0] == 1 / 4


def test_counts_may_be_passed_in_place_of_a_run(run):
    one, other = plot_inclusion(run), plot_inclusion(variable_inclusion(run))
    np.testing.assert_array_equal(line(one, "mean").get_xdata(), line(other, "mean").get_xdata())
    thinned = plot_inclusion(run, draws=5, var_name="f")
    means = variable_inclusion(run, draws=5)["share"].mean(("chain", "draw")).values
    np.testing.assert_allclose(line(thinned, "mean").get_xdata(), np.sort(means)[::-1])


def test_split_weights_are_drawn_at_their_columns(run):
    ax = plot_inclusion(run, split_weights=[1, 2, 3, 4])
    share = {"size": 0.1, "income": 0.2, "colour": 0.3, "flag": 0.4}
    drawn = line(ax, "share of split weights").get_xdata()
    np.testing.assert_allclose(drawn, [share[name] for name in names_of(ax)])
    with pytest.raises(ValueError, match="split_weights"):
        plot_inclusion(run, split_weights=[1, 2])


def test_forests_of_one_variable_are_taken_together_or_one_by_one(rng):
    X = rng.standard_normal((40, 3))
    run = prior_runs.draw_run(rng, X, batch=(2,), dims=["class", "row"])
    inclusion = variable_inclusion(run)
    count = inclusion["count"].sum("class")
    means = (count / count.sum("column")).mean(("chain", "draw")).values
    x = line(plot_inclusion(run), "mean").get_xdata()
    np.testing.assert_allclose(x, np.sort(means)[::-1])
    x = line(plot_inclusion(inclusion.isel({"class": 1})), "mean").get_xdata()
    means = inclusion["share"].isel({"class": 1}).mean(("chain", "draw")).values
    np.testing.assert_allclose(x, np.sort(means)[::-1])


def test_unnamed_columns_are_called_by_their_numbers(rng):
    run = prior_runs.draw_run(rng, rng.standard_normal((40, 2)))
    assert set(names_of(plot_inclusion(run))) == {"column 0", "column 1"}
    assert set(names_of(plot_inclusion(run, labels={1: "age"}))) == {"column 0", "age"}


def test_columns_beyond_the_largest_are_counted():
    inclusion = counted(75)
    ax = plot_inclusion(inclusion)
    names = names_of(ax)
    assert len(names) == 41
    assert names[-1] == "35 more columns"
    assert line(ax, "equal shares").get_xdata()[0] == 1 / 75
    means = inclusion["share"].mean(("chain", "draw")).values
    np.testing.assert_allclose(line(ax, "mean").get_xdata(), np.sort(means)[::-1][:40])
    assert names_of(plot_inclusion(inclusion, max_columns=74))[-1] == "1 more column"


@pytest.mark.parametrize("num_columns", [1, 3, 12, 40])
def test_no_text_runs_into_another(num_columns):
    ax = plot_inclusion(counted(num_columns, lambda v: f"mean income of the quarter in {1950 + v}"))
    ax.figure.canvas.draw()
    texts = [*ax.get_yticklabels(), *ax.get_legend().get_texts(), ax.xaxis.label]
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert ax.figure.bbox.containsx(box.x0)
        assert ax.figure.bbox.containsy(box.y1)


def test_long_names_keep_both_ends():
    names = names_of(plot_inclusion(counted(3, lambda v: f"{'long ' * 20}{v}")))
    assert all(len(name) == 32 for name in names)
    assert all(name.startswith("long long") for name in names)
    assert {name[-1] for name in names} == {"0", "1", "2"}


def test_it_draws_where_it_is_told(run):
    _, axes = plt.subplots(1, 2)
    assert plot_inclusion(run, ax=axes[1]) is axes[1]
    assert not axes[0].lines
    assert plot_inclusion(run, figsize=(3, 2)).figure.get_size_inches().tolist() == [3, 2]


def test_nothing_is_drawn_before_all_is_checked(run):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=r"split_weights has shape \(2, 4\)"):
        plot_inclusion(run, split_weights=np.ones((2, 4)))
    for given, options in (
        (interaction_inclusion(run), {}),
        (variable_inclusion(run), {"draws": 2}),
        (variable_inclusion(run), {"var_name": "f"}),
    ):
        with pytest.raises(TypeError, match="These are counts already"):
            plot_inclusion(given, **options)
    assert plt.get_fignums() == before


def test_bad_input_is_refused(run, rng):
    with pytest.raises(KeyError, match="labels names the column 'age', but the columns are"):
        plot_inclusion(run, labels={"age": "Age"})
    with pytest.raises(ValueError, match="max_columns is 0"):
        plot_inclusion(run, max_columns=0)
    stumps = prior_runs.draw_run(rng, rng.standard_normal((20, 2)), max_depth=0)
    with pytest.raises(ValueError, match="No draw has a split"):
        plot_inclusion(stumps)
    with pytest.raises(TypeError, match="idata is a list"):
        plot_inclusion([])
