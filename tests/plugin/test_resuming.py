"""A step method's state is all that a chain needs to go on, and a finished run can be gone on from.

PyMC takes `sampling_state` apart from the model and the point; whoever has all three can go on.
"""

import pickle
from functools import cache

import numpy as np
import pymc as pm
import pytest
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pymc.step_methods import CompoundStep
from pymc.step_methods.state import equal_dataclass_values

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.ensemble import Ensemble
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.kept import text_at_hand, texts
from tests.helpers.runs import PLAIN, sample_plainly

N = 40
TUNE = 8
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 3))
Y = 5.0 + np.sin(2.0 * X[:, 0]) + RNG.normal(scale=0.2, size=N)


def forest_alone():
    f = XBARTForest("f", X, y=Y, num_trees=6)
    pm.Normal("y", f, 0.2, observed=Y)


def two_forests_beside_nuts():
    f = XBARTForest("f", X, y=Y, num_trees=4)
    k = XBARTForest("k", X, sigma=1.0, num_trees=3, shape=(2, N))
    noise = pm.HalfNormal("noise", 1.0)
    pm.Normal("y", f + k[0] + np.arange(N) % 2 * k[1], noise, observed=Y)


def random_hyperparameters():
    scale = pm.HalfNormal("scale", 1.0)
    weights = pm.Dirichlet("weights", np.ones(3))
    f = XBARTForest("f", X, mu=5.0, sigma=scale, split_weights=weights, num_trees=6)
    pm.Normal("y", f, 0.2, observed=Y)


MODELS = {
    "alone": forest_alone,
    "nuts": two_forests_beside_nuts,
    "hyperparameters": random_hyperparameters,
}


@cache
def build(kind, number):
    """A model, the step methods that `pm.sample` gives it, and their state before any draw.

    Another number is another model, as another process would make it.
    """
    with pm.Model() as model:
        MODELS[kind]()
    _, selected = assign_step_methods(model)
    steps = instantiate_steppers(model, [], selected, compile_kwargs={"mode": PLAIN})
    step = CompoundStep(steps) if isinstance(steps, list) else steps
    return model, step, step.sampling_state


def first(kind, seed=1):
    """A model and its steps at the beginning of a chain."""
    model, step, unused = build(kind, 0)
    step.sampling_state = unused
    step.setup_chain(np.random.default_rng(seed), tune=TUNE, draws=10)
    return model, step


def second(kind):
    """The steps of another model of the same kind, that have not been told of any chain."""
    _, step, unused = build(kind, 1)
    step.sampling_state = unused
    return step


def walk(step, point, numbers):
    """Points of the draws of these numbers, tuning included."""
    points = []
    for number in numbers:
        if number == TUNE:
            step.stop_tuning()
        point, _ = step.step(point)
        point = {name: np.array(value) for name, value in point.items()}
        points.append(point)
    return points


def assert_same_points(points, others):
    for point, other in zip(points, others, strict=True):
        assert point.keys() == other.keys()
        for name in point:
            np.testing.assert_array_equal(point[name], other[name])


# Before the first draw, in the uncorrected half of tuning, in the corrected one, and after it.
@pytest.mark.parametrize("done", [0, 2, 6, 10])
@pytest.mark.parametrize("kind", MODELS)
def test_saved_states_go_on_bit_for_bit(kind, done):
    model, step = first(kind)
    start = {name: np.array(value) for name, value in model.initial_point().items()}
    point = (walk(step, start, range(done)) or [start])[-1]
    saved = pickle.dumps(step.sampling_state)
    uninterrupted = walk(step, point, range(done, 14))
    other = second(kind)
    other.sampling_state = pickle.loads(saved)
    assert_same_points(walk(other, point, range(done, 14)), uninterrupted)


def test_without_its_state_a_step_goes_another_way():
    model, step = first("alone")
    point = walk(step, model.initial_point(), range(10))[-1]
    uninterrupted = walk(step, point, range(10, 14))
    other = second("alone")
    other.setup_chain(np.random.default_rng(1), tune=TUNE, draws=10)
    others = walk(other, point, range(10, 14))
    assert not np.array_equal(others[0]["f"], uninterrupted[0]["f"])


