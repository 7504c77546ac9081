"""Which sweeps of a run are corrected, and what is said when proposals are hardly ever accepted."""

import logging

import numpy as np
import pymc as pm
import pytest

from pymc_xbart.forest.correction import LOW_ACCEPTANCE
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.ensemble import Ensemble
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, sample_plainly

N = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + RNG.normal(scale=0.1, size=N)
SWEEP = {"correction": "sweep"}
ALL = {"regrow": 1.0}  # all trees are grown from the root, and tested


@pytest.fixture(scope="module")
def model():
    """So many trees under so little noise that a corrected sweep never replaces all of them."""
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=200)
        pm.Normal("y", f, 0.03, observed=Y)
    return model


def is_all_accepted(model, **kwargs):
    """Whether each sweep of each chain replaced every tree, (chains, tune + draws)."""
    idata = sample_plainly(model, draws=10, discard_tuned_samples=False, **kwargs)
    groups = ["warmup_sample_stats"] * (kwargs["tune"] > 0) + ["sample_stats"]
    return np.hstack([idata[group]["f_acceptance"].values == 1.0 for group in groups])


@pytest.mark.parametrize("xbart", [ALL, SWEEP, ALL | {"mtry": 1}], ids=["tree", "sweep", "mtry"])
@pytest.mark.parametrize(("tune", "num_first"), [(0, 0), (2, 1), (9, 4), (40, 15)])
def test_half_of_tuning_and_at_most_15_sweeps_are_uncorrected(model, xbart, tune, num_first):
    expected = np.arange(tune + 10) < num_first
    observed = is_all_accepted(model, tune=tune, chains=2, xbart=xbart)
    np.testing.assert_array_equal(observed, [expected, expected])


@pytest.mark.parametrize("mtry", [None, 1])
@pytest.mark.parametrize("tune", [0, 30])
def test_trees_are_accepted_as_rarely_as_this_rests_on(model, tune, mtry):
    # Of 200 trees that are accepted with probability 0.9, all are with probability 1e-9.
    stats = sample_plainly(model, tune=tune, draws=20, xbart=ALL | {"mtry": mtry})["sample_stats"]
    assert stats["f_acceptance"].max() < 0.9


def test_acceptance_is_that_of_the_trees_grown_from_the_root(model):
    # Five of 200 trees.
    xbart = {"regrow": 0.005, "sweeps_per_draw": 1}
    stats = sample_plainly(model, tune=0, draws=40, xbart=xbart)["sample_stats"]
    fifths = stats["f_acceptance"].values.ravel() * 5
    np.testing.assert_allclose(fifths, fifths.round(), atol=1e-12)
    assert 0 < fifths.mean() < 5


@pytest.mark.parametrize("likelihood", [pm.Normal, pm.Laplace])
def test_a_draw_of_three_sweeps_is_every_third_of_one(likelihood):
    with pm.Model() as alone:
        f = XBARTForest("f", X, y=Y, num_trees=5)
        likelihood("y", f, 0.1, observed=Y)

    def draws(number, sweeps_per_draw):
        xbart = {"sweeps_per_draw": sweeps_per_draw}
        return sample_plainly(alone, tune=0, draws=number, xbart=xbart)

    one, three = draws(12, 1), draws(4, 3)
    thirds = one.posterior["f"].values[:, 2::3]
    np.testing.assert_allclose(three.posterior["f"].values, thirds, rtol=1e-9, atol=1e-9)
    acceptance = one.sample_stats["f_acceptance"].values.reshape(-1, 4, 3).mean(-1)
    np.testing.assert_allclose(three.sample_stats["f_acceptance"].values, acceptance)


