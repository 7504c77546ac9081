"""What a regressor can't work with is refused by `fit` and `predict`, in a sentence."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

from pymc_xbart import XBARTRegressor

rng = np.random.default_rng(5)
X = rng.standard_normal((30, 3))
Y = X[:, 0] + rng.standard_normal(30)


def at(row, value, array=Y):
    changed = array.copy()
    changed[row] = value
    return changed


def regressor(**options):
    return XBARTRegressor(**({"num_sweeps": 3, "burnin": 1, "random_state": 1} | options))


OPTIONS = [
    ({"burnin": 3}, ValueError, "burnin is 3 and num_sweeps 3, which leaves no sweep to keep"),
    ({"burnin": 40}, ValueError, "burnin is 40 and num_sweeps 3"),
    ({"burnin": -1}, ValueError, "burnin is -1, but must be at least 0"),
    ({"burnin": 1.0}, TypeError, "burnin is 1.0, but must be a whole number, at least 0"),
    ({"num_sweeps": 0}, ValueError, "num_sweeps is 0, but must be at least 1"),
    ({"mtry": 0}, ValueError, "mtry is 0, but must be at least 1"),
    ({"mtry": 4}, ValueError, r"mtry is 4, but X has 3 column\(s\)"),
    ({"mtry": 1.5}, TypeError, "mtry is 1.5, but must be a whole number"),
    ({"mtry": "sqrt"}, TypeError, "mtry is 'sqrt', but must be a whole number"),
    ({"num_trees": 0}, ValueError, "num_trees is 0, but must be at least 1"),
    ({"num_cutpoints": 0}, ValueError, "num_cutpoints is 0"),
    ({"min_samples_leaf": True}, TypeError, "min_samples_leaf is True"),
    ({"max_depth": 0}, ValueError, "max_depth is 0"),
    ({"alpha": 1.0}, ValueError, "alpha is 1, but must lie strictly between 0 and 1"),
    ({"beta": -0.5}, ValueError, "beta is -0.5"),
    ({"leaf_var": 0.0}, ValueError, "leaf_var is 0, but must be positive and finite"),
    ({"noise_shape": np.nan}, ValueError, "noise_shape is nan, but must be positive"),
    ({"noise_rate": -1}, ValueError, "noise_rate is -1, but must be positive"),
    ({"noise_rate": "weak"}, TypeError, "noise_rate is 'weak', but must be a real number"),
    ({"noise_update": "row"}, ValueError, "noise_update is 'row'.*'sweep', 'tree'"),
    ({"noise_update": "tree", "correction": "sweep"}, ValueError, "can't be combined.*'sweep'"),
    ({"cut_prior": "rows"}, ValueError, "cut_prior is 'rows'.*'columns', 'cuts', 'paper'"),
    ({"correction": "full"}, ValueError, "correction is 'full'.*'tree', 'sweep', 'none'"),
    ({"correction": None}, ValueError, "correction is None"),
    ({"correction": "sweep", "mtry": 2}, NotImplementedError, "Leave mtry out, or use .*'tree'"),
    ({"correction": "tree", "cut_prior": "paper"}, ValueError, "can't be combined.*'paper'"),
    ({"random_state": -1}, ValueError, "random_state is -1, but must be None"),
    ({"random_state": "a"}, TypeError, "random_state is 'a', but must be None"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS, ids=lambda x: str(x)[:40])
def test_options_out_of_range_are_refused_by_fit(options, error, message):
    model = regressor(**options)
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("options", [{"correction": "sweep", "mtry": 3}, {"burnin": 0}])
def test_options_at_the_edge_are_taken(options):
    assert np.isfinite(regressor(**options).fit(X, Y).predict(X)).all()


RESPONSES = [
    (None, ValueError, "requires y to be passed"),
    (
        np.column_stack([Y, Y]),
        ValueError,
        r"y has shape \(30, 2\).*one regressor for each response",
    ),
    (pd.DataFrame({"a": Y, "b": Y}), ValueError, "2 columns"),
    (Y[:-1], ValueError, "y has 29 entries, but X has 30 rows"),
    (np.append(Y, 0.0), ValueError, "y has 31 entries, but X has 30 rows"),
    (at(4, np.nan), ValueError, "y is NaN in row 4 "),
    (at([4, 9], -np.inf), ValueError, "y is infinite in rows 4 and 9 "),
    (np.ma.masked_array(Y, mask=np.arange(30) == 7), ValueError, "y is NaN in row 7 "),
    (np.full(30, 2.5), ValueError, "All entries of y equal 2.5.*nothing to learn"),
    (Y * 1e200, ValueError, "Rescale y"),
    (Y * 1e-158, ValueError, "Rescale y"),
    (pd.Series([pd.Timedelta(k, "D") for k in range(30)]).to_numpy(), TypeError, "timedelta64"),
    (np.array([np.timedelta64(k, "D") for k in range(30)], object), TypeError, "in rows 0, 1"),
    (np.array([10**400, *Y[1:]], object), TypeError, "not real numbers in row 0 "),
    (np.where(Y > 0, "high", "low"), TypeError, "y holds values that are not real numbers"),
    (Y + 1j, ValueError, "y holds complex numbers"),
    (np.float64(1.0), ValueError, r"y has shape \(\)"),
]


@pytest.mark.parametrize(("y", "error", "message"), RESPONSES, ids=lambda x: str(x)[:30])
def test_useless_responses_are_refused(y, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        regressor().fit(X, y)


def test_messages_do_not_speak_of_another_model():
    for y in (np.column_stack([Y, Y]), np.full(30, 2.5)):
        with pytest.raises(ValueError, match="y") as caught:
            regressor().fit(X, y)
        assert "`sigma`" not in str(caught.value)


WEIGHTS = [
    (at(3, -0.1, np.ones(30)), "negative or not finite in row 3 "),
    (at([3, 4], np.nan, np.ones(30)), "negative or not finite in rows 3 and 4 "),
    (at(0, np.inf, np.ones(30)), "negative or not finite in row 0 "),
    (np.zeros(30), "All entries of sample_weight are zero"),
    (np.eye(30)[2], "Only one entry of sample_weight is positive"),
    (np.ones(29), "sample_weight has 29 entries, but X has 30 rows"),
    (np.ones((30, 1)), r"sample_weight has shape \(30, 1\)"),
    (2.0, r"sample_weight has shape \(\)"),
    (np.full(30, 1e308), "sum of sample_weight is beyond"),
    (np.full(30, 1e160), r"sum of sample_weight is beyond 1e\+100"),
    ((Y[0] == Y) + (X[:, 0] == X[3, 0]) * 1.0, None),
]


@pytest.mark.parametrize(("weight", "message"), WEIGHTS, ids=lambda x: str(x)[:30])
def test_useless_weights_are_refused(weight, message):
    if message is None:  # two rows are enough
        regressor().fit(X, Y, weight)
        return
    with pytest.raises(ValueError, match=message):
        regressor().fit(X, Y, weight)


def test_y_must_differ_where_it_counts():
    weight = np.arange(30) < 3
    with pytest.raises(ValueError, match=r"All entries of y equal 1.*weight 0 don't count"):
        regressor().fit(X, at(slice(3), 1.0), weight)


COVARIATES = [
    (X[:, 0], ValueError, "two dimensions"),
    (X[None], ValueError, "two dimensions"),
    (X.astype(str), TypeError, "not real numbers"),
    (pd.DataFrame({"sex": ["F", "M"] * 15}), TypeError, "Column 'sex'"),
    (X[:, :0], ValueError, "no columns"),
    (X[:0], ValueError, "no rows"),
]


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(("covariates", "error", "message"), COVARIATES)
def test_bad_covariates_are_refused_by_fit_and_predict(covariates, error, message):
    with pytest.raises(error, match=message):
        regressor().fit(covariates, Y)
    with pytest.raises(error, match=message):
        regressor().fit(X, Y).predict(covariates)


def test_one_row_can_be_predicted_but_not_fitted():
    with pytest.raises(ValueError, match="X has 1 row, but a tree needs at least 2"):
        regressor().fit(X[:1], Y[:1])
    assert regressor().fit(X, Y).predict(X[:1]).shape == (1,)


@pytest.mark.parametrize("num_columns", [1, 2, 4])
def test_other_columns_are_refused_at_prediction(num_columns):
    model = regressor().fit(X, Y)
    with pytest.raises(ValueError, match=f"X has {num_columns} features, but .* expecting 3"):
        model.predict(np.ones((5, num_columns)))


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_columns_are_known_by_name(table):
    columns = {name: X[:, v] for v, name in enumerate("abc")}
    frame = table(columns)
    model = regressor().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), regressor().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[["c", "a", "b"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- d\n.*now missing:\n- c\n"):
        model.predict(table({"a": Y, "b": Y, "d": Y}))
    with pytest.raises(ValueError, match=r"now missing:\n- b\n- c\n"):
        model.predict(frame[["a"]])
    with pytest.warns(UserWarning, match="does not have valid feature names, but"):
        model.predict(X)
    with pytest.warns(UserWarning, match="X has feature names, but .* fitted without"):
        regressor().fit(X, Y).predict(frame)


NAMED = {
    "pyarrow": (lambda frame: pa.Table.from_pandas(frame), lambda X: X.select(["c", "a", "b"])),
    "dataset": (lambda frame: frame.to_xarray(), lambda X: X[["c", "a", "b"]]),
    "array": (lambda frame: frame.to_xarray().to_array("x").T, lambda X: X.sel(x=["c", "a", "b"])),
}


@pytest.mark.parametrize("kind", NAMED)
def test_columns_of_other_tables_are_known_by_name(kind):
    make, in_another_order = NAMED[kind]
    frame = pd.DataFrame(X, columns=list("abc"))
    named = make(frame)
    model = regressor().fit(named, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(named), model.predict(frame))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(in_another_order(named))


def test_names_that_are_not_text_are_no_names():
    numbered = xr.DataArray(X, dims=("row", "column"), coords={"column": range(X.shape[1])})
    for unnamed in (pd.DataFrame(X), numbered):
        model = regressor().fit(unnamed, Y)
        assert not hasattr(model, "feature_names_in_")
        model.predict(X)


def test_names_of_an_earlier_fit_are_forgotten():
    model = regressor().fit(pd.DataFrame(X, columns=list("abc")), Y).fit(X, Y)
    assert not hasattr(model, "feature_names_in_")


WARM_STARTS = [
    ({"num_sweeps": 2}, X, "num_sweeps is 2 and burnin 1, but 3 sweeps have been made"),
    ({"num_sweeps": 9, "burnin": 0}, X, "the first 1 of them discarded"),
    ({"num_sweeps": 9, "num_trees": 7}, X, "num_trees is 7, but .* has 2. Keep that number"),
    ({"num_sweeps": 9}, X[:, :2], "X has 2 features, but XBARTRegressor is expecting 3"),
    ({"num_sweeps": 9}, X[::-1], "X has other rows"),
    ({"num_sweeps": 9}, X[:, ::-1], "X has other rows"),
    ({"num_sweeps": 9}, at((0, 0), 3.3, X), "X has other rows"),
]


@pytest.mark.parametrize(("options", "covariates", "message"), WARM_STARTS)
def test_a_warm_start_goes_on_with_the_same_rows_and_trees_only(options, covariates, message):
    model = regressor(warm_start=True, num_trees=2).fit(X, Y)
    draws = model.predict(X, return_draws=True)
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(covariates, Y)
    np.testing.assert_array_equal(model.predict(X, return_draws=True), draws)


def test_a_warm_start_refuses_other_names():
    model = regressor(warm_start=True).fit(pd.DataFrame(X, columns=list("abc")), Y)
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.set_params(num_sweeps=9).fit(pd.DataFrame(X, columns=list("abd")), Y)


def test_the_first_fit_of_a_warm_start_is_an_ordinary_one():
    np.testing.assert_array_equal(
        regressor(warm_start=True).fit(X, Y).predict(X), regressor().fit(X, Y).predict(X)
    )
