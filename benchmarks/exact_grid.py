"""Effective draws of f per second, from little noise to much, in small and larger data.

    uv run benchmarks/exact_grid.py                              all of it, once
    uv run benchmarks/exact_grid.py --reps 5 --resume            more of it, keeping what there is
    uv run benchmarks/exact_grid.py --rows 300 --trees 50        some cells
    uv run benchmarks/exact_grid.py --reps 0 --resume            print what there is

The whole of `pm.sample` with its default step methods, exact tree-wise sweeps for the forest and
NUTS for the noise, beside stochtree's MCMC, bartz and pymc-bart: n = 300, 1 000 and 10 000 rows,
noise of 0.1, 1 and 10 sd(f), 50 and 200 trees. f is Friedman's function of the first 5 of 10
uniform columns, or, with `--functions`, one of the paper's of 30 Normal ones (see `simulation`).
`one_sampling` has each method's settings and says why the comparison is fair; what it times leaves
compilation out, and "in all" has it.

Two chains. Their numbers of draws depend on the rows (`DRAWS`) and on the method (`TIMES`): where
chains do not mix, ESS comes out as a few whatever the sampler does, so that per second the one with
the shortest chains would win. All sample for about as long. `--effort 2` takes twice as many draws.

Judged is f at the first 200 rows, as in `mixing`. Methods take turns, in an order that rotates from
cell to cell and from replication to replication, each in a fresh process with one thread. A ratio
is taken within a replication, and its median over replications stands for the cell; over cells,
geometric means and the smallest are given. RMSE is compared by its mean over replications.

Every run is written to `results/NAME.csv`, and the tables to `results/NAME.md`, as soon as it is
done.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import simulation
from friedman import draw_problem
from one_sampling import NUM_POINTS
from peers import in_turn
from results import (
    Target,
    describe_machine,
    keep,
    notes_on_timing,
    number,
    read_runs,
    table,
    table_of_targets,
)
from sampling import METHODS, NUM_CHAINS, OURS, Problem, sample_alone, versions_of

ROWS, NOISES, TREES = (300, 1_000, 10_000), (0.1, 1.0, 10.0), (50, 200)
# Before the kept draws of a chain, and kept ones, by the fewest rows that they are for. Chosen such
# that the whole grid should take about an hour.
DRAWS = {0: (1_000, 1_000), 1_001: (500, 750), 5_001: (200, 400), 50_001: (50, 100)}
TIMES = {"bartz": 6, "stochtree": 2}  # as many draws for methods that take less time for one
FRIEDMAN = "Friedman"
DEFAULT_METHODS = (OURS, "stochtree", "bartz", "pymc_bart")

# What this project asks of itself.
MIN_MEAN = {"best of stochtree and bartz": 4, "pymc-bart": 15}  # ESS per second, geometric mean
MIN_EVER = 1.5  # the same, in any cell
MAX_RMSE = 1.02  # over any peer's, in any cell

FOOTNOTE = (
    "Noise: its standard deviation over that of f. ESS: bulk ESS of f, median over rows, of all "
    "kept draws. Seconds: of all draws, kept or not, everything being compiled; 'in all' has "
    "importing and compiling, too. The best of stochtree and bartz: by ESS per second, within each "
    "replication."
)

CELL = ["function", "n", "kappa", "num_trees"]
RUN = [*CELL, "replication"]  # what two methods must share to be compared


class Cell(NamedTuple):
    """One problem, and one size of forests."""

    function: str
    n: int
    kappa: float  # standard deviation of the noise over that of f
    num_trees: int


def simulate(cell: Cell, seed: int) -> tuple[Problem, float]:
    """Data, and the standard deviation of its noise."""
    if cell.function != FRIEDMAN:
        data = simulation.simulate(cell.function, cell.kappa, cell.n, seed)
        f = simulation.FUNCTIONS[cell.function](data.X)
        return Problem(data.X, data.y, f), data.noise_sd
    rng = np.random.default_rng([seed, cell.n, int(10 * cell.kappa)])
    X, y, f, noise_sd = draw_problem(rng, cell.n, cell.kappa)
    return Problem(X, y, f), noise_sd


def num_draws(num_rows: int, method: str, effort: float) -> tuple[int, int]:
    """Draws of a chain before those that are kept, and kept ones."""
    tune, draws = DRAWS[max(least for least in DRAWS if least <= num_rows)]
    times = effort * TIMES.get(method, 1)
    return max(1, round(times * tune)), max(10, round(times * draws))


def main() -> None:
    args = parse_arguments()
    rows = read_runs(args.name) if args.resume else []
    versions = versions_of({*args.methods, *(row["method"] for row in rows)})
    for row in run_all(rows, args):
        rows.append(row)
        keep(args.name, report(rows, versions), rows)
    if rows:
        print("\n" + report(rows, versions))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    functions = (FRIEDMAN, *simulation.FUNCTIONS)
    add("--reps", type=int, default=1, help="replications")
    add("--functions", nargs="+", choices=functions, default=[FRIEDMAN])
    add("--rows", nargs="+", type=int, default=list(ROWS))
    add("--noise", nargs="+", type=float, default=list(NOISES), help="over sd(f)")
    add("--trees", nargs="+", type=int, default=list(TREES))
    add("--methods", nargs="+", choices=METHODS, default=list(DEFAULT_METHODS))
    add("--effort", type=float, default=1.0, help="times the usual number of draws")
    add("--resume", action="store_true", help="keep the runs of the CSV file, make what is missing")
    add("--name", default="exact_grid", help="of the files in results")
    return parser.parse_args()


def run_all(done: list[dict[str, Any]], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run that is missing, in the order in which it is made."""
    identity = ["method", *RUN, "tune", "draws"]
    known = {tuple(row[field] for field in identity) for row in done}
    cells = [Cell(*c) for c in product(args.functions, args.rows, args.noise, args.trees)]
    for replication, (turn, cell) in product(range(args.reps), enumerate(cells)):
        problem, noise_scale = simulate(cell, replication)
        for method in in_turn(args.methods, replication + turn):
            tune, draws = num_draws(cell.n, method, args.effort)
            counts = {"num_trees": cell.num_trees, "tune": tune, "draws": draws}
            settings = counts | {"noise_scale": noise_scale, "seed": replication}
            row = {"method": method, "replication": replication, **cell._asdict()} | counts
            if tuple(row[field] for field in identity) in known:
                continue
            row |= sample_alone(method, problem, settings)
            row |= {"ess_per_draw": row["ess"] / (NUM_CHAINS * draws), "noise_sd": noise_scale}
            print(
                f"Replication {replication}, {cell}, {METHODS[method].label}: ESS {row['ess']:.0f},"
                f" {row['ess_per_second']:.2f} a second, RMSE {row['rmse']:.3f}, coverage "
                f"{row['coverage']:.3f}, {row['seconds']:.1f} s",
                file=sys.stderr,
            )
            yield row


