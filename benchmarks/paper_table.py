"""The paper's table "RMSE of each method", measured anew beside its peers.

    uv run benchmarks/paper_table.py                           n = 10 000: about 20 minutes
    uv run benchmarks/paper_table.py --reps 1                  a look: about 4 minutes
    uv run benchmarks/paper_table.py --n 50000 --reps 1        about half an hour
    uv run benchmarks/paper_table.py --n 250000 --reps 1 --functions 'Trig + poly' --kappa 1
                                                               about half an hour
    uv run benchmarks/paper_table.py --cv --forest --network   all methods of the paper: hours
    uv run benchmarks/paper_table.py --kappa 0.1 1 10          with little noise, too: 23 minutes

See `simulation` for the study, `one_fit` for each method's settings and why the comparison with
stochtree is fair, and `peers` for the environment that the peers get.

The paper lets a node consider `mtry` of the 30 columns once burn-in is over, and does not say how
many. With all columns neither XBARTRegressor nor stochtree reaches the published RMSE of Linear at
kappa 1 (both about 1.98 for 1.74). Test scripts in the authors' repository, for other data with 20
columns, have 10. Of 2, 5, 10, 15, 20 and 30 columns, tried on data sets of this study, 5 and 10 did
best: so 10 is a choice that has seen the results, and what print had is unknown. XBARTRegressor
runs twice: with all columns, the same as stochtree, and with `--mtry` of them. stochtree's
counterpart of mtry draws columns once for a tree, with equal weights, and from the first sweep on;
at 10 columns and kappa 1 this raised its RMSE by 60 % for Max and for Trig + poly and lowered it by
14 % for Linear. So it has all columns, and `--stochtree-mtry` adds it with `--mtry` of them.

Methods take turns, in an order that rotates from replication to replication, each in a fresh
process with one thread. A replication is a new data set for each cell. RMSE is the mean over
replications and seconds are their median; the ratio of seconds is the median of the replications'
ratios, since on a machine whose speed drifts, neighbours in time drift alike.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from one_fit import save_problem
from peers import in_turn, peer_versions, run_one_fit
from results import (
    Target,
    describe_machine,
    keep,
    notes_on_timing,
    number,
    table,
    table_of_targets,
)
from simulation import (
    BURNIN,
    FUNCTIONS,
    KAPPAS,
    NUM_SWEEPS,
    PUBLISHED,
    REPRODUCIBLE,
    SIZES,
    simulate,
)

from pymc_xbart.forest.calibration import default_num_cutpoints, default_num_trees

# What this project asks of itself, in every cell.
MIN_SPEED_UP = {10_000: 12, 50_000: 15, 250_000: 25}  # over stochtree, by n
MAX_RMSE_TO_STOCHTREE = 1.02
MAX_RMSE_TO_PUBLISHED = 1.10  # of the columns in REPRODUCIBLE

# `--mtry` was chosen on data sets of this study with seeds from 0 on. These are others.
FIRST_SEED = 1000


class Method(NamedTuple):
    """One column of the table."""

    label: str
    name: str  # in `one_fit.METHODS`
    published: str | None = None  # field of `simulation.Published`
    has_mtry: bool = False  # considers `--mtry` columns, not all


METHODS = {
    "xbart": Method("XBART", "xbart", "xbart"),
    "xbart_mtry": Method("XBART, mtry", "xbart", "xbart", has_mtry=True),
    "stochtree": Method("stochtree", "stochtree"),
    "stochtree_mtry": Method("stochtree, mtry", "stochtree", has_mtry=True),
    "xgb": Method("XGBoost", "xgb", "xgb"),
    "xgb_cv": Method("XGBoost + CV", "xgb_cv", "xgb_cv"),
    "random_forest": Method("random forest", "random_forest"),
    "network": Method("network", "network", "network"),
}
OURS = ("xbart", "xbart_mtry")
ALWAYS = (*OURS, "stochtree", "xgb")


class Cell(NamedTuple):
    """One line of the table."""

    function: str
    kappa: float
    n: int

    def __str__(self) -> str:
        return f"{self.function}, kappa {self.kappa:g}"

    def published(self, field: str | None) -> tuple[float, int] | None:
        """RMSE and seconds as published, where the paper's main text has them."""
        return None if field is None else getattr(PUBLISHED.get(self), field, None)


