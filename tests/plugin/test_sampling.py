"""Whole runs of `pm.sample`: reproducible, recorded as ArviZ reads it, in every mode of PyMC."""

import sys

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
from pymc.exceptions import SamplingError

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, correlation, posterior_mean, sample, sample_plainly

N = 40
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
TRUTH = 5.0 + np.sin(2.0 * X[:, 0])
Y = TRUTH + RNG.normal(scale=0.2, size=N)
FOREST_STATS = {"f_leaves", "f_depth", "f_acceptance"}


def make_model(noise=0.2):
    with pm.Model(coords={"pupil": [f"p{i}" for i in range(N)], "column": ["a", "b"]}) as model:
        covariates = pm.Data("X", X, dims=("pupil", "column"))
        y = pm.Data("y_data", Y, dims="pupil")
        f = XBARTForest("f", covariates, y=y, num_trees=8, dims="pupil")
        sd = pm.HalfNormal("noise", 1.0) if noise is None else noise
        pm.Normal("y", f, sd, observed=y, dims="pupil")
    return model


@pytest.fixture(scope="module")
def model():
    """A forest and nothing else to sample, so that all bits are ours."""
    return make_model()


@pytest.fixture(scope="module")
def idata(model):
    return sample(model, chains=2)


@pytest.fixture(scope="module")
def nuts_model():
    return make_model(noise=None)


@pytest.fixture(scope="module")
def nuts_idata(nuts_model):
    return sample_plainly(nuts_model, chains=2)


def assert_same_draws(idata, other):
    np.testing.assert_array_equal(idata["posterior"]["f"], other["posterior"]["f"])
    for stat in FOREST_STATS:
        np.testing.assert_array_equal(idata["sample_stats"][stat], other["sample_stats"][stat])


def test_forest_follows_the_truth(idata):
    assert correlation(posterior_mean(idata), TRUTH) > 0.9


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_change_no_bit(model, idata, method):
    if method == "fork" and sys.platform == "win32":
        pytest.skip("no fork on Windows")
    assert_same_draws(sample(model, chains=2, cores=2, mp_ctx=method), idata)


def test_second_run_repeats_the_first_whatever_came_between(model, idata):
    sample(model, random_seed=2)
    assert_same_draws(sample(model, chains=2), idata)


def test_step_may_be_used_twice(model, idata):
    with model:
        step = XBARTStep()
    for _ in range(2):
        assert_same_draws(sample(model, chains=2, step=step), idata)


def test_seeds_and_chains_differ(model, idata):
    f = idata["posterior"]["f"].values
    other = sample(model, random_seed=2)["posterior"]["f"].values
    for a, b in ((f[0], f[1]), (f[0], other[0])):
        assert not (a == b).all(axis=-1).any()


def test_forest_and_nuts_together_are_reproducible(nuts_model, nuts_idata):
    again = sample_plainly(nuts_model, chains=2)
    assert_same_draws(again, nuts_idata)
    np.testing.assert_array_equal(again["posterior"]["noise"], nuts_idata["posterior"]["noise"])


def containers_of_the_package():
    """Sizes of everything at module level that could collect something."""
    return {
        (module_name, name): len(value)
        for module_name, module in list(sys.modules.items())
        if module_name.startswith("pymc_xbart")
        for name, value in vars(module).items()
        if isinstance(value, dict | list | set) and not name.startswith("__")
    }


def test_nothing_is_kept_by_the_op_or_the_package(model, idata):
    op = model["f"].owner.op
    before = dict(vars(op)), containers_of_the_package()
    assert len(before[1]) > 0
    sample(model)
    assert (vars(op), containers_of_the_package()) == before


def test_global_random_state_is_left_alone(model):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - its users are who must not notice
    sample(model)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_draws_and_tuning_have_the_lengths_asked_for(model):
    idata = sample(model, tune=15, draws=25, discard_tuned_samples=False)
    assert idata["posterior"]["f"].shape == (1, 25, N)
    assert idata["warmup_posterior"]["f"].shape == (1, 15, N)
    assert idata["warmup_sample_stats"]["f_leaves"].shape == (1, 15)


def num_tuning_draws(model, **kwargs):
    return sample(model, tune=None, draws=1, **kwargs)["sample_stats"].attrs["tuning_steps"]


