"""How fast chains of pymc_xbart and its peers mix, and whether what they say is right.

    uv run benchmarks/mixing.py                            all of it
    uv run benchmarks/mixing.py --resume                   the same, going on after an interruption
    uv run benchmarks/mixing.py --reps 1 --trees 50        a look
    uv run benchmarks/mixing.py --reps 0 --resume          print what there is

y = f(x) + noise with sd 1, where f is Friedman's function of the first 5 of 10 uniform columns, and
n = 1 000. Two chains of 1 000 kept draws each, after as many for tuning or burn-in. See
`one_sampling` for each method's settings and why the comparison is fair, and `peers` for the
environments that the peers get.

Judged are draws of f at the first 200 training rows, from both chains: bulk ESS (median over rows),
rank-normalised R-hat (median and maximum over rows), root mean squared error of the posterior mean,
and how many of the central 95 % intervals hold the true f. Friedman's f is no draw from the prior,
so that even exact intervals need not hold it in 95 % of the rows. The same code reckons for all
methods: the peers only save their draws.

Methods take turns, in an order that rotates from replication to replication, each in a fresh
process with one thread. A replication is a new data set and a new seed. Figures are means over
replications, but seconds, ESS per second and ratios of them are medians, since a machine's speed
has outliers; a ratio is taken within a replication, since neighbours in time drift alike. ESS per
second is per second of all draws, those before the kept ones included.

Every run is written to `results/NAME.csv` and all tables to `results/NAME.md` as soon as it is
done.
"""

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from friedman import NUM_COLUMNS, friedman
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
from sampling import METHODS, NUM_CHAINS, OURS, SMALL, Problem, sample_alone, versions_of

NUM_ROWS, NOISE_SD = 1_000, 1.0
TREES = (50, 200)

# What this project asks of itself.
MIN_ESS_RATIO = 5  # over the best peer, for equally many draws
MIN_RATIO_PER_SECOND = {"stochtree": 2, "stochtree_warm": 2, "pymc_bart": 8}  # ESS per second
COVERAGE = (0.93, 0.98)
MAX_RMSE_RATIO = 1  # to the best peer


def simulate(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(NUM_ROWS, NUM_COLUMNS))
    f = friedman(X)
    return Problem(X, f + NOISE_SD * rng.normal(size=NUM_ROWS), f)


class Settings(NamedTuple):
    """What a run was asked to do, beside its method."""

    replication: int  # seeds data and sampler
    num_trees: int
    tune: int
    draws: int


