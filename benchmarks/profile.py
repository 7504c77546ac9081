"""Where the time of a sweep goes, by kernel, and how far it is from what it has to take.

    uv run benchmarks/profile.py
    uv run benchmarks/profile.py --rows 1000 --corrections tree        a look

Friedman's function of 10 columns, noise 1 sd(f), 50 trees, `pm.sample` of forest and noise, exact
sweeps ("tree") and uncorrected ones ("none"), kept draws only. Each is run twice, in processes of
their own. In one, clocks stand around the inner kernels (see `watched_kernels`, which also says how
to watch others): it tells the sweep apart by kernel, and counts calls, rows and evidences, which
are the same on every machine. In the other they do not: it tells the whole draw apart, and shows
what watching costs.

The lower bound has two parts. Codes that must be read: of the rows of the root and, where a node
splits, of its smaller child (the sums of the other follow), in every column that is considered, two
bytes each; an exact sweep grows a share of the trees, each as a proposal and along the tree that it
is to replace, and redraws two splits in each of the others, which takes the codes of a site and the
leaf of every row. They are set against the speed at which this machine reads an array of the size
of all codes, over and over, so that it is in the cache if the codes are. Evidences that must be
evaluated: of all candidate cuts of every node that is scored, as counted.

(A script of this name hides the standard library's `profile` from others in this folder. Only
cProfile needs it, and none of them that.)
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from one_run import SWEEP
from overhead import PARTS, REST
from peers import run_alone
from results import describe_machine, keep, number, table
from watched_kernels import WATCHED

from pymc_xbart.forest.correction import Correction
from pymc_xbart.kernels.redraw import SPLITS_PER_TREE

ONE_RUN = Path(__file__).with_name("one_run.py")
ROWS = (300, 1_000, 10_000, 250_000)
CORRECTIONS = {"tree": "exact", "none": "uncorrected"}
NUM_COLUMNS, NUM_TREES, KAPPA = 10, 50, 1.0
TUNE = 40
# Kept draws: so many that their time is seconds.
MOST_DRAWS, ROW_DRAWS, LEAST_DRAWS = 300, 1_000_000, 5
CODE_BYTES, LEAF_BYTES = 2, 4
OUTSIDE = "the rest: calling the kernel from Python, copies"

Result = dict[str, Any]  # what `one_run` says of one size


def main() -> None:
    args = parse_arguments()
    runs: dict[tuple[str, bool], list[Result]] = {}
    for correction, is_watched in product(args.corrections, (False, True)):
        runs[correction, is_watched] = run(correction, is_watched, args.rows, args.tune)
    speeds = {rows: reading_speed(rows * NUM_COLUMNS * CODE_BYTES) for rows in args.rows}
    text = report(runs, speeds, args)
    print(text)
    keep("profile", text, list(lines(runs)))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--corrections", nargs="+", choices=CORRECTIONS, default=list(CORRECTIONS))
    parser.add_argument("--tune", type=int, default=TUNE, help="draws before those that count")
    return parser.parse_args()


def num_draws(rows: int) -> int:
    """Kept draws."""
    return max(LEAST_DRAWS, min(MOST_DRAWS, ROW_DRAWS // rows))


def run(correction: str, is_watched: bool, sizes: list[int], tune: int) -> list[Result]:
    """All sizes, in one process: kernels are compiled once."""
    settings = {"columns": NUM_COLUMNS, "kappa": KAPPA, "num_trees": NUM_TREES, "tune": tune}
    settings |= {"correction": correction, "kernels": is_watched, "seed": 1}
    settings |= {"rows": sizes, "draws": [num_draws(rows) for rows in sizes]}
    # Watched kernels hold addresses of their process.
    with tempfile.TemporaryDirectory() as cache:
        variables = {"NUMBA_CACHE_DIR": cache} if is_watched else {}
        return run_alone(ONE_RUN, "-", Path(), settings, None, variables)


def reading_speed(num_bytes: int) -> float:
    """Bytes a second at which one thread reads an array of this size, over and over."""
    words = np.ones(max(1, num_bytes // 8), np.uint64)
    repeats = max(3, 2**26 // num_bytes)
    _read(words, 1)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        _read(words, repeats)
        seconds.append(time.perf_counter() - began)
    return repeats * words.nbytes / float(np.median(seconds))


@njit
def _read(words, repeats):
    for _ in range(repeats):
        total = np.uint64(0)
        for k in range(words.size):
            total += words[k]
        words[0] = total  # or the compiler would read them once


def by_task(result: Result) -> dict[str, float]:
    """Seconds of each task of the watched sweeps."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for name, spent in result["kernels"].items():
        seconds[WATCHED[name].task] += spent["seconds"]
    seconds[OUTSIDE] = result["kept_parts"][SWEEP] - sum(seconds.values())
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def lines(runs: dict[tuple[str, bool], list[Result]]) -> Iterator[dict[str, Any]]:
    """Everything that was measured, one line each."""
    for (correction, is_watched), results in runs.items():
        for result in results:
            labels = {"correction": correction, "watched": is_watched, "rows": result["rows"]}
            labels |= {"draws": num_draws(result["rows"])}
            for part, seconds in result["kept_parts"].items():
                yield labels | {"name": part, "seconds": seconds}
            for name, spent in result.get("kernels", {}).items():
                yield labels | {"name": name, **spent}


