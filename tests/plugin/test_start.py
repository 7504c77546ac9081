"""`XBARTStep(start=...)`: chains start at trees of another fit, and are ordinary chains from there.

Whether trees are the same is asked of their text, which holds every cut and leaf value to the last
bit.
"""

import arviz as az
import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.util import get_random_generator

from pymc_xbart.forest.regressor import XBARTRegressor
from pymc_xbart.forest.stored import read_draw
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.ensemble import Ensemble
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.start import number_of_chain
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.check import check_forest
from tests.helpers.kept import text_at_hand, texts
from tests.helpers.runs import PLAIN, correlation, sample_plainly

N = 60
CHAINS = 3
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = 5.0 + np.sin(2.0 * X[:, 0]) + RNG.normal(scale=0.2, size=N)


def make_model(X=X, y=Y, noise=0.2, num_trees=6, **kwargs):
    scale = {} if "sigma" in kwargs else {"y": y}
    with pm.Model() as model:
        f = XBARTForest("f", X, **scale, **kwargs, num_trees=num_trees)
        sd = pm.HalfNormal("noise", 1.0) if noise is None else noise
        pm.Normal("y", f, sd, observed=y)
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def nuts_model():
    return make_model(noise=None)


@pytest.fixture(scope="module")
def idata(model):
    """A run to start from."""
    return sample_plainly(model, chains=CHAINS, draws=5)


def make_step(model, start, **kwargs):
    with model:
        return XBARTStep(start=start, compile_kwargs={"mode": PLAIN}, **kwargs)


def set_up(step, seed=1, tune=30, chains=CHAINS):
    """What a step has at hand at the beginning of each chain, as `pm.sample` prepares it."""
    for rng in get_random_generator(seed).spawn(chains):
        before = step.sampling_state
        step.setup_chain(rng, tune=tune, draws=10)
        yield step
        step.sampling_state = before


def starts(model, start, name="f", **kwargs):
    """Text that each chain starts from."""
    return [text_at_hand(step, name) for step in set_up(make_step(model, start), **kwargs)]


def start_of(model, start, name="f"):
    """Ensembles of a forest, and the states that the first chain starts from."""
    step = next(set_up(make_step(model, start)))
    [target] = [target for target in step._targets if target.name == name]
    return target.ensembles, step.forests[name]


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("kind", ["alone", "nuts"])
def test_first_draw_is_the_last_forest_of_the_same_chain(request, idata, kind, cores):
    model = request.getfixturevalue("model" if kind == "alone" else "nuts_model")
    step = make_step(model, idata)
    run = sample_plainly(model, chains=CHAINS, cores=cores, step=step, tune=0, draws=4)
    last = texts(idata)[:, -1]
    assert len(set(last)) == CHAINS
    assert texts(run)[:, 0].tolist() == last.tolist()
    np.testing.assert_array_equal(
        run["posterior"]["f"].isel(draw=0), idata["posterior"]["f"].isel(draw=-1)
    )
    assert (run["sample_stats"]["f_acceptance"].isel(draw=0) == 0.0).all()
    for stat in ("f_leaves", "f_depth"):
        np.testing.assert_array_equal(
            run["sample_stats"][stat].isel(draw=0), idata["sample_stats"][stat].isel(draw=-1)
        )
    # From there on they are draws like others.
    assert (run["sample_stats"]["f_acceptance"].isel(draw=slice(1, None)) > 0.0).any()


@pytest.mark.parametrize(
    "seed",
    [1, None, [1, 2, 3], np.random.SeedSequence(4), np.random.default_rng(5).spawn(2)[1]],
)
def test_generators_know_the_number_of_their_chain(seed):
    for chain, rng in enumerate(get_random_generator(seed).spawn(4)):
        assert number_of_chain(rng, is_alone=True) == chain
        for spawned in rng.spawn(2):
            assert number_of_chain(spawned, is_alone=False) == chain


def test_chains_beyond_those_of_the_run_begin_anew_with_its_first(model, idata):
    last = texts(idata)[:, -1].tolist()
    assert starts(model, idata, chains=5) == [*last, *last[:2]]


def test_chains_start_there_again_when_a_step_is_used_again(model, idata):
    step = make_step(model, idata)
    runs = [sample_plainly(model, chains=2, step=step, tune=1, draws=3) for _ in range(2)]
    assert texts(runs[0]).tolist() == texts(runs[1]).tolist()


def test_the_run_itself_does_not_travel_to_worker_processes(model, idata):
    without, size = (len(cloudpickle.dumps(make_step(model, start))) for start in (None, idata))
    assert size - without < len(cloudpickle.dumps(idata)) / 2