class Runs:
    """All runs, by cell and method."""

    def __init__(self, cells: list[Cell], methods: list[str]) -> None:
        self.cells = cells
        self.methods = methods
        self.rows: list[dict[str, Any]] = []

    def of(self, cell: Cell, method: str, field: str) -> list[float]:
        """One value for each replication, in order."""
        return [
            row[field]
            for row in self.rows
            if row["method"] == method and all(row[key] == x for key, x in cell._asdict().items())
        ]

    def rmse(self, cell: Cell, method: str) -> float:
        """Mean over replications."""
        return statistics.mean(self.of(cell, method, "rmse"))

    def seconds(self, cell: Cell, method: str) -> float:
        """Median over replications."""
        return statistics.median(self.of(cell, method, "seconds"))

    def speed_up(self, cell: Cell, method: str) -> float:
        """Seconds of stochtree over those of a method of ours, median over replications."""
        pairs = zip(
            self.of(cell, "stochtree", "seconds"), self.of(cell, method, "seconds"), strict=True
        )
        return statistics.median(peer / ours for peer, ours in pairs)

    def to_stochtree(self, cell: Cell, method: str) -> float:
        """RMSE over that of stochtree."""
        return self.rmse(cell, method) / self.rmse(cell, "stochtree")

    def to_published(self, cell: Cell, method: str) -> float | None:
        """RMSE over that of the paper's XBART."""
        published = cell.published("xbart")
        return None if published is None else self.rmse(cell, method) / published[0]