def test_other_steps_are_told_of_the_trees_of_a_restored_state(monkeypatch):
    # Without, the scale is drawn as if the trees of another chain were there.
    model, step = first("hyperparameters")
    point = walk(step, model.initial_point(), range(10))[-1]
    state = step.sampling_state
    uninterrupted = walk(step, point, [10])
    other = second("hyperparameters")
    other.setup_chain(np.random.default_rng(2), tune=TUNE, draws=10)
    with monkeypatch.context() as patch:
        patch.setattr(XBARTStep, "_publish", lambda _: None)
        other.sampling_state = state
    [broken] = walk(other, point, [10])
    assert broken["scale_log__"] != uninterrupted[0]["scale_log__"]


@pytest.mark.parametrize("kind", MODELS)
def test_states_come_back_as_they_were(kind):
    model, step = first(kind)
    walk(step, model.initial_point(), range(3))
    state = step.sampling_state
    again = pickle.loads(pickle.dumps(state))
    assert equal_dataclass_values(state, again)
    other = second(kind)
    assert not equal_dataclass_values(other.sampling_state, state)
    other.sampling_state = again
    assert equal_dataclass_values(other.sampling_state, state)


def test_states_are_copies():
    model, step = first("alone")
    point = walk(step, model.initial_point(), range(3))[-1]
    state = step.sampling_state
    before = pickle.dumps(state)
    walk(step, point, range(3, 10))
    assert pickle.dumps(state) == before


def test_states_of_other_variables_are_refused():
    _, step = first("alone")
    with pm.Model():
        g = XBARTForest("g", X, y=Y, num_trees=6)
        pm.Normal("y", g, 0.2, observed=Y)
        other = XBARTStep(compile_kwargs={"mode": PLAIN})
    with pytest.raises(ValueError, match=r"Expected \['g'\] but got \['f'\]"):
        other.sampling_state = step.sampling_state


def trees_swept_first(model, names, **kwargs):
    """Text of the trees that each forest's first sweep of a run replaces."""
    original = XBARTStep._trees_behind
    seen = {}

    def spy(self, target, value, priors):
        states = original(self, target, value, priors)
        seen.setdefault(target.name, target.write(states))
        return states

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(XBARTStep, "_trees_behind", spy)
        sample_plainly(model, tune=0, draws=2, random_seed=2, **kwargs)
    return [seen[name] for name in names]


@pytest.mark.parametrize("kind", MODELS)
def test_finished_runs_are_gone_on_from_with_their_step_and_last_draw(kind):
    model, *_ = build(kind, 0)
    names = [name for name in ("f", "k") if name in model.named_vars]
    with model:
        step = XBARTStep(compile_kwargs={"mode": PLAIN})
    run = sample_plainly(model, step=step)
    last = [texts(run, name)[0, -1] for name in names]
    assert [text_at_hand(step, name) for name in names] == last
    posterior = run["posterior"].isel(chain=0, draw=-1)
    initvals = {rv.name: posterior[rv.name].values for rv in model.free_RVs}
    assert trees_swept_first(model, names, step=step, initvals=initvals) == last
    # The value is what counts: trees that don't add up to it are not gone on from.
    initvals["f"] = initvals["f"] + 0.1
    assert trees_swept_first(model, names, step=step, initvals=initvals)[0] != last[0]


def test_without_initial_values_a_used_step_begins_anew():
    model, *_ = build("alone", 0)
    with model:
        step = XBARTStep(compile_kwargs={"mode": PLAIN})
    runs = [sample_plainly(model, step=step) for _ in range(2)]
    np.testing.assert_array_equal(runs[0]["posterior"]["f"], runs[1]["posterior"]["f"])


def test_a_chain_that_is_gone_on_from_is_not_swept_uncorrected_again(monkeypatch):
    model, step = first("alone")
    point = walk(step, model.initial_point(), range(6))[-1]
    state = step.sampling_state
    other = second("alone")
    other.sampling_state = state
    seen = []
    original = Ensemble.sweep
    monkeypatch.setattr(
        Ensemble, "sweep", lambda *args: seen.append(args[-1].kind) or original(*args)
    )
    walk(other, point, range(6, 10))
    assert set(seen) == {"tree"}
