"""`pxb.sample_posterior_predictive`: the forest of a draw with everything else of that draw."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_xbart as pxb
from tests.helpers.law import assert_cdf
from tests.helpers.runs import PLAIN, sample_plainly
from tests.helpers.schools import (
    OTHERS,
    SCHOOL,
    SCHOOL_OF_OTHERS,
    X,
    fit,
    make_model,
    move_pupils,
    predict,
    predicted,
)


@pytest.fixture(scope="module")
def idata():
    return fit()


@pytest.fixture
def model():
    return make_model()


@pytest.fixture
def moved():
    """The model at other pupils."""
    model = make_model()
    move_pupils(model)
    return model


def expected_mean(idata, X=OTHERS, school=SCHOOL_OF_OTHERS):
    """What the deterministic `mean` is in each draw."""
    return pxb.predict(idata, X).values + idata["posterior"]["a"].values[..., school]


# --- the rows that the model was fitted to


def test_at_the_training_rows_the_result_is_that_of_plain_pymc(idata, model):
    kwargs = {"model": model, "random_seed": 3, "progressbar": False}
    plain = pm.sample_posterior_predictive(idata, **kwargs)
    ours = pxb.sample_posterior_predictive(idata, **kwargs)
    assert list(ours.children) == list(plain.children)
    for group in plain.children:
        assert ours[group].to_dataset().equals(plain[group].to_dataset()), group


def test_at_the_training_rows_forest_and_deterministics_are_those_sampled(idata, model):
    names = ["f", "a", "mean", "scale", "noise"]
    ours = predicted(idata, model, *names)
    assert ours.equals(idata["posterior"].to_dataset()[names])


def test_rows_in_another_order_give_values_in_that_order(idata, model):
    order = np.random.default_rng(1).permutation(len(X))
    with model:
        pm.set_data({"X": X[order], "school_of_pupil": SCHOOL[order]})
    ours = predicted(idata, model, "f", "mean")
    for name in ("f", "mean"):
        np.testing.assert_array_equal(ours[name], idata["posterior"][name].values[..., order])


# --- new rows


@pytest.mark.parametrize("num_rows", [1, 7, 30, 2000])
def test_any_number_of_new_rows(idata, model, num_rows, rng):
    rows, school = rng.normal(size=(num_rows, 2)), rng.integers(0, 4, num_rows)
    move_pupils(model, rows, school)
    ours = predicted(idata, model, "f", "mean", "y")
    assert ours["y"].shape == (2, 25, num_rows)
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, rows))
    np.testing.assert_array_equal(ours["mean"], expected_mean(idata, rows, school))


def test_compiled_draws_are_those_of_each_draw_too(idata, moved):
    ours = predicted(idata, moved, "f", "mean", backend="numba")
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, OTHERS))
    np.testing.assert_allclose(ours["mean"], expected_mean(idata), rtol=1e-12)


def noise_in_units_of_its_scale(ours, posterior, noise):
    residual = (ours["y"] - ours["mean"]).values / noise.values[..., None]
    assert residual.shape[:2] == posterior["noise"].shape
    return residual.ravel()


def test_data_scatter_about_the_mean_of_their_draw_by_its_noise(idata, model, rng):
    posterior = idata["posterior"].copy()
    spread = np.exp(rng.normal(0, 2, size=posterior["noise"].shape))
    posterior["noise"] = posterior["noise"].copy(data=spread)
    changed = idata.copy()
    changed["posterior"] = posterior
    move_pupils(model, rng.normal(size=(100, 2)), rng.integers(0, 4, 100))
    ours = predicted(changed, model, "mean", "y")
    assert_cdf(noise_in_units_of_its_scale(ours, posterior, posterior["noise"]), stats.norm.cdf)
    other_draws = posterior["noise"].roll(draw=1)
    with pytest.raises(AssertionError, match="distribution functions differ"):
        assert_cdf(noise_in_units_of_its_scale(ours, posterior, other_draws), stats.norm.cdf)


def concatenate(first, second, dim):
    """Two runs as one, group by group, as xarray does it."""
    groups = {
        name: xr.concat([first[name].to_dataset(), second[name].to_dataset()], dim)
        for name in ("posterior", "sample_stats")
    }
    constant = {name: first[name].to_dataset() for name in ("observed_data", "constant_data")}
    return xr.DataTree.from_dict(groups | constant)


SELECTIONS = {
    "thinned": lambda idata: idata.isel(draw=slice(None, None, 5)),
    "one draw": lambda idata: idata.isel(chain=[1], draw=[3]),
    "draws in another order": lambda idata: idata.isel(draw=[7, 2, 20]),
    "one chain": lambda idata: idata.sel(chain=[1]),
    "labels": lambda idata: idata.sel(draw=slice(5, 9)),
    "copied": lambda idata: idata.copy(deep=True),
    "chains of two runs": lambda idata: concatenate(idata, idata.isel(chain=[1, 0]), "chain"),
    "draws of two runs": lambda idata: concatenate(idata, idata.isel(draw=[3, 1]), "draw"),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_draws_stay_together_whatever_was_selected(idata, moved, selection):
    selected = SELECTIONS[selection](idata)
    ours = predicted(selected, moved, "f", "mean", "scale")
    np.testing.assert_array_equal(ours["f"], pxb.predict(selected, OTHERS))
    np.testing.assert_array_equal(ours["mean"], expected_mean(selected))
    np.testing.assert_array_equal(ours["scale"], selected["posterior"]["scale"])


def test_forests_are_evaluated_for_the_draws_that_the_posterior_still_has(idata, moved):
    changed = idata.copy()
    changed["posterior"] = idata["posterior"].isel(draw=[20, 3])
    ours = predicted(changed, moved, "mean")
    np.testing.assert_array_equal(ours["mean"], expected_mean(idata.isel(draw=[20, 3])))


def test_repeated_draws_are_predicted_several_times(idata, moved):
    repeated = idata.copy()
    repeated["posterior"] = idata["posterior"].to_dataset().expand_dims(pred_id=3)
    moved.set_dim("school", 5, [*moved.coords["school"], "new"])
    dims = ["chain", "draw", "pred_id"]
    ours = predicted(repeated, moved, "f", "mean", "y", "a", sample_dims=dims)
    assert ours["y"].sizes == {"chain": 2, "draw": 25, "pred_id": 3, "pupil": 7}
    for k in range(3):
        np.testing.assert_array_equal(ours["mean"][:, :, k], expected_mean(idata))
    for name, labels in (("y", {}), ("a", {"school": "new"})):
        first, second = (ours[name].sel(labels).isel(pred_id=k) for k in (0, 1))
        assert not (first == second).any()


def test_draws_stacked_along_one_dimension(idata, moved):
    stacked = idata.copy()
    for group in ("posterior", "sample_stats"):
        both = idata[group].to_dataset().stack(sample=("chain", "draw"))
        stacked[group] = both.drop_vars(["sample", "chain", "draw"])
    ours = predicted(stacked, moved, "mean", sample_dims=["sample"])
    np.testing.assert_array_equal(ours["mean"], expected_mean(idata).reshape(50, 7))


def test_rows_need_no_dims():
    with pm.Model() as model:
        f = pxb.XBARTForest("f", pm.Data("X", X), sigma=1, num_trees=3)
        pm.Normal("y", f, 0.3, observed=np.zeros(len(X)), shape=f.shape)
    idata = sample_plainly(model)
    for rows in (OTHERS, OTHERS[:1], np.tile(X, (3, 1))):
        with model:
            pm.set_data({"X": rows})
        result = predict(idata, model, var_names=["f", "y"])
        # Beside what was observed at other rows, nothing could be compared with it.
        assert list(result.children) == ["predictions", "predictions_constant_data"]
        assert result["predictions"]["y"].shape == (1, 25, len(rows))
        np.testing.assert_array_equal(result["predictions"]["f"], pxb.predict(idata, rows))


def test_a_model_written_for_the_new_rows_alone_does_as_well(idata, moved):
    with pm.Model(coords={"pupil": [f"q{i}" for i in range(7)]}) as written:
        # Prior and likelihood may be what they like, since trees and draws are there.
        f = pxb.XBARTForest("f", OTHERS, sigma=99, dims="pupil")
        noise = pm.HalfNormal("noise", 5.0)
        pm.Normal("y", f, noise, dims="pupil")
    ours = predict(idata, written, var_names=["f", "y"])["predictions"]
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, OTHERS))
    # What idata has observed is predicted, as by plain PyMC, although this model hasn't.
    assert list(predict(idata, written)["predictions"].data_vars) == ["y"]


def test_dims_without_labels():
    def build(num_rows, num_groups):
        with pm.Model() as model:
            model.add_coord("row", length=num_rows)
            model.add_coord("group", length=num_groups)
            f = pxb.XBARTForest("f", X[:num_rows], sigma=1, num_trees=3, dims="row")
            a = pm.Normal("a", dims="group")
            mean = f + a[np.arange(num_rows) % num_groups]
            pm.Normal("y", mean, 0.3, observed=np.zeros(num_rows), dims="row")
        return model

    idata = sample_plainly(build(30, 3))
    ours = predicted(idata, build(9, 5), "f", "a", "y")
    np.testing.assert_array_equal(ours["f"], idata["posterior"]["f"].values[..., :9])
    np.testing.assert_array_equal(ours["a"][..., :3], idata["posterior"]["a"])
    assert ours["y"].sizes["row"] == 9


# --- groups, labels, and the other arguments


def test_new_labels_are_those_of_the_result_which_is_then_predictions(idata, moved):
    result = predict(idata, moved)
    assert list(result.children) == ["predictions", "predictions_constant_data"]
    assert list(result["predictions"]["pupil"].values) == [f"q{i}" for i in range(7)]
    np.testing.assert_array_equal(result["predictions_constant_data"]["X"], OTHERS)


def test_result_is_no_prediction_while_the_labels_are_the_same(idata, model):
    with model:
        pm.set_data({"X": -X})
    result = predict(idata, model)
    assert list(result.children) == ["posterior_predictive", "observed_data", "constant_data"]


@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("predictions", [False, True])
def test_the_group_can_be_chosen(idata, model, predictions, is_moved):
    if is_moved:
        move_pupils(model)
    group = "predictions" if predictions else "posterior_predictive"
    assert group in predict(idata, model, predictions=predictions).children


def test_the_result_can_be_added_to_the_fit(idata, moved):
    own = idata.copy()
    result = predict(own, moved, extend_inferencedata=True)
    assert result is own
    assert {"posterior", "sample_stats", "predictions"} < set(own.children)
    # A second time, and with the forest at other rows than in the posterior.
    again = predict(own, moved, extend_inferencedata=True, random_seed=2)
    assert not (again["predictions"]["y"] == predict(idata, moved)["predictions"]["y"]).any()
    assert own["posterior"].to_dataset().equals(idata["posterior"].to_dataset())


def test_the_fit_is_left_alone(idata, moved):
    before = idata.copy(deep=True)
    predict(idata, moved, var_names=["f", "mean", "y"])
    for group in before.children:
        assert idata[group].to_dataset().identical(before[group].to_dataset()), group
    assert list(idata.children) == list(before.children)


@pytest.mark.parametrize("extend", [False, True])
def test_the_result_can_be_plain_arrays(idata, moved, extend):
    own = idata.copy()
    result = predict(own, moved, return_inferencedata=False, extend_inferencedata=extend)
    assert {name: array.shape for name, array in result.items()} == {"y": (2, 25, 7)}


def test_seeds_reproduce_and_differ(idata, moved):
    first, again, other = (predicted(idata, moved, random_seed=seed)["y"] for seed in (1, 1, 2))
    assert first.equals(again)
    assert not (first == other).any()
    generator = np.random.default_rng(1)
    first, other = (predicted(idata, moved, random_seed=generator)["y"] for _ in range(2))
    assert not (first == other).any()


def test_threads_change_nothing(idata, moved):
    one, two = (predicted(idata, moved, "f", "y", num_threads=k) for k in (1, 2))
    assert one.equals(two)


def test_one_name_may_stand_for_a_list(idata, moved):
    as_name = predict(idata, moved, var_names="mean")["predictions"]
    assert list(as_name.data_vars) == ["mean"]
    np.testing.assert_array_equal(as_name["mean"], expected_mean(idata))


def test_sample_vars_are_drawn_anew_and_forests_among_them_are_evaluated(idata, moved):
    ours = predicted(idata, moved, sample_vars=["f", "a", "y"])
    assert set(ours.data_vars) == {"f", "a", "y"}
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, OTHERS))
    assert not (ours["a"].values == idata["posterior"]["a"].values).any()
    alone = predicted(idata, moved, sample_vars="f")
    np.testing.assert_array_equal(alone["f"], pxb.predict(idata, OTHERS))
    both = predicted(idata, moved, "mean", "a", sample_vars=["a", "y"])
    assert set(both.data_vars) == {"mean", "a"}
    np.testing.assert_array_equal(
        both["mean"], pxb.predict(idata, OTHERS).values + both["a"].values[..., SCHOOL_OF_OTHERS]
    )


def test_freeze_vars_keep_what_was_stored(idata, model):
    changed = idata.copy()
    changed["posterior"] = idata["posterior"].to_dataset() + 100
    kept = predicted(changed, model, "mean", freeze_vars="mean")
    np.testing.assert_array_equal(kept["mean"], idata["posterior"]["mean"] + 100)
    frozen_forest = predicted(changed, model, "f", freeze_vars=["f"])
    np.testing.assert_array_equal(frozen_forest["f"], idata["posterior"]["f"])


def test_other_arguments_reach_pymc(idata, moved, monkeypatch):
    seen = {}

    def spy(draws, **kwargs):
        seen.update(kwargs)

    monkeypatch.setattr(pm, "sample_posterior_predictive", spy)
    given = {"progressbar": True, "idata_kwargs": {"coords": {}}, "compile_kwargs": {}}
    predict(idata, moved, **given)
    assert given.items() <= seen.items()


def test_the_model_is_found_on_the_context_stack(idata, moved):
    with moved:
        ours = pxb.sample_posterior_predictive(idata, progressbar=False, backend=PLAIN)
    assert ours["predictions"]["y"].shape == (2, 25, 7)


def test_forests_need_not_be_in_the_trace(moved):
    """Nor what follows from them."""
    whole = fit()
    short = sample_plainly(make_model(), chains=2, var_names=["a", "scale", "noise"])
    assert set(short["posterior"].data_vars) == {"a", "scale", "noise"}
    assert predicted(short, moved, "f", "mean", "y").equals(
        predicted(whole, moved, "f", "mean", "y")
    )


def test_plots_of_arviz_take_the_result(idata, model):
    own = predict(idata.copy(), model, extend_inferencedata=True)
    assert len(az.summary(own, group="posterior_predictive")) == len(X)