def main() -> None:
    args = parse_arguments()
    methods = [name for name in METHODS if name in ALWAYS or getattr(args, name, False)]
    cells = [Cell(f, kappa, args.n) for kappa, f in product(args.kappa, args.functions)]
    runs = Runs(cells, methods)
    versions = peer_versions()
    began = time.perf_counter()
    for row in run_all(runs, args):
        runs.rows.append(row)
    minutes = (time.perf_counter() - began) / 60
    text = "\n\n".join(
        [
            f"# RMSE and seconds of each method, n = {args.n}",
            describe_setting(args, versions, minutes),
            "## RMSE: XBARTRegressor, stochtree's grow-from-root, and published",
            table_of_rmse(runs),
            "## Seconds",
            table_of_seconds(runs),
            "## Coverage of 95 % intervals of f",
            table_of_coverage(runs),
            "## Worst cells",
            table_of_targets(targets(runs)),
            "## All methods: RMSE (seconds), here and published",
            table_of_methods(runs),
            *footnotes(runs, args.mtry),
        ]
    )
    print("\n" + text)
    for path in keep(args.name or f"paper_table_{args.n}", text, runs.rows):
        print(f"Written: {path}", file=sys.stderr)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--n", type=int, default=SIZES[0], help=f"training rows; published: {SIZES}")
    add("--reps", type=int, default=5, help="replications; the paper has 5")
    add("--mtry", type=int, default=10, help="columns that a node considers after burn-in")
    add("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    add("--kappa", nargs="+", type=float, default=list(KAPPAS), help="noise sd / sd(f)")
    add("--cv", dest="xgb_cv", action="store_true", help="XGBoost with the paper's grid; slow")
    add("--rounds", type=int, default=500, help="of XGBoost with the paper's grid, at most")
    add("--forest", dest="random_forest", action="store_true", help="a random forest")
    add("--network", action="store_true", help="a network with two layers")
    add("--stochtree-mtry", action="store_true", help="stochtree with --mtry columns")
    add("--name", help="of the files in results; paper_table_N by default")
    return parser.parse_args()


def run_all(runs: Runs, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run, in the order in which it is made: cells in replications, methods in cells."""
    for replication, cell in product(range(args.reps), runs.cells):
        with tempfile.TemporaryDirectory() as folder:
            save_problem(simulate(*cell, seed=FIRST_SEED + replication), Path(folder))
            for method in in_turn(runs.methods, replication):
                settings = {
                    "num_trees": default_num_trees(cell.n),
                    "num_cutpoints": default_num_cutpoints(cell.n),
                    "mtry": args.mtry if METHODS[method].has_mtry else None,
                    "max_rounds": args.rounds,
                    "kappa": cell.kappa,
                    "seed": replication,
                }
                result = run_one_fit(METHODS[method].name, Path(folder), settings)
                print(
                    f"{replication + 1} of {args.reps}: {cell}, {METHODS[method].label}: "
                    f"RMSE {result['rmse']:.3f}, {result['seconds']:.2f} s",
                    file=sys.stderr,
                )
                yield {**cell._asdict(), "replication": replication, "method": method, **result}


def table_of_rmse(runs: Runs) -> str:
    header = ["function", "kappa", *(METHODS[method].label for method in OURS)]
    header += ["stochtree", "published"]
    header += [f"{METHODS[method].label} / {peer}" for peer in ("st.", "publ.") for method in OURS]
    rows = []
    for cell in runs.cells:
        published = cell.published("xbart")
        note = "" if cell.function in REPRODUCIBLE or published is None else " [1]"
        row = [cell.function, f"{cell.kappa:g}"]
        row += [number(runs.rmse(cell, method), 3) for method in (*OURS, "stochtree")]
        row += ["-" if published is None else number(published[0]) + note]
        row += [number(runs.to_stochtree(cell, method)) for method in OURS]
        row += [number(runs.to_published(cell, method)) for method in OURS]
        rows.append(row)
    return table(header, rows)


def table_of_seconds(runs: Runs) -> str:
    header = ["function", "kappa", *(METHODS[method].label for method in OURS)]
    header += ["stochtree", "published [2]", *(f"st. / {METHODS[method].label}" for method in OURS)]
    rows = []
    for cell in runs.cells:
        published = cell.published("xbart")
        row = [cell.function, f"{cell.kappa:g}"]
        row += [number(runs.seconds(cell, method)) for method in (*OURS, "stochtree")]
        row += ["-" if published is None else str(published[1])]
        row += [number(runs.speed_up(cell, method), 1) for method in OURS]
        rows.append(row)
    return table(header, rows)


def table_of_coverage(runs: Runs) -> str:
    """Of the methods that draw f. Sweeps that are not corrected promise nothing."""
    methods = [*OURS, "stochtree"]
    rows = [
        [cell.function, f"{cell.kappa:g}"]
        + [number(statistics.mean(runs.of(cell, method, "coverage"))) for method in methods]
        for cell in runs.cells
    ]
    return table(["function", "kappa", *(METHODS[method].label for method in methods)], rows)


def targets(runs: Runs) -> Iterator[Target]:
    """The worst cell of each method of ours beside what this project asks of itself."""
    followed = [c for c in runs.cells if c.function in REPRODUCIBLE and c.published("xbart")]
    timed = [cell for cell in runs.cells if cell.n in MIN_SPEED_UP]
    for method in OURS:
        label = METHODS[method].label
        if timed:
            cell = min(timed, key=lambda cell: runs.speed_up(cell, method))
            least = MIN_SPEED_UP[cell.n]
            what = f"seconds of stochtree / {label}, least"
            yield Target(what, str(cell), runs.speed_up(cell, method), low=least)
        cell = max(runs.cells, key=lambda cell: runs.to_stochtree(cell, method))
        ratio, what = runs.to_stochtree(cell, method), f"RMSE of {label} / stochtree, most"
        yield Target(what, str(cell), ratio, high=MAX_RMSE_TO_STOCHTREE)
        if followed:
            cell = max(followed, key=lambda cell: runs.to_published(cell, method))
            ratio, what = runs.to_published(cell, method), f"RMSE of {label} / published, most"
            yield Target(what, str(cell), ratio, high=MAX_RMSE_TO_PUBLISHED)


def table_of_methods(runs: Runs) -> str:
    header = ["function", "kappa"]
    rows = [[cell.function, f"{cell.kappa:g}"] for cell in runs.cells]
    for method in runs.methods:
        header.append(METHODS[method].label)
        for cell, row in zip(runs.cells, rows, strict=True):
            row.append(f"{runs.rmse(cell, method):.2f} ({runs.seconds(cell, method):.1f})")
        published = [cell.published(METHODS[method].published) for cell in runs.cells]
        if any(published):
            header.append("published")
            for figures, row in zip(published, rows, strict=True):
                row.append("-" if figures is None else f"{figures[0]:.2f} ({figures[1]})")
    return table(header, rows)


def describe_setting(args: argparse.Namespace, versions: dict[str, str], minutes: float) -> str:
    peers = ", ".join(f"{name} {version}" for name, version in versions.items())
    trees, cuts = default_num_trees(args.n), default_num_cutpoints(args.n)
    return (
        f"{describe_machine()}; peers: {peers}. One thread each. {trees} trees, {NUM_SWEEPS} "
        f"sweeps of which {BURNIN} burn-in, {cuts} cuts. RMSE: mean over {args.reps} data sets. "
        "Seconds: fit and predict, compiled beforehand, median over the same runs; methods took "
        f"turns. All of it took {minutes:.0f} minutes."
    )


def footnotes(runs: Runs, mtry: int) -> list[str]:
    return [
        "XBART is XBARTRegressor with all columns in every node, as stochtree (st.) has them; "
        f"XBART, mtry: it considers {mtry} of them once burn-in is over, a number "
        "that the paper does not give; 10 was chosen after trying several, on other data sets of "
        "this study.",
        "[1] The published Max column does not follow from its formula, max(x1, x2, x3), whose "
        "standard deviation is 0.75, under either reading of the noise: only what was measured "
        "here can be compared. For the other functions, noise of kappa * sd(f) yields the "
        "published figures (the paper writes kappa * Var(f)).",
        "[2] Of another machine, in 2018.",
        *notes_on_timing(runs.rows),
    ]


if __name__ == "__main__":
    main()
