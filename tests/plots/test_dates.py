"""Dates are dates along axes, whatever holds X."""

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_xbart import (
    partial_dependence,
    plot_ale,
    plot_ice,
    plot_partial_dependence,
    plot_residuals,
)
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from tests.helpers import prior_runs
from tests.helpers.figures import assert_texts_apart, drawn

ROWS = 60


@pytest.fixture(scope="module")
def table():
    days = pd.date_range("2020-01-01", periods=ROWS, freq="5D")
    return prior_runs.mixed_table(np.random.default_rng(1), ROWS).assign(visit=days)


@pytest.fixture(scope="module")
def run(table):
    return prior_runs.draw_run(np.random.default_rng(2), table)


def assert_dates(ax, days):
    assert isinstance(ax.xaxis.get_major_formatter(), mdates.ConciseDateFormatter)
    days = mdates.date2num(days)
    x, _ = drawn(ax)
    assert (x[0], x[-1]) == (days.min(), days.max())


def test_dates_are_dates_whatever_holds_X(run, table, tmp_path):
    """The run knows: it was given a table."""
    numbers = read_new_rows(table, find_draws(run)).X
    days = table["visit"]
    for X in (table, numbers):
        (ax,) = plot_partial_dependence(run, X, "visit")
        assert_dates(ax, days)
        np.testing.assert_allclose(drawn(ax, "_rug")[0], mdates.date2num(days))
    assert_dates(plot_ale(run, numbers, "visit")[0], days)
    result = partial_dependence(run, numbers, "visit")
    assert_dates(plot_partial_dependence(result)[0], days)
    result.to_netcdf(tmp_path / "result.nc")
    with xr.open_dataset(tmp_path / "result.nc") as read:
        assert_dates(plot_partial_dependence(read.load())[0], days)
    (ax,) = plot_ice(run, numbers, "visit", rows=3)
    assert isinstance(ax.xaxis.get_major_formatter(), mdates.ConciseDateFormatter)
    (ax,) = plot_residuals(run, numbers, np.zeros(ROWS), "visit")
    assert isinstance(ax.xaxis.get_major_formatter(), mdates.ConciseDateFormatter)


def test_dates_are_dates_where_only_the_table_says_so(run, table):
    """As for runs that were stored when they did not say it yet."""
    draws = find_draws(run)
    schema = draws.schema._replace(dates=None).to_bytes()
    constants = xr.Dataset({"f_schema": ("byte", schema)})
    old = xr.DataTree.from_dict({"sample_stats": run["sample_stats"], "constant_data": constants})
    assert_dates(plot_partial_dependence(old, table, "visit")[0], table["visit"])


def test_dates_with_gaps_and_a_column_without_any_value(rng):
    days = pd.Series(pd.date_range("2020-01-01", periods=40, freq="9D")).where(rng.random(40) > 0.3)
    X = pd.DataFrame({"visit": days, "x": rng.standard_normal(40)})
    run = prior_runs.draw_run(rng, X)
    axes = plot_partial_dependence(run, X, ["visit", ("visit", "x")], grid=9, labels={"f": "rate"})
    assert axes[0].get_xticklabels(minor=True)[0].get_text() == "missing"
    assert axes[0].get_ylabel() == "rate"
    assert_texts_apart(axes)
    nothing = partial_dependence(run, X, "visit", grid=[np.nan])
    (ax,) = plot_partial_dependence(nothing, X)
    assert drawn(ax)[0].size == 1


@pytest.mark.parametrize("count", [1, 4])
def test_spans_of_time_from_an_hour_to_decades_have_ticks(rng, count):
    """And no warning from Matplotlib."""
    seconds = 3600 * np.geomspace(1, 24 * 365 * 40, 24)
    for start in range(0, seconds.size, count):
        variables = {}
        for span in seconds[start : start + count]:
            name = f"visit_{span:.0f}"
            grid = 1.6e9 + np.linspace(0, span, 20)
            attrs = {"columns": [name], "dates": [name], "long_name": "f"}
            dims = "chain", "draw", name
            walk = rng.standard_normal((2, 9, 20))
            variables[f"f_{name}"] = xr.DataArray(walk, {name: grid}, dims, attrs=attrs)
        axes = plot_partial_dependence(xr.Dataset(variables))
        assert_texts_apart(axes)
        for ax in axes:
            low, high = ax.get_xlim()
            assert sum(low <= tick <= high for tick in ax.get_xticks()) >= 2
        plt.close("all")
