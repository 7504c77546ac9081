"""Other processes change no bit, and a fit leaves nothing behind: no memory, process or state."""

import ctypes
import gc
import multiprocessing
import os
import sys
import weakref
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from pymc.exceptions import SamplingError
from pymc.sampling.parallel import ParallelSamplingError
from pymc.step_methods import CompoundStep

import pymc_xbart as pxb
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.kept import texts
from tests.helpers.runs import PLAIN, sample_plainly

N = 40
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = 5.0 + np.sin(2.0 * X[:, 0]) + RNG.normal(scale=0.2, size=N)
PROC = Path("/proc")
on_linux = pytest.mark.skipif(not (PROC / "self" / "statm").exists(), reason="asks Linux")


def make_model(X=X, y=Y, num_trees=6):
    with pm.Model() as model:
        f = XBARTForest("f", X, y=y, num_trees=num_trees)
        pm.Normal("y", f, 0.2, observed=y)
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


def make_model_of_counts():
    """Two forests beside NUTS, under a log-probability that is quadratic in neither."""
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 1.0)
        f = XBARTForest("f", X, sigma=pm.HalfNormal("scale", 1.0), num_trees=6)
        g = XBARTForest("g", X[:10], sigma=0.5, num_trees=6)
        rate = pm.math.exp(level + f + g[np.arange(N) % 10])
        pm.NegativeBinomial("y", mu=rate, alpha=2.0, observed=np.arange(N) % 4)
    return model


@pytest.fixture(scope="module")
def idata(model):
    return sample_plainly(model, chains=2, draws=5)


def child_processes():
    """Command lines of all child processes, by process number, as the operating system has them."""
    children = {}
    for path in PROC.glob("[0-9]*"):
        try:
            # The name of a process, in brackets, may hold anything.
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            command = (path / "cmdline").read_text()
        except OSError:
            continue  # it has ended meanwhile
        if parent == os.getpid():
            children[path.name] = command
    return children


@on_linux
def test_child_processes_are_seen():
    child = multiprocessing.get_context("spawn").Process(target=sys.exit)
    child.start()
    assert str(child.pid) in child_processes()
    child.join()
    assert str(child.pid) not in child_processes()


START_METHODS = [
    pytest.param(
        method,
        marks=[pytest.mark.slow] * (method != "fork")
        + [
            pytest.mark.skipif(
                method not in multiprocessing.get_all_start_methods(), reason="not on this platform"
            )
        ],
    )
    for method in ("fork", "spawn", "forkserver")
]


@pytest.mark.parametrize("method", START_METHODS)
def test_forests_of_counts_beside_nuts_sample_in_other_processes(method):
    run = sample_plainly(make_model_of_counts(), chains=2, draws=5, cores=2, mp_ctx=method)
    for name in ("f", "g", "level", "scale"):
        first, second = run["posterior"][name].to_numpy()
        assert np.isfinite(first).all()
        assert (first != second).any()


@on_linux
@pytest.mark.parametrize("method", START_METHODS)
def test_every_way_to_start_processes_gives_the_same_trees_and_leaves_no_process(
    model, idata, method
):
    before = child_processes()
    run = sample_plainly(model, chains=2, draws=5, cores=2, mp_ctx=method)
    assert texts(run).tolist() == texts(idata).tolist()
    np.testing.assert_array_equal(run["posterior"]["f"], idata["posterior"]["f"])
    assert multiprocessing.active_children() == []
    left = [command for pid, command in child_processes().items() if pid not in before]
    # Python's own helpers of these methods, one of each, stay until the end of the program.
    helpers = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
    assert [command for command in left if not any(name in command for name in helpers)] == []


@on_linux
def test_runs_that_fail_or_are_interrupted_leave_no_process(model, monkeypatch):
    before = child_processes()

    def interrupt(trace, draw):
        if draw.draw_idx == 20:
            raise KeyboardInterrupt

    sample_plainly(model, chains=2, cores=2, mp_ctx="fork", callback=interrupt)
    assert child_processes() == before

    def fail(self, f, point, row=0):
        msg = "as on purpose"
        raise SamplingError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(Likelihood, "gradient_curvature", fail)
        with pytest.raises(ParallelSamplingError, match="as on purpose"):
            sample_plainly(model, chains=2, cores=2, mp_ctx="fork")
    assert child_processes() == before
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("first", ["model", "idata"])
def test_model_and_draws_can_be_deleted_in_any_order(first):
    model = make_model()
    idata = sample_plainly(model, draws=3)
    f = idata["posterior"]["f"].values
    if first == "model":
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None
        np.testing.assert_array_equal(pxb.predict(idata, X), f)
    else:
        gone = weakref.ref(idata)
        del idata
        gc.collect()
        assert gone() is None
        np.testing.assert_array_equal(sample_plainly(model, draws=3)["posterior"]["f"], f)


