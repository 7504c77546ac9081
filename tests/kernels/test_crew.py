import inspect
import multiprocessing
import signal
import sys
import threading

import numba
import numpy as np
import pytest

from pymc_xbart.kernels import (
    SideDraws,
    column_choice,
    grow_successor,
    helpers,
    make_leaf_of_row,
    make_workspace,
    redraw_successor,
    stump_forest,
    sweep,
    sweep_as_one,
)
from pymc_xbart.kernels.atomic import add, load, make_numbers, rest, store
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.ordered import MAX_ORDERED
from pymc_xbart.kernels.records import COLUMNS, CUTS
from tests.helpers import inside

NUM_TREES = 3
NUM_SWEEPS = 1 if numba.config.DISABLE_JIT else 2
NUM_ROWS = 300
MANY_ROWS = MAX_ORDERED + 76  # so many that rows are added up in buckets
THREADS = (2,) if numba.config.DISABLE_JIT else (2, 3)
CURVATURES = {
    "equal": lambda _, n: np.full(n, 4.0),
    "whole multiples": lambda rng, n: rng.poisson(4.0, n).astype(float),
    "unequal": lambda rng, n: rng.gamma(1.0, 4.0, n),
}

needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="without JIT there are no helpers, only their protocol"
)


def make_case(rng, num_rows=NUM_ROWS, curvature="equal", **prior_fields):
    """Columns without ties, with ties, with two values, with one, and once more without ties."""
    X = rng.standard_normal((num_rows, 6))
    X[:, 1] = np.round(2.0 * X[:, 1])
    X[:, 2] = X[:, 2] > 0.0
    X[:, 3] = 1.0
    h = CURVATURES[curvature](rng, num_rows)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(num_rows)
    return inside.make_case(X, h * y, h, **({"leaf_var": 0.1} | prior_fields))


def workspace(case, num_threads):
    """Scratch with which every node is shared, however small."""
    size = case.num_rows, case.num_columns, case.prior.num_cutpoints
    return make_workspace(*size, num_threads, least_work=0)


def draw(case, work, *, choice=None, is_corrected=False, side=False):
    """Some sweeps from trees of one leaf: everything that they give."""
    rng = np.random.default_rng(1)
    forest, leaf_of_row = stump_forest(NUM_TREES), make_leaf_of_row(NUM_TREES, case.num_rows)
    found = []
    draws, counts = None, np.zeros(case.num_columns, np.int64)
    for _ in range(NUM_SWEEPS):
        if side:
            draws = SideDraws(True, np.array([0.25]), 3.0, 1.0, True, counts)
        forest, leaf_of_row, info = sweep(
            *(forest, leaf_of_row, case.g, case.h, case.design, case.prior, work, rng),
            is_corrected=is_corrected,
            num_regrown=2 if is_corrected else None,
            choice=choice() if choice else None,
            side=draws,
        )
        found += [*forest, leaf_of_row.copy(), *info]
        if side:
            found += [draws.noise_var, counts.copy()]
    return found


def is_same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


HOW = {
    "uncorrected": {},
    "with noise and weights": {"side": True},
    "mtry": {"choice": lambda: column_choice(6, 3)},
    "corrected": {"is_corrected": True},
    "corrected, mtry": {
        "is_corrected": True,
        "choice": lambda: column_choice(6, 3, is_per_tree=True),
    },
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("cut_prior", "min_samples_leaf"), [(COLUMNS, 1), (COLUMNS, 5), (CUTS, 5)])
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("num_rows", [NUM_ROWS, MANY_ROWS])
def test_threads_change_nothing(rng, how, cut_prior, min_samples_leaf, curvature, num_rows):
    if how == "corrected, mtry" and cut_prior == CUTS:
        pytest.skip("a correction needs COLUMNS there")
    fields = {"cut_prior": cut_prior, "min_samples_leaf": min_samples_leaf}
    case = make_case(rng, num_rows, curvature, **fields)
    alone = draw(case, workspace(case, 1), **HOW[how])
    assert (alone[1] >= 0).any()  # some tree has split
    for num_threads in THREADS:
        assert is_same(draw(case, workspace(case, num_threads), **HOW[how]), alone)


def draw_as_one(case, work):
    """A sweep in one proposal, and the successors of one tree."""
    rng = np.random.default_rng(1)
    forest, leaf_of_row = stump_forest(NUM_TREES), make_leaf_of_row(NUM_TREES, case.num_rows)
    rest_of_problem = case.g, case.h, case.design, case.prior, work, rng
    forest, leaf_of_row, info = sweep_as_one(forest, leaf_of_row, *rest_of_problem)
    found = [*forest, leaf_of_row, *info]
    tree, leaf_of_row = stump_forest(1), make_leaf_of_row(1, case.num_rows)
    for _ in range(2):
        tree, leaf_of_row, log_w, old_log_w = grow_successor(tree, leaf_of_row, *rest_of_problem)
        tree, leaf_of_row = redraw_successor(tree, leaf_of_row, *rest_of_problem)
        found += [*tree, leaf_of_row, log_w, old_log_w]
    return found


