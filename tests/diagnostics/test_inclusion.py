"""Splits are counted by column and draw, and trees by pair of columns."""

import itertools

import numpy as np
import pytest
import xarray as xr

from pymc_xbart import interaction_inclusion, trees, variable_inclusion
from pymc_xbart.diagnostics import inclusion as module
from tests.helpers import prior_runs

NAMES = ["size", "income", "colour", "flag"]


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(1)
    return prior_runs.draw_run(rng, prior_runs.mixed_table(rng, 50))


@pytest.fixture(scope="module")
def run_of_three():
    rng = np.random.default_rng(2)
    X = prior_runs.mixed_table(rng, 50)
    return prior_runs.draw_run(rng, X, batch=(3,), dims=["class", "row"])


def slow_counts(table, by):
    """Splits by draw and column."""
    counts = table.groupby(by)["column"].value_counts().unstack(fill_value=0)
    return counts.reindex(columns=NAMES, fill_value=0).to_numpy()


def test_splits_are_those_of_the_table_of_trees(run):
    found = variable_inclusion(run)
    assert found["count"].dims == found["share"].dims == ("chain", "draw", "column")
    assert found["column"].values.tolist() == NAMES
    expected = slow_counts(trees(run), ["chain", "draw"]).reshape(2, 4, 4)
    np.testing.assert_array_equal(found["count"], expected)
    np.testing.assert_allclose(found["share"], expected / expected.sum(-1, keepdims=True))


def test_several_forests_have_a_dimension_of_their_own(run_of_three):
    found = variable_inclusion(run_of_three)
    assert found["share"].dims == ("chain", "draw", "class", "column")
    expected = slow_counts(trees(run_of_three), ["chain", "draw", "forest"])
    np.testing.assert_array_equal(found["count"], expected.reshape(2, 4, 3, 4))


def test_draws_without_splits_have_no_shares(rng):
    X = prior_runs.mixed_table(rng, 30)
    found = variable_inclusion(prior_runs.draw_run(rng, X, max_depth=0))
    assert (found["count"] == 0).all()
    assert found["share"].isnull().all()
    together = interaction_inclusion(prior_runs.draw_run(rng, X, max_depth=0))
    assert (together["share"] == 0).all()


def test_draws_are_thinned_and_selected(run):
    everything = variable_inclusion(run)
    xr.testing.assert_identical(variable_inclusion(run, draws=2), everything.isel(draw=[0, 3]))
    one = variable_inclusion(run.isel(chain=1, draw=2), var_name="f")
    assert one["share"].dims == ("column",)
    np.testing.assert_array_equal(one["share"], everything["share"][1, 2])


@pytest.mark.parametrize("function", [variable_inclusion, interaction_inclusion])
def test_files_say_the_same(run, function, tmp_path):
    run.to_netcdf(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc") as opened:
        xr.testing.assert_identical(function(opened), function(run))


def test_columns_without_names_are_numbered(rng):
    run = prior_runs.draw_run(rng, rng.standard_normal((30, 3)))
    assert variable_inclusion(run)["column"].values.tolist() == [0, 1, 2]
    assert interaction_inclusion(run)["column2"].values.tolist() == [0, 1, 2]


def pairs_of_tree(nodes):
    """Unordered pairs of columns of which one is split on below the other."""
    nodes = nodes.set_index("node")
    splits = nodes[nodes["left"] >= 0]
    pairs = set()
    for node in splits.index:
        above = nodes.loc[node, "parent"]
        while above >= 0:
            pairs.add(frozenset([nodes.loc[node, "column"], nodes.loc[above, "column"]]))
            above = nodes.loc[above, "parent"]
    return pairs


def slow_pairs(table):
    counts = xr.DataArray(np.zeros((4, 4), int), {"column": NAMES, "column2": NAMES})
    for _, nodes in table.groupby("tree"):
        for pair in pairs_of_tree(nodes):
            one, other = (*pair, *pair)[:2]
            counts.loc[one, other] += 1
            if one != other:
                counts.loc[other, one] += 1
    return counts.values


def test_pairs_are_those_of_the_table_of_trees(run):
    found = interaction_inclusion(run)
    assert found["count"].dims == ("chain", "draw", "column", "column2")
    table = trees(run)
    for (chain, draw), of_draw in table.groupby(["chain", "draw"]):
        expected = slow_pairs(of_draw)
        np.testing.assert_array_equal(found["count"].sel(chain=chain, draw=draw), expected)
    np.testing.assert_allclose(found["share"], found["count"] / 5)
    assert found["count"].max() > 1


def test_pairs_of_several_forests(run_of_three):
    found = interaction_inclusion(run_of_three)
    assert found["share"].dims == ("chain", "draw", "class", "column", "column2")
    of_last = trees(run_of_three, chain=1, draw=3)
    for k, of_forest in of_last.groupby("forest"):
        np.testing.assert_array_equal(found["count"][1, 3, k], slow_pairs(of_forest))


def test_f_is_additive_in_columns_that_no_tree_uses_together(run):
    """f(a, b) + f(c, d) = f(a, d) + f(c, b) for the two columns, the others being what they are."""
    rng = np.random.default_rng(3)
    one, other = prior_runs.mixed_table(rng, 2).to_dict("records")
    table = trees(run)
    counts = interaction_inclusion(run)["count"]
    num_additive = 0
    for (chain, draw), of_draw in table.groupby(["chain", "draw"]):
        for first, second in itertools.combinations(NAMES, 2):
            rows = [
                one | {first: a[first], second: b[second]}
                for a in (one, other)
                for b in (one, other)
            ]
            f = [
                sum(
                    prior_runs.value_of(nodes.set_index("node"), row, NAMES)
                    for _, nodes in of_draw.groupby("tree")
                )
                for row in rows
            ]
            if counts.sel(chain=chain, draw=draw, column=first, column2=second) == 0:
                num_additive += 1
                assert abs(f[0] + f[3] - f[1] - f[2]) < 1e-12
    assert num_additive > 0


def test_too_many_pairs_are_refused(run, monkeypatch):
    monkeypatch.setattr(module, "MAX_PAIRS", 100)
    with pytest.raises(ValueError, match=r"4 columns make 16 pairs, of which 8 draws .* `draws`"):
        interaction_inclusion(run)
    assert interaction_inclusion(run, draws=1)["count"].sizes["draw"] == 1


def test_other_input_is_refused():
    with pytest.raises(TypeError, match="idata is a list"):
        variable_inclusion([])
