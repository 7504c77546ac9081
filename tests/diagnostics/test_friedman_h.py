"""Friedman's H is what his formulas say, with partial dependence by brute force."""

from itertools import combinations

import numpy as np
import pytest

from pymc_xbart import friedman_h, predict
from tests.helpers.prior_runs import draw_run, mixed_table

ROWS = 15


@pytest.fixture(scope="module")
def table():
    return mixed_table(np.random.default_rng(12), ROWS)


@pytest.fixture(scope="module")
def idata(table):
    return draw_run(np.random.default_rng(13), table, trees=6, alpha=0.97)


def dependence(idata, table, columns):
    """Centred partial dependence at the rows' own values, (*draws, rows)."""
    moved = []
    for i in range(len(table)):
        at_row = table.iloc[[i] * len(table)].set_axis(table.index)
        moved.append(predict(idata, table.assign(**at_row[columns])).to_numpy().mean(axis=-1))
    f = np.stack(moved, axis=-1)
    return f - f.mean(axis=-1, keepdims=True)


def share(interaction, whole):
    """The root of equation 44, and of 45."""
    return np.sqrt((interaction**2).sum(-1) / (whole**2).sum(-1))


def brute_force(idata, table, some, others):
    both, first, second = (
        dependence(idata, table, columns) for columns in (some + others, some, others)
    )
    return both - first - second, both


def test_pairs_are_brute_force(idata, table):
    result = friedman_h(idata, table)["pair"]
    assert result.dims == ("chain", "draw", "column", "column2")
    shares = friedman_h(idata, table, relative=False)["pair"]
    for one, other in combinations(table, 2):
        interaction, whole = brute_force(idata, table, [one], [other])
        h = result.sel(column=one, column2=other)
        np.testing.assert_allclose(h, share(interaction, whole), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(h, result.sel(column=other, column2=one))
        np.testing.assert_allclose(
            shares.sel(column=one, column2=other), interaction.std(axis=-1), rtol=1e-9, atol=1e-12
        )
    assert np.isnan(result.sel(column="size", column2="size")).all()
    assert result.max() > 0.1


def test_each_column_against_all_others_is_brute_force(idata, table):
    result = friedman_h(idata, table)["overall"]
    assert result.dims == ("chain", "draw", "column")
    for name in table:
        rest = [other for other in table if other != name]
        interaction, whole = brute_force(idata, table, [name], rest)
        np.testing.assert_allclose(
            result.sel(column=name), share(interaction, whole), rtol=1e-9, atol=1e-12
        )
    assert result.max() > 0.1


def test_columns_draws_and_rows_can_be_chosen(idata, table):
    everything = friedman_h(idata, table, rows=[3, 1, 9, 4])
    some = friedman_h(idata, table, ["flag", "size"], rows=[3, 1, 9, 4], draws=2)
    assert some["column"].to_numpy().tolist() == ["flag", "size"]
    same = everything.sel(column=["flag", "size"], column2=["flag", "size"]).isel(draw=[0, 3])
    for name in ("overall", "pair"):
        np.testing.assert_allclose(some[name], same[name], rtol=1e-9)
    few = friedman_h(idata, table.iloc[[1, 3, 4, 9]])
    np.testing.assert_allclose(few["pair"], everything["pair"], rtol=1e-9)


def test_several_forests_have_a_dimension_of_their_own(rng, table):
    idata = draw_run(rng, table, batch=(2,), dims=["class", "pupil"], alpha=0.97)
    result = friedman_h(idata, table)
    assert result["overall"].dims == ("chain", "draw", "class", "column")
    assert result["pair"].dims == ("chain", "draw", "class", "column", "column2")
    interaction, whole = brute_force(idata, table, ["size"], ["colour"])
    np.testing.assert_allclose(
        result["pair"].sel(column="size", column2="colour"), share(interaction, whole), rtol=1e-9
    )


def test_trees_with_one_split_do_not_interact_at_all(rng):
    X = rng.standard_normal((30, 3))
    result = friedman_h(draw_run(rng, X, max_depth=1), X)
    assert (result["overall"] == 0).all()
    assert (result["pair"].where(result["column"] != result["column2"], 0) == 0).all()


def test_columns_that_say_nothing_but_together_have_one(rng):
    """Of x * z with x and z in {-1, 1}, as balanced as can be, each alone is flat."""
    X = np.tile([[-1.0, -1], [-1, 1], [1, -1], [1, 1]], (5, 1))
    idata = draw_run(rng, X, trees=1, chains=1, draws=300, alpha=0.999, beta=0.0)
    h = friedman_h(idata, X)
    f = predict(idata, X[:4]).to_numpy()[0]
    is_full = np.array([np.unique(each).size == 4 for each in f])
    interaction = f @ [0.25, -0.25, -0.25, 0.25]
    expected = abs(interaction[is_full]) / f[is_full].std(axis=1)
    np.testing.assert_allclose(h["pair"][0, is_full, 0, 1], expected)
    np.testing.assert_allclose(h["overall"][0, is_full, 0], expected)
    assert expected.max() > 0.9


def test_a_forest_that_is_flat_has_none(rng):
    X = rng.standard_normal((10, 2))
    result = friedman_h(draw_run(rng, X, max_depth=0), X)
    assert (result["overall"] == 0).all()


def test_a_single_column_is_refused(rng):
    X = rng.standard_normal((10, 1))
    with pytest.raises(ValueError, match="an interaction needs two"):
        friedman_h(draw_run(rng, X), X)
    X = rng.standard_normal((10, 2))
    with pytest.raises(ValueError, match="columns holds 2"):
        friedman_h(draw_run(rng, X), X, [0, 2])


def test_rounding_is_no_interaction(rng):
    """Rows that are all alike: all that is left of f less its mean are the last bits."""
    X = rng.standard_normal((60, 3))
    idata = draw_run(rng, X, trees=20, alpha=0.99)
    result = friedman_h(idata, np.repeat(X[:1], 7, axis=0))
    assert (result["overall"] == 0).all()
    assert (result["pair"].fillna(0) == 0).all()
