"""`pxb.compute_log_likelihood`: it needs trees, and no draws of f."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_xbart as pxb
from tests.helpers.runs import PLAIN, sample_plainly
from tests.helpers.schools import (
    SCHOOL,
    SCHOOLS,
    X,
    Y,
    fit,
    make_model,
    move_pupils,
    predicted,
)


def log_likelihood(idata, model, **kwargs):
    """Without compilation, and without a change of `idata`."""
    defaults = {"extend_inferencedata": False, "progressbar": False, "backend": PLAIN}
    return pxb.compute_log_likelihood(idata, model, **(defaults | kwargs))


@pytest.fixture(scope="module")
def without_f():
    idata = fit().copy()
    idata["posterior"] = idata["posterior"].to_dataset().drop_vars(["f", "mean"])
    return idata


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_leaving_one_out_needs_no_draws_of_the_forest(without_f):
    idata = fit().copy()
    pm.compute_log_likelihood(idata, model=make_model(), progressbar=False, backend=PLAIN)
    own = without_f.copy()
    result = log_likelihood(own, make_model(), extend_inferencedata=True)
    assert result is own
    assert own["log_likelihood"].to_dataset().equals(idata["log_likelihood"].to_dataset())
    assert az.loo(own).elpd == az.loo(idata).elpd


def test_log_likelihood_of_held_out_rows(without_f):
    model = make_model()
    move_pupils(model)
    response = np.arange(7.0)
    with model:
        pm.set_data({"y_data": response})
    ours = log_likelihood(without_f, model)
    assert "log_likelihood" not in without_f.children
    draws = predicted(without_f, model, "mean", "noise")
    expected = stats.norm.logpdf(response, draws["mean"], draws["noise"].values[..., None])
    np.testing.assert_allclose(ours["y"], expected)
    assert list(ours["pupil"].values) == [f"q{i}" for i in range(7)]


def test_log_likelihood_of_a_new_group_has_its_effect_drawn(without_f):
    model = make_model(X[:5], np.arange(5), schools=[*SCHOOLS, "elm"])
    first, again, other = (
        log_likelihood(without_f, model, random_seed=seed)["y"] for seed in (1, 1, 2)
    )
    assert np.isfinite(first).all()
    assert first.equals(again)
    same = (first == other).values
    assert same[..., :4].all()
    assert not same[..., 4].any()


def test_random_variables_without_draws_are_named(without_f):
    short = without_f.copy()
    short["posterior"] = short["posterior"].to_dataset().drop_vars(["noise", "a"])
    with pytest.raises(KeyError, match="needs draws of a, noise"):
        log_likelihood(short, make_model())


def test_variables_between_forest_and_data_have_no_draws_at_other_rows():
    with pm.Model() as model:
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=1, num_trees=2)
        pm.Normal("y", pm.Normal("c", f), 0.3, observed=Y)
    idata = sample_plainly(model, draws=3)
    assert log_likelihood(idata, model)["y"].shape == (1, 3, len(X))
    with model:
        pm.set_data({"X": -X})
    with pytest.raises(KeyError, match=r"needs draws of c\. .* other rows of X"):
        log_likelihood(idata, model)


def test_log_likelihood_does_not_read_beyond_the_last_group(without_f):
    model = make_model(X, np.where(SCHOOL == 3, 4, SCHOOL))
    with pytest.raises(IndexError, match="level 4 of a"):
        log_likelihood(without_f, model)
