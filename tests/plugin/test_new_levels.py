"""Levels of group effects that the fit has not met, and those it has, in whatever order."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_xbart as pxb
from tests.helpers.law import assert_cdf
from tests.helpers.runs import sample_plainly
from tests.helpers.schools import OTHERS, SCHOOL, SCHOOLS, X, Y, fit, make_model, predict, predicted


def with_schools(labels, school, non_centred=False):
    """The model at seven other pupils of some schools."""
    return make_model(OTHERS, school, schools=labels, non_centred=non_centred)


@pytest.mark.parametrize("non_centred", [False, True])
@pytest.mark.parametrize(
    "labels",
    [
        ("dun", "ash", "cob", "bay"),
        ("cob",),
        ("elm", "cob", "fir", "ash"),
        (*SCHOOLS, "elm"),
    ],
)
def test_known_levels_keep_their_draws_whatever_their_place(labels, non_centred):
    idata = fit(non_centred)
    school = np.arange(7) % len(labels)
    ours = predicted(idata, with_schools(labels, school, non_centred), "a", "f", "mean", "scale")
    known = [label for label in labels if label in SCHOOLS]
    np.testing.assert_array_equal(
        ours["a"].sel(school=known), idata["posterior"]["a"].sel(school=known)
    )
    np.testing.assert_array_equal(ours["scale"], idata["posterior"]["scale"])
    np.testing.assert_array_equal(ours["mean"], ours["f"] + ours["a"].values[..., school])
    np.testing.assert_array_equal(ours["f"], pxb.predict(idata, OTHERS))


def test_labels_may_be_changed_in_the_model_that_was_sampled():
    model = make_model()
    model.set_dim("school", 6, ["elm", *SCHOOLS, "fir"])
    with model:
        pm.set_data({"school_of_pupil": SCHOOL + 1})
    result = predict(fit(), model, var_names=["a", "mean"])
    np.testing.assert_array_equal(
        result["predictions"]["mean"], fit()["posterior"]["mean"], strict=True
    )
    assert result["predictions"]["a"].sizes["school"] == 6


@pytest.fixture(scope="module", params=[False, True], ids=["centred", "non-centred"])
def new_levels(request):
    """Draws of two new levels, and scales that differ much between draws, both by draw."""
    rng = np.random.default_rng(3)
    pick = rng.integers(25, size=1000)
    groups = {
        name: fit(request.param)[name].to_dataset().isel(draw=pick).assign_coords(draw=range(1000))
        for name in ("posterior", "sample_stats")
    }
    scale = groups["posterior"]["scale"]
    groups["posterior"]["scale"] = scale.copy(data=np.exp(rng.normal(0, 2, size=scale.shape)))
    idata = xr.DataTree.from_dict(groups)
    model = with_schools(("elm", *SCHOOLS, "fir"), np.zeros(7, int), request.param)
    ours = predicted(idata, model, "a")["a"].sel(school=["elm", "fir"])
    return ours.values.reshape(2000, 2), idata["posterior"]["scale"].values.ravel()


def test_new_levels_follow_their_prior_given_the_scale_of_the_draw(new_levels):
    # Each check fails with probability 1e-6, and misses none of the two mistakes below.
    a, scale = new_levels
    for level in a.T:
        assert_cdf(level / scale, stats.norm.cdf)
        for wrong in (np.roll(scale, 1), np.full_like(scale, np.median(scale))):
            with pytest.raises(AssertionError, match="distribution functions differ"):
                assert_cdf(level / wrong, stats.norm.cdf)


def test_new_levels_are_independent_of_each_other(new_levels):
    # The difference of two independent ones is Normal with twice the variance. Equal ones, and
    # ones of opposite signs, are not.
    a, scale = new_levels
    first, second = a.T / scale
    assert_cdf((first - second) / np.sqrt(2), stats.norm.cdf)
    for copied in (first, -first):
        with pytest.raises(AssertionError, match="distribution functions differ"):
            assert_cdf((first - copied) / np.sqrt(2), stats.norm.cdf)


def test_seeds_reproduce_new_levels_and_differ():
    model = with_schools((*SCHOOLS, "elm"), np.full(7, 4))
    first, again, other = (predicted(fit(), model, "a", "y", random_seed=k) for k in (1, 1, 2))
    assert first.equals(again)
    assert not (first["a"] == other["a"]).sel(school="elm").any()


def test_levels_and_noise_do_not_share_a_stream():
    # Were both made of the same standard normals, they would be proportional to each other.
    model = with_schools((*SCHOOLS, "elm"), np.full(7, 4))
    idata = fit()
    for seed in (1, np.random.default_rng(1)):
        ours = predicted(idata, model, "a", "mean", "y", random_seed=seed)
        level = ours["a"].sel(school="elm").values / idata["posterior"]["scale"].values
        noise = (ours["y"] - ours["mean"]).values / idata["posterior"]["noise"].values[..., None]
        assert not np.isclose(level[..., None], noise).any()


def test_known_levels_are_drawn_anew_on_request():
    model = with_schools((*SCHOOLS[::-1], "elm"), np.arange(7) % 5)
    ours = predicted(fit(), model, "a", "f", "mean", sample_vars=["a"])
    assert not np.isin(ours["a"], fit()["posterior"]["a"]).any()
    mean = ours["f"].values + ours["a"].values[..., np.arange(7) % 5]
    np.testing.assert_array_equal(ours["mean"], mean)


DISTRICTS = ["east", "west"]


def nested_model(schools, districts, district_of_school):
    coords = {"school": schools, "district": districts}
    with pm.Model(coords=coords) as model:
        district = pm.Data("district_of_school", district_of_school, dims="school")
        f = pxb.XBARTForest("f", X, sigma=1, num_trees=3)
        d = pm.Normal("d", 0, 30, dims="district")
        a = pm.Normal("a", d[district], 0.5, dims="school")
        pm.Normal("y", f + a[SCHOOL], 0.3, observed=Y)
    return model


@pytest.fixture(scope="module")
def nested_idata():
    return sample_plainly(nested_model(SCHOOLS, DISTRICTS, [0, 0, 1, 1]))


def test_new_levels_of_known_levels_are_drawn_given_those(nested_idata):
    labels = [*SCHOOLS, "elm", "fir"], [*DISTRICTS, "north"]
    ours = predicted(nested_idata, nested_model(*labels, [0, 0, 1, 1, 1, 2]), "a", "d")
    posterior = nested_idata["posterior"]
    np.testing.assert_array_equal(ours["a"].sel(school=list(SCHOOLS)), posterior["a"])
    np.testing.assert_array_equal(ours["d"].sel(district=DISTRICTS), posterior["d"])
    for school, district in (("elm", "west"), ("fir", "north")):
        distance = ours["a"].sel(school=school) - ours["d"].sel(district=district)
        # Six standard deviations: beyond with probability 2e-9 each, 25 draws. Given other draws of
        # the district, of standard deviation 30, most would be.
        assert (np.abs(distance) < 3).all()
        other = ours["d"].sel(district="north").roll(draw=1)
        assert (np.abs(ours["a"].sel(school=school) - other) > 3).any()


def test_new_levels_leave_alone_what_depends_on_known_ones(nested_idata):
    model = nested_model(SCHOOLS, [*DISTRICTS, "north"], [0, 0, 1, 1])
    ours = predicted(nested_idata, model, "a", "d")
    np.testing.assert_array_equal(ours["a"], nested_idata["posterior"]["a"])
    assert ours["d"].sizes["district"] == 3


def test_levels_that_are_vectors_are_drawn():
    def build(schools):
        with pm.Model(coords={"school": schools, "coefficient": ["level", "slope"]}) as model:
            f = pxb.XBARTForest("f", X, sigma=1, num_trees=3)
            b = pm.MvNormal("b", np.zeros(2), np.eye(2), dims=("school", "coefficient"))
            pm.Normal("y", f + b[SCHOOL, 0] + b[SCHOOL, 1] * X[:, 0], 0.3, observed=Y)
        return model

    idata = sample_plainly(build(SCHOOLS))
    ours = predicted(idata, build(["elm", *SCHOOLS]), "b")["b"]
    assert ours.dims == ("chain", "draw", "school", "coefficient")
    np.testing.assert_array_equal(ours.sel(school=list(SCHOOLS)), idata["posterior"]["b"])
    assert not np.isnan(ours).any()


def test_effects_with_two_dims_are_known_where_both_labels_are():
    def build(schools, years):
        coords = {"school": schools, "year": years}
        with pm.Model(coords=coords) as model:
            f = pxb.XBARTForest("f", X, sigma=1, num_trees=3)
            b = pm.Normal("b", dims=("school", "year"))
            pm.Normal("y", f + b[SCHOOL, SCHOOL % 2], 0.3, observed=Y)
        return model

    idata = sample_plainly(build(SCHOOLS, [2024, 2025]))
    ours = predicted(idata, build([*SCHOOLS, "elm"], [2026, 2025, 2024]), "b")["b"]
    known = {"school": list(SCHOOLS), "year": [2024, 2025]}
    np.testing.assert_array_equal(ours.sel(known), idata["posterior"]["b"])
    new_year = ours.sel(school=list(SCHOOLS), year=2026).values
    assert not np.isin(new_year, idata["posterior"]["b"]).any()
    assert not np.isnan(ours).any()


def zero_sum_model(schools):
    with pm.Model(coords={"school": schools}) as model:
        f = pxb.XBARTForest("f", X, sigma=1, num_trees=3)
        a = pm.ZeroSumNormal("a", dims="school")
        pm.Normal("y", f + a[SCHOOL % len(schools)], 0.3, observed=Y)
    return model


def test_levels_that_depend_on_each_other_can_be_moved_but_not_drawn():
    idata = sample_plainly(zero_sum_model(SCHOOLS))
    moved = predicted(idata, zero_sum_model(SCHOOLS[::-1]), "a")["a"]
    np.testing.assert_array_equal(moved, idata["posterior"]["a"][..., ::-1])
    with pytest.raises(NotImplementedError, match=r"school has new labels.*'a'.*not independent"):
        predict(idata, zero_sum_model([*SCHOOLS, "elm"]))


def test_frozen_deterministics_can_be_moved_but_not_drawn():
    idata = fit(non_centred=True)
    school = np.zeros(7, int)
    moved = with_schools(SCHOOLS[::-1], school, non_centred=True)
    ours = predicted(idata, moved, "a", freeze_vars=["a"])
    np.testing.assert_array_equal(ours["a"], idata["posterior"]["a"][..., ::-1])
    larger = with_schools((*SCHOOLS, "elm"), school, non_centred=True)
    with pytest.raises(NotImplementedError, match=r"'a'.*computed from other.*out of freeze_vars"):
        predict(idata, larger, freeze_vars=["a"])


def pupils_model(pupils, X, y):
    """Every pupil has an effect of their own."""
    with pm.Model(coords={"pupil": pupils}) as model:
        f = pxb.XBARTForest("f", X, sigma=1, num_trees=3, dims="pupil")
        e = pm.Normal("e", 0, pm.HalfNormal("s"), dims="pupil")
        pm.Normal("y", f + e, 0.3, observed=y, dims="pupil")
    return model


@pytest.fixture(scope="module")
def pupils_idata():
    return sample_plainly(pupils_model([f"p{i}" for i in range(len(X))], X, Y))


def test_effects_of_rows_are_found_by_the_labels_of_rows(pupils_idata):
    ours = predicted(
        pupils_idata, pupils_model(["q0", "p3", "q1"], OTHERS[:3], Y[:3]), "f", "e", "y"
    )
    np.testing.assert_array_equal(ours["f"], pxb.predict(pupils_idata, OTHERS[:3]))
    np.testing.assert_array_equal(
        ours["e"].sel(pupil="p3"), pupils_idata["posterior"]["e"].sel(pupil="p3")
    )
    new = ours["e"].sel(pupil=["q0", "q1"])
    assert not np.isin(new, pupils_idata["posterior"]["e"]).any()
    assert not np.isnan(ours["y"]).any()


def test_what_a_rewritten_model_does_not_have_is_ignored(pupils_idata):
    with pm.Model(coords={"pupil": ["q0", "q1"]}) as model:
        f = pxb.XBARTForest("f", OTHERS[:2], sigma=1, dims="pupil")
        pm.Normal("y", f, 0.3, dims="pupil")
    np.testing.assert_array_equal(
        predicted(pupils_idata, model, "f")["f"], pxb.predict(pupils_idata, OTHERS[:2])
    )


def test_levels_of_a_forest_over_groups():
    """a ~ N(g(school), 0.1): drawn anew with new rows, or kept on request."""

    def build(schools):
        with pm.Model(coords={"school": schools}) as model:
            g = pxb.XBARTForest("g", X[: len(schools)], sigma=1, num_trees=3, dims="school")
            a = pm.Normal("a", g, 0.1, dims="school")
            pm.Normal("y", a[SCHOOL], 0.3, observed=Y)
        return model

    idata = sample_plainly(build(SCHOOLS))
    larger = build([*SCHOOLS, "elm"])
    anew = predicted(idata, larger, "a", "g")
    assert not np.isin(anew["a"], idata["posterior"]["a"]).any()
    kept = predicted(idata, larger, "a", "g", freeze_vars=["a"])
    np.testing.assert_array_equal(kept["a"][..., :4], idata["posterior"]["a"])
    np.testing.assert_array_equal(kept["g"], anew["g"])
    # Six standard deviations: beyond with probability 2e-9 each, 25 draws.
    assert (np.abs(kept["a"] - kept["g"])[..., 4] < 0.6).all()


def test_dates_are_labels_too():
    def build(months):
        with pm.Model(coords={"month": months}) as model:
            f = pxb.XBARTForest("f", X, sigma=1, num_trees=3)
            b = pm.Normal("b", dims="month")
            pm.Normal("y", f + b[SCHOOL % 3], 0.3, observed=Y)
        return model

    months = np.array(["2026-01", "2026-02", "2026-03", "2026-04"], "datetime64[ns]")
    idata = sample_plainly(build(months[:3]))
    assert "posterior_predictive" in predict(idata, build(months[:3])).children
    ours = predicted(idata, build(months[::-1]), "b")["b"]
    np.testing.assert_array_equal(ours.sel(month=months[:3]), idata["posterior"]["b"])
