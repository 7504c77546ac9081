"""(g, h) equal closed forms whatever f enters by; what a sweep can't do is refused by name."""

import multiprocessing

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.likelihood import Likelihood

N = 12
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = 5.0 + X[:, 0] + RNG.normal(size=N)
GROUP = np.arange(N) % 3
Z = RNG.integers(0, 2, size=N)
WEIGHT = RNG.uniform(0.5, 4.0, size=N)
INDEX = np.array([0, 0, 5, 2, 2, 2, 11])  # with repeats; most rows are held out
Y_INDEX = RNG.normal(size=INDEX.size)


def fill(model, rng):
    """A point with all values random, so that no term is zero by luck."""
    return {
        name: np.asarray(rng.normal(size=np.shape(value)), dtype=value.dtype)
        for name, value in model.initial_point().items()
    }


def build(rest, **kwargs):
    """Model of a forest f and what `rest` makes of it."""
    with pm.Model() as model:
        rest(XBARTForest("f", X, **({"y": Y, "num_trees": 5} | kwargs)))
    return model


def normal(mu, sd, y=Y):
    """g in the mean, and its curvature, at each row."""
    return (y - mu) / sd**2, np.ones(N) / sd**2 * np.ones_like(mu)


def noise(point):
    return np.exp(point["noise_log__"])


def plain(f):
    pm.Normal("y", f, pm.HalfNormal("noise"), observed=Y)


def offset(f):
    pm.Normal("y", 3.0 + f + Z, pm.HalfNormal("noise"), observed=Y)


def group_effects(f):
    a = pm.Normal("a", 0, 1, shape=3)
    pm.Normal("y", f + a[GROUP], pm.HalfNormal("noise"), observed=Y)


def weights(f):
    pm.Normal("y", f, 1 / np.sqrt(WEIGHT), observed=Y)


def multiplier(f):
    b = pm.Normal("b")
    pm.Normal("y", b + f * Z, 2.0, observed=Y)


def rows_by_index(f):
    pm.Normal("y", f[INDEX], 2.0, observed=Y_INDEX)


def latent_child(f):
    c = pm.Normal("c", f, 0.5, shape=N)
    pm.Normal("y", c, 1.0, observed=Y)


def two_likelihoods(f):
    pm.Normal("y", f, 2.0, observed=Y)
    pm.Normal("u", -f, 0.5, observed=WEIGHT)


def ridge(f):
    pm.Normal("y", f, 2.0, observed=Y)
    pm.Potential("ridge", -0.25 * (f**2).sum())


def linear_potential(f):
    pm.Potential("tilt", (WEIGHT * f).sum())


def data(f):
    pm.Normal("y", f, 2.0, observed=pm.Data("Y", Y))


def by_index(point):
    g, h = np.zeros(N), np.zeros(N)
    np.add.at(g, INDEX, (Y_INDEX - point["f"][INDEX]) / 4)
    np.add.at(h, INDEX, 1 / 4)
    return g, h


def add(*pairs):
    return tuple(np.sum(parts, axis=0) for parts in zip(*pairs, strict=True))


CLOSED_FORMS = {
    plain: lambda p: normal(p["f"], noise(p)),
    offset: lambda p: normal(3.0 + p["f"] + Z, noise(p)),
    group_effects: lambda p: normal(p["f"] + p["a"][GROUP], noise(p)),
    weights: lambda p: (WEIGHT * (Y - p["f"]), WEIGHT),
    multiplier: lambda p: (Z * (Y - p["b"] - Z * p["f"]) / 4, Z**2 / 4),
    rows_by_index: by_index,
    latent_child: lambda p: normal(p["f"], 0.5, p["c"]),
    two_likelihoods: lambda p: add(normal(p["f"], 2.0), normal(p["f"], 0.5, -WEIGHT)),
    ridge: lambda p: add(normal(p["f"], 2.0), (-0.5 * p["f"], np.full(N, 0.5))),
    linear_potential: lambda _: (WEIGHT, np.zeros(N)),
    data: lambda p: normal(p["f"], 2.0),
}