class Runs:
    """All runs, by number of trees and method."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.trees = sorted({row["num_trees"] for row in rows})

    def methods(self, num_trees: int) -> list[str]:
        """Those with a run, in the order of `METHODS`."""
        present = {row["method"] for row in self.rows if row["num_trees"] == num_trees}
        return [method for method in METHODS if method in present]

    def peers(self, num_trees: int) -> list[str]:
        """Those that runs of ours can be compared with."""
        return [
            method
            for method in self.methods(num_trees)
            if METHODS[method].package is not None and self.pairs(num_trees, method, "ess")
        ]

    def of(self, num_trees: int, method: str, field: str) -> dict[int, float]:
        """One value for each replication."""
        return {
            row["replication"]: row[field]
            for row in self.rows
            if row["method"] == method and row["num_trees"] == num_trees
        }

    def mean(self, num_trees: int, method: str, field: str) -> float:
        """Mean over replications."""
        return statistics.mean(self.of(num_trees, method, field).values())

    def median(self, num_trees: int, method: str, field: str) -> float:
        """Median over replications."""
        return statistics.median(self.of(num_trees, method, field).values())

    def leaves(self, num_trees: int, method: str) -> float | None:
        """Mean leaves of a tree, where the package tells."""
        values = self.of(num_trees, method, "leaves").values()
        told = [value for value in values if isinstance(value, float)]
        return statistics.mean(told) if told else None

    def spread(self, num_trees: int, method: str, field: str) -> float | None:
        """Standard deviation over replications."""
        values = self.of(num_trees, method, field).values()
        return statistics.stdev(values) if len(values) > 1 else None

    def pairs(
        self, num_trees: int, peer: str, field: str, own: str = OURS
    ) -> list[tuple[float, float]]:
        """Values of ours and of a peer, for each replication that both have."""
        ours, theirs = self.of(num_trees, own, field), self.of(num_trees, peer, field)
        return [(ours[k], theirs[k]) for k in ours if k in theirs]

    def ratio_of_means(self, num_trees: int, peer: str, field: str, own: str = OURS) -> float:
        """Mean of a field over that of a peer."""
        ours, theirs = zip(*self.pairs(num_trees, peer, field, own), strict=True)
        return statistics.mean(ours) / statistics.mean(theirs)

    def ratio_per_second(self, num_trees: int, peer: str) -> float:
        """ESS per second over that of a peer, median over replications."""
        pairs = self.pairs(num_trees, peer, "ess_per_second")
        return statistics.median(ours / theirs for ours, theirs in pairs)


def main() -> None:
    args = parse_arguments()
    rows = read_before(args) if args.resume else []
    versions = versions_of({*args.methods, *(row["method"] for row in rows)})
    for row in run_all(rows, args):
        rows.append(row)
        keep(args.name, report(rows, versions), rows)
    if rows:
        print("\n" + report(rows, versions))
        for written in keep(args.name, report(rows, versions), rows):
            print(f"Written: {written}", file=sys.stderr)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--reps", type=int, default=5, help="replications")
    add("--trees", nargs="+", type=int, default=list(TREES), help="numbers of trees")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add("--tune", type=int, default=1_000, help="draws of a chain before those that are kept")
    add("--draws", type=int, default=1_000, help="kept draws of a chain")
    add("--resume", action="store_true", help="keep the runs of the CSV file, make what is missing")
    add("--name", default="mixing", help="of the files in results")
    return parser.parse_args()


def read_before(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs that were written before."""
    rows = read_runs(args.name)
    if any((row["tune"], row["draws"]) != (args.tune, args.draws) for row in rows):
        msg = (
            f"{args.name}.csv has runs with other numbers of draws than {args.tune} and "
            f"{args.draws}. Give the same --tune and --draws as before, or another --name."
        )
        raise SystemExit(msg)
    return rows


