"""Posterior predictive draws of models of every kind: what is kept, and what is computed anew."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import stats

import pymc_xbart as pxb
from tests.helpers.law import assert_cdf
from tests.helpers.runs import PLAIN, sample_plainly
from tests.helpers.schools import OTHERS, X, Y, fit, make_model, move_pupils, predict, predicted

ROOT = Path(__file__).parents[2]
N = len(X)
TREATED = np.arange(N) % 2
DISTRICT = np.arange(N) % 6


# --- counterfactuals, and several forests


@pytest.fixture(scope="module")
def causal():
    """y = mu(pupil) + tau(district) * treated."""
    with pm.Model() as model:
        treated = pm.Data("treated", TREATED.astype(float))
        district = pm.Data("district", DISTRICT)
        mu = pxb.XBARTForest("mu", pm.Data("X", X), sigma=1, num_trees=3)
        tau = pxb.XBARTForest("tau", pm.Data("X_tau", X[:6, :1]), sigma=1, num_trees=2)
        mean = pm.Deterministic("mean", mu + tau[district] * treated)
        pm.Normal("y", mean, 0.3, observed=Y, shape=mu.shape)
    return model, sample_plainly(model)


def mean_of(causal, **data):
    """`mean` after `pm.set_data` in a copy of the model."""
    model, idata = causal
    model = model.copy()
    with model:
        pm.set_data(data)
    return predicted(idata, model, "mean")["mean"].values


# PyTensor compares data with what they were, and divides by zero over it.
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
def test_counterfactuals_by_do_keep_the_forests_of_the_draw(causal):
    model, idata = causal
    mu, tau = (idata["posterior"][name].values for name in ("mu", "tau"))
    for arm in (0.0, 1.0):
        intervened = pm.do(model, {"treated": np.full(N, arm)})
        ours = predicted(idata, intervened, "mu", "mean")
        np.testing.assert_array_equal(ours["mu"], mu)
        np.testing.assert_array_equal(ours["mean"], mu + tau[..., DISTRICT] * arm)


def test_counterfactuals_by_set_data_are_those_by_do(causal):
    model, idata = causal
    ones = np.ones(N)
    by_do = predicted(idata, pm.do(model, {"treated": ones}), "mean")["mean"]
    np.testing.assert_array_equal(mean_of(causal, treated=ones), by_do)


def test_a_forest_can_be_taken_out_by_do(causal):
    model, idata = causal
    ours = predicted(idata, pm.do(model, {"tau": np.zeros(6)}), "mu", "mean")
    np.testing.assert_array_equal(ours["mean"], ours["mu"])
    np.testing.assert_array_equal(ours["mu"], idata["posterior"]["mu"])


def test_an_expression_put_in_by_do_is_computed():
    with pm.Model() as model:
        f = pxb.XBARTForest("f", X, sigma=1, num_trees=2)
        a = pm.Normal("a")
        b = pm.Deterministic("b", 2 * a)
        pm.Normal("y", f + b, 0.3, observed=Y)
    idata = sample_plainly(model)
    # Plain PyMC goes on with the stored draws of b.
    ours = predicted(idata, pm.do(model, {model["b"]: model["a"] - 5}), "b")
    np.testing.assert_array_equal(ours["b"], idata["posterior"]["a"] - 5)


def test_x_can_be_replaced_by_do(causal):
    model, idata = causal
    ours = predicted(idata, pm.do(model, {"X": -X}), "mu", "tau")
    np.testing.assert_array_equal(ours["mu"], pxb.predict(idata, -X, "mu"))
    np.testing.assert_array_equal(ours["tau"], idata["posterior"]["tau"])


def test_forests_have_x_of_their_own(causal):
    _, idata = causal
    district, treated = np.array([7, 0, 2, 1]), np.array([1.0, 0.0, 1.0, 1.0])
    mean = mean_of(causal, X=OTHERS[:4], X_tau=X[:8, :1], district=district, treated=treated)
    mu, tau = pxb.predict(idata, OTHERS[:4], "mu"), pxb.predict(idata, X[:8, :1], "tau")
    np.testing.assert_array_equal(mean, mu.values + tau.values[..., district] * treated)


# --- a variable of several forests


def arms_model(arms, X=X):
    coords = {"arm": arms, "pupil": [f"p{i}" for i in range(len(X))]}
    with pm.Model(coords=coords) as model:
        f = pxb.XBARTForest("f", X, sigma=1, num_trees=2, dims=("arm", "pupil"))
        mean = pm.Deterministic("mean", f[0] - 2 * f[1], dims="pupil")
        pm.Normal("y", mean, 0.3, observed=Y[: len(X)], dims="pupil")
    return model


@pytest.fixture(scope="module")
def arms_idata():
    return sample_plainly(arms_model(["old", "new"]))


def test_variables_of_several_forests_are_predicted(arms_idata):
    ours = predicted(arms_idata, arms_model(["old", "new"], OTHERS), "f", "mean")
    f = pxb.predict(arms_idata, OTHERS)
    np.testing.assert_array_equal(ours["f"], f)
    assert ours["f"].dims == ("chain", "draw", "arm", "pupil")
    np.testing.assert_array_equal(ours["mean"], f[:, :, 0].values - 2 * f[:, :, 1].values)


@pytest.mark.parametrize("is_stored", [True, False])
def test_several_forests_are_told_apart_by_label(arms_idata, is_stored):
    idata = arms_idata
    if not is_stored:
        idata = idata.copy()
        idata["posterior"] = idata["posterior"].to_dataset()[["f"]].drop_vars("f")
        idata["constant_data"] = (
            idata["constant_data"].to_dataset().assign_coords(arm=["old", "new"])
        )
    ours = predicted(idata, arms_model(["new", "old"]), "f")["f"]
    for arm in ("old", "new"):
        np.testing.assert_array_equal(ours.sel(arm=arm), arms_idata["posterior"]["f"].sel(arm=arm))


def test_labelled_forests_need_not_be_stored(arms_idata):
    idata = arms_idata.copy()
    posterior = idata["posterior"].to_dataset().drop_dims(["arm", "pupil"])
    idata["posterior"] = xr.DataTree(posterior)
    ours = predicted(idata, arms_model(["old", "new"]), "f")["f"]
    np.testing.assert_array_equal(ours, arms_idata["posterior"]["f"])
    with pytest.raises(ValueError, match="of 'arm', but there are trees for 0, 1 only"):
        predict(idata, arms_model(["old", "new", "other"]))


def test_one_of_several_forests_can_be_left_out(arms_idata):
    with pm.Model(coords={"arm": ["new"], "pupil": range(N)}) as model:
        pxb.XBARTForest("f", X, sigma=1, dims=("arm", "pupil"))
    ours = predicted(arms_idata, model, "f")["f"]
    np.testing.assert_array_equal(ours, arms_idata["posterior"]["f"].sel(arm=["new"]))


def test_forests_of_labels_that_have_none_are_refused(arms_idata):
    for arms in (["old", "new", "other"], ["old", "other"]):
        with pytest.raises(ValueError, match=r"'f' for 'other' of 'arm'.*for old, new only"):
            predict(arms_idata, arms_model(arms))


# --- hyperparameters, missing responses, variables between a forest and the data


def test_random_hyperparameters_of_a_forest_raise_no_warning():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        weights = pm.Dirichlet("weights", np.ones(2))
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=scale, split_weights=weights, num_trees=3)
        pm.Normal("y", f, 0.3, observed=Y, shape=f.shape)
    idata = sample_plainly(model, tune=50)
    for rows in (X, -X, OTHERS):
        with model, warnings.catch_warnings():
            warnings.simplefilter("error")
            pm.set_data({"X": rows})
            ours = predicted(idata, model, "f", "y", "scale", "weights")
        np.testing.assert_array_equal(ours["f"], pxb.predict(idata, rows))
        for name in ("scale", "weights"):
            np.testing.assert_array_equal(ours[name], idata["posterior"][name])


def test_missing_responses_are_kept_at_the_training_rows_and_redrawn_at_others():
    missing = [3, 7]
    y = Y.copy()
    y[missing] = np.nan
    with pm.Model() as model:
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=1, num_trees=3)
        with pytest.warns(UserWarning, match="imputed"):
            pm.Normal("y", f, 0.3, observed=y)
    idata = sample_plainly(model)
    kwargs = {"random_seed": 1, "progressbar": False, "backend": PLAIN}
    plain = pm.sample_posterior_predictive(idata, model, **kwargs)["posterior_predictive"]
    assert predicted(idata, model).equals(plain.to_dataset())
    kept = predicted(idata, model, "y_unobserved", "y")
    np.testing.assert_array_equal(kept["y_unobserved"], idata["posterior"]["y_unobserved"])
    np.testing.assert_array_equal(kept["y"][..., missing], kept["y_unobserved"])
    with model:
        pm.set_data({"X": X[::-1]})
    ours = predicted(idata, model, "f", "y_unobserved", "y")
    np.testing.assert_array_equal(ours["f"], idata["posterior"]["f"][..., ::-1])
    assert not (ours["y_unobserved"] == idata["posterior"]["y_unobserved"]).any()
    np.testing.assert_array_equal(ours["y"][..., missing], ours["y_unobserved"])


@pytest.fixture(scope="module")
def latent():
    """y ~ N(c, 0.3), c ~ N(f, s)."""
    with pm.Model(coords={"pupil": [f"p{i}" for i in range(N)]}) as model:
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=1, num_trees=3, dims="pupil")
        c = pm.Normal("c", f, pm.HalfNormal("s", 1.0), dims="pupil")
        twice = pm.Deterministic("twice", 2 * c, dims="pupil")
        pm.Normal("y", twice, 0.3, observed=pm.Data("y_data", Y, dims="pupil"), dims="pupil")
    return model, sample_plainly(model)


def test_variables_that_depend_on_a_forest_keep_their_draws_at_the_training_rows(latent):
    model, idata = latent
    ours = predicted(idata, model, "c", "twice")
    assert ours.equals(idata["posterior"].to_dataset()[["c", "twice"]])


def test_variables_that_depend_on_a_forest_are_drawn_anew_at_other_rows(latent, rng):
    model, idata = latent
    model = model.copy()
    rows = rng.normal(size=(60, 2))
    with model:
        labels = {"pupil": [f"q{i}" for i in range(60)]}
        pm.set_data({"X": rows, "y_data": np.zeros(60)}, coords=labels)
    ours = predicted(idata, model, "f", "c", "twice")
    np.testing.assert_array_equal(ours["twice"], 2 * ours["c"])
    s = idata["posterior"]["s"].values[..., None]
    assert_cdf(((ours["c"] - ours["f"]).values / s).ravel(), stats.norm.cdf)
    other_rows = ours["f"].values[..., ::-1]
    with pytest.raises(AssertionError, match="distribution functions differ"):
        assert_cdf(((ours["c"] - other_rows).values / s).ravel(), stats.norm.cdf)


def test_variables_that_depend_on_a_forest_can_be_frozen(latent):
    model, idata = latent
    model = model.copy()
    with model:
        pm.set_data({"X": -X})
    ours = predicted(idata, model, "c", "twice", "f", freeze_vars=["c"])
    assert ours[["c", "twice"]].equals(idata["posterior"].to_dataset()[["c", "twice"]])
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, -X))


# --- processes and precision


SCRIPT = """
import sys
import arviz as az
from tests.helpers.schools import OTHERS, SCHOOL_OF_OTHERS, make_model, predict

