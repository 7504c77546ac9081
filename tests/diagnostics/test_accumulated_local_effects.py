"""Accumulated local effects are sums of mean changes of predictions.

Those of two columns are in `test_joint_local_effects.py`.
"""

import numpy as np
import pandas as pd
import pytest

from pymc_xbart import accumulated_local_effects, partial_dependence, predict
from tests.helpers.moved import moved
from tests.helpers.prior_runs import draw_run, mixed_table

ROWS = 40


@pytest.fixture(scope="module")
def table():
    table = mixed_table(np.random.default_rng(10), ROWS)
    grades = pd.Categorical(list("abbd") * (ROWS // 4), list("abcd"), ordered=True)
    return table.assign(grade=grades)


@pytest.fixture(scope="module")
def idata(table):
    return draw_run(np.random.default_rng(11), table, trees=12, alpha=0.97)


def brute_force(idata, table, column, points):
    """Curve of one column, step by step and row by row."""
    order = list(table[column].cat.categories) if column == "grade" else None
    x = table[column].cat.codes.to_numpy(float) if order else table[column].to_numpy(float)
    z = np.array([order.index(point) for point in points], float) if order else np.array(points)
    curve = [0.0 * predict(idata, table.iloc[:1]).to_numpy()[..., 0]]
    for k in range(1, len(points)):
        lower = x >= z[0] if k == 1 else x > z[k - 1]
        here = table[lower & (x <= z[k])]
        change = predict(idata, moved(here, {column: points[k]})) - predict(
            idata, moved(here, {column: points[k - 1]})
        )
        curve.append(curve[-1] + change.to_numpy().mean(axis=-1))
    inside = x[(x >= z[0]) & (x <= z[-1])]
    curve = np.stack(curve, axis=-1)
    at_rows = np.apply_along_axis(lambda draw: np.interp(inside, z, draw), -1, curve)
    return curve - at_rows.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("column", ["size", "income", "flag", "grade"])
@pytest.mark.parametrize("grid", [None, 5])
def test_a_curve_is_brute_force(idata, table, column, grid):
    result = accumulated_local_effects(idata, table, column, grid=grid)["f"]
    assert result.dims == ("chain", "draw", column)
    brute = brute_force(idata, table, column, result[column].to_numpy().tolist())
    np.testing.assert_allclose(result, brute, rtol=1e-11, atol=1e-12)
    assert result.std(column).max() > 0.01


def test_points_can_be_given(idata, table):
    points = [-0.8, 0.1, 0.9]
    result = accumulated_local_effects(idata, table, "size", grid=points)["f"]
    assert (table["size"] > 0.9).any()  # which stay out
    brute = brute_force(idata, table, "size", points)
    np.testing.assert_allclose(result, brute, rtol=1e-11, atol=1e-12)


def test_several_forests_and_a_list_of_columns(rng, table):
    idata = draw_run(rng, table, batch=(2,), dims=["class", "pupil"])
    result = accumulated_local_effects(idata, table, ["size", "flag"], draws=2)
    assert result["f_size"].dims == ("chain", "draw", "class", "size")
    whole = accumulated_local_effects(idata, table, "flag")["f"].isel(draw=[0, 3])
    np.testing.assert_array_equal(result["f_flag"], whole)
    brute = brute_force(idata, table, "flag", [0, 1])[:, [0, 3]]
    np.testing.assert_allclose(result["f_flag"], brute, rtol=1e-11, atol=1e-12)


def test_without_interaction_it_is_centred_partial_dependence(rng):
    """Trees with one split are additive."""
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 60)
    idata = draw_run(rng, X, trees=20, max_depth=1)
    effects = accumulated_local_effects(idata, X, 0, grid=20)["f"]
    dependence = partial_dependence(idata, X, 0, grid=20)["f"]
    first = {"column_0": 0}
    np.testing.assert_allclose(
        effects - effects.isel(first), dependence - dependence.isel(first), atol=1e-12
    )


def test_columns_of_a_single_value_have_no_effect(rng):
    X = np.column_stack([rng.standard_normal(20), np.full(20, 3.0)])
    result = accumulated_local_effects(draw_run(rng, X), X)["f_column_1"]
    assert result["column_1"].to_numpy().tolist() == [3.0]
    assert (result == 0).all()


def test_by_default_all_columns_that_have_an_order(idata, table):
    result = accumulated_local_effects(idata, table)
    assert list(result.data_vars) == ["f_size", "f_income", "f_flag", "f_grade"]


@pytest.mark.parametrize(
    ("columns", "grid", "message"),
    [
        ("colour", None, "'colour' holds categories without an order.*`partial_dependence`"),
        (("size", "colour"), None, "'colour' holds categories without an order"),
        (("size", "flag"), {"size": [1.0, 0.0]}, "'size' must hold at least one value, in asc"),
        ("size", [1.0, 0.0], "'size' must hold at least one value, in ascending order"),
        ("income", [np.nan], "'income' must hold at least one value, in ascending order"),
        ("size", [-9.0, -8.0, 9.0], "No row of X lies between the points -9.0 and -8.0"),
    ],
)
def test_what_has_no_steps_is_refused(idata, table, columns, grid, message):
    with pytest.raises(ValueError, match=message):
        accumulated_local_effects(idata, table, columns, grid=grid)
