"""How long diagnostics take, each beside the time that it may take.

    uv run benchmarks/diagnostics.py                 4 chains x 1 000 draws x 10 000 rows
    uv run benchmarks/diagnostics.py --rows 1000     less

Draws of f are made up: autoregressive chains, a different one for each row, so that neither
library meets ties or chains that are done early. ArviZ, which takes one row after another, is given
some of the rows, and its time is multiplied by what is left. One thread.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import arviz_stats as azs
import numpy as np
import pymc as pm
import xarray as xr
from friedman import NUM_COLUMNS, friedman
from results import describe_machine, keep, notes_on_timing, number, table

import pymc_xbart as pxb

DRAW_DIMS = ("chain", "draw")
MAX_SECONDS = 10.0  # for the summary of convergence: what this project asks of itself
MAX_DEPENDENCE_SECONDS = 5.0  # the same, for one partial dependence
NUM_TREES, NUM_POINTS = 50, 50
ARVIZ_ROWS = 200


def make_run(args: argparse.Namespace) -> xr.DataTree:
    """What `pm.sample` might return, without trees."""
    rng = np.random.default_rng(1)
    shape = args.chains, args.draws, args.rows
    f = rng.standard_normal(shape)
    phi = rng.uniform(0.0, 0.95, args.rows)
    for draw in range(1, args.draws):
        f[:, draw] += phi * f[:, draw - 1]
    of_trees = {
        f"f_{what}": (DRAW_DIMS, rng.uniform(size=shape[:2]))
        for what in ("leaves", "depth", "acceptance")
    }
    groups = {"posterior": {"f": ((*DRAW_DIMS, "row"), f)}, "sample_stats": of_trees}
    return xr.DataTree.from_dict({name: xr.Dataset(group) for name, group in groups.items()})


def seconds_of(call: Callable[[], Any]) -> dict[str, float]:
    """Wall-clock seconds of a call, and those of the processor."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
    }


def by_arviz(run: xr.DataTree) -> None:
    """Take the same three numbers of each row."""
    f = run["posterior"].to_dataset()[["f"]]
    azs.rhat(f)
    azs.ess(f)
    azs.ess(f, method="tail", prob=(0.05, 0.95))


def time_convergence(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time `convergence_summary` and ArviZ, in turn."""
    run = make_run(args)
    some = run.isel(row=slice(ARVIZ_ROWS))
    pxb.convergence_summary(some)  # compiled, and imported
    times = max(1.0, args.rows / ARVIZ_ROWS)
    runs = []
    for repeat in range(args.repeats):
        for method, call, of, factor in (
            ("pymc_xbart", pxb.convergence_summary, run, 1.0),
            ("ArviZ", by_arviz, some, times),
        ):
            seconds = seconds_of(lambda call=call, of=of: call(of))
            labels = {"what": "convergence", "method": method, "repeat": repeat}
            runs.append(labels | {name: factor * value for name, value in seconds.items()})
    return runs


def time_dependence(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time partial dependence on one column and on a pair, from the stored trees of one chain."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(args.rows, NUM_COLUMNS))
    y = friedman(X) + rng.normal(size=args.rows)
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=NUM_TREES)
        pm.Normal("y", f, pm.HalfNormal("noise", 1.0), observed=y)
        idata = pm.sample(
            **{"draws": args.draws, "tune": 200, "chains": 1, "random_seed": 1, "quiet": True},
            var_names=["noise"],
            compute_convergence_checks=False,
        )
    pxb.partial_dependence(idata, X, 0, draws=1)  # compiled
    runs = []
    for repeat in range(args.repeats):
        for method, columns in (("one column", 0), ("a pair", (0, 1))):
            seconds = seconds_of(
                lambda columns=columns: pxb.partial_dependence(idata, X, columns, grid=NUM_POINTS)
            )
            runs.append({"what": "dependence", "method": method, "repeat": repeat} | seconds)
    return runs


def describe_dependence(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Seconds, in Markdown."""
    rows = [
        [method, *(number(median_of(runs, method, which)) for which in ("seconds", "cpu_seconds"))]
        for method in ("one column", "a pair")
    ]
    verdict = (
        "met" if median_of(runs, "one column", "seconds") < MAX_DEPENDENCE_SECONDS else "missed"
    )
    return "\n\n".join(
        [
            "## Partial dependence",
            f"Over {args.rows} rows, {NUM_TREES} trees, {args.draws} draws, {NUM_POINTS} points of "
            "each column.",
            table(["", "seconds", "of the processor"], rows),
            f"Wanted: below {MAX_DEPENDENCE_SECONDS:g} s for one column, {verdict}.",
            *notes_on_timing(runs),
        ]
    )


def median_of(runs: list[dict[str, Any]], method: str, which: str) -> float:
    """Median over the repetitions."""
    return statistics.median(run[which] for run in runs if run["method"] == method)


def describe_convergence(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Both libraries side by side, in Markdown."""
    rows = []
    for method in ("pymc_xbart", "ArviZ"):
        seconds, cpu_seconds = (median_of(runs, method, w) for w in ("seconds", "cpu_seconds"))
        per_row = number(1e3 * cpu_seconds / args.rows, 2)
        rows.append([method, number(seconds, 1), number(cpu_seconds, 1), per_row])
    verdict = "met" if median_of(runs, "pymc_xbart", "seconds") < MAX_SECONDS else "missed"
    return "\n\n".join(
        [
            "## Convergence",
            f"R-hat, bulk and tail ESS of f at {args.rows} rows, {args.chains} chains of "
            f"{args.draws} draws; with pymc_xbart also mean and variance of f over rows. ArviZ was "
            f"given {min(ARVIZ_ROWS, args.rows)} rows, its time is multiplied.",
            table(["library", "seconds", "of the processor", "ms a row"], rows),
            f"Wanted: below {MAX_SECONDS:g} s, {verdict}.",
            *notes_on_timing(runs),
        ]
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=1_000, help="of each chain")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    convergence, dependence = time_convergence(args), time_dependence(args)
    text = "\n\n".join(
        [
            "# Diagnostics",
            f"{describe_machine()}. One thread, medians of {args.repeats}.",
            describe_convergence(convergence, args),
            describe_dependence(dependence, args),
        ]
    )
    print(text)
    for path in keep("diagnostics", text, convergence + dependence):
        print(f"Written: {path}")


if __name__ == "__main__":
    main()