@pytest.mark.parametrize("rest", CLOSED_FORMS, ids=lambda rest: rest.__name__)
def test_gradient_and_curvature_equal_the_closed_form(rest, rng):
    model = build(rest)
    likelihood = Likelihood(model, model["f"])
    point = fill(model, rng)
    g, h = likelihood.gradient_curvature(point["f"], point)
    expected_g, expected_h = CLOSED_FORMS[rest](point)
    np.testing.assert_allclose(g, expected_g, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(h, expected_h, rtol=1e-12)
    assert g.dtype == h.dtype == np.float64
    likelihood.check(model.initial_point(), rng)


def test_value_passed_counts_not_the_one_in_the_point(rng):
    model = build(weights)
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    f = rng.normal(size=N)
    g, _ = likelihood.gradient_curvature(f, fill(model, rng))
    np.testing.assert_allclose(g, WEIGHT * (Y - f))


def test_replaced_data_is_seen(rng):
    model = build(data)
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    model.set_data("Y", -Y)
    f = rng.normal(size=N)
    g, _ = likelihood.gradient_curvature(f, {"f": f})
    np.testing.assert_allclose(g, (-Y - f) / 4)


def test_missing_responses_hang_on_their_imputed_values(rng):
    y = Y.copy()
    y[3] = np.nan
    with pytest.warns(pm.exceptions.ImputationWarning):
        model = build(lambda f: pm.Normal("y", f, 2.0, observed=y), y=y)
    likelihood = Likelihood(model, model["f"])
    point = fill(model, rng)
    filled = np.where(np.isnan(y), point["y_unobserved"], y)
    g, h = likelihood.gradient_curvature(point["f"], point)
    np.testing.assert_allclose(g, (filled - point["f"]) / 4)
    np.testing.assert_allclose(h, 1 / 4)


def test_each_of_two_forests_sees_the_other(rng):
    def rest(f):
        effect = XBARTForest("effect", X, sigma=1.0, num_trees=5)
        pm.Normal("y", f + Z * effect, 2.0, observed=Y)

    model = build(rest)
    point = fill(model, rng)
    residual = Y - point["f"] - Z * point["effect"]
    for name, z in (("f", np.ones(N)), ("effect", Z)):
        likelihood = Likelihood(model, model[name])
        likelihood.check(model.initial_point(), rng)
        g, h = likelihood.gradient_curvature(point[name], point)
        np.testing.assert_allclose(g, z * residual / 4, atol=1e-14)
        np.testing.assert_allclose(h, z**2 / 4)


def test_product_of_forests_is_quadratic_in_each(rng):
    def rest(f):
        pm.Normal("y", f * XBARTForest("scale", X, sigma=1.0), 2.0, observed=Y)

    model = build(rest)
    point = fill(model, rng)
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    likelihood.check(point, rng)
    _, h = likelihood.gradient_curvature(point["f"], point)
    np.testing.assert_allclose(h, point["scale"] ** 2 / 4)


def test_rows_of_a_stacked_forest_are_taken_one_by_one(rng):
    def rest(f):
        pm.Normal("y", f[0] + Z * f[1], 2.0, observed=Y)

    model = build(rest, shape=(2, N))
    likelihood = Likelihood(model, model["f"])
    likelihood.check(model.initial_point(), rng)
    f = rng.normal(size=(2, N))
    residual = Y - f[0] - Z * f[1]
    for row, z in enumerate((np.ones(N), Z)):
        g, h = likelihood.gradient_curvature(f, {}, row=row)
        np.testing.assert_allclose(g, z * residual / 4, atol=1e-14)
        np.testing.assert_allclose(h, z**2 / 4)


def test_dependence_through_the_support_of_a_latent_child_is_seen():
    # y's own parents are c alone, but c is sampled on an unconstrained scale that f has a part in.
    def rest(f):
        c = pm.Uniform("c", -1.0, pt.exp(f), shape=N)
        pm.Normal("y", c, 1.0, observed=Y)

    model = build(rest)
    assert Likelihood(model, model["f"], mode="FAST_COMPILE").names == ("c", "y")


def test_forest_that_nothing_depends_on(rng):
    model = build(lambda _: pm.Normal("a"))
    likelihood = Likelihood(model, model["f"])
    assert not likelihood.depends
    assert likelihood.names == ()
    likelihood.check(model.initial_point(), rng)
    g, h = likelihood.gradient_curvature(np.ones(N), {})
    np.testing.assert_array_equal(g, np.zeros(N))
    np.testing.assert_array_equal(h, np.zeros(N))


def test_single_precision(rng):
    with pytensor.config.change_flags(floatX="float32"):
        model = build(group_effects)
        point = fill(model, rng)
        assert point["f"].dtype == "float32"
        likelihood = Likelihood(model, model["f"])
    g, h = likelihood.gradient_curvature(point["f"].astype(np.float64), point)
    expected_g, expected_h = CLOSED_FORMS[group_effects](point)
    np.testing.assert_allclose(g, expected_g, rtol=1e-4)
    np.testing.assert_allclose(h, expected_h, rtol=1e-5)
    assert g.dtype == h.dtype == np.float64
    likelihood.check(point, rng)


def evaluate_in_child(pickled, f, point, results):
    results.put(cloudpickle.loads(pickled).gradient_curvature(f, point))


def test_pickles_to_a_spawned_process(rng):
    model = build(group_effects)
    likelihood = Likelihood(model, model["f"])
    point = fill(model, rng)
    expected = likelihood.gradient_curvature(point["f"], point)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(
        target=evaluate_in_child, args=(cloudpickle.dumps(likelihood), point["f"], point, results)
    )
    child.start()
    np.testing.assert_array_equal(results.get(timeout=60), expected)
    child.join()


def independent(f):
    """A part that is no problem, so that naming the one that is takes some care."""
    pm.Normal("fine", f, 1.0, observed=Y)


COUPLED = {
    "multivariate": lambda f: pm.MvNormal("y", f, np.eye(N) + 0.3, observed=Y),
    "centred": lambda f: pm.Normal("y", f - f.mean(), 1.0, observed=Y),
    "cumulative": lambda f: pm.Normal("y", pt.cumsum(f), 1.0, observed=Y),
    "walk": lambda f: pm.Potential("y", -((f[1:] - f[:-1]) ** 2).sum()),
    "beside rows that are known well": lambda f: (
        pm.Normal("anchor", f[:3], 1e-4, observed=Y[:3]),
        pm.MvNormal("y", f, np.eye(N) + 0.3, observed=Y),
    ),
}
NOT_QUADRATIC = {
    "poisson": lambda f: pm.Poisson("y", pt.exp(f), observed=Z),
    "bernoulli": lambda f: pm.Bernoulli("y", logit_p=f, observed=Z),
    "student": lambda f: pm.StudentT("y", 4, mu=f, sigma=1.0, observed=Y),
    "nearly-normal": lambda f: pm.StudentT("y", 1e4, mu=f, sigma=1.0, observed=Y),
    "laplace": lambda f: pm.Laplace("y", f, 1.0, observed=Y),  # h is zero everywhere
    "log-scale": lambda f: pm.Normal("y", 0.0, pt.exp(f), observed=Y),
    "censored": lambda f: pm.Censored(
        "y", pm.Normal.dist(f, 1.0), None, 6.0, observed=Y.clip(None, 6)
    ),
    # quadratic at the model's own point, where b is zero
    "elsewhere": lambda f: pm.Normal("y", f + pm.Normal("b") * f**2, 1.0, observed=Y),
    # quadratic wherever random points are likely to be
    "far-away": lambda f: pm.Normal(
        "y", pt.switch(pm.Normal("b") > 1e3, pt.exp(f), f), 1.0, observed=Y
    ),
    "two-sided": lambda f: pm.Potential("y", -pt.switch(f > 1e6, 3.0, 1.0) * f),
    # jumps, of which derivatives know nothing
    "step": lambda f: pm.Potential("y", pt.switch(f > 5.0, 0.0, -5.0)),
    "wall": lambda f: pm.Potential("y", pt.switch(f > -1e6, 0.0, -np.inf)),
    "two-odds": lambda f: pm.Bernoulli("y", pt.switch(f > 5.0, 0.9, 0.1), observed=Z),
    "looked-up": lambda f: pm.Normal(
        "y", pt.constant(WEIGHT[:2])[(f > 5).astype(int)], 1.0, observed=Y
    ),
    "rounded": lambda f: pm.Normal("y", pt.round(f), 1.0, observed=Y),
    "floored": lambda f: pm.Poisson("y", pt.floor(pt.exp(0.1 * f)) + 1.0, observed=Z),
}


@pytest.mark.parametrize("case", COUPLED)
def test_coupled_rows_are_refused_by_name(case, rng):
    model = build(lambda f: (independent(f), COUPLED[case](f)))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    with pytest.raises(NotImplementedError, match=r"^The log-probability of 'y' ties rows .*'f'"):
        likelihood.check(model.initial_point(), rng)


@pytest.mark.parametrize("case", NOT_QUADRATIC)
def test_likelihoods_that_are_not_quadratic_are_recognised(case, rng):
    model = build(lambda f: (independent(f), NOT_QUADRATIC[case](f)))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    likelihood.check(model.initial_point(), rng)
    assert not likelihood.is_quadratic


@pytest.mark.parametrize(
    "rest",
    [
        lambda f: pm.MvNormal("y", f, np.diag(WEIGHT), observed=Y),
        lambda f: pm.Normal("y", f + 1e6, 1.0, observed=Y + 1e6),
        lambda f: pm.Normal("y", f, np.where(Z == 1, 1.0, 1e6), observed=Y),
        lambda f: pm.Normal("y", 1e-4 * f, 1e-4, observed=1e-4 * Y),
        lambda f: pm.Normal("y", f + pm.Uniform("c", shape=N), pm.Gamma("s", 2, 2), observed=Y),
        lambda f: pm.Normal("y", f, pm.Bernoulli("hot", 0.5, shape=N) + 1.0, observed=Y),
        lambda f: pm.Normal("y", f, tau=pm.Gamma("t", 2, 2), observed=pm.Data("d", Y)),
        lambda f: pm.Normal("y", f, pm.math.exp(pm.Normal("log_s", shape=N)), observed=Y),
        lambda f: pm.Normal("y", pm.Normal("c", f, 1.0, shape=N), 1.0, observed=Y),
        lambda f: pm.LogNormal("y", f, pm.HalfNormal("s"), observed=np.exp(Y)),
        lambda f: pm.Potential("y", -((f - Y) ** 2).mean()),
        lambda f: pm.CustomDist("y", f, logp=lambda v, f: -((v - f) ** 2), observed=Y),
        lambda f: pm.Normal("y", f[np.argsort(Y)] * pm.Normal("b") + 1.0, 1.0, observed=Y),
        lambda f: pm.Normal("y", pt.dot(np.diag(WEIGHT), f), 1.0, observed=Y),
    ],
    ids=[
        *("diagonal", "far", "unequal", "small", "constrained", "discrete", "precision", "log-sd"),
        *("latent", "lognormal", "potential", "custom", "index", "product"),
    ],
)
def test_quadratic_likelihoods_are_recognised(rest, rng):
    model = build(rest)
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    likelihood.check(model.initial_point(), rng)
    assert likelihood.is_quadratic


def test_log_probability_without_bound_is_refused(rng):
    model = build(lambda f: pm.Potential("boom", (f**2).sum()))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    point = model.initial_point()
    with pytest.raises(NotImplementedError, match="'boom' curves upwards in the forest 'f'"):
        likelihood.check(point, rng)
    with pytest.raises(SamplingError, match="'boom' curves upwards"):
        likelihood.gradient_curvature(point["f"], point)


def test_curvature_below_zero_by_rounding_is_zero():
    def rest(f):
        pm.Normal("y", f, 1.0, observed=Y)
        pm.Potential("tiny", 0.5 * (f * np.where(Z, 1.0 + 1e-15, 0.0) * f).sum())

    model = build(rest)
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    _, h = likelihood.gradient_curvature(Y, {})
    assert h.min() >= 0.0
    np.testing.assert_allclose(h, 1.0 - Z, atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_stop_the_run_by_name(bad):
    model = build(lambda f: (independent(f), group_effects(f)))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    point = model.initial_point()
    point["a"] = np.array([0.0, bad, 0.0])
    message = r"'y' has no finite .* forest 'f', in rows 1, 4, 7 and 1 more .*finite: 'a'\."
    with pytest.raises(SamplingError, match=message) as caught:
        likelihood.gradient_curvature(point["f"], point)
    assert isinstance(cloudpickle.loads(cloudpickle.dumps(caught.value)), SamplingError)


def test_a_scale_of_zero_stops_the_run_with_advice(rng):
    model = build(lambda f: pm.Normal("y", f, pm.Flat("scale", initval=0.0), observed=Y))
    likelihood = Likelihood(model, model["f"], mode="FAST_COMPILE")
    with pytest.raises(SamplingError, match=r"rows 0, 1, 2 and 9 more .*scale of zero"):
        likelihood.check(model.initial_point(), rng)


def test_data_with_other_rows_than_X_are_refused_with_advice(rng):
    with pm.Model() as model:
        f = XBARTForest("f", pm.Data("X", X), y=Y, num_trees=5)
        pm.Normal("y", f, 1.0, observed=Y[1:])
    likelihood = Likelihood(model, f, mode="FAST_COMPILE")
    message = r"'y' can't be evaluated where the forest 'f' has shape \(12,\): .*11.* f\[rows\]"
    with pytest.raises(ValueError, match=message):
        likelihood.check(model.initial_point(), rng)


def test_batches_of_data_are_refused():
    model = build(lambda f: pm.Normal("y", f, 1.0, observed=Y, total_size=1000))
    with pytest.raises(NotImplementedError, match=r"'y' sees its data in batches .* forest 'f'"):
        Likelihood(model, model["f"])


def test_minibatches_are_refused():
    def rest(f):
        f_batch, y_batch = pm.Minibatch(pm.Data("row", np.arange(N)), pm.Data("Y", Y), batch_size=3)
        pm.Normal("y", f[f_batch], 1.0, observed=y_batch)

    with pytest.warns(UserWarning, match="total_size not provided"):
        model = build(rest)
    with pytest.raises(NotImplementedError, match="'y' sees its data in batches"):
        Likelihood(model, model["f"])
