"""How much memory sampling takes, against the size of X.

    uv run benchmarks/memory.py                      up to a million rows
    uv run benchmarks/memory.py --rows 10000         a look

A forest of 100 trees and its noise by `pm.sample`, on Friedman's function of 50 columns, a few
draws, f left out of the trace by `var_names=["noise"]`, trees stored. Each size is a process of its
own. Counted is the largest resident size of that process, and nothing is taken off it: interpreter,
libraries, machine code, X itself (float64), and everything that is made of it. The stages say what
the largest size so far was when each was over; libraries alone take more than small data do.

A model keeps a copy of X, unless nobody can write to X: each size is measured with an X of either
kind. Compiling kernels takes some 350 MB, once on a machine: a run that is not counted does. Memory
hardly varies from run to run, so that one is enough. "Noise" is the mean of its draws, whose true
value is 1: that the forest has found the function.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import run_alone
from results import Target, describe_machine, keep, number, table, table_of_targets

ONE_MEMORY = Path(__file__).with_name("one_memory.py")
ROWS, NUM_COLUMNS, NUM_TREES = (1_000, 10_000, 100_000, 1_000_000), 50, 100
KINDS = {True: "writeable", False: "read-only"}
STAGES = ("libraries", "data", "model", "step", "sampling")
TARGET_ROWS, MAX_RATIO = 1_000_000, 3  # what this project asks of itself


def main() -> None:
    args = parse_arguments()
    runs: list[dict[str, Any]] = []
    measure(args, min(args.rows), is_writeable=True)
    for rows, is_writeable in itertools.product(args.rows, (True, False)):
        runs.append(measure(args, rows, is_writeable=is_writeable))
        print(runs[-1], file=sys.stderr)
        keep("memory", report(runs), runs)
    print(report(runs))


def measure(args: argparse.Namespace, rows: int, *, is_writeable: bool) -> dict[str, Any]:
    """Sample a model of so many rows in a process of its own: settings, and peaks in bytes."""
    settings = {"rows": rows, "columns": args.columns, "num_trees": args.trees}
    settings |= {"tune": args.tune, "draws": args.draws, "is_writeable": is_writeable}
    return settings | run_alone(ONE_MEMORY, "-", Path(), settings, None)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--columns", type=int, default=NUM_COLUMNS)
    parser.add_argument("--trees", type=int, default=NUM_TREES)
    parser.add_argument("--tune", type=int, default=6)
    parser.add_argument("--draws", type=int, default=4)
    return parser.parse_args()


def report(runs: list[dict[str, Any]]) -> str:
    rows = [
        [str(run["rows"]), KINDS[run["is_writeable"]], number(run["X"] / 1e6, 0)]
        + [number(run[stage] / 1e6, 0) for stage in STAGES]
        + [number(run["sampling"] / run["X"]), number(run["seconds"], 0), number(run["noise"], 3)]
        for run in runs
    ]
    first = runs[0]
    return "\n\n".join(
        [
            "# Memory",
            f"{describe_machine()}. One thread. {first['columns']} columns, {first['num_trees']} "
            f"trees, {first['draws']} draws after {first['tune']}. Megabytes (10^6); after each "
            "stage, the largest resident size of the process so far.",
            table(["n", "X is", "X", *STAGES, "sampling / X", "seconds", "noise"], rows),
            table_of_targets(targets(runs)),
        ]
    )


def targets(runs: list[dict[str, Any]]) -> Iterator[Target]:
    """What this project asks of itself, of the size that it asks it of."""
    for run in runs:
        if run["rows"] == TARGET_ROWS:
            what = "peak / size of X in float64"
            where = f"n = {TARGET_ROWS}, X {KINDS[run['is_writeable']]}"
            yield Target(what, where, run["sampling"] / run["X"], high=MAX_RATIO)


if __name__ == "__main__":
    main()
