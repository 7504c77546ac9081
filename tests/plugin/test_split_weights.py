"""Split weights with a Dirichlet prior are given their own step method, which finds few columns."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

from pymc_xbart.plugin import split_weights
from pymc_xbart.plugin.dirichlet import SparseDirichlet
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.split_weights import SplitWeightsStep, from_value, to_value
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers import law
from tests.helpers.runs import PLAIN, sample, sample_plainly

N, P = 60, 5
RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.uniform(size=(N, P)), columns=list("abcde"))
Y = 4.0 * X["a"].to_numpy() + RNG.normal(0, 0.3, N)


def dirichlet(**kwargs):
    return pm.Dirichlet("w", np.full(P, 1 / P), **kwargs)


def random_dirichlet():
    return pm.Dirichlet("w", pm.HalfCauchy("a", 1.0) * np.ones(P) / P)


def make(split_weights, **kwargs):
    with pm.Model() as model:
        weights = split_weights() if callable(split_weights) else split_weights
        f = XBARTForest("f", X, y=Y, num_trees=5, split_weights=weights, **kwargs)
        pm.Normal("y", f if "shape" not in kwargs else f.sum(axis=0), 0.3, observed=Y)
    return model


def assigned(model, **kwargs):
    """Names of the variables of each step method that PyMC assigns."""
    _, selected = pm.sampling.mcmc.assign_step_methods(model)
    return {
        method: {model.values_to_rvs[value].name for value in values}
        for method, values in selected.items()
    }


@pytest.mark.parametrize(
    ("split_weights", "names"),
    [
        (dirichlet, {"w"}),
        (random_dirichlet, {"a", "w"}),
        ("sparse", {"f_evenness", "f_split_weights"}),
    ],
    ids=["fixed", "random", "sparse"],
)
@pytest.mark.parametrize("derive", [lambda m: m, pm.Model.copy], ids=["model", "copy"])
def test_pymc_assigns_the_step(split_weights, names, derive):
    model = derive(make(split_weights))
    assert assigned(model) == {SplitWeightsStep: names, XBARTStep: {"f"}}


@pytest.mark.parametrize(
    "split_weights",
    [
        lambda: dirichlet() ** 2,
        lambda: pm.Dirichlet("w", pm.Gamma("a", 1.0, 1.0, shape=P)),
        lambda: pm.Deterministic("w", pm.math.softmax(pm.Normal("z", shape=P))),
    ],
    ids=["functions", "many concentrations", "other priors"],
)
def test_it_leaves_the_rest_to_others(split_weights):
    assert SplitWeightsStep not in assigned(make(split_weights))


def test_observed_weights_leave_the_concentration():
    model = pm.observe(make(random_dirichlet), {"w": np.array([0.9, 0.04, 0.03, 0.02, 0.01])})
    assert assigned(model)[SplitWeightsStep] == {"a"}
    idata = sample_plainly(model)
    assert (idata["posterior"]["a"] > 0).all()


def test_a_column_that_matters_takes_the_weight():
    idata = sample(make("sparse"), tune=200, draws=200)
    weights = idata["posterior"]["f_split_weights"]
    assert weights.dims == ("chain", "draw", "f_column")
    assert weights.sel(f_column="a").mean() > 0.7
    assert idata["posterior"]["f_evenness"].mean() < 0.5
    np.testing.assert_allclose(weights.sum("f_column"), 1.0)


def test_weights_of_several_forests_count_all_their_splits():
    model = make(dirichlet, shape=(2, N))
    with model:
        XBARTForest("other", X, sigma=1.0, num_trees=3, split_weights=model["w"])
        pm.Normal("of_other", model["other"], 1.0, observed=Y)
        forests = XBARTStep(compile_kwargs={"mode": PLAIN})
        step = SplitWeightsStep([model["w"]], compile_kwargs={"mode": PLAIN})
    forests.setup_chain(np.random.default_rng(1), tune=0, draws=1)
    forests.step(model.initial_point())
    (weights,) = step._weights
    splits = weights.splits(P)
    expected = [
        column
        for states in forests.forests.values()
        for state in states
        for column in state.forest.column
        if column >= 0
    ]
    np.testing.assert_array_equal(splits.counts, np.bincount(expected, minlength=P))
    assert splits.occurrences.sum() == len(expected)


def test_what_else_depends_on_the_weights_decides(rng):
    """Without splits the weights have their prior times the potential."""

    def log_potential(w):
        return 3.0 * w[..., 0]

    with pm.Model() as model:
        w = pm.Dirichlet("w", np.array([1.0, 2.0]))
        f = XBARTForest("f", X.iloc[:, :2], sigma=1.0, num_trees=1, split_weights=w)
        pm.Normal("y", f, 1.0, observed=Y)
        pm.Potential("likes_the_first", log_potential(w))
        step = SplitWeightsStep([w], compile_kwargs={"mode": PLAIN})
    step.setup_chain(rng, tune=0, draws=1)
    s = np.linspace(0, 1, 20_001)
    density = stats.beta(1.0, 2.0).pdf(s) * np.exp(3.0 * s)
    cdf = np.cumsum(density) / density.sum()
    point, ends = model.initial_point(), []
    for start in np.interp(rng.random(2000), cdf, s):
        point["w_simplex__"] = to_value(np.log([start, 1 - start]), np.dtype("float64"))
        after, _ = step.step(point)
        ends.append(from_value(after["w_simplex__"])[0])
    law.assert_uniform(np.interp(ends, s, cdf), law.FALSE_FAIL)


# One forest whose splits favour the first of two columns, which some nodes have used up.
COUNTS, AVAILABILITY, OCCURRENCES = [14.0, 1.0], [[1.0, 1.0], [0.0, 1.0]], [14.0, 1.0]
CONCENTRATION = stats.gamma(1.5)  # of each column
STARTS = 2000


def weights_and_concentration():
    """A step that sees these splits."""
    with pm.Model():
        a = pm.Gamma("a", 1.5, 1.0)
        w = pm.Dirichlet("w", a * np.ones(2))
        f = XBARTForest("f", X.iloc[:, :2], sigma=1.0, num_trees=1, split_weights=w)
        pm.Normal("y", f, 1.0, observed=Y)
        step = SplitWeightsStep([a, w], compile_kwargs={"mode": PLAIN})
    ((counts, availability, occurrences),) = step._weights[0].statistics
    counts.set_value(np.array(COUNTS))
    availability.set_value(np.array(AVAILABILITY))
    occurrences.set_value(np.array(OCCURRENCES))
    return step


class Joint:
    """Law of both given these splits, on a grid."""

    def __init__(self):
        self.edges = np.linspace(1e-9, 1 - 1e-9, 4001)
        s = (self.edges[1:] + self.edges[:-1]) / 2
        self.log_likelihood = np.array(COUNTS) @ np.log([s, 1 - s])
        self.log_likelihood -= np.array(OCCURRENCES) @ np.log(AVAILABILITY @ np.array([s, 1 - s]))
        self.s = s
        self.a = CONCENTRATION.ppf((np.arange(1500) + 0.5) / 1500)
        mass = [self._mass(a).sum() for a in self.a]
        self.cdf = np.cumsum(mass) / np.sum(mass)

    def _mass(self, a):
        return stats.beta(a, a).pdf(self.s) * np.exp(self.log_likelihood) * np.diff(self.edges)

    def _cdf_given(self, a):
        cumulated = np.append(0.0, np.cumsum(self._mass(a)))
        return cumulated / cumulated[-1]

    def draw(self, rng):
        a = np.interp(rng.random(), self.cdf, self.a)
        return a, np.interp(rng.random(), self._cdf_given(a), self.edges)

    def uniform(self, a, s):
        return np.interp(a, self.a, self.cdf), np.interp(s, self.edges, self._cdf_given(a))


def moved(rng):
    """Uniform variates of both after a step from a draw of their law."""
    joint, step = Joint(), weights_and_concentration()
    step.setup_chain(rng, tune=0, draws=1)
    ends = []
    for _ in range(STARTS):
        a, s = joint.draw(rng)
        value = to_value(np.log([s, 1 - s]), np.dtype("float64"))
        point, _ = step.step({"a_log__": np.array(np.log(a)), "w_simplex__": value})
        ends.append(joint.uniform(np.exp(point["a_log__"]), from_value(point["w_simplex__"])[0]))
    return np.array(ends).T


def test_weights_and_concentration_keep_their_law(rng):
    for ends in moved(rng):
        law.assert_uniform(ends, law.FALSE_FAIL)


@pytest.mark.parametrize("wrong", [0.0, 2.0])
def test_that_this_would_catch_a_concentration_that_sees_other_splits(rng, monkeypatch, wrong):
    right = split_weights.log_evidence
    monkeypatch.setattr(split_weights, "log_evidence", lambda *args: wrong * right(*args))
    with pytest.raises(AssertionError):
        law.assert_uniform(moved(rng)[0], law.FALSE_FAIL)


@pytest.mark.parametrize("mode", [PLAIN, "NUMBA"])
def test_sparse_weights_are_drawn_from_their_prior(mode):
    laws = {"large": (2.0, 0.7), "small": (0.05, 0.2)}
    with pm.Model():
        for name, concentration in laws.items():
            SparseDirichlet(name, np.array(concentration))
        SparseDirichlet("tiny", np.array([1e-12, 1e-12]))
        prior = pm.sample_prior_predictive(4000, random_seed=1, compile_kwargs={"mode": mode})
    weights = {name: each.values[0] for name, each in prior["prior"].data_vars.items()}
    # Fails correct code with probability 1e-6 each; a hundredth of all draws lie near an end.
    for name, concentration in laws.items():
        law.assert_cdf(weights[name][:, 0], stats.beta(*concentration).cdf)
    # Here pymc.Dirichlet, compiled, divides zero by zero.
    np.testing.assert_allclose(weights["tiny"].sum(axis=1), 1.0)
    assert (weights["tiny"].max(axis=1) > 0.999).all()


def test_sparse_forests_are_drawn_from_their_prior():
    with make("sparse"):
        prior = pm.sample_prior_predictive(200, random_seed=1)
    assert np.isfinite(prior["prior"]["f"]).all()
    np.testing.assert_allclose(prior["prior"]["f_split_weights"].sum("f_column"), 1.0)


def test_a_dirichlet_that_numba_can_not_draw_is_named():
    with make(lambda: pm.Dirichlet("w", np.full(P, 1e-6))):
        with pytest.raises(
            ValueError, match=r"weights drawn from their prior are all NaN.*'sparse'"
        ):
            pm.sample_prior_predictive(5, random_seed=1)
        prior = pm.sample_prior_predictive(5, random_seed=1, compile_kwargs={"mode": PLAIN})
    assert np.isfinite(prior["prior"]["f"]).all()


@pytest.mark.parametrize("split_weights", [dirichlet, "sparse"])
@pytest.mark.parametrize("by", [pm.do, pm.observe])
def test_weights_of_a_forest_that_has_become_data_follow_their_prior(split_weights, by):
    model = by(make(split_weights), {"f": Y})
    names = {"w"} if split_weights is dirichlet else {"f_evenness", "f_split_weights"}
    assert assigned(model)[SplitWeightsStep] == names
    posterior = sample_plainly(model, tune=0, draws=2000)["posterior"]
    # Fails correct code with probability 1e-6, for each of the two.
    if split_weights is dirichlet:  # draws are independent, nothing else being random
        law.assert_cdf(posterior["w"].values[0, :, 0], stats.beta(1 / P, 1 - 1 / P).cdf)
    else:
        evenness = posterior["f_evenness"].values[0, ::10]
        law.assert_cdf(evenness, stats.beta(0.5, 1.0).cdf)
        # Some are 1, or next to nothing, to the last bit.
        assert np.unique(posterior["f_split_weights"].values[0, :, 0]).size > 1000


def test_forests_of_submodels_may_have_columns_of_the_same_names():
    with pm.Model() as model:
        for name, columns in (("one", ["a", "b"]), ("two", ["c", "d", "e"])):
            with pm.Model(name=name):
                XBARTForest("f", X[columns], sigma=1.0, split_weights="sparse")
    assert model.coords["two::f_column"] == ("c", "d", "e")


def test_what_is_refused_leaves_no_variable_behind():
    with pm.Model(coords={"class": range(2), "row": range(N)}) as model:
        for wrong in (
            {},
            {"sigma": -1.0},
            {"sigma": 1.0, "num_trees": 0},
            {"sigma": 1.0, "num_tree": 5},
            {"sigma": [1.0, 2.0], "dims": "row"},
            {"sigma": 1.0, "dims": "pupil"},
        ):
            with pytest.raises((KeyError, TypeError, ValueError)):
                XBARTForest("f", X, split_weights="sparse", **wrong)
        assert not model.named_vars
        XBARTForest("f", X, split_weights="sparse", sigma=1.0)
        several = {"sigma": [1.0, 2.0], "split_weights": "sparse"}
        assert XBARTForest("g", X, dims=("class", "row"), **several).type.ndim == 2
        assert XBARTForest("h", X, size=2, **several).type.shape == (2, N)


def test_weights_need_not_be_drawn_for_their_shape():
    with pm.Model():
        flat = pm.Flat("z", shape=P)  # can't be drawn at all
        f = XBARTForest("f", X, sigma=1.0, split_weights=pm.math.softmax(flat), shape=(2, N))
    assert f.type.shape == (2, N)


def test_tuning_begins_with_weights_as_they_are():
    model = make(dirichlet)
    with model:
        forests = XBARTStep(compile_kwargs={"mode": PLAIN})
        step = SplitWeightsStep([model["w"]], compile_kwargs={"mode": PLAIN})
    forests.setup_chain(np.random.default_rng(1), tune=0, draws=1)
    for tune, waits in ((0, 0), (1, 0), (8, 4)):
        step.setup_chain(np.random.default_rng(1), tune=tune, draws=1)
        start = model.initial_point()
        moved = []
        for _ in range(waits + 1):
            after, _ = step.step(start)
            moved.append(not np.array_equal(after["w_simplex__"], start["w_simplex__"]))
        assert moved == [False] * waits + [True]


def test_weights_next_to_nothing_stay_numbers():
    log_weights = np.array([-1e6, 0.0, -3000.0, -2.0])
    log_weights -= np.log(np.exp(log_weights).sum())
    for dtype in ("float64", "float32"):
        value = to_value(log_weights, np.dtype(dtype))
        assert value.dtype == dtype
        assert (value.shape, np.isfinite(value).all()) == ((3,), True)
        weights = from_value(value)
        np.testing.assert_allclose(weights, np.exp(log_weights), rtol=1e-5, atol=1e-15)
        assert weights.min() > 0


def test_log_probability_is_finite_where_weights_are_next_to_nothing():
    model = make(lambda: pm.Dirichlet("w", np.full(P, 1e-3)))
    point = model.initial_point()
    point["w_simplex__"] = to_value(np.array([0.0, -5000, -9000, -4.0, -1e5]), np.dtype("float64"))
    assert np.isfinite(model.compile_logp(mode=PLAIN)(point))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_weights_and_trees(method):
    kwargs = {"chains": 2, "tune": 10, "draws": 10}
    expected = sample(make("sparse"), cores=1, **kwargs)["posterior"]
    observed = sample(make("sparse"), cores=2, mp_ctx=method, **kwargs)["posterior"]
    for name in ("f", "f_split_weights", "f_evenness"):
        np.testing.assert_array_equal(observed[name], expected[name])


REFUSED = {
    "another variable": (
        lambda: make(dirichlet),
        lambda m: SplitWeightsStep([m["f"]], model=m),
        TypeError,
        "can't sample 'f'",
    ),
    "weights of no forest": (
        lambda: make(lambda: dirichlet() ** 2),
        lambda m: SplitWeightsStep([m["w"]], model=m),
        TypeError,
        "can't sample 'w'",
    ),
    "a transform": (
        lambda: make(lambda: dirichlet(default_transform=None)),
        lambda m: SplitWeightsStep([m["w"]], model=m),
        NotImplementedError,
        "Leave `transform`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    build, use, error, message = REFUSED[case]
    model = build()
    with pytest.raises(error, match=message):
        use(model)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="split_weights is 'dense', but must be one weight"):
        make("dense")
    with pytest.raises(ValueError, match="where a forest is added to a model"):
        XBARTForest.dist(X, sigma=1.0, split_weights="sparse")
