"""What can't be predicted is refused in a sentence, and so is what plain PyMC would get wrong."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pymc.exceptions import ImplicitFreezeWarning

import pymc_xbart as pxb
from tests.helpers.runs import PLAIN, sample_plainly
from tests.helpers.schools import OTHERS, X, Y, fit, make_model, move_pupils, predict, predicted


@pytest.fixture(scope="module")
def idata():
    return fit()


@pytest.fixture
def model():
    return make_model()


# --- wrong input


def test_trees_that_were_not_stored_are_missed(model):
    short = sample_plainly(model, draws=2, tune=2, xbart={"store_trees": False})
    with pytest.raises(KeyError, match=r"no trees of the forest 'f'.*store_trees left at True"):
        predict(short, model)


def test_other_forests_are_named(idata):
    with pm.Model() as other:
        pxb.XBARTForest("g", X, sigma=1)
    with pytest.raises(KeyError, match=r"no trees of the forest 'g', only of: f"):
        predict(idata, other)


def test_results_of_other_kinds_are_refused(idata, model):
    posterior = idata["posterior"].to_dataset()
    with pytest.raises(TypeError, match=r"must be the xarray\.DataTree.*this Dataset is none"):
        predict(posterior, model)
    with pytest.raises(TypeError, match=r"this DataTree has no group 'posterior'"):
        predict(xr.DataTree.from_dict({"prior": posterior}), model)
    with pytest.raises(KeyError, match=r"group 'sample_stats', which is not among.*\(posterior\)"):
        predict(xr.DataTree.from_dict({"posterior": posterior}), model)


def test_trees_of_other_draws_are_refused(idata, model):
    mixed = idata.copy()
    posterior = idata["posterior"].to_dataset()
    mixed["posterior"] = posterior.assign_coords(draw=np.arange(100, 125))
    with pytest.raises(ValueError, match=r"not those of the draws.*along 'draw'.*isel\(draw="):
        predict(mixed, model)


@pytest.mark.parametrize("number", [0, 2.5])
def test_numbers_of_threads_are_checked(idata, model, number):
    with pytest.raises((TypeError, ValueError), match="num_threads"):
        predict(idata, model, num_threads=number)


def test_x_with_another_number_of_columns_is_refused(idata, model):
    with pm.Model() as wider:
        pxb.XBARTForest("f", np.hstack([X, X]), sigma=1)
    message = r"X of the forest 'f' has 4 column\(s\) now.*on 2\. Pass the same columns"
    with pytest.raises(ValueError, match=message):
        predict(idata, wider)
    with model:
        pm.set_data({"X": np.hstack([X, X])}, coords={"column": list("abcd")})
    with pytest.raises(ValueError, match=r"X of the forest 'f' has 4 column\(s\) now.*for 2"):
        predict(idata, model)


@pytest.mark.parametrize("names", [["score", "age"], ["age", "height"]])
def test_x_with_other_columns_in_a_model_written_anew_is_refused(idata, names):
    with pm.Model() as other:
        pxb.XBARTForest("f", pd.DataFrame(OTHERS, columns=names), sigma=1)
    with pytest.raises(ValueError, match=r"other names.*or another order.*same order: age, score"):
        predict(idata, other)


def test_forests_with_other_dims_are_refused(idata):
    with pm.Model() as several:
        pxb.XBARTForest("f", X, sigma=1, shape=(2, len(X)))
    with pytest.raises(ValueError, match=r"'f' has 2 dimension\(s\) in this model, but 1 in idata"):
        predict(idata, several)


def test_draws_without_labels_are_not_stretched():
    def build(num_groups):
        with pm.Model() as model:
            f = pxb.XBARTForest("f", X, sigma=1, num_trees=2)
            a = pm.Normal("a", shape=num_groups)
            pm.Normal("y", f + a[np.arange(len(X)) % num_groups], 0.3, observed=Y)
        return model

    idata = sample_plainly(build(3))
    with pytest.raises(ValueError, match=r"'a' of shape \(3,\), but in the model.*\(5,\).*labels"):
        predict(idata, build(5))
    assert predicted(idata, build(5), sample_vars=["a", "y"])["a"].shape == (1, 25, 5)


@pytest.mark.parametrize("is_data", [False, True])
def test_likelihoods_that_can_not_follow_x_are_explained(is_data):
    with pm.Model() as model:
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=1, num_trees=2)
        pm.Normal("y", f, 0.3, observed=pm.Data("y_data", Y) if is_data else Y)
    idata = sample_plainly(model, draws=2)
    with model:
        pm.set_data({"X": OTHERS})
    with pytest.raises(ValueError, match="shape") as caught:
        predict(idata, model)
    assert "give the likelihood shape=f.shape, or dims" in caught.value.__notes__[-1]
    if is_data:
        with model:
            pm.set_data({"y_data": np.zeros(7)})
        assert predicted(idata, model)["y"].shape == (1, 2, 7)


def test_errors_of_pymc_come_through_without_advice(idata, model):
    move_pupils(model)
    with pytest.raises(KeyError, match="nothing") as caught:
        predict(idata, model, var_names=["nothing"])
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(TypeError, match="No model on context stack"):
        pxb.sample_posterior_predictive(idata)


def test_models_without_forests_are_predicted_as_plain_pymc_does(idata, model):
    fixed = pm.do(model, {"f": np.zeros(len(X))})
    kwargs = {"random_seed": 1, "progressbar": False, "backend": PLAIN, "var_names": ["a", "y"]}
    plain = pm.sample_posterior_predictive(idata, fixed, **kwargs)["posterior_predictive"]
    ours = predicted(idata, fixed, "a", "mean", "y")
    assert ours["a"].equals(plain["a"])
    np.testing.assert_array_equal(ours["mean"], ours["a"].isel(school=np.arange(len(X)) % 4))


# --- plain PyMC


def plain(idata, model, **kwargs):
    defaults = {"backend": PLAIN, "random_seed": 1, "progressbar": False}
    return pm.sample_posterior_predictive(idata, model, **(defaults | kwargs))


@pytest.mark.parametrize("backend", ["numba", PLAIN])
@pytest.mark.parametrize("is_moved", [False, True])
def test_plain_pymc_does_not_draw_posterior_forests_from_their_prior(
    idata, model, backend, is_moved
):
    without_f = idata.copy()
    without_f["posterior"] = idata["posterior"].to_dataset().drop_vars(["f", "mean"])
    if is_moved:
        move_pupils(model)
    message = r"from its prior.*Use pymc_xbart\.sample_posterior_predictive instead"
    with pytest.raises(NotImplementedError, match=message):
        plain(idata, model, sample_vars=["f"], backend=backend)
    with pytest.raises(NotImplementedError, match=message):
        plain(without_f, model, backend=backend)


def test_plain_pymc_warns_where_it_goes_on_with_f_at_the_training_rows(idata, model):
    """What can't be caught, and why the documentation names our function."""
    move_pupils(model, -X, np.arange(len(X)) % 4)
    with pytest.warns(ImplicitFreezeWarning, match=r"'f' \(upstream Data/coords changed"):
        result = plain(idata, model, var_names=["f"])
    f = result["posterior_predictive"]["f"]
    np.testing.assert_array_equal(f, idata["posterior"]["f"])


def test_plain_pymc_is_right_at_the_training_rows(idata, model):
    result = plain(idata, model, var_names=["f", "mean"])["posterior_predictive"]
    for name in ("f", "mean"):
        np.testing.assert_array_equal(result[name], idata["posterior"][name])


@pytest.mark.parametrize("backend", ["numba", PLAIN])
def test_prior_draws_at_other_rows_are_still_made(model, backend):
    move_pupils(model)
    prior = pm.sample_prior_predictive(3, model=model, random_seed=1, backend=backend)["prior"]
    assert prior["f"].shape == (1, 3, 7)
    assert np.isfinite(prior["f"]).all()