def test_default_tuning_is_the_papers_for_the_papers_sweep_and_else_pymcs(model):
    uncorrected = {"correction": "none"}
    assert num_tuning_draws(model, xbart=uncorrected) == 15
    assert num_tuning_draws(model) == 1000
    with pm.Model() as beside_nuts:
        f = XBARTForest("f", X[:5], sigma=1.0, num_trees=1)
        pm.Normal("y", f + pm.Normal("a"), 1.0, observed=Y[:5])
    assert num_tuning_draws(beside_nuts, xbart=uncorrected) == 1000


def test_convergence_checks_raise_no_warning(model):
    # With 100 draws PyMC computes ESS and R-hat of every row of f; warnings are errors here.
    sample(model, draws=100, chains=2, compute_convergence_checks=True)


def test_progress_bar_shows_leaves(model, capsys):
    sample_plainly(model, draws=2, tune=2, chains=2, quiet=False, progressbar=True)
    assert "leaves" in capsys.readouterr().out


def test_progress_bar_takes_any_name(capsys):
    with pm.Model() as model:
        forests = [XBARTForest(f"f[{k}]", X, sigma=1.0, num_trees=3) for k in ("0", "b")]
        pm.Normal("y", sum(forests), 0.3, observed=np.zeros(N))
    sample_plainly(model, draws=2, tune=2, quiet=False, progressbar=True)
    # Between brackets, Rich looks for fields of a record, and for styles, such as bold.
    assert {"f[0]", "f[b]"} < set(capsys.readouterr().out.split())


def test_statistics_are_numbers_by_chain_and_draw(idata, nuts_idata):
    stored = FOREST_STATS | {"f_trees"}
    assert set(idata["sample_stats"].data_vars) == stored
    assert set(nuts_idata["sample_stats"].data_vars) > stored | {"step_size", "diverging"}
    for name in FOREST_STATS:
        stat = idata["sample_stats"][name]
        assert stat.dims == ("chain", "draw")
        assert stat.dtype == np.float64
        assert np.isfinite(stat).all()
    summary = az.summary(idata, group="sample_stats", var_names=sorted(FOREST_STATS))
    assert set(summary.index) == FOREST_STATS


def test_dims_and_coords_are_kept(idata):
    f = idata["posterior"]["f"]
    assert f.dims == ("chain", "draw", "pupil")
    assert f.sel(pupil="p7").shape == (2, 25)
    assert len(az.summary(idata, var_names=["f"])) == N


def test_results_survive_the_disk(idata, tmp_path):
    path = tmp_path / "fit.nc"
    idata.to_netcdf(path)
    loaded = az.from_netcdf(path)
    for group in ("posterior", "sample_stats", "observed_data", "constant_data"):
        assert loaded[group].to_dataset().equals(idata[group].to_dataset()), group
    loaded.close()


def test_forest_that_is_not_recorded_is_sampled_all_the_same(nuts_model, nuts_idata):
    short = sample_plainly(nuts_model, chains=2, var_names=["noise"])
    assert list(short["posterior"].data_vars) == ["noise"]
    np.testing.assert_array_equal(short["posterior"]["noise"], nuts_idata["posterior"]["noise"])
    np.testing.assert_array_equal(
        short["sample_stats"]["f_leaves"], nuts_idata["sample_stats"]["f_leaves"]
    )


def test_deterministics_and_forests_belong_to_the_same_draw():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=3)
        a = pm.Normal("a")
        mean = pm.Deterministic("mean", f + 2 * a)
        pm.Normal("y", mean, 0.2, observed=Y)
    posterior = sample_plainly(model, draws=5)["posterior"]
    np.testing.assert_allclose(
        posterior["mean"], posterior["f"].values + 2 * posterior["a"].values[..., None]
    )


@pytest.mark.parametrize("initvals", ["dict", "list", "argument"])
def test_chains_start_from_trees_that_follow_initial_values(model, monkeypatch, initvals):
    start = 50.0 - 3.0 * Y
    seen = []
    original = Likelihood.gradient_curvature

    def spy(self, f, point, row=0):
        seen.append(np.array(f))
        return original(self, f, point, row)

    monkeypatch.setattr(Likelihood, "gradient_curvature", spy)
    if initvals == "argument":
        with pm.Model() as model:
            f = XBARTForest("f", X, y=Y, num_trees=8, initval=start)
            pm.Normal("y", f, 0.2, observed=Y)
    given = {"dict": {"f": start}, "list": [{"f": start}], "argument": None}[initvals]
    once = {"sweeps_per_draw": 1}
    sample_plainly(model, initvals=given, tune=0, draws=1, xbart=once)
    assert len(seen) == 1
    assert correlation(seen[0], start) > 0.7
    assert abs(seen[0].mean() - start.mean()) < 2.0