def run_all(done: list[dict[str, Any]], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run that is missing, in the order in which it is made."""
    identity = ("method", *Settings._fields)
    known = {tuple(row[field] for field in identity) for row in done}
    for replication, num_trees in product(range(args.reps), args.trees):
        settings = Settings(replication, num_trees, args.tune, args.draws)
        for method in in_turn(args.methods, replication):
            if (method, *settings) not in known:
                row = {"method": method, **settings._asdict(), **run(method, settings)}
                print(
                    f"Replication {replication}, {num_trees} trees, {METHODS[method].label}: "
                    f"ESS {row['ess']:.0f}, RMSE {row['rmse']:.3f}, coverage "
                    f"{row['coverage']:.3f}, {row['seconds']:.1f} s",
                    file=sys.stderr,
                )
                yield row


def run(method: str, settings: Settings) -> dict[str, float]:
    """Sample by one method in a process of its own, and judge its draws."""
    problem = simulate(settings.replication)
    more = {"noise_scale": NOISE_SD, "seed": settings.replication}
    return sample_alone(method, problem, settings._asdict() | more)


def report(rows: list[dict[str, Any]], versions: str) -> str:
    runs = Runs(rows)
    parts = [
        "# Mixing on Friedman's function",
        describe_setting(rows, versions),
        table_of_methods(runs),
        *footnotes(rows),
    ]
    if any(runs.peers(num_trees) for num_trees in runs.trees):
        parts += ["## pymc_xbart over each peer", table_of_ratios(runs)]
        every = (target for num_trees in runs.trees for target in targets(runs, num_trees))
        parts += ["## Targets", table_of_targets(every)]
    return "\n\n".join(parts)


def describe_setting(rows: list[dict[str, Any]], versions: str) -> str:
    counts = Counter((row["method"], row["num_trees"]) for row in rows).values()
    replications = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    return (
        f"{describe_machine()}; peers: {versions}. One thread each. n = {NUM_ROWS}, {NUM_COLUMNS} "
        f"columns, noise {NOISE_SD:g}; {NUM_CHAINS} chains of {rows[0]['draws']} kept draws after "
        f"{rows[0]['tune']}; f at {NUM_POINTS} training rows. Replications: {replications}."
    )


def table_of_methods(runs: Runs) -> str:
    header = ["method", "trees", "ESS", "ESS / s", "seconds", "s in all"]
    header += ["R-hat, median", "max", "RMSE", "coverage", "noise", "leaves"]
    rows = []
    for num_trees in runs.trees:
        for method in runs.methods(num_trees):
            cell = (num_trees, method)
            row = [METHODS[method].label, str(num_trees)]
            row += [with_spread(runs, *cell, "ess", 0)]
            row += [number(runs.median(*cell, "ess_per_second"))]
            row += [number(runs.median(*cell, "seconds"), 1)]
            row += [number(runs.median(*cell, "seconds_in_all"), 1)]
            row += [number(runs.mean(*cell, field), 3) for field in ("rhat_median", "rhat_max")]
            row += [with_spread(runs, *cell, field, 3) for field in ("rmse", "coverage")]
            leaves = runs.leaves(*cell)
            rows.append([*row, number(runs.mean(*cell, "noise"), 3), number(leaves)])
    return table(header, rows)


def with_spread(runs: Runs, num_trees: int, method: str, field: str, digits: int) -> str:
    """Mean, and the standard deviation over replications where there are several."""
    spread = runs.spread(num_trees, method, field)
    behind = "" if spread is None else f" +- {spread:.{digits}f}"
    return number(runs.mean(num_trees, method, field), digits) + behind


def table_of_ratios(runs: Runs) -> str:
    header = ["peer", "trees", "ESS", "ESS / s", "RMSE"]
    rows = []
    for num_trees in runs.trees:
        for peer in runs.peers(num_trees):
            ratios = [
                runs.ratio_of_means(num_trees, peer, "ess"),
                runs.ratio_per_second(num_trees, peer),
                runs.ratio_of_means(num_trees, peer, "rmse"),
            ]
            rows.append([METHODS[peer].label, str(num_trees), *(number(r) for r in ratios)])
    return table(header, rows)


def targets(runs: Runs, num_trees: int) -> Iterator[Target]:
    """Each target for a number of trees, as far as it can be judged by the runs at hand."""
    ess, rmse = (
        {peer: runs.ratio_of_means(num_trees, peer, field) for peer in runs.peers(num_trees)}
        for field in ("ess", "rmse")
    )
    if not ess:
        return
    where = f"{num_trees} trees"
    best = min(ess, key=ess.get)
    what = f"ESS / that of {METHODS[best].label}, the best peer"
    yield Target(what, where, ess[best], low=MIN_ESS_RATIO)
    for peer in ess:
        if peer in MIN_RATIO_PER_SECOND:
            what = f"ESS per second / that of {METHODS[peer].label}"
            ratio = runs.ratio_per_second(num_trees, peer)
            yield Target(what, where, ratio, low=MIN_RATIO_PER_SECOND[peer])
    best = max(rmse, key=rmse.get)
    what = f"RMSE / that of {METHODS[best].label}, the best peer"
    yield Target(what, where, rmse[best], high=MAX_RMSE_RATIO)
    if runs.pairs(num_trees, best, "rmse", SMALL):
        small = runs.ratio_of_means(num_trees, best, "rmse", SMALL)
        yield Target(f"{what}, smaller trees", where, small, high=MAX_RMSE_RATIO)
    yield Target("coverage", where, runs.mean(num_trees, OURS, "coverage"), *COVERAGE)


def footnotes(rows: list[dict[str, Any]]) -> list[str]:
    timed = [row | {"seconds": row["wall_seconds"]} for row in rows]
    return [
        "ESS: bulk ESS of f, median over rows, of all kept draws. R-hat: over rows. +-: standard "
        "deviation over replications. Seconds: of all draws, kept or not, everything being "
        'compiled; "in all" has importing and compiling, too. stochtree, warm start: its chains '
        "begin with forests grown from the root, its default; in the other line they begin with "
        "trees that do not split, as those of pymc-bart and bartz do. pymc-bart has a tree prior "
        "of its own, since it takes no other, and replaces a tenth of the trees in a draw. Smaller "
        "trees: with another beta, so that trees have about as many leaves as those of stochtree, "
        "which has fewer under the same alpha and beta.",
        *notes_on_timing(timed),
    ]


if __name__ == "__main__":
    main()