@pytest.mark.parametrize(
    ("likelihood", "num_trees", "expected"),
    [(pm.Normal, 50, 4), (pm.Normal, 200, 2), (pm.Normal, 800, 1), (pm.Laplace, 50, 1)],
)
def test_a_draw_takes_as_many_sweeps_as_the_rest_of_it_lasts(likelihood, num_trees, expected):
    with pm.Model():
        f = XBARTForest("f", X, y=Y, num_trees=num_trees)
        likelihood("y", f, 0.1, observed=Y)
        step = XBARTStep([f])
    (target,) = step._targets
    assert target.num_sweeps(step.correction) == expected
    assert target.num_sweeps(step.correction._replace(kind="none")) == 1


def test_the_number_of_sweeps_is_checked_before_sampling(model):
    with pytest.raises(ValueError, match="sweeps_per_draw is 0, but must be at least 1"):
        sample_plainly(model, xbart={"sweeps_per_draw": 0})


def test_a_share_of_trees_to_regrow_is_checked_before_sampling(model):
    with pytest.raises(ValueError, match=r"regrow is 1\.5, but must be above 0 and at most 1"):
        sample_plainly(model, xbart={"regrow": 1.5})


def test_without_correction_every_sweep_replaces_every_tree(model):
    assert is_all_accepted(model, tune=4, xbart={"correction": "none"}).all()


def stuck_messages(caplog):
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    messages = [record.getMessage() for record in warnings]
    return [message for message in messages if "hardly ever accepted" in message]


@pytest.mark.parametrize("cores", [1, 2])
def test_sweeps_that_are_never_accepted_are_told_of_after_sampling(model, caplog, cores):
    sample_plainly(model, xbart=SWEEP, chains=2, cores=cores, quiet=False, progressbar=False)
    message = (
        "Proposals for the trees of 'f' (0.000) were hardly ever accepted, so that the chain "
        "hardly moved. Use correction='tree', or fewer trees."
    )
    assert stuck_messages(caplog) == [message, message]  # one for each chain


def test_trees_that_are_often_accepted_are_not(model, caplog):
    sample_plainly(model, chains=2, quiet=False, progressbar=False)
    assert stuck_messages(caplog) == []


def last_warning(monkeypatch, rates):
    """What the last draw says if sweeps accept trees at given rates, 3 tuning ones first.

    `rates` has a row for each draw and a column for each of two forests, f and k.
    """
    with pm.Model() as model:
        f, k = (XBARTForest(name, X, sigma=1.0, num_trees=3) for name in "fk")
        pm.Normal("y", f + k, 0.1, observed=Y)
        step = XBARTStep(sweeps_per_draw=1, compile_kwargs={"mode": PLAIN})
    reports = iter(np.ravel(rates))
    original = Ensemble.sweep

    def sweep(self, *args):
        state, report = original(self, *args)
        return state, report._replace(acceptance=next(reports))

    monkeypatch.setattr(Ensemble, "sweep", sweep)
    step.setup_chain(np.random.default_rng(1), tune=3, draws=len(rates) - 3)
    point = model.initial_point()
    warnings = []
    for draw in range(len(rates)):
        if draw == 3:
            step.stop_tuning()
        point, [stats] = step.step(point)
        warnings.append(stats["warning"])
    assert warnings[:-1] == [None] * (len(rates) - 1)
    return warnings[-1]


def test_only_forests_below_the_limit_are_named(monkeypatch):
    warning = last_warning(monkeypatch, [[0.0, 0.0]] * 3 + [[LOW_ACCEPTANCE, 0.019]] * 4)
    assert warning.level == "warn"
    assert warning.message == (
        "Proposals for the trees of 'k' (0.019) were hardly ever accepted, so that the chain "
        "hardly moved. Use more trees, or a noise prior that allows for more noise."
    )


def test_all_forests_below_the_limit_are_named(monkeypatch):
    warning = last_warning(monkeypatch, [[1.0, 1.0]] * 3 + [[0.0, 0.001]] * 4)
    assert "the trees of 'f' (0.000), 'k' (0.001) were" in warning.message


def test_acceptance_in_tuning_is_no_reason_to_warn(monkeypatch):
    assert last_warning(monkeypatch, [[0.0, 0.0]] * 3 + [[1.0, 0.0], [0.5, 0.5]]) is None
