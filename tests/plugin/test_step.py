"""`XBARTStep` as PyMC drives it: assignment, state, points, statistics, progress bar, pickling."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.exceptions import SamplingError
from pymc.sampling.mcmc import assign_step_methods
from pymc.step_methods import NUTS, CompoundStep
from pymc.step_methods.compound import Competence

from pymc_xbart.forest.prior import TreeSettings, tree_prior
from pymc_xbart.forest.views import find_views
from pymc_xbart.kernels import encode, find_leaves
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.ensemble import Ensemble
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, correlation, sample_plainly

N = 24
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Z = np.arange(N) % 2
Y = 5.0 + X[:, 0] + Z * X[:, 1] + RNG.normal(scale=0.3, size=N)


@pytest.fixture(scope="module")
def model():
    """A forest, two more over one X, and a variable that is none."""
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=4)
        k = XBARTForest("k", X, sigma=1.0, num_trees=3, shape=(2, N))
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f + k[0] + Z * k[1], noise, observed=Y)
    return model


def make_step(model, *args, seed=1, **kwargs):
    """A step at the beginning of a chain with 3 tuning draws."""
    with model:
        step = XBARTStep(*args, compile_kwargs={"mode": PLAIN}, **kwargs)
    step.setup_chain(np.random.default_rng(seed), tune=3, draws=100)
    return step


def walk(step, point, num_draws):
    """Points that a step goes through."""
    points = []
    for _ in range(num_draws):
        point, _ = step.step(point)
        points.append(point)
    return points


def assert_same_points(points, others):
    for point, other in zip(points, others, strict=True):
        assert point.keys() == other.keys()
        for name in point:
            np.testing.assert_array_equal(point[name], other[name])


def test_pm_sample_gives_forests_this_step_and_nuts_the_rest(model):
    _, selected = assign_step_methods(model)
    names = {step: [value.name for value in values] for step, values in selected.items()}
    assert names == {XBARTStep: ["f", "k"], NUTS: ["noise_log__"]}


def test_competence_is_for_forests_alone(model):
    assert XBARTStep.competence(model["f"], False) is Competence.IDEAL
    assert XBARTStep.competence(model["noise"], True) is Competence.INCOMPATIBLE


@pytest.mark.parametrize(
    ("choose", "names"),
    [
        (lambda m: [m["f"]], ["f"]),
        (lambda m: m["k"], ["k"]),
        (lambda m: [m.rvs_to_values[m["k"]], m["f"]], ["k", "f"]),
        (lambda _: None, ["f", "k"]),
    ],
    ids=["random", "single", "values", "none"],
)
def test_forests_may_be_named_in_every_way_of_pymc(model, choose, names):
    step = make_step(model, choose(model))
    assert step.vars == [model.rvs_to_values[model[name]] for name in names]
    before = model.initial_point()
    [after] = walk(step, before, 1)
    moved = [name for name in before if not np.array_equal(before[name], after[name])]
    assert moved == sorted(names)


def test_all_forests_are_the_default(model):
    assert [value.name for value in make_step(model).vars] == ["f", "k"]


@pytest.mark.parametrize("names", [["noise"], ["f", "noise"]])
def test_other_variables_are_refused_by_name(model, names):
    with pytest.raises(TypeError, match="only update XBARTForest variables, but got noise"):
        make_step(model, [model[name] for name in names])


def test_observed_and_foreign_variables_are_refused_by_name(model):
    with pytest.raises(ValueError, match=r"not random variables in the model: \['y'\]"):
        make_step(model, [model["y"]])


def test_model_without_a_forest_is_refused():
    with pm.Model() as bare:
        pm.Normal("a")
    with pytest.raises(ValueError, match="no XBARTForest, so there is nothing"):
        make_step(bare)


@pytest.mark.parametrize("correction", ["forest", None])
def test_corrections_that_do_not_exist_are_refused(model, correction):
    message = f"correction is {correction!r}, but must be one of 'tree', 'sweep', 'none'"
    with pytest.raises(ValueError, match=message):
        make_step(model, correction=correction)
    with pytest.raises(ValueError, match=message):
        sample_plainly(model, xbart={"correction": correction})


def test_options_come_through_pm_sample(model):
    # What pays no heed to the option accepts some trees and rejects others.
    stats = sample_plainly(model, xbart={"correction": "none"})["sample_stats"]
    assert (stats["f_acceptance"] == 1.0).all()
    stats = sample_plainly(model, xbart={"correction": "sweep"})["sample_stats"]
    assert set(np.unique(stats["f_acceptance"])) <= {0.0, 1.0}
    assert (stats["f_acceptance"] == 0.0).any()


def test_unblocked_steps_share_the_work(model):
    step = make_step(model, [model["f"], model["k"]], blocked=False)
    assert isinstance(step, CompoundStep)
    assert [value.name for method in step.methods for value in method.vars] == ["f", "k"]
    [point] = walk(step, model.initial_point(), 1)
    assert np.unique(point["f"]).size > 1
    assert np.unique(point["k"]).size > 1


def test_each_forest_sees_the_others_move(model, monkeypatch):
    seen = []
    original = Likelihood.gradient_curvature

    def spy(self, f, point, row=0):
        seen.append((f.copy(), point["f"].copy(), row))
        return original(self, f, point, row)

    monkeypatch.setattr(Likelihood, "gradient_curvature", spy)
    [point] = walk(make_step(model), model.initial_point(), 1)
    (_, _, _), (k_before, f_seen, row), (k_between, _, last_row) = seen
    np.testing.assert_array_equal(f_seen, point["f"])
    assert (row, last_row) == (0, 1)
    np.testing.assert_array_equal(k_before, np.zeros((2, N)))
    np.testing.assert_array_equal(k_between, [point["k"][0], np.zeros(N)])


def test_state_continues_a_run_bit_for_bit(model):
    step = make_step(model)
    point = walk(step, model.initial_point(), 4)[-1]
    step.stop_tuning()
    state = step.sampling_state
    expected = walk(step, point, 4)
    other = make_step(model, seed=2)
    other.sampling_state = state
    assert not other.tune
    assert_same_points(walk(other, point, 4), expected)
    # Nor has the run that went on changed the state that it had handed out.
    other.sampling_state = state
    assert_same_points(walk(other, point, 4), expected)


def test_points_are_neither_changed_nor_kept(model):
    expected = walk(make_step(model), model.initial_point(), 4)
    # As in a worker process, where each new point is written over the last one.
    step = make_step(model)
    shared = {name: value.copy() for name, value in model.initial_point().items()}
    points = []
    for _ in range(4):
        for value in shared.values():
            value.setflags(write=False)
        new, _ = step.step(shared)
        points.append({name: value.copy() for name, value in new.items()})
        for name, value in shared.items():
            value.setflags(write=True)
            value[...] = new[name]
        for name in ("f", "k"):
            new[name][...] = np.nan
    assert_same_points(points, expected)


def test_initial_trees_follow_initial_values(model, monkeypatch):
    seen = []

    def spy(self, f, point, row=0):
        seen.append(f.copy())
        return np.zeros(N), np.zeros(N)

    monkeypatch.setattr(Likelihood, "gradient_curvature", spy)
    step = make_step(model, sweeps_per_draw=1)
    point = model.initial_point()
    for jump in (Y, 20.0 - Y):  # at the start of a chain, and when something else has moved f
        step.step(point | {"f": jump})
        assert correlation(seen[-3], jump) > 0.8
        assert abs(seen[-3].mean() - jump.mean()) < 1.0


def test_forests_of_random_scale_start_from_prior_draws_in_used_steps_too(monkeypatch):
    # Next to trees without leaf values, the conditional of the scale lies at zero.
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=pm.HalfNormal("scale"), num_trees=4)
        pm.Normal("y", f, 1.0, observed=Y - 5.0)
    seen = []

    def spy(self, f, point, row=0):
        seen.append(f.copy())
        return np.zeros(N), np.zeros(N)

    monkeypatch.setattr(Likelihood, "gradient_curvature", spy)
    step = make_step(model)
    first = walk(step, model.initial_point(), 3)
    step.setup_chain(np.random.default_rng(2), tune=3, draws=100)
    walk(step, model.initial_point(), 3)
    fresh, used = seen[0], seen[3]
    assert np.unique(fresh).size > 1
    assert np.unique(used).size > 1
    assert not np.array_equal(used, first[-1]["f"])


def make_ensemble(X, num_trees=50, mu=7.0):
    X = np.asarray(X, dtype=float)
    prior = tree_prior(
        TreeSettings(num_trees=num_trees),
        sigma=2.0,
        split_weights=np.ones(X.shape[1]),
        num_rows=X.shape[0],
    )
    return Ensemble(encode(X), find_views(X), prior, mu, num_trees)


def test_trees_follow_values_as_closely_as_the_noise_that_stands_in(rng):
    f = 7.0 + 2.0 * np.sin(2.0 * X[:, 0])
    ensemble = make_ensemble(X)
    values = ensemble.start(f, ensemble.prior, rng).f
    noise = np.sqrt(ensemble.prior.leaf_var)
    assert np.std(values - f) < 1.5 * noise < 0.4 * np.std(f)


def test_prior_mean_needs_no_trees_and_no_chance(rng):
    ensemble = make_ensemble(X)
    before = rng.bit_generator.state
    state = ensemble.start(np.full(N, 7.0), ensemble.prior, rng)
    np.testing.assert_array_equal(state.f, np.full(N, 7.0))
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("bad", [np.nan, -np.inf, 1e200])
def test_values_that_no_trees_can_follow_are_refused(model, bad):
    point = model.initial_point()
    point["k"] = np.zeros((2, N))
    point["k"][1, [3, 5]] = bad
    with pytest.raises(SamplingError, match=r"'k' is not finite, or too large.* in rows 3 and 5 "):
        make_step(model, [model["k"]]).step(point)


def leaves_and_depth(state):
    """Leaves per tree and depth of the deepest leaf, averaged over the trees of a forest."""
    forest = state.forest
    depths = []
    for start, stop in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        left = forest.left[start:stop]
        depth = np.zeros(left.size, dtype=int)
        for node in np.flatnonzero(left >= 0):
            depth[left[node] : left[node] + 2] = depth[node] + 1
        depths.append(depth.max())
    num_trees = forest.tree_start.size - 1
    return (forest.column < 0).sum() / num_trees, np.mean(depths)


def test_statistics_are_numbers_that_describe_the_trees(model):
    step = make_step(model, store_trees=False)
    names = [f"{forest}_{what}" for forest in "fk" for what in ("leaves", "depth", "acceptance")]
    kinds = step.stats_dtypes_shapes
    assert kinds.keys() == {"tune", "warning", *names}
    assert all(kinds[name] == (np.float64, []) for name in names)
    assert step.stats_dtypes == [{name: dtype for name, (dtype, _) in kinds.items()}]
    point = model.initial_point()
    for _ in range(3):
        point, [stats] = step.step(point)
    assert stats.keys() == kinds.keys()
    assert all(type(stats[name]) is float for name in names)
    [f] = step.forests["f"]
    assert (stats["f_leaves"], stats["f_depth"]) == leaves_and_depth(f)
    both = np.mean([leaves_and_depth(state) for state in step.forests["k"]], axis=0)
    np.testing.assert_allclose((stats["k_leaves"], stats["k_depth"]), both)


def test_an_interrupt_within_a_sweep_leaves_no_trees_of_two_forests(model, monkeypatch):
    step = make_step(model)
    [point] = walk(step, model.initial_point(), 1)
    sweep = Ensemble.sweep

    def interrupted(*args):
        sweep(*args)  # overwrites the leaves that the rows are in
        raise KeyboardInterrupt

    monkeypatch.setattr(Ensemble, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step.step(point)
    monkeypatch.setattr(Ensemble, "sweep", sweep)
    assert set(step.forests) == {"k"}  # the other had not begun
    step.setup_chain(np.random.default_rng(1), tune=0, draws=10)
    [after] = walk(step, point, 1)
    for state in step.forests["f"]:
        leaves = find_leaves(state.forest, step._targets[0].ensembles[0].design.codes)
        np.testing.assert_array_equal(state.leaf_of_row, leaves)
        np.testing.assert_array_equal(state.f, after["f"])


def test_tuning_ends_when_pymc_says_so(model):
    step = make_step(model)
    _, [stats] = step.step(model.initial_point())
    assert stats["tune"] is True
    step.stop_tuning()
    _, [stats] = step.step(model.initial_point())
    assert stats["tune"] is False
    step.setup_chain(np.random.default_rng(1), tune=3, draws=3)
    assert step.tune is True


def test_progress_bar_has_columns_for_each_forest(model):
    step = make_step(model)
    columns, start = step._progressbar_config(n_chains=2)
    headers = [column.get_table_column().header for column in columns]
    assert headers == ["f leaves", "f accepted", "k leaves", "k accepted"]
    assert list(start.values()) == 4 * [["-", "-"]]
    # PyMC puts the fields of all steps together.
    alone = [make_step(model, model[name])._progressbar_config()[1] for name in "fk"]
    assert {**alone[0], **alone[1]}.keys() == start.keys()
    [update] = step._make_progressbar_update_functions()
    names = ["f_leaves", "f_acceptance", "k_leaves", "k_acceptance"]
    stats = dict(zip(names, (2.345, 0.5, 10.0, 1.0), strict=True))
    shown = dict(zip(start, ("2.3", "0.50", "10.0", "1.00"), strict=True))
    assert update(stats | {"tune": True, "f_depth": 1.0}) == shown


def test_pickled_steps_go_on_bit_for_bit(model):
    step = make_step(model)
    point = walk(step, model.initial_point(), 2)[-1]
    twin = cloudpickle.loads(cloudpickle.dumps(step))
    assert_same_points(walk(twin, point, 3), walk(step, point, 3))


def test_pickles_leave_the_scratch_behind():
    ensemble = make_ensemble(np.arange(5000.0)[:, None])
    needed = sum(array.nbytes for array in ensemble.design)
    assert needed < len(pickle.dumps(ensemble)) < needed + 2000
    assert len(pickle.dumps(vars(ensemble))) > 3 * needed, "the scratch is too small to be missed"


def test_forest_without_likelihood_is_announced_before_sampling():
    with pm.Model() as model:
        XBARTForest("used", X, sigma=1.0, num_trees=2)
        XBARTForest("unused", X, sigma=1.0, num_trees=2)
        pm.Normal("y", model["used"], 1.0, observed=Y)
    with pytest.warns(UserWarning, match="depends on the forest 'unused'.* prior") as caught:
        make_step(model)
    assert len(caught) == 1
