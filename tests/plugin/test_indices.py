"""Data that name levels which a variable does not have are refused, not read as other numbers."""

import numpy as np
import pymc as pm
import pytest

import pymc_xbart as pxb
from pymc_xbart.plugin.indices import check_indices
from tests.helpers.schools import SCHOOL, X, fit, make_model, move_pupils, predict

NEW = np.random.default_rng(2).normal(size=(3, 2))


def test_a_group_that_is_not_there_is_refused_by_name():
    model = make_model()
    move_pupils(model, NEW, np.array([0, 4, 1]))
    with pytest.raises(IndexError, match=r"level 4 of a .*4 level.*school_of_pupil.*set_dim"):
        predict(fit(), model)
    with pytest.raises(IndexError, match=r"model\.set_dim\('school', new_length, new_labels\)"):
        predict(fit(), model)
    model.set_dim("school", 5, [*model.coords["school"], "elm"])
    assert predict(fit(), model)["predictions"]["y"].shape == (2, 25, 3)


def test_labels_given_to_set_data_do_not_make_a_group():
    # PyMC ignores them where no data is along that dimension.
    model = make_model()
    with model:
        pm.set_data(
            {"school_of_pupil": np.where(SCHOOL == 0, 4, SCHOOL)},
            coords={"school": ["ash", "bay", "cob", "dun", "elm"]},
        )
    with pytest.raises(IndexError, match=r"level 4 of a .*set_dim\('school'"):
        predict(fit(), model)


@pytest.fixture
def model():
    coords = {"group": range(4), "time": range(3)}
    with pm.Model(coords=coords) as model:
        pm.Normal("a", dims="group")
        pm.Normal("b", dims=("group", "time"))
        pm.Normal("c", shape=4)
        pm.Data("inside", np.array([0, 3, -4]))
        pm.Data("outside", np.array([0, 3, 5]))
        pm.Data("below", np.array([0, -5, 1]))
        pm.Data("empty", np.array([], int))
        pm.Data("one", 4)
    return model


ACCEPTED = {
    "vector": lambda m: m["a"][m["inside"]],
    "rows": lambda m: m["b"][m["inside"]],
    "two indices": lambda m: m["b"][m["inside"], m["inside"] % 3],
    "second axis": lambda m: m["b"][:, m["inside"] % 3],
    "second axis of a slice": lambda m: m["b"][1:, m["inside"] % 3],
    "matrix": lambda m: m["a"][m["inside"][:, None]],
    "expression": lambda m: (2 * m["a"] + 1)[m["inside"]],
    "none": lambda m: m["a"][m["empty"]],
    "longer than the variable": lambda m: pm.math.concatenate([m["a"], [0.0, 0.0]])[m["outside"]],
    "boolean": lambda m: m["a"][np.array([True, False, True, False])],
    "what is random": lambda m: m["a"][m["c"].astype("int64")],
}


@pytest.mark.parametrize("indexed", ACCEPTED)
def test_indices_that_exist_are_accepted(model, indexed):
    with model:
        pm.Deterministic("d", ACCEPTED[indexed](model))
    check_indices(model)


REFUSED = {
    "vector": (lambda m: m["a"][m["outside"]], r"level 5 of a .*4 level.*outside.*'group'"),
    "negative": (lambda m: m["a"][m["below"]], r"level -5 of a .*below"),
    "matrix": (lambda m: m["a"][m["outside"][:, None]], r"level 5 of a .*an expression of data"),
    "two indices": (lambda m: m["b"][m["inside"], m["outside"] - 1], r"level 4 of b .*'time'"),
    "number": (lambda m: m["b"][m["outside"], 0], r"level 5 of b .*'group'"),
    "second axis": (lambda m: m["b"][:, m["inside"]], r"level 3 of b .*3 level.*inside.*'time'"),
    "slice": (lambda m: m["a"][1:][m["inside"]], r"level 3 of a variable without a name.*3 level"),
    "no dims": (lambda m: m["c"][m["outside"]], r"level 5 of c .*Give that dimension a name"),
    "constant": (lambda m: m["a"][np.array([0, 7])], r"level 7 of a .*an expression of data"),
}


@pytest.mark.parametrize("indexed", REFUSED)
def test_indices_beyond_a_variable_are_refused(model, indexed):
    build, message = REFUSED[indexed]
    with model:
        pm.Deterministic("d", build(model))
    with pytest.raises(IndexError, match=message):
        check_indices(model)


def test_indices_of_the_likelihood_and_of_a_forest_are_looked_at():
    with pm.Model() as model:
        rows = pm.Data("rows", np.arange(6))
        f = pxb.XBARTForest("f", pm.Data("X", X[:6]), sigma=1)
        pm.Normal("y", f[rows], 0.3, observed=np.zeros(6))
    check_indices(model)
    with model:
        pm.set_data({"X": X[:5]})
    with pytest.raises(IndexError, match=r"level 5 of f .*5 level.*rows of its X"):
        check_indices(model)


def test_flat_priors_need_not_be_drawn_to_be_measured():
    with pm.Model(coords={"group": range(4)}) as model:
        a = pm.Flat("a", dims="group")
        pm.Deterministic("d", a[np.array([0, 4])])
    with pytest.raises(IndexError, match="level 4 of a"):
        check_indices(model)
