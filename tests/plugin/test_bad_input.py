"""What is wrong with a model or its data is said before sampling, by name and with advice.

Arguments of `XBARTForest` are tested beside it. Here is what only shows when data is replaced
later, or where the forest meets the rest of its model.
"""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
from pymc.exceptions import SamplingError

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import sample_plainly

N = 20
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=N)


@pytest.fixture(autouse=True)
def no_sampling(monkeypatch):
    monkeypatch.setattr(XBARTStep, "step", lambda *_: pytest.fail("sampling has begun"))


@pytest.fixture
def model():
    """All of its data can be replaced."""
    with pm.Model() as model:
        y = pm.Data("Y", Y)
        f = XBARTForest("f", pm.Data("X", X), y=y, num_trees=3)
        pm.Normal("y", f, 1.0, observed=y)
    return model


def broken(array, value, *place):
    array = array.copy()
    array[place] = value
    return array


REPLACED = {
    "no-rows": ({"X": X[:0], "Y": Y[:0]}, "X has no rows"),
    "one-row": ({"X": X[:1], "Y": Y[:1]}, "X has 1 row, but a tree needs at least 2"),
    "no-columns": ({"X": X[:, :0]}, "X has no columns"),
    "fewer-columns": (
        {"X": X[:, :1]},
        r"X of the forest 'f' has 1 column\(s\) now, but the forest was made for 2",
    ),
    "fewer-rows": ({"X": X[:7]}, r"'y' can't be evaluated where the forest 'f' has shape \(7,\)"),
    "more-rows": (
        {"Y": np.append(Y, Y)},
        r"'y' can't be evaluated .*40.* as in f\[rows\]",
    ),
    "one-response": ({"Y": Y[:1]}, r"'y' can't be evaluated where the forest 'f' has shape"),
}


@pytest.mark.parametrize("case", REPLACED)
def test_replaced_data_is_checked(model, case):
    data, message = REPLACED[case]
    with model:
        pm.set_data(data)
    with pytest.raises(ValueError, match=message):
        sample_plainly(model)


def test_missing_values_in_replaced_data_are_refused(model):
    with model:
        pm.set_data({"X": broken(X, np.nan, 3, 1)})
    with pytest.raises(NotImplementedError, match="X has missing values in 'X', but data of PyMC"):
        sample_plainly(model)


@pytest.mark.parametrize("place", ["infinite", "column", "rows"])
def test_responses_are_checked_against_rows(place):
    y, error, message = {
        "infinite": (broken(Y, np.inf, 4), SamplingError, "'y' has no finite .* in row 4 .* data"),
        # y[i] would be compared with every f[j], and sampling would go on
        "column": (Y[:, None], ValueError, r"'y' can't be evaluated .* shape \(20,\)"),
        "rows": (Y[3:], ValueError, r"'y' can't be evaluated .* shape \(20,\).*17"),
    }[place]
    with pm.Model() as model:
        f = XBARTForest("f", pm.Data("X", X), sigma=1.0, num_trees=3)
        pm.Normal("y", f, 1.0, observed=y)
    with pytest.raises(error, match=message):
        sample_plainly(model)


@pytest.mark.parametrize("y", [Y[3:], Y[:, None], Y[:1]], ids=["rows", "column", "one"])
def test_shapes_known_from_the_start_are_checked_by_pymc(y):
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=1.0, num_trees=3)
        pm.Normal("y", f, 1.0, observed=y)
    with pytest.raises(ValueError, match=r"[Ii]ncompatible.*\(?20"):
        sample_plainly(model)


def test_group_indices_are_checked_against_rows():
    with pm.Model() as model:
        f = XBARTForest("f", pm.Data("X", X), sigma=1.0, num_trees=3)
        group = pm.Data("group", np.zeros(N - 1, dtype=int))
        pm.Normal("y", f + pm.Normal("a", shape=2)[group], 1.0, observed=Y)
    with pytest.raises(ValueError, match=r"'y' can't be evaluated .* shape \(20,\).*19"):
        sample_plainly(model)


INITIAL = {
    "nan": (np.full(N, np.nan), SamplingError, "'y' has no finite gradient .*finite: 'f'"),
    "huge": (np.full(N, 1e200), SamplingError, r"'y' has no finite gradient .* above 1e\+100"),
    "short": (np.zeros(3), ValueError, "has length 3, but X has 20 rows"),
}


@pytest.mark.parametrize("case", INITIAL)
def test_initial_values_are_checked(model, case):
    start, error, message = INITIAL[case]
    with pytest.raises(error, match=message):
        sample_plainly(model, initvals={"f": start})


def test_initial_values_of_other_variables_are_checked():
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=1.0, num_trees=3)
        a = pm.Flat("a", initval=np.inf)
        pm.Normal("y", f + a, 1.0, observed=Y)
    with pytest.raises(SamplingError, match=r"'y' has no finite .*not finite: 'a'\. .*initial"):
        sample_plainly(model)


@pytest.mark.parametrize("noise", [0.0, 1e-80])
def test_scales_of_nearly_zero_are_refused(noise):
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=1.0, num_trees=3)
        pm.Normal("y", f, pm.Flat("noise", initval=noise), observed=Y)
    with pytest.raises(SamplingError, match=r"'y' has no finite .*a scale of zero"):
        sample_plainly(model)


@pytest.mark.parametrize("sigma", [1e-200, 1e-41, 1e41, 1e200])
def test_scales_whose_squares_are_no_numbers_are_refused(sigma):
    with pm.Model(), pytest.raises(ValueError, match=r"sigma is .* other units"):
        XBARTForest("f", X, sigma=sigma)


@pytest.mark.parametrize(
    "covariates",
    [
        X.astype(str),
        X.astype(object).astype(str),
        pd.DataFrame({"a": X[:, 0], "b": ["x"] * N}),
        pl.DataFrame({"a": X[:, 0], "b": ["x"] * N}),
    ],
    ids=["array", "objects", "pandas", "polars"],
)
def test_text_is_refused_with_advice(covariates):
    with pm.Model(), pytest.raises(TypeError, match="declare a column of categories"):
        XBARTForest("f", covariates, y=Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0, but must lie strictly between 0 and 1"),
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"beta": -0.1}, "beta is -0.1, but must be finite and at least 0"),
        ({"beta": np.inf}, "beta is inf"),
        ({"num_trees": 0}, "num_trees is 0, but must be at least 1"),
        ({"num_trees": -3}, "num_trees is -3"),
        ({"num_cutpoints": 0}, "num_cutpoints is 0, but must be at least 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf is 0, but must be at least 1"),
    ],
)
def test_settings_out_of_range_are_refused_with_the_range(settings, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        XBARTForest("f", X, y=Y, **settings)


def test_data_given_as_y_with_missing_values_is_refused_by_pymc():
    with pm.Model(), pytest.raises(NotImplementedError, match=r"[Mm]asked"):
        pm.Data("Y", broken(Y, np.nan, 3))
