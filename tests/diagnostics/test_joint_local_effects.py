"""Local effects of two columns together are sums of mean differences of differences."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import RegularGridInterpolator

from pymc_xbart import accumulated_local_effects, predict
from tests.helpers.moved import moved
from tests.helpers.prior_runs import draw_run, mixed_table

ROWS = 80
GRADES = list("abcd")


@pytest.fixture(scope="module")
def table():
    table = mixed_table(np.random.default_rng(20), ROWS)
    grades = pd.Categorical(list("abbd") * (ROWS // 4), GRADES, ordered=True)
    return table.assign(grade=grades, size=table["size"].round(1))


@pytest.fixture(scope="module")
def idata(table):
    return draw_run(np.random.default_rng(21), table, trees=12, alpha=0.97)


def numbers(values):
    """Values as trees know them."""
    values = pd.Series(values)
    if values.isin(GRADES).any():
        return pd.Categorical(values, GRADES).codes.astype(float)
    return values.to_numpy(float)


def is_in_step(x, z, k):
    return (x <= z[k + 1]) & ((x >= z[0]) if k == 0 else (x > z[k]))


def brute_force(idata, table, points):
    """Surface of two columns, cell by cell and row by row; `points` by column."""
    (u, at_u), (v, at_v) = points.items()
    z, w = numbers(at_u), numbers(at_v)
    x, y = numbers(table[u]), numbers(table[v])
    inside = (x >= z[0]) & (x <= z[-1]) & (y >= w[0]) & (y <= w[-1])
    table, x, y = table[inside], x[inside], y[inside]
    cells = list(product(range(len(z) - 1), range(len(w) - 1)))
    rows = {(k, m): np.flatnonzero(is_in_step(x, z, k) & is_in_step(y, w, m)) for k, m in cells}
    change = {}
    for k, m in cells:
        # A cell without rows is as the nearest one that has some.
        a, b = min(
            (cell for cell in cells if rows[cell].size),
            key=lambda cell: np.hypot(
                (cell[0] - k) / (len(z) - 1),
                (cell[1] - m) / (len(w) - 1),
            ),
        )
        f = {
            (i, j): predict(
                idata, moved(table.iloc[rows[a, b]], {u: at_u[a + i], v: at_v[b + j]})
            ).to_numpy()
            for i, j in product((0, 1), (0, 1))
        }
        change[k, m] = (f[1, 1] - f[0, 1] - f[1, 0] + f[0, 0]).mean(axis=-1)
    shape = change[0, 0].shape
    sums = np.zeros((len(z), len(w), *shape))
    for k, m in cells:
        sums[k + 1, m + 1] = sum(change[i, j] for i in range(k + 1) for j in range(m + 1))
    f_of = RegularGridInterpolator((z, w), sums)
    own_u, own_v = np.zeros((len(z), *shape)), np.zeros((len(w), *shape))
    for k in range(len(z) - 1):
        here = y[is_in_step(x, z, k)]
        ends = [f_of([(end, other) for other in here]).mean(axis=0) for end in z[k : k + 2]]
        own_u[k + 1] = own_u[k] + ends[1] - ends[0]
    for m in range(len(w) - 1):
        here = x[is_in_step(y, w, m)]
        ends = [f_of([(other, end) for other in here]).mean(axis=0) for end in w[m : m + 2]]
        own_v[m + 1] = own_v[m] + ends[1] - ends[0]
    surface = sums - own_u[:, None] - own_v
    mean = RegularGridInterpolator((z, w), surface)(np.column_stack([x, y])).mean(axis=0)
    return np.moveaxis(surface - mean, (0, 1), (-2, -1))


def assert_is_brute_force(result, idata, table):
    pair = result.dims[-2:]
    brute = brute_force(idata, table, {dim: result[dim].to_numpy().tolist() for dim in pair})
    np.testing.assert_allclose(result, brute, rtol=1e-10, atol=1e-12)
    assert result.std(pair).max() > 0.01


@pytest.mark.parametrize(
    ("pair", "grid"),
    [
        (("size", "income"), 4),
        (("income", "size"), 4),
        (("size", "flag"), {"size": 6}),
        (("grade", "size"), {"size": [-0.8, 0.1, 0.9]}),
    ],
)
def test_a_surface_is_brute_force(idata, table, pair, grid):
    result = accumulated_local_effects(idata, table, pair, grid=grid)["f"]
    assert result.dims == ("chain", "draw", *pair)
    assert_is_brute_force(result, idata, table)


def test_cells_without_rows_change_as_the_nearest(idata, table):
    """The corner of small sizes and flag 1 is empty, and has one neighbour that is nearest."""
    rows = table[(table["size"] > -0.3) | (table["flag"] == 0)]
    rows = rows.assign(income=rows["flag"] + 0.01 * rows["income"].fillna(0))
    grid = {"size": [-1.0, -0.3, 0.2, 1.0], "income": [-0.1, 0.5, 1.1]}
    assert not ((rows["size"] <= -0.3) & (rows["income"] > 0.5)).any()
    result = accumulated_local_effects(idata, rows, ("size", "income"), grid=grid)["f"]
    assert_is_brute_force(result, idata, rows)


def test_the_order_of_columns_turns_the_surface(idata, table):
    pair = "size", "income"
    one = accumulated_local_effects(idata, table, pair, grid=5)["f"]
    other = accumulated_local_effects(idata, table, pair[::-1], grid=5)["f"]
    np.testing.assert_allclose(one, other.transpose(*one.dims), rtol=1e-10, atol=1e-12)


def test_sums_of_functions_of_one_column_have_no_joint_effect(rng):
    """Trees with one split are additive."""
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 60)
    idata = draw_run(rng, X, trees=20, max_depth=1)
    assert (accumulated_local_effects(idata, X, (0, 1), grid=5)["f"] == 0).all()


def test_several_forests_and_a_list_of_pairs(rng, table):
    idata = draw_run(rng, table, batch=(2,), dims=["class", "pupil"], alpha=0.97)
    asked = ["size", ("size", "flag")]
    result = accumulated_local_effects(idata, table, asked, grid={"size": 5}, draws=2)
    assert list(result.data_vars) == ["f_size", "f_size_flag"]
    assert result["f_size_flag"].dims == ("chain", "draw", "class", "size", "flag")
    assert result["f_size_flag"].attrs["long_name"] == "joint local effect on f"
    whole = accumulated_local_effects(idata, table, ("size", "flag"), grid={"size": 5})["f"]
    assert_is_brute_force(whole, idata, table)
    np.testing.assert_array_equal(result["f_size_flag"], whole.isel(draw=[0, 3]))


def test_other_points_of_a_column_are_asked_for_one_after_the_other(idata, table):
    # In one Dataset, xarray would put NaN where only the other has points.
    for asked in (["size", ("size", "income")], [("size", "grade"), ("size", "income")]):
        with pytest.raises(ValueError, match=r"'size' twice, at other points.*grid=\{'size': "):
            accumulated_local_effects(idata, table, asked)
    points = {"size": np.sort(table["size"].unique())[::8]}
    result = accumulated_local_effects(idata, table, ["size", ("size", "income")], grid=points)
    assert not any(each.isnull().any() for each in result.data_vars.values())


def test_columns_without_steps_are_left_out(rng, table):
    empty = table.assign(income=np.nan)
    result = accumulated_local_effects(draw_run(rng, table), empty)
    assert list(result.data_vars) == ["f_size", "f_flag", "f_grade"]
    colours = table[["colour"]]
    with pytest.raises(ValueError, match=r"No column of X has values with an order.*partial_dep"):
        accumulated_local_effects(draw_run(rng, colours), colours)


def test_by_default_ten_rows_are_in_a_cell_on_average(idata, table):
    result = accumulated_local_effects(idata, table, ("size", "income"))["f"]
    complete = table["income"].notna().sum()
    assert result.sizes["size"] == result.sizes["income"] == 2 + int((complete / 10) ** 0.5)
    assert_is_brute_force(result, idata, table)


def test_columns_of_a_single_value_have_no_effect(rng):
    X = np.column_stack([rng.standard_normal(20), np.full(20, 3.0)])
    result = accumulated_local_effects(draw_run(rng, X), X, (0, 1), grid={0: 4})["f"]
    assert result.shape[-2:] == (4, 1)
    assert (result == 0).all()
