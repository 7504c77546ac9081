"""Submodels average columns out, and searches order columns by them."""

import numpy as np
import pytest
import xarray as xr

from pymc_xbart import trees, variable_importance, variable_inclusion
from tests.helpers import prior_runs

NAMES = ["size", "income", "colour", "flag"]
RUNS = {
    "one forest": {},
    "two forests": {"batch": (2,), "dims": ["class", "row"]},
}


class Example:
    """A run of a few draws, rows to compare at, and f of every submodel by the table of trees."""

    def __init__(self, seed, **options):
        rng = np.random.default_rng(seed)
        self.run = prior_runs.draw_run(rng, prior_runs.mixed_table(rng, 50), draws=3, **options)
        self.X = prior_runs.mixed_table(rng, 8)
        self.table = trees(self.run)
        self.known = {}

    def slow_r2(self, columns):
        """Squared correlation with the draw three further on, of the other chain; (draws,)."""
        key = frozenset(columns)
        for each in (key, frozenset(NAMES)):
            if each not in self.known:
                f = prior_runs.slow_f(self.table, self.X, each)
                centred = f - f.mean(axis=-1, keepdims=True)
                self.known[each] = centred.reshape(len(f), -1)
        r2 = []
        for d, a in enumerate(self.known[key]):
            b = self.known[frozenset(NAMES)][(d + 3) % 6]
            both = np.abs(a).max() < 1e-12 or np.abs(b).max() < 1e-12
            r2.append(0.0 if both else (a @ b) ** 2 / ((a @ a) * (b @ b)))
        return np.array(r2)

    def slow_forward(self):
        order = []
        while len(order) < len(NAMES):
            rest = [name for name in self.by_splits if name not in order]
            order.append(max(rest, key=lambda name: self.slow_r2([*order, name]).mean()))
        return order

    def slow_backward(self):
        order = []
        rest = self.by_splits
        while rest:
            out = max(
                rest[::-1],
                key=lambda name: self.slow_r2([other for other in rest if other != name]).mean(),
            )
            rest = [name for name in rest if name != out]
            order.insert(0, out)
        return order

    @property
    def by_splits(self):
        splits = self.table["column"].value_counts()
        return sorted(NAMES, key=lambda name: -splits.get(name, 0))


@pytest.fixture(scope="module", params=RUNS)
def example(request):
    return Example(4, **RUNS[request.param])


def test_r2_is_that_of_averages_by_the_table_of_trees(example):
    found = variable_importance(example.run, example.X, method="inclusion")
    order = found["column"].values.tolist()
    assert order == example.by_splits
    assert found["r2"].dims == ("chain", "draw", "column")
    assert found["num_columns"].values.tolist() == [1, 2, 3, 4]
    for step in range(4):
        expected = example.slow_r2(order[: step + 1]).reshape(2, 3)
        np.testing.assert_allclose(found["r2"][:, :, step], expected, atol=1e-10)
    np.testing.assert_allclose(found["reference"], example.slow_r2(NAMES).reshape(2, 3), atol=1e-10)


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_searches_take_the_best_step_each_time(example, method):
    found = variable_importance(example.run, example.X, method=method)
    slow = example.slow_forward() if method == "forward" else example.slow_backward()
    assert found["column"].values.tolist() == slow
    for step in range(4):
        expected = example.slow_r2(slow[: step + 1]).reshape(2, 3)
        np.testing.assert_allclose(found["r2"][:, :, step], expected, atol=1e-10)


def test_all_columns_together_are_the_reference(example):
    found = variable_importance(example.run, example.X)
    np.testing.assert_array_equal(found["r2"].isel(column=-1), found["reference"])


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 9))
    return prior_runs.draw_run(rng, X, chains=1, draws=5, trees=4), X


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_columns_that_are_not_searched_come_behind_by_their_splits(wide, method):
    run, X = wide
    found = variable_importance(run, X, method=method, max_searched=3)
    by_splits = variable_importance(run, X, method="inclusion")["column"].values.tolist()
    order = found["column"].values.tolist()
    assert set(order[:3]) == set(by_splits[:3])
    assert order[3:] == by_splits[3:]
    total = variable_inclusion(run)["count"].sum(("chain", "draw")).sel(column=by_splits).values
    assert (np.diff(total) <= 0).all()


@pytest.mark.parametrize("method", ["forward", "backward", "inclusion"])
def test_columns_that_change_nothing_keep_their_order(rng, method):
    X = rng.standard_normal((40, 5))
    run = prior_runs.draw_run(rng, X, split_weights=[1, 0, 1, 0, 0])
    order = variable_importance(run, X, method=method)["column"].values.tolist()
    assert [v for v in order if v in (1, 3, 4)] == [1, 3, 4]


def test_rows_are_thinned_evenly(wide):
    run, X = wide
    found = variable_importance(run, X, max_rows=7)
    xr.testing.assert_identical(found, variable_importance(run, X[[0, 10, 20, 30, 39, 49, 59]]))


def test_files_say_the_same(wide, tmp_path):
    run, X = wide
    run.to_netcdf(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc") as opened:
        xr.testing.assert_identical(variable_importance(opened, X), variable_importance(run, X))


def test_a_constant_forest_explains_nothing(rng):
    X = rng.standard_normal((20, 3))
    run = prior_runs.draw_run(rng, X, max_depth=0)
    found = variable_importance(run, X)
    assert (found["r2"] == 0).all()
    assert (found["reference"] == 0).all()
    assert found["column"].values.tolist() == [0, 1, 2]


def test_bad_input_is_refused(wide):
    run, X = wide
    with pytest.raises(ValueError, match="method"):
        variable_importance(run, X, method="VI")
    with pytest.raises(ValueError, match="one draw only"):
        variable_importance(run, X, draws=1)
    with pytest.raises(ValueError, match=r"X has 2 column\(s\)"):
        variable_importance(run, X[:, :2])
    for option in ("draws", "max_rows", "max_searched"):
        with pytest.raises(ValueError, match=f"{option} is 0"):
            variable_importance(run, X, **{option: 0})