@pytest.mark.parametrize("curvature", CURVATURES)
def test_nor_where_somebody_else_accepts(rng, curvature):
    case = make_case(rng, MANY_ROWS, curvature)
    alone = draw_as_one(case, workspace(case, 1))
    for num_threads in THREADS:
        assert is_same(draw_as_one(case, workspace(case, num_threads)), alone)


def with_another_prior(argument):
    prior = argument["prior"]
    return argument | {"prior": prior._replace(leaf_var=2.0 * prior.leaf_var)}


def with_other_rows(argument):
    # Every tally there counts one row, so that rows are counted right, and trees only grow wrong.
    rows = argument["rows"]
    return argument | {"rows": rows._replace(tally=np.ones_like(rows.tally))}


def with_another_gradient(argument):
    return argument | {"g": np.zeros_like(argument["g"])}


@needs_jit
@pytest.mark.parametrize(
    ("change", "num_rows"),
    [
        # With few rows, a job is done before a helper on a machine that is busy comes to it. With
        # more than this, a wrong tally leaves sums in buckets that hold no rows.
        (with_another_prior, MAX_ORDERED),
        (with_other_rows, MAX_ORDERED),
        (with_another_gradient, 20_000),
    ],
)
def test_that_check_sees_a_helper_go_wrong(rng, monkeypatch, change, num_rows):
    case = make_case(rng, num_rows)
    alone = draw(case, workspace(case, 1))
    help_rightly = helpers._help
    names = inspect.signature(help_rightly.py_func).parameters

    def help_wrongly(*arguments):
        help_rightly(*change(dict(zip(names, arguments, strict=True))).values())

    monkeypatch.setattr(helpers, "_help", help_wrongly)
    work = workspace(case, 2)
    work.rows.tally[:] = 1  # found where `with_other_rows` has a helper write elsewhere
    # On a machine that is busy, helpers may come too late for every piece of a sweep.
    assert any(not is_same(draw(case, work), alone) for _ in range(1000))


def test_for_one_thread_there_is_no_crew_and_for_little_work_no_helper(rng, monkeypatch):
    case = make_case(rng)
    size = case.num_rows, case.num_columns, case.prior.num_cutpoints
    assert make_workspace(*size).crew is None
    work = make_workspace(*size, 2)
    monkeypatch.setattr(helpers, "_help", None)
    draw(case, work)  # no helper has been started


def no_helpers():
    return all(thread.name != helpers.NAME for thread in threading.enumerate())


@pytest.fixture
def heeds_interrupts():
    """A process that was started in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent there")
@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_leaves_no_thread_behind(rng):
    case = make_case(rng)
    work = workspace(case, 3)

    def run(_):
        assert numba.config.DISABLE_JIT or not no_helpers()
        signal.raise_signal(signal.SIGINT)

    leaves = make_leaf_of_row(NUM_TREES, case.num_rows)
    with pytest.raises(KeyboardInterrupt):
        helpers.with_helpers(leaves, case.g.copy(), case.h, case.design, case.prior, work, run)
    assert no_helpers()
    assert is_same(draw(case, work), draw(case, workspace(case, 1)))
    assert no_helpers()


@needs_jit
def test_nor_does_one_while_helpers_start(rng, monkeypatch):
    case = make_case(rng)
    start = threading.Thread.start

    def start_and_stop(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_and_stop)
    with pytest.raises(KeyboardInterrupt):
        draw(case, workspace(case, 3))
    assert no_helpers()


def test_threads_of_one_process_may_each_have_helpers(rng):
    made = [make_case(rng) for _ in range(2)]
    expected = [draw(case, workspace(case, 1)) for case in made]
    found = {}

    def run(k):
        found[k] = [draw(made[k], workspace(made[k], 2)) for _ in range(3)]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        assert all(is_same(each, expected[k]) for each in found[k])


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # of libraries
def test_a_process_may_fork_after_it_had_helpers(rng):
    case = make_case(rng)
    work = workspace(case, 2)
    expected = draw(case, work)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(draw(case, work)))
    child.start()
    assert ours.poll(60)
    assert is_same(ours.recv(), expected)
    child.join()
    assert is_same(draw(case, work), expected)


@kernel
def add_often(numbers, times):
    for _ in range(times):
        add(numbers, 1, 1)


@kernel
def follow(numbers, mine, times):
    """Wait for the turn, and pass it on."""
    for i in range(times):
        turn = 0
        while load(numbers, 0) != 2 * i + mine:
            rest(turn)
            turn += 1
        store(numbers, 0, 2 * i + mine + 1)


def run_both(function, *arguments):
    threads = [threading.Thread(target=function, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@needs_jit  # Python's own threads may lose some
def test_no_addition_is_lost():
    numbers = make_numbers(3)
    add_often(numbers, 0)
    run_both(add_often, (numbers, 100_000), (numbers, 100_000))
    assert numbers[:, 0].tolist() == [0, 200_000, 0]


def test_threads_see_what_others_store():
    numbers = make_numbers(3)
    follow(numbers, 0, 0)
    run_both(follow, (numbers, 0, 100), (numbers, 1, 100))
    assert numbers[:, 0].tolist() == [200, 0, 0]


def test_adding_tells_what_was_there():
    numbers = make_numbers(2)
    store(numbers, 1, 5)
    assert add(numbers, 1, -2) == 5
    assert load(numbers, 1) == 3
    assert load(numbers, 0) == 0