def report(
    runs: dict[tuple[str, bool], list[Result]], speeds: dict[int, float], args: argparse.Namespace
) -> str:
    draws = ", ".join(f"{num_draws(rows)} at n = {rows}" for rows in args.rows)
    parts = [
        "# Where the time of a sweep goes",
        f"{describe_machine()}. One thread. {NUM_COLUMNS} columns, {NUM_TREES} trees, noise "
        f"{KAPPA:g} sd(f). Kept draws: {draws}; after {args.tune}.",
    ]
    for correction in args.corrections:
        plain, watched = runs[correction, False], runs[correction, True]
        parts += [f"## {CORRECTIONS[correction].capitalize()} sweeps"]
        parts += ["Milliseconds of a draw, and share of it:", table_of_parts(plain)]
        parts += ["Milliseconds of a sweep by task, and share of it:", table_of_tasks(watched)]
        parts += [cost_of_watching(plain, watched)]
        parts += ["By kernel: share of the sweep, and what one unit takes:"]
        parts += [table_of_kernels(watched), "Work of a sweep:", table_of_work(watched)]
        parts += ["Against the lower bound:", table_of_bounds(correction, plain, watched, speeds)]
        if watched[0]["missing"]:
            parts += [f"Not found, so not watched: {', '.join(watched[0]['missing'])}."]
    return "\n\n".join(parts)


def sizes_of(results: list[Result]) -> list[str]:
    return [f"n = {result['rows']}" for result in results]


def with_share(part: float, whole: float, draws: int) -> str:
    """Milliseconds of a draw, and per cent of the whole."""
    return f"{1e3 * part / draws:.3f} ({100 * part / whole:.0f} %)"


def table_of_parts(results: list[Result]) -> str:
    rows = []
    for part in (*PARTS, REST):
        row = [part]
        for result in results:
            spent, whole = result["kept_parts"], result["kept_seconds"]
            seconds = whole - sum(spent.values()) if part == REST else spent.get(part, 0.0)
            row.append(with_share(seconds, whole, num_draws(result["rows"])))
        rows.append(row)
    for what, field in (("RMSE", "rmse"), ("coverage", "coverage"), ("leaves a tree", "leaves")):
        rows.append([what, *(number(result[field], 3) for result in results)])
    return table(["", *sizes_of(results)], rows)