def test_initial_values_matter_no_longer_after_the_burn_in(model):
    idata = sample_plainly(model, initvals={"f": 50.0 - 3.0 * Y})
    assert correlation(posterior_mean(idata), TRUTH) > 0.9


COMPILERS = [
    "numba",
    pytest.param("c", marks=pytest.mark.skipif(not pytensor.config.cxx, reason="no C++ compiler")),
    "fast_compile",
]


@pytest.mark.parametrize("backend", COMPILERS)
def test_backends_of_pymc_agree(model, idata, backend):
    other = sample(model, chains=2, backend=backend)
    # Sums in another order may differ in the last bits, and must not by more.
    np.testing.assert_allclose(other["posterior"]["f"], idata["posterior"]["f"], rtol=1e-9)


def test_single_precision():
    with pytensor.config.change_flags(floatX="float32"):
        model = make_model(noise=None)
        start = {"f": Y.astype("float32")}
        idata = sample_plainly(model, chains=2, cores=2, initvals=start)
    assert idata["posterior"]["f"].dtype == np.float32
    assert correlation(posterior_mean(idata), TRUTH) > 0.9
    assert (idata["sample_stats"]["f_leaves"] > 1.5).all(), "the trees have been lost"


def test_replaced_data_with_more_rows_are_sampled_in_the_same_model():
    model = make_model()
    first = sample_plainly(model)
    more = np.vstack([X, -X, X + 0.1])
    y = np.concatenate([Y, Y, Y])
    with model:
        names = {"pupil": np.arange(3 * N)}
        pm.set_data({"X": more, "y_data": y}, coords=names)
    second = sample_plainly(model)
    assert second["posterior"]["f"].shape == (1, 25, 3 * N)
    assert second["posterior"].sizes["pupil"] == 3 * N
    assert correlation(posterior_mean(second)[:N], TRUTH) > 0.5
    with model:
        pm.set_data({"X": X, "y_data": Y}, coords={"pupil": model.coords["pupil"][:N]})
    assert_same_draws(sample_plainly(model), first)


REPLACED = {
    "X": -X,
    "mu": 1.0,
    "sigma": 2.0,
    "weights": np.arange(1.0, X.shape[1] + 1.0),
}


@pytest.mark.parametrize("what", REPLACED)
def test_a_step_is_not_used_on_with_data_that_it_has_not_read(what):
    with pm.Model() as model:
        mu, sigma = pm.Data("mu", 0.0), pm.Data("sigma", 1.0)
        weights = pm.Data("weights", np.ones(X.shape[1]))
        how = {"mu": mu, "sigma": sigma, "split_weights": weights, "num_trees": 3}
        y = pm.Data("y_data", np.zeros(N))
        pm.Normal("y", XBARTForest("f", pm.Data("X", X), **how), 0.3, observed=y)
        step = XBARTStep(compile_kwargs={"mode": PLAIN})
        few = {"step": step, "tune": 2, "draws": 2}
        sample_plainly(model, **few)
        pm.set_data({"y_data": np.ones(N)})  # the likelihood reads its data anew
        sample_plainly(model, **few)
        pm.set_data({what: REPLACED[what]})
        with pytest.raises(SamplingError, match=rf"Data behind the forest 'f' \({what}\)"):
            sample_plainly(model, **few)


def test_interventions_on_anything_are_sampled(nuts_model):
    fixed_noise = sample_plainly(pm.do(nuts_model, {"noise": 0.2}))
    assert list(fixed_noise["posterior"].data_vars) == ["f"]
    assert correlation(posterior_mean(fixed_noise), TRUTH) > 0.9
    fixed_forest = sample_plainly(pm.do(nuts_model, {"f": TRUTH}), tune=100)
    assert list(fixed_forest["posterior"].data_vars) == ["noise"]
    assert 0.1 < fixed_forest["posterior"]["noise"].mean() < 0.4
    other_columns = sample_plainly(pm.do(nuts_model, {"X": X[:, [1, 1]]}))
    assert correlation(posterior_mean(other_columns), TRUTH) < 0.9


def test_observing_afterwards_is_observing():
    def rest(**kwargs):
        with pm.Model() as model:
            f = XBARTForest("f", X, y=Y, num_trees=8)
            pm.Normal("y", f, 0.2, **kwargs)
        return model

    late = sample_plainly(pm.observe(rest(), {"y": Y}))
    assert_same_draws(late, sample_plainly(rest(observed=Y)))