SELECTIONS = {
    "statistics": (lambda idata: idata["sample_stats"].to_dataset(), [0, 1, 2], -1),
    "draws": (lambda idata: idata.isel(draw=slice(0, 2)), [0, 1, 2], 1),
    "chain": (lambda idata: idata.sel(chain=[1]), [1, 1, 1], -1),
    "one chain": (lambda idata: idata.sel(chain=2), [2, 2, 2], -1),
    "one draw": (lambda idata: idata.isel(chain=1, draw=3), [1, 1, 1], 3),
    "draw": (lambda idata: idata.sel(draw=2), [0, 1, 2], 2),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selections_start_at_their_own_last_draw(model, idata, selection):
    select, chains, draw = SELECTIONS[selection]
    assert starts(model, select(idata)) == texts(idata)[chains, draw].tolist()


def test_extracted_samples_start_all_chains_at_the_last_one(model, idata):
    extracted = az.extract(idata, group="sample_stats", keep_dataset=True, random_seed=1)
    last = extracted["f_trees"].isel(sample=-1)
    assert starts(model, extracted) == [last.values.item()] * CHAINS


@pytest.fixture(scope="module")
def longer():
    """The rows of the model, and some more: few enough that each cut stays a candidate."""
    more = np.vstack([X, np.random.default_rng(2).normal(size=(30, 2))])
    return more, make_model(more, 5.0 + np.sin(2.0 * more[:, 0]))


def test_among_more_rows_f_starts_where_it_was_at_the_old_ones(longer, idata):
    more, model = longer
    [ensemble], [state] = start_of(model, idata)
    check_forest(*state[:2], ensemble.design, ensemble.prior, more)
    step = make_step(model, idata)
    run = sample_plainly(model, chains=CHAINS, step=step, tune=0, draws=4)
    # Up to rounding, since the mean of y, which is mu, is another.
    last = idata["posterior"]["f"].values[:, -1]
    np.testing.assert_allclose(run["posterior"]["f"].values[:, 0, :N], last, rtol=1e-13)
    assert run["posterior"]["f"].shape[-1] == N + 30


HYPERPARAMETERS = {
    "sigma": {"mu": float(np.mean(Y)), "sigma": 3.0},
    "alpha": {"alpha": 0.5, "beta": 3.0},
    "cutpoints": {"num_cutpoints": 2},
    "leaves": {"min_samples_leaf": 9},
    "depth": {"max_depth": 1},
    "columns": {"split_weights": [0.0, 1.0]},
}


@pytest.mark.parametrize("change", HYPERPARAMETERS)
def test_trees_fit_other_hyperparameters(idata, change):
    model = make_model(**HYPERPARAMETERS[change])
    ensembles, states = start_of(model, idata)
    for ensemble, state in zip(ensembles, states, strict=True):
        check_forest(*state[:2], ensemble.design, ensemble.prior, X)
    stays = change in ("sigma", "alpha")
    assert (starts(model, idata) == texts(idata)[:, -1].tolist()) == stays
    run = sample_plainly(model, step=make_step(model, idata), tune=0, draws=4)
    assert (run["sample_stats"]["f_acceptance"].isel(draw=slice(1, None)) > 0.0).any()


def test_another_prior_mean_changes_f_by_nothing_but_rounding(idata):
    model = make_model(mu=3.0, sigma=1.0)
    [ensemble], [state] = start_of(model, idata)
    assert ensemble.mu == 3.0
    last = idata["posterior"]["f"].values[0, -1]
    np.testing.assert_allclose(state.f, last, rtol=1e-13)


@pytest.fixture(scope="module")
def scaled():
    with pm.Model() as model:
        f = XBARTForest("f", X, mu=5.0, sigma=pm.HalfNormal("scale"), num_trees=6)
        pm.Normal("y", f, 0.2, observed=Y)
    return model


def test_a_random_scale_sees_these_trees_and_not_draws_from_the_prior(scaled, idata):
    step = next(set_up(make_step(scaled, idata)))
    [target], [state] = step._targets, step.forests["f"]
    is_leaf = state.forest.left < 0
    published = target.hyperparameters._leaves[0].get_value()
    np.testing.assert_allclose(published, [is_leaf.sum(), 6 * np.sum(state.forest.value**2)])
    run = sample_plainly(scaled, step=make_step(scaled, idata), tune=0, draws=4)
    f, last = run["posterior"]["f"].values[0, 0], idata["posterior"]["f"].values[0, -1]
    np.testing.assert_allclose(f, last, rtol=1e-13)


@pytest.fixture(scope="module")
def several():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=6)
        k = XBARTForest("k", X, sigma=1.0, num_trees=3, shape=(2, N))
        pm.Normal("y", f + k[0] + np.arange(N) % 2 * k[1], 0.2, observed=Y)
    return model


