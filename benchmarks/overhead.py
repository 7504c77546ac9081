"""What `pm.sample` takes beyond the kernels: PyMC, NUTS, gradients, storing trees.

    uv run benchmarks/overhead.py
    uv run benchmarks/overhead.py --rows 10000 --trees 50        a look

The model is a forest and a HalfNormal noise on Friedman's function of 10 columns, noise 1 sd(f):
XBARTStep for the one, NUTS for the other. Kernel time is measured in the very run that it is
compared with: a clock stands around the function in which the step computes, the compiled sweep.
The run is the loop over draws from the first draw on, tuning
included. Compilation is no part of either (see `one_run`); `startup` has it. The second ratio is
that of kept draws: in tuning, NUTS takes more steps, and trees are not stored.

Each run is a process of its own with one thread; sizes take turns. Medians over replications, which
are new seeds; RMSE and coverage of 95 % intervals of f are those of few draws.
"""

import argparse
import statistics
import sys
from itertools import product
from pathlib import Path
from typing import Any

from one_run import GRADIENT, NUTS, STEP, STORING, SUM_OF_TREES, SWEEP
from peers import in_turn, run_alone
from results import Target, describe_machine, keep, number, table, table_of_targets

ONE_RUN = Path(__file__).with_name("one_run.py")
ROWS, TREES = (300, 1_000, 10_000), (50, 200)
NUM_COLUMNS, KAPPA = 10, 1.0
TARGET_ROWS, MAX_RATIO = 10_000, 1.25  # what this project asks of itself
PARTS = (SWEEP, SUM_OF_TREES, GRADIENT, STORING, STEP, NUTS)
REST = "PyMC"


def main() -> None:
    args = parse_arguments()
    runs = []
    cells = list(product(args.rows, args.trees))
    for replication in range(args.reps):
        for rows, trees in in_turn(cells, replication):
            runs.append(run(rows, trees, replication, args))
            print(runs[-1], file=sys.stderr)
            keep("overhead", report(runs, args), runs)
    print(report(runs, args))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--trees", nargs="+", type=int, default=list(TREES))
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--tune", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    return parser.parse_args()


def run(rows: int, trees: int, replication: int, args: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds a draw, and ratios, of one run."""
    settings = {"rows": [rows], "columns": NUM_COLUMNS, "kappa": KAPPA, "num_trees": trees}
    settings |= {"tune": args.tune, "draws": [args.draws], "seed": replication}
    settings |= {"correction": "tree", "kernels": False}
    (result,) = run_alone(ONE_RUN, "-", Path(), settings, None)
    parts = {part: 1e3 * result["kept_parts"].get(part, 0.0) / args.draws for part in PARTS}
    whole = 1e3 * result["kept_seconds"] / args.draws
    return {
        **{"rows": rows, "trees": trees, "replication": replication},
        "ratio": result["seconds"] / result["parts"][SWEEP],
        "ratio_kept": whole / parts[SWEEP],
        **parts,
        REST: whole - sum(parts.values()),
        **{name: result[name] for name in ("rmse", "coverage")},
    }


def report(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    cells = list(dict.fromkeys((run["rows"], run["trees"]) for run in runs))
    of = {cell: [run for run in runs if (run["rows"], run["trees"]) == cell] for cell in cells}

    def median(cell: tuple[int, int], field: str) -> float:
        return statistics.median(run[field] for run in of[cell])

    ratios = []
    for rows, trees in cells:
        figures = [number(median((rows, trees), field)) for field in ("ratio", "ratio_kept")]
        figures += [number(median((rows, trees), field), 3) for field in ("rmse", "coverage")]
        ratios.append([str(rows), str(trees), *figures])
    parts = [[part, *(number(median(cell, part), 3) for cell in cells)] for part in (*PARTS, REST)]
    targets = (
        Target("run / kernels", f"n = {rows}, {trees} trees", median((rows, trees), "ratio"))
        for rows, trees in cells
        if rows == TARGET_ROWS
    )
    return "\n\n".join(
        [
            "# What pm.sample takes beyond the kernels",
            f"{describe_machine()}. One thread. {NUM_COLUMNS} columns, noise {KAPPA:g} sd(f); one "
            f"chain of {args.draws} draws after {args.tune}; "
            f"{max(len(own) for own in of.values())} runs each, medians.",
            table(["n", "trees", "run / kernels", "kept draws", "RMSE", "coverage"], ratios),
            "Milliseconds of a kept draw:",
            table(["", *(f"n = {rows}, {trees} trees" for rows, trees in cells)], parts),
            table_of_targets(target._replace(high=MAX_RATIO) for target in targets),
        ]
    )


if __name__ == "__main__":
    main()
