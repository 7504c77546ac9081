"""Pictures of effects and of residuals show means, intervals and bins as their data have them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from pymc_xbart import plot_effects, plot_residuals, predict, treatment_effects
from tests.helpers import prior_runs
from tests.helpers.figures import assert_texts_apart, band, legend_of, line

ROWS = 120


@pytest.fixture(scope="module")
def table():
    return prior_runs.mixed_table(np.random.default_rng(1), ROWS)


@pytest.fixture(scope="module")
def run(table):
    return prior_runs.draw_run(np.random.default_rng(2), table, trees=10, draws=20)


@pytest.fixture(scope="module")
def effects(run, table):
    return treatment_effects(run, table, groups=table["colour"])


def segments(ax, label):
    """Ends of intervals, (points, 2)."""
    [found] = [each for each in ax.collections if each.get_label() == label]
    return np.array(found.get_segments())[:, :, 1]


def bins_of(x):
    """Number of the bin of each row, by tenths of the sorted values; missing ones last."""
    known = np.sort(x[~np.isnan(x)])
    ends = np.unique([known[int(np.ceil(known.size * (k + 1) / 10)) - 1] for k in range(10)])
    return np.array([len(ends) if np.isnan(v) else int(np.argmax(v <= ends)) for v in x])


def test_rows_are_sorted_by_their_means_with_their_intervals(effects):
    ax = plot_effects(effects)[0]
    draws = effects["conditional"].values.reshape(-1, ROWS)
    order = np.argsort(draws.mean(axis=0), stable=True)
    np.testing.assert_allclose(line(ax, "one row").get_ydata(), draws.mean(axis=0)[order])
    x, ends = band(ax, "94 % interval")
    assert x.tolist() == list(range(ROWS))
    np.testing.assert_allclose(ends, np.quantile(draws[:, order], (0.03, 0.97), axis=0).T)
    average = effects["average"].sel(group="all")
    assert line(ax, "average effect").get_ydata()[0] == pytest.approx(float(average.mean()))
    [box] = [each for each in ax.patches if each.get_label() == "average, 94 % interval"]
    drawn = box.get_y(), box.get_y() + box.get_height()
    np.testing.assert_allclose(drawn, average.quantile([0.03, 0.97]))
    assert ax.get_xlabel() == "120 rows, sorted by their effect"
    assert ax.get_ylabel() == "effect (f)"


def test_few_rows_have_an_interval_each(run, table):
    (ax,) = plot_effects(run, table.iloc[:9], probabilities=0.8)
    draws = predict(run, table.iloc[:9]).values.reshape(-1, 9)
    order = np.argsort(draws.mean(axis=0), stable=True)
    expected = np.quantile(draws[:, order], (0.1, 0.9), axis=0).T
    np.testing.assert_allclose(segments(ax, "80 % interval"), expected)


def test_groups_have_a_panel(effects, table):
    _, ax = plot_effects(effects)
    average = effects["average"]
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [*average["group"].values[:-1], "missing"]
    expected = average.mean(("chain", "draw"))
    np.testing.assert_allclose(line(ax, "average of a group").get_ydata(), expected)


def test_along_a_column_rows_with_similar_values_are_averaged(effects, table):
    axes = plot_effects(effects, table, ["size", "income", "colour"])
    assert [ax.get_xlabel() for ax in axes[2:]] == ["size", "income", "colour"]
    assert len({ax.get_ylim() for ax in axes}) == 1
    draws = effects["conditional"].values.reshape(-1, ROWS)
    for ax, name in zip(axes[2:4], ("size", "income"), strict=True):
        x = table[name].to_numpy()
        of_row = bins_of(x)
        groups = [of_row == k for k in range(of_row.max() + 1)]
        means = [draws[:, group].mean() for group in groups]
        at, drawn = line(ax, "average of a group").get_data()
        np.testing.assert_allclose(drawn, means)
        known = [x[group].mean() for group in groups if not np.isnan(x[group]).any()]
        np.testing.assert_allclose(at[: len(known)], known)
        np.testing.assert_allclose(line(ax, "mean of one row").get_ydata(), draws.mean(axis=0))
    colours = table["colour"].cat.categories
    means = [draws[:, table["colour"] == colour].mean() for colour in colours]
    drawn = line(axes[4], "average of a group").get_ydata()
    np.testing.assert_allclose(drawn[:-1], means)


def test_averages_along_a_column_are_weighted_like_others(run, table, rng):
    weights = rng.uniform(size=ROWS)
    effects = treatment_effects(run, table, weights=weights)
    ax = plot_effects(effects, table, "flag")[-1]
    mean = effects["conditional"].values.reshape(-1, ROWS).mean(axis=0)
    expected = [
        np.average(mean[is_in], weights=weights[is_in])
        for is_in in (table["flag"] == 0, table["flag"] == 1)
    ]
    np.testing.assert_allclose(line(ax, "average of a group").get_ydata(), expected)


def test_many_rows_are_thinned(effects):
    many = effects.isel(f_dim_0=np.tile(np.arange(ROWS), 10))
    ax = plot_effects(many)[0]
    assert line(ax, "one row").get_xdata().size == 500
    assert ax.get_xlabel() == "1200 rows, sorted by their effect"


def test_no_text_runs_into_another(effects, run, table):
    assert_texts_apart(plot_effects(effects, table, list(table)))
    assert_texts_apart(plot_effects(run, table.iloc[:9]))
    assert_texts_apart(plot_residuals(run, table, np.arange(ROWS)))


def test_bad_effects_are_refused(effects, run, table):
    with pytest.raises(ValueError, match="X is missing"):
        plot_effects(effects, columns="size")
    with pytest.raises(ValueError, match="X has not as many rows"):
        plot_effects(effects, table.iloc[:5], "size")
    with pytest.raises(TypeError, match="Pass what treatment_effects returned"):
        plot_effects(effects.drop_vars("average"))
    several = prior_runs.draw_run(np.random.default_rng(3), table, batch=(2,))
    with pytest.raises(ValueError, match="effects of several forests, along 'f_dim_0'"):
        plot_effects(several, table)


def test_residuals_are_drawn_with_the_means_of_their_bins(run, table, rng):
    y = predict(run, table).mean(("chain", "draw")).values + rng.standard_normal(ROWS)
    axes = plot_residuals(run, table, y, probability=0.9)
    assert [ax.get_xlabel() for ax in axes] == list(table)
    assert axes[0].get_ylabel().replace("\n", " ") == "y less the posterior mean of f"
    assert legend_of(axes[0]) == ["one row", "90 % interval", "mean"]
    left = y - predict(run, table).mean(("chain", "draw")).values
    np.testing.assert_allclose(line(axes[0], "one row").get_ydata(), left)
    of_row = bins_of(table["income"].to_numpy())
    sizes = np.bincount(of_row)
    means = np.array([left[of_row == k].mean() for k in range(sizes.size)])
    np.testing.assert_allclose(line(axes[1], "mean").get_ydata(), means)
    half = norm.ppf(0.95) * np.std(left, ddof=1) / np.sqrt(sizes)
    expected = np.column_stack([means - half, means + half])
    np.testing.assert_allclose(segments(axes[1], "90 % interval"), expected)


def test_residuals_are_checked_before_anything_is_drawn(run, table, rng):
    y = rng.standard_normal(ROWS)
    before = plt.get_fignums()
    for probability in (94, (0.5, 0.9)):
        with pytest.raises(ValueError, match=r"probability is .* a number between 0 and 1"):
            plot_residuals(run, table, y, probability=probability)
    with pytest.raises(ValueError, match=r"y has the shape \(119,\)"):
        plot_residuals(run, table, y[1:])
    assert plt.get_fignums() == before


def test_residuals_of_chosen_columns_have_a_panel_each(run, table):
    y = pd.Series(np.zeros(ROWS))
    (ax,) = plot_residuals(run, table, y, "flag", labels={"flag": "flagged"})
    assert ax.get_xlabel() == "flagged"
    with pytest.raises(ValueError, match="columns names the column 'age'"):
        plot_residuals(run, table, y, "age")