if __name__ == "__main__":
    model = make_model(OTHERS, SCHOOL_OF_OTHERS, pupils=[f"q{i}" for i in range(7)])
    model.set_dim("school", 5, [*model.coords["school"], "elm"])
    names = ["f", "a", "mean", "y"]
    idata = az.from_netcdf(sys.argv[1])
    predict(idata, model, var_names=names).to_netcdf(sys.argv[2])
"""


def test_another_process_predicts_the_same_from_a_file(tmp_path):
    idata = fit()
    idata.to_netcdf(tmp_path / "fit.nc")
    (tmp_path / "script.py").write_text(SCRIPT)
    arguments = ["script.py", "fit.nc", "predictions.nc"]
    subprocess.run(
        [sys.executable, *(str(tmp_path / name) for name in arguments)],
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    model = make_model()
    move_pupils(model)
    model.set_dim("school", 5, [*model.coords["school"], "elm"])
    here = predicted(idata, model, "f", "a", "mean", "y")
    with az.from_netcdf(tmp_path / "predictions.nc") as there:
        assert there["predictions"].to_dataset().equals(here)


def test_single_precision():
    with pytensor.config.change_flags(floatX="float32"):
        model = make_model()
        idata = sample_plainly(model)
        ours = predicted(idata, model, "f", "mean", "y")
        assert {array.dtype.name for array in ours.data_vars.values()} == {"float32"}
        assert ours[["f", "mean"]].equals(idata["posterior"].to_dataset()[["f", "mean"]])
        move_pupils(model)
        model.set_dim("school", 5, [*model.coords["school"], "elm"])
        ours = predicted(idata, model, "f", "a", "y")
        assert {array.dtype.name for array in ours.data_vars.values()} == {"float32"}
        f = pxb.predict(idata, OTHERS.astype("float32"))
        np.testing.assert_array_equal(ours["f"], f.astype("float32"))