def test_every_forest_starts_at_its_own_trees(several):
    run = sample_plainly(several, chains=CHAINS, draws=3)
    for name in "fk":
        assert starts(several, run, name) == texts(run, name)[:, -1].tolist()
    again = sample_plainly(
        several, chains=CHAINS, cores=2, step=make_step(several, run), tune=0, draws=3
    )
    for name in "fk":
        assert texts(again, name)[:, 0].tolist() == texts(run, name)[:, -1].tolist()
    split = make_step(several, run, vars=[several["f"], several["k"]], blocked=False)
    again = sample_plainly(several, chains=CHAINS, step=split, tune=0, draws=3)
    for name in "fk":
        assert texts(again, name)[:, 0].tolist() == texts(run, name)[:, -1].tolist()


@pytest.fixture(scope="module")
def regressor():
    return XBARTRegressor(num_trees=6, num_sweeps=10, burnin=5, random_state=1).fit(X, Y)


def test_each_chain_starts_at_another_sweep_of_a_regressor(model, regressor):
    step = make_step(model, regressor)
    run = sample_plainly(model, chains=4, step=step, tune=0, draws=4)
    first = run["posterior"]["f"].values[:, 0]
    sweeps = regressor.predict(X, return_draws=True)
    np.testing.assert_allclose(first, sweeps[[-1, -2, -3, -4]], rtol=1e-12)
    assert len(np.unique(first, axis=0)) == 4
    kept = [read_draw(text).forests[0].forest for text in texts(run)[:, 0]]
    for forest, sweep in zip(kept, regressor.forests_[::-1], strict=False):
        assert sorted(forest.column) == sorted(sweep.column)


def test_chains_beyond_the_sweeps_begin_anew_with_the_last(model, regressor):
    first = starts(model, regressor, chains=7)
    assert len(set(first[:5])) == 5
    assert first[5:] == first[:2]


def test_a_regressor_fits_named_columns_and_other_rows(regressor):
    names = ["a", "b"]
    table = pd.DataFrame(X, columns=names)
    named = XBARTRegressor(num_trees=6, num_sweeps=8, burnin=5, random_state=1).fit(table, Y)
    model = make_model(table[:40], Y[:40])
    for start in (named, regressor):
        [ensemble], [state] = start_of(model, start)
        check_forest(*state[:2], ensemble.design, ensemble.prior, X[:40])


def test_no_sweep_goes_uncorrected_then(model, idata, regressor, monkeypatch):
    seen = []
    original = Ensemble.sweep

    def spy(self, state, g, h, prior, rng, correction):
        seen.append(correction.kind)
        return original(self, state, g, h, prior, rng, correction)

    steps = [make_step(model, start) for start in (idata, regressor, None)]
    monkeypatch.setattr(Ensemble, "sweep", spy)
    for step in steps[:2]:
        sample_plainly(model, step=step, tune=12, draws=3)
    assert set(seen) == {"tree"}
    seen.clear()
    sample_plainly(model, step=steps[2], tune=12, draws=3)
    assert seen.count("none") == 6


def test_only_the_start_is_different(model, idata):
    # The chain is exact because its steps are those of any other: put another step where it starts,
    # and the two go the same way.
    step = next(set_up(make_step(model, idata)))
    point, _ = step.step(model.initial_point())
    ordinary = make_step(model, None)
    ordinary.sampling_state = step.sampling_state
    other = {name: value.copy() for name, value in point.items()}
    for _ in range(5):
        point, _ = step.step(point)
        other, _ = ordinary.step(other)
        np.testing.assert_array_equal(point["f"], other["f"])


def test_initial_values_come_first(model, idata):
    jump = 50.0 - 3.0 * Y
    seen = first_values(model, initvals={"f": jump}, step=make_step(model, idata))
    assert correlation(seen, jump) > 0.7
    assert correlation(seen, idata["posterior"]["f"].values[0, -1]) < 0.0


def first_values(model, **kwargs):
    """f before the first sweep of a run."""
    seen = []
    original = Likelihood.gradient_curvature

    def spy(self, f, point, row=0):
        seen.append(np.array(f))
        return original(self, f, point, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Likelihood, "gradient_curvature", spy)
        sample_plainly(model, tune=0, draws=1, **kwargs)
    return seen[0]