def test_what_has_read_draws_does_not_hold_on_to_them(model):
    idata = sample_plainly(model, draws=3)
    with model:
        step = XBARTStep(start=idata, compile_kwargs={"mode": PLAIN})
    f = pxb.predict(idata, X)
    gone = weakref.ref(idata)
    del idata
    gc.collect()
    assert gone() is None
    run = sample_plainly(model, step=step, tune=0, draws=2)
    np.testing.assert_array_equal(run["posterior"]["f"][0, 0], f[0, -1])


def resident_bytes():
    gc.collect()
    # What the C library keeps for later, up to 30 MB here, is no one's any more.
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
    num_pages = int((PROC / "self" / "statm").read_text().split()[1])
    return num_pages * os.sysconf("SC_PAGE_SIZE")


NUM_ROWS = 50_000
# Of one fit: where the rows are in 20 trees (int32), and three draws of f.
BYTES_OF_A_FIT = NUM_ROWS * (20 * 4 + 3 * 8)


def growth(fit, num_fits):
    """Bytes that the process has grown by, after four fits that fill caches."""
    sizes = []
    for _ in range(num_fits):
        fit()
        sizes.append(resident_bytes())
    return sizes[-1] - sizes[3]


def make_fit(kept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(NUM_ROWS, 2))
    y = X[:, 0] + rng.normal(size=NUM_ROWS)

    def fit():
        model = make_model(X, y, num_trees=20)
        with model:
            step = XBARTStep(compile_kwargs={"mode": PLAIN})
        idata = sample_plainly(model, step=step, tune=1, draws=2)
        if kept is not None:
            kept.append((step.forests, idata))

    return fit


@on_linux
@pytest.mark.slow
def test_twenty_fits_keep_memory_flat():
    # PyMC itself keeps some 40 kB a fit, of functions that it compiles. Of what a fit of ours holds
    # not even a sixteenth may stay.
    assert growth(make_fit(None), 20) < BYTES_OF_A_FIT


@on_linux
@pytest.mark.slow
def test_fits_that_are_kept_do_not_keep_memory_flat():
    kept = []
    assert growth(make_fit(kept), 7) > BYTES_OF_A_FIT
    assert len(kept) == 7


def walk(steps, point, num_draws=10):
    """Points of a chain, one after the other, so that chains can take turns."""
    steps.setup_chain(np.random.default_rng(1), tune=0, draws=num_draws)
    steps.stop_tuning()
    for _ in range(num_draws):
        point, _ = steps.step(point)
        yield {name: np.array(value) for name, value in point.items()}


def test_forests_of_the_same_name_in_two_models_do_not_meet():
    chains = []
    for rows, sign in ((slice(None), 1.0), (slice(0, 30), -1.0)):
        with pm.Model() as model:
            f = XBARTForest("f", sign * X[rows], sigma=pm.HalfNormal("scale"), num_trees=6)
            pm.Normal("y", f, 0.2, observed=sign * (Y[rows] - 5.0))
            # The scale is drawn given the trees that its model has been told of.
            how = {"compile_kwargs": {"mode": PLAIN}}
            steps = CompoundStep([XBARTStep(**how), pm.NUTS([model["scale"]], **how)])
        chains.append((steps, model.initial_point(), steps.sampling_state))
    alone = [list(walk(steps, point)) for steps, point, _ in chains]
    for steps, _, unused in chains:
        steps.sampling_state = unused
    together = zip(*(walk(steps, point) for steps, point, _ in chains), strict=True)
    for expected, others in zip(zip(*alone, strict=True), together, strict=True):
        for point, other in zip(expected, others, strict=True):
            for name in point:
                np.testing.assert_array_equal(point[name], other[name])


def state_of_the_package():
    """Everything at the level of its modules and classes: what it is, and how much it holds."""
    state = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != "pymc_xbart":
            continue
        for name, value in list(vars(module).items()):
            if name.startswith("__"):
                continue
            state[module_name, name] = fingerprint(value)
            if isinstance(value, type) and value.__module__ == module_name:
                for attribute, held in list(vars(value).items()):
                    state[module_name, name, attribute] = fingerprint(held)
    return state


def fingerprint(value):
    if isinstance(value, np.ndarray):
        return id(value), value.tobytes()
    if isinstance(value, dict | list | set):
        return id(value), repr(value)
    if hasattr(value, "cache_info"):
        return id(value), value.cache_info()
    return id(value)


def fit_and_predict(model, start):
    run = sample_plainly(model, draws=3, xbart={"start": start})
    pxb.predict(run, X)
    pxb.sample_posterior_predictive(run, model, progressbar=False)


def test_nothing_in_the_package_changes_from_fit_to_fit(model, idata):
    fit_and_predict(model, idata)  # imports what is imported when it is needed
    before = state_of_the_package()
    assert len(before) > 500
    fit_and_predict(make_model(-X, -Y), idata)
    assert state_of_the_package() == before


def test_a_change_in_the_package_is_seen(monkeypatch):
    before = state_of_the_package()
    monkeypatch.setattr(XBARTStep, "all_trees", [], raising=False)
    assert state_of_the_package() != before