def report(rows: list[dict[str, Any]], versions: str) -> str:
    runs = pd.DataFrame(rows)
    ratios = ratios_to_peers(runs)
    parts = ["# Exact sampling, from little noise to much", describe_setting(runs, versions)]
    if not ratios.empty:
        parts += ["## Targets", table_of_targets(targets(ratios))]
        parts += ["## pymc_xbart over each peer: all cells", table_of_means(ratios)]
        parts += ["## pymc_xbart over each peer: cell by cell", table_of_ratios(ratios)]
    timed = [row | {"seconds": row["wall_seconds"]} for row in rows]
    parts += ["## Cell by cell", table_of_cells(runs), FOOTNOTE, *notes_on_timing(timed)]
    return "\n\n".join(parts)


def describe_setting(runs: pd.DataFrame, versions: str) -> str:
    counts = runs[runs["method"] == OURS].groupby("n")[["tune", "draws"]].first()
    more = ", ".join(f"{METHODS[name].label} {times} times" for name, times in TIMES.items())
    draws = "; ".join(f"n = {n}: {kept} after {tune}" for n, tune, kept in counts.itertuples())
    return (
        f"{describe_machine()}; peers: {versions or 'none'}. One thread each. {NUM_CHAINS} chains "
        f"of {draws} ({more} as many). f at {NUM_POINTS} training rows. "
        f"Replications: {runs.groupby([*CELL, 'method']).size().max()} at most."
    )


