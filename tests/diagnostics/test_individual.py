"""Individual curves are predictions of rows moved to each point, to the last bit."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import expit

from pymc_xbart import individual_conditional_expectation, partial_dependence
from tests.helpers.moved import each_point
from tests.helpers.prior_runs import draw_run, mixed_table

ROWS = 40


@pytest.fixture(scope="module")
def table():
    return mixed_table(np.random.default_rng(8), ROWS)


@pytest.fixture(scope="module")
def idata(table):
    return draw_run(np.random.default_rng(9), table, trees=12, alpha=0.97)


@pytest.mark.parametrize("columns", ["size", "income", "colour", ("flag", "colour")])
def test_curves_are_predictions(idata, table, columns):
    result = individual_conditional_expectation(idata, table, columns, grid=7)["f"]
    dims = [columns] if isinstance(columns, str) else list(columns)
    assert result.dims == ("chain", "draw", "f_dim_0", *dims)
    brute = each_point(idata, table, {dim: result[dim].to_numpy() for dim in dims})
    np.testing.assert_array_equal(result, brute)


def test_several_forests_have_a_dimension_of_their_own(rng, table):
    idata = draw_run(rng, table, batch=(2,), dims=["class", "pupil"])
    result = individual_conditional_expectation(idata, table, "size", grid=7)["f"]
    assert result.dims == ("chain", "draw", "class", "pupil", "size")
    brute = each_point(idata, table, {"size": result["size"].to_numpy()})
    np.testing.assert_array_equal(result, brute)


def test_their_mean_is_partial_dependence(idata, table):
    curves = individual_conditional_expectation(idata, table, kind="centred")
    means = partial_dependence(idata, table, kind="centred")
    xr.testing.assert_allclose(curves.mean("f_dim_0"), means, rtol=1e-12, atol=1e-12)


def test_centred_curves_begin_at_zero(idata, table):
    plain = individual_conditional_expectation(idata, table, ("size", "colour"))["f"]
    centred = individual_conditional_expectation(idata, table, ("size", "colour"), kind="centred")
    first = plain.isel(size=0, colour=0, drop=True)
    xr.testing.assert_equal(centred["f"], plain - first)


def test_a_function_of_f_can_be_asked_for(idata, table):
    plain = individual_conditional_expectation(idata, table, "size", draws=2)
    other = individual_conditional_expectation(idata, table, "size", draws=2, transform=expit)
    xr.testing.assert_equal(other, expit(plain))
    with pytest.raises(ValueError, match="without 'size'"):
        individual_conditional_expectation(idata, table, "size", transform=lambda f: f.mean("size"))


def test_rows_are_chosen_and_labelled(idata, table):
    few = individual_conditional_expectation(idata, table, "size", rows=3)["f"]
    assert few["f_dim_0"].to_numpy().tolist() == [0, 20, 39]
    every = individual_conditional_expectation(idata, table, "size", rows=None)["f"]
    xr.testing.assert_identical(few, every.isel(f_dim_0=[0, 20, 39]))
    named = table.set_index(pd.Index([f"pupil {i}" for i in range(ROWS)]))
    two = individual_conditional_expectation(idata, named, "size", rows=[7, 2])["f"]
    assert two["f_dim_0"].to_numpy().tolist() == ["pupil 7", "pupil 2"]
    np.testing.assert_array_equal(two, every.isel(f_dim_0=[7, 2]))


def test_what_does_not_fit_in_memory_is_refused(idata, table):
    needed = 8 * 8 * 3 * 7  # draws, rows, points
    options = {"rows": 3, "grid": 7}
    individual_conditional_expectation(idata, table, "size", max_memory=needed, **options)
    with pytest.raises(ValueError, match=r"3 rows and 7 points take .*`draws`, `rows` or `grid`"):
        individual_conditional_expectation(idata, table, "size", max_memory=needed - 1, **options)
