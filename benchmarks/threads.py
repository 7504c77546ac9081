"""How much faster several threads make the sweeps of one chain.

    uv run benchmarks/threads.py
    uv run benchmarks/threads.py --threads 1 2 4 --rows 10000 250000

The paper's problem "Trig + poly" (see `simulation`), 30 columns, and settings: all sweeps of
`XBARTRegressor`, uncorrected and exact, apart from reading X. Each number of threads has a chain;
all make the same sweeps, which is checked, and take turns, sweep by sweep, after some uncorrected
ones to arrive. A ratio is taken within a turn, since neighbours in time drift alike; the median is
reported, with quartiles. Seconds are those of the clock: nothing else may run meanwhile.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import numpy as np
from results import Target, describe_machine, keep, number, table, table_of_targets
from simulation import NUM_COLUMNS, simulate

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest.options import check_options
from pymc_xbart.forest.sampler import SamplerState, draw_sweeps, make_task, start_sampling
from pymc_xbart.forest.training import read_training
from pymc_xbart.forest.views import encode_views

FUNCTION, KAPPA = "Trig + poly", 1
ARRIVE = 5  # uncorrected sweeps before those that are timed
CORRECTIONS = {"none": "uncorrected", "tree": "exact"}
WANTED_ROWS, WANTED_THREADS, WANTED = 250_000, 2, 1.6  # what this project asks of itself


class Chain:
    """The sweeps of a regressor with a number of threads."""

    def __init__(self, X: np.ndarray, y: np.ndarray, encoded: Any, **params: Any) -> None:
        options = check_options(XBARTRegressor(**params).get_params(), X.shape)
        training = read_training(y, None, y.size)
        scale, chain, _ = start_sampling(options, training, encoded[0], np.random.default_rng(1))
        task = make_task(options, training, *encoded, scale)
        # Half of burn-in is uncorrected, whatever the correction.
        self.sweeps = draw_sweeps(task, chain.state, chain.rng, itertools.count(), 2 * ARRIVE)
        self.state = chain.state
        for _ in range(ARRIVE + 1):  # one more: compiled, and pages touched
            self.move()

    def move(self) -> float:
        """Sweep once. Returns the seconds."""
        began = time.perf_counter()
        _, self.state, _ = next(self.sweeps)
        return time.perf_counter() - began


def main() -> None:
    args = parse_arguments()
    runs = []
    for rows, correction in itertools.product(args.rows, CORRECTIONS):
        runs += list(time_chains(rows, correction, args))
        keep("threads", report(runs), runs)
    print(report(runs))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[WANTED_ROWS])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, WANTED_THREADS])
    parser.add_argument("--trees", type=int, help="the regressor's default, unless given")
    parser.add_argument("--turns", type=int, default=5)
    return parser.parse_args()


def time_chains(rows: int, correction: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All numbers of threads in turn."""
    problem = simulate(FUNCTION, KAPPA, rows, seed=0)
    encoded = encode_views(problem.X)
    params = {"num_trees": args.trees, "correction": correction}
    chains = {
        num_threads: Chain(problem.X, problem.y, encoded, num_threads=num_threads, **params)
        for num_threads in args.threads
    }
    for turn in range(args.turns):
        for num_threads, chain in chains.items():
            run = {"rows": rows, "correction": correction, "threads": num_threads, "turn": turn}
            run |= {"trees": chain.state.forest.tree_start.size - 1, "seconds": chain.move()}
            print(run, file=sys.stderr)
            yield run
        check_same([chain.state for chain in chains.values()])


def check_same(states: list[SamplerState]) -> None:
    """Stop if threads have changed a bit."""
    for state in states[1:]:
        pairs = zip(state.forest, states[0].forest, strict=True)
        if not all(np.array_equal(one, other) for one, other in pairs):
            raise SystemExit("Threads have changed the trees.")


def report(runs: list[dict[str, Any]]) -> str:
    turns = 1 + max(run["turn"] for run in runs)
    return "\n\n".join(
        [
            "# Threads inside a chain",
            f"{describe_machine()}. {FUNCTION}, {NUM_COLUMNS} columns, noise {KAPPA} sd(f). "
            f"{turns} sweeps of each chain in turn.",
            table_of_targets(targets(runs)),
            table(["", "rows", "trees", "threads", "ms of a sweep", "times as fast"], lines(runs)),
        ]
    )


def lines(runs: list[dict[str, Any]]) -> Iterator[list[str]]:
    """One for each chain."""
    for (rows, correction, num_threads), own in by_chain(runs).items():
        milliseconds = 1e3 * np.median([run["seconds"] for run in own])
        lower, middle, upper = np.quantile(ratios(runs, own), [0.25, 0.5, 0.75])
        ratio = f"{middle:.2f} ({lower:.2f} to {upper:.2f})"
        what = [CORRECTIONS[correction], str(rows), str(own[0]["trees"]), str(num_threads)]
        yield [*what, number(milliseconds, 1), ratio]


def by_chain(runs: list[dict[str, Any]]) -> dict[tuple[int, str, int], list[dict[str, Any]]]:
    """Runs by rows, correction and threads, in the order of turns."""
    chains: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for run in runs:
        chains.setdefault((run["rows"], run["correction"], run["threads"]), []).append(run)
    return chains


def ratios(runs: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[float]:
    """How many times as fast as the first number of threads, turn by turn."""
    rows, correction = own[0]["rows"], own[0]["correction"]
    first = next(chain for key, chain in by_chain(runs).items() if key[:2] == (rows, correction))
    return [a["seconds"] / b["seconds"] for a, b in zip(first, own, strict=True)]


def targets(runs: list[dict[str, Any]]) -> Iterator[Target]:
    """What this project asks of itself."""
    wanted = by_chain(runs).get((WANTED_ROWS, "none", WANTED_THREADS))
    if wanted and runs[0]["threads"] == 1:
        where = f"uncorrected, n = {WANTED_ROWS}, {WANTED_THREADS} threads"
        ratio = float(np.median(ratios(runs, wanted)))
        yield Target("times as fast as one thread", where, ratio, low=WANTED)


if __name__ == "__main__":
    main()
