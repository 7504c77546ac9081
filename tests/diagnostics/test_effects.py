"""Effects are draws of the forest, and averages of them over rows, written out as loops."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_xbart import predict, treatment_effects
from tests.helpers.prior_runs import draw_run, mixed_table

ROWS = 40


@pytest.fixture(scope="module")
def table():
    return mixed_table(np.random.default_rng(1), ROWS)


@pytest.fixture(scope="module")
def run(table):
    run = draw_run(np.random.default_rng(2), table, draws=6)
    posterior = xr.Dataset({"f": predict(run, table).rename(f_dim_0="person")})
    return xr.DataTree.from_dict({**run.to_dict(), "posterior": posterior})


def slow_average(f, mask, weights):
    """Weighted mean of one draw over some rows."""
    total = sum(weights[i] * f[i] for i in range(ROWS) if mask[i])
    return total / sum(weights[i] for i in range(ROWS) if mask[i])


def test_averages_are_weighted_means_over_rows_of_each_draw(run, table, rng):
    weights = rng.uniform(size=ROWS)
    groups = {"large": table["size"] > 0, "flagged": (table["flag"] == 1).to_numpy()}
    effects = treatment_effects(run, groups=groups, weights=weights)
    f = predict(run, table).values
    np.testing.assert_array_equal(effects["conditional"], f)
    masks = {"all": np.ones(ROWS, bool), **groups}
    assert effects["group"].values.tolist() == list(masks)
    for name, mask in masks.items():
        average = effects["average"].sel(group=name)
        assert average.dims == ("chain", "draw")
        slow = [[slow_average(draw, np.array(mask), weights) for draw in chain] for chain in f]
        np.testing.assert_allclose(average, slow)
    assert effects["rows"].values.tolist() == [np.sum(mask) for mask in masks.values()]


def test_what_is_no_effect_of_rows_is_refused(run, table):
    noise = xr.DataArray(np.ones((2, 6)), dims=("chain", "draw"))
    f = run["posterior"]["f"]
    posterior = xr.Dataset({"noise": noise, "f": f.rename(person="rows")})
    other = run.copy()
    other["posterior"] = xr.DataTree(posterior)
    with pytest.raises(ValueError, match="'noise' is a single number in each draw"):
        treatment_effects(other, var_name="noise")
    with pytest.raises(ValueError, match="dimension 'rows', which is what the result calls"):
        treatment_effects(other, var_name="f")


def test_weights_are_kept_beside_the_averages(run, rng):
    weights = rng.uniform(size=ROWS)
    effects = treatment_effects(run, weights=weights)
    np.testing.assert_array_equal(effects["weights"], weights)
    assert effects["weights"].dims == ("person",)
    assert "weights" not in treatment_effects(run)


def test_trees_are_evaluated_at_rows_that_are_given(run, table):
    rows = table.iloc[5:12]
    effects = treatment_effects(run, rows)
    np.testing.assert_array_equal(effects["conditional"], predict(run, rows))
    thinned = treatment_effects(run, rows, draws=3)
    np.testing.assert_array_equal(thinned["conditional"], predict(run, rows, draws=3))
    kept = treatment_effects(run, draws=3)
    np.testing.assert_array_equal(kept["conditional"]["draw"], thinned["draw"])


def test_labels_of_rows_are_groups_in_the_order_of_categories(run, table):
    colour = table["colour"]
    effects = treatment_effects(run, groups=colour)
    known = [name for name in colour.cat.categories if (colour == name).any()]
    assert effects["group"].values.tolist() == ["all", *known, "(missing)"]
    f = predict(run, table)
    for name in known:
        expected = f.isel(person=np.flatnonzero(colour == name)).mean("person")
        np.testing.assert_allclose(effects["average"].sel(group=name), expected)
    numbers = treatment_effects(run, groups=table["flag"])
    assert numbers["group"].values.tolist() == ["all", "0", "1"]


def test_scale_multiplies_draw_by_draw(run, rng):
    f = run["posterior"]["f"]
    np.testing.assert_allclose(treatment_effects(run, scale=2.5)["conditional"], 2.5 * f)
    slope = xr.DataArray(
        rng.uniform(size=(2, 6)), {"chain": [0, 1], "draw": range(6)}, ("chain", "draw")
    )
    effects = treatment_effects(run, scale=slope)
    slow = [[slope.values[c, d] * f.values[c, d] for d in range(6)] for c in range(2)]
    np.testing.assert_allclose(effects["conditional"], slow)
    thinned = treatment_effects(run, scale=slope, draws=3)
    np.testing.assert_allclose(
        thinned["conditional"], effects["conditional"].sel(draw=thinned["draw"])
    )


def test_several_forests_keep_their_dimension(table):
    run = draw_run(np.random.default_rng(3), table, batch=(3,), dims=["dose", "person"])
    effects = treatment_effects(run, table)
    assert effects["average"].dims == ("chain", "draw", "dose", "group")
    expected = predict(run, table).mean("person")
    np.testing.assert_allclose(effects["average"].sel(group="all"), expected)


def test_bad_input_is_refused(run, table):
    with pytest.raises(KeyError, match=r"'f' is not among the variables kept.*Pass X"):
        treatment_effects(run.drop_nodes("posterior"))
    with pytest.raises(ValueError, match="'old' must be a mask, True or False for each of the 40"):
        treatment_effects(run, groups={"old": [1, 2]})
    with pytest.raises(ValueError, match="not be called 'all'"):
        treatment_effects(run, groups={"all": np.ones(ROWS, bool)})
    with pytest.raises(ValueError, match="'none' has no rows with a weight above 0"):
        treatment_effects(run, groups={"none": np.zeros(ROWS, bool)})
    with pytest.raises(ValueError, match="finite number >= 0 for each of the 40 rows"):
        treatment_effects(run, weights=-np.ones(ROWS))
    other = xr.DataArray(np.ones(3), {"draw": [7, 8, 9]}, ("draw",))
    with pytest.raises(ValueError, match="scale has the dimensions"):
        treatment_effects(run, scale=other)
    with pytest.raises(TypeError, match="scale"):
        treatment_effects(run, scale="b")
    with pytest.raises(ValueError, match="one label for each row"):
        treatment_effects(run, groups=pd.Series(["a", "b"]))