def ratios_to_peers(runs: pd.DataFrame) -> pd.DataFrame:
    """Ours over each peer and over the best of stochtree and bartz, one line a cell and peer."""
    best = runs[runs["method"].isin(["stochtree", "bartz"])]
    best = best.loc[best.groupby(RUN)["ess_per_second"].idxmax()]
    peers = {METHODS[name].label: group for name, group in runs.groupby("method") if name != OURS}
    peers["best of stochtree and bartz"] = best
    ours = runs[runs["method"] == OURS]
    parts = []
    for label, theirs in peers.items():
        pairs = ours.merge(theirs, on=RUN, suffixes=("", "_peer"))
        for field in ("ess_per_second", "ess_per_draw"):
            pairs[field] /= pairs[f"{field}_peer"]
        by_cell = pairs.groupby(CELL)
        part = by_cell[["ess_per_second", "ess_per_draw"]].median()
        part["rmse"] = by_cell["rmse"].mean() / by_cell["rmse_peer"].mean()
        parts.append(part.reset_index().assign(peer=label))
    return pd.concat(parts, ignore_index=True)


def targets(ratios: pd.DataFrame) -> Iterator[Target]:
    """What this project asks of itself, size by size."""
    for peer, least in MIN_MEAN.items():
        of_peer = ratios[ratios["peer"] == peer]
        for n, cells in of_peer.groupby("n"):
            mean = geometric_mean(cells["ess_per_second"])
            what = f"ESS per second / {peer}, geometric mean"
            yield Target(what, f"n = {n}", mean, low=least)
        if not of_peer.empty:
            worst = of_peer.loc[of_peer["ess_per_second"].idxmin()]
            what = f"ESS per second / {peer}, least"
            yield Target(what, where(worst), worst["ess_per_second"], low=MIN_EVER)
    worst = ratios.loc[ratios["rmse"].idxmax()]
    yield Target(f"RMSE / {worst['peer']}, most", where(worst), worst["rmse"], high=MAX_RMSE)


def where(line: pd.Series) -> str:
    """Name of a cell."""
    return f"{line['function']}, n {line['n']}, noise {line['kappa']:g}, {line['num_trees']} trees"


def table_of_means(ratios: pd.DataFrame) -> str:
    rows = []
    for (peer, n), cells in ratios.groupby(["peer", "n"]):
        means = [geometric_mean(cells[field]) for field in ("ess_per_second", "ess_per_draw")]
        worst = [cells["ess_per_second"].min(), cells["rmse"].max()]
        rows.append([peer, str(n), str(len(cells)), *(number(x) for x in (*means, *worst))])
    header = ["peer", "n", "cells", "ESS / s, geometric mean", "ESS a draw, geometric mean"]
    return table([*header, "ESS / s, least", "RMSE, most"], rows)


def table_of_ratios(ratios: pd.DataFrame) -> str:
    rows = []
    for _, line in ratios.sort_values([*CELL, "peer"]).iterrows():
        row = [line["function"], str(line["n"]), f"{line['kappa']:g}", str(line["num_trees"])]
        row += [number(line[field]) for field in ("ess_per_second", "ess_per_draw", "rmse")]
        rows.append([line["peer"], *row])
    return table(["peer", "function", "n", "noise", "trees", "ESS / s", "ESS a draw", "RMSE"], rows)


def table_of_cells(runs: pd.DataFrame) -> str:
    """Means over replications; of what has to do with time, medians."""
    rows = []
    for (*cell, method), own in runs.groupby([*CELL, "method"]):
        median, mean = own.median(numeric_only=True), own.mean(numeric_only=True)
        function, n, kappa, num_trees = cell
        rows.append(
            [function, str(n), f"{kappa:g}", str(num_trees), METHODS[method].label]
            + [number(mean["ess"], 0), number(median["ess_per_second"])]
            + [number(mean["ess_per_draw"], 4), number(median["seconds"], 1)]
            + [number(median["seconds_in_all"], 1)]
            + [number(mean[field], 3) for field in ("rhat_median", "rhat_max")]
            + [number(mean["rmse"] / mean["noise_sd"], 4), number(mean["coverage"], 3)]
        )
    header = ["function", "n", "noise", "trees", "method", "ESS", "ESS / s", "ESS a draw"]
    header += ["seconds", "s in all", "R-hat, median", "max", "RMSE / noise", "coverage"]
    return table(header, rows)


if __name__ == "__main__":
    main()