def table_of_tasks(results: list[Result]) -> str:
    of = [by_task(result) for result in results]
    tasks = sorted(of[0], key=lambda task: -max(seconds[task] for seconds in of))
    rows = [
        [task]
        + [
            with_share(seconds[task], result["kept_parts"][SWEEP], num_draws(result["rows"]))
            for seconds, result in zip(of, results, strict=True)
        ]
        for task in tasks
    ]
    return table(["", *sizes_of(results)], rows)


def cost_of_watching(plain: list[Result], watched: list[Result]) -> str:
    ratios = ", ".join(
        f"{each['kept_parts'][SWEEP] / other['kept_parts'][SWEEP]:.2f}"
        for each, other in zip(watched, plain, strict=True)
    )
    return f"Watched sweeps took {ratios} times as long as others."


def table_of_kernels(results: list[Result]) -> str:
    rows = []
    for name in results[0]["kernels"]:
        row = [f"`{name}`"]
        for result in results:
            spent = result["kernels"][name]
            share = 100 * spent["seconds"] / result["kept_parts"][SWEEP]
            each = 1e9 * spent["seconds"] / max(1, spent["amount"])
            row.append(f"{share:.1f} %, {each:.1f} ns" if spent["calls"] else "-")
        rows.append([*row, WATCHED[name].unit])
    return table(["", *sizes_of(results), "unit"], rows)


def table_of_work(results: list[Result]) -> str:
    def of(result: Result, name: str, field: str) -> float:
        return result["kernels"].get(name, {}).get(field, 0) / num_draws(result["rows"])

    quantities = {
        "nodes scored": lambda r: of(r, "score.score_node", "calls"),
        "rows in them": lambda r: of(r, "score.score_node", "amount"),
        "evidences": lambda r: of(r, "column_scores.score_cuts", "amount"),
        "evidences a node": lambda r: (
            of(r, "column_scores.score_cuts", "amount") / max(1, of(r, "score.score_node", "calls"))
        ),
        "rows partitioned": lambda r: of(r, "partition.partition_rows", "amount"),
    }
    rows = [
        [what, *(number(quantity(result), 0) for result in results)]
        for what, quantity in quantities.items()
    ]
    return table(["", *sizes_of(results)], rows)


def bytes_of_sweep(correction: str, result: Result) -> float:
    """Bytes that a sweep must read (see the head of this file)."""
    of_row = NUM_COLUMNS * CODE_BYTES
    if correction == "none":
        return NUM_TREES * result["rows_to_grow"] * of_row
    num_regrown = Correction("tree").num_regrown(NUM_TREES)
    grown = 2 * num_regrown * result["rows_to_grow"] * of_row
    of_split = result["rows_of_site"] * of_row + result["rows"] * LEAF_BYTES
    return grown + (NUM_TREES - num_regrown) * SPLITS_PER_TREE * of_split


def table_of_bounds(
    correction: str, plain: list[Result], watched: list[Result], speeds: dict[int, float]
) -> str:
    columns = []
    for result, counted in zip(plain, watched, strict=True):
        draws = num_draws(result["rows"])
        must_read = bytes_of_sweep(correction, result)
        seconds = must_read / speeds[result["rows"]]
        spent = result["kept_parts"][SWEEP] / draws
        evidences = counted["kernels"]["column_scores.score_cuts"]["amount"] / draws
        tasks = by_task(counted)
        columns.append(
            [
                number(must_read / 1e6 / NUM_TREES, 3),
                number(speeds[result["rows"]] / 1e9, 1),
                number(1e3 * seconds, 3),
                number(1e3 * spent, 3),
                number(spent / seconds, 1),
                number(1e9 * tasks["scoring"] / draws / max(1, evidences), 1),
            ]
        )
    header = [
        "MB to be read for a tree",
        "reading, GB / s",
        "ms to read all of it",
        "ms of a sweep",
    ]
    header += ["sweep / reading", "ns an evidence, in scoring"]
    rows = [[what, *figures] for what, *figures in zip(header, *columns, strict=True)]
    return table(["", *sizes_of(plain)], rows)


if __name__ == "__main__":
    main()
