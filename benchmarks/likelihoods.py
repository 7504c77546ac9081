"""Forests under responses that are not Normal, beside pymc-bart and stochtree.

    uv run benchmarks/likelihoods.py
    uv run benchmarks/likelihoods.py --reps 1 --rows 1000       a look

Friedman's function, scaled to mean 0 and standard deviation sd, is

* the probit of the probability of y = 1, sd 1;
* the log of the mean of counts, Poisson, sd 0.7;
* the mean, sd 1, of Normal responses, whose log standard deviation is the same function of the
  columns in reverse order, sd 0.5. Both are judged, the second as "log scale".

10 uniform columns, n = 1 000 and 5 000, 50 trees, two chains of 1 000 kept draws after as many, of
all methods: they take about as long for one, and where chains are too short to mix, ESS comes out
as some dozen whatever the sampler does. stochtree has no counts. Judged are draws of f at the first
200 training rows, as in `mixing`: seconds per effective draw are those of all draws over the bulk
ESS of f (median over rows). Methods take turns as there; ratios are taken within a replication,
which is a new data set and a new seed, and the median is reported for time, the ratio of means for
RMSE. See `one_likelihood` for the settings.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from friedman import NUM_COLUMNS, friedman
from judging import judge
from one_sampling import NUM_POINTS
from peers import describe_peers, in_turn, run_alone
from results import describe_machine, keep, notes_on_timing, number, table
from scipy.stats import norm

ROWS = (1_000, 5_000)
NUM_CHAINS, NUM_TREES = 2, 50
ONE_LIKELIHOOD = Path(__file__).with_name("one_likelihood.py")
OURS = "pymc_xbart"
ENVIRONMENTS = {OURS: None, "pymc_bart": "pymc-bart", "stochtree": "peers"}

# What this project asks of itself.
MAX_TIME = 0.1  # of pymc-bart's time per effective draw
MAX_RMSE = 1  # of the peer's


class Likelihood(NamedTuple):
    """How a response depends on its forests."""

    forests: dict[str, float]  # label and standard deviation of each
    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]  # (f, rng) -> y, f by forest
    methods: tuple[str, ...]


LIKELIHOODS = {
    "binary": Likelihood(
        {"binary": 1.0},
        lambda f, rng: rng.binomial(1, norm.cdf(f[0])),
        (OURS, "pymc_bart", "stochtree"),
    ),
    "counts": Likelihood(
        {"counts": 0.7}, lambda f, rng: rng.poisson(np.exp(f[0])), (OURS, "pymc_bart")
    ),
    "mean and log scale": Likelihood(
        {"mean": 1.0, "log scale": 0.5},
        lambda f, rng: f[0] + np.exp(f[1]) * rng.normal(size=f.shape[1]),
        (OURS, "pymc_bart", "stochtree"),
    ),
}


def simulate(name: str, num_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw X, the true functions by forest, and y."""
    rng = np.random.default_rng([seed, num_rows])
    X = rng.uniform(size=(num_rows, NUM_COLUMNS))
    raw = np.stack([friedman(X), friedman(X[:, ::-1])])
    scaled = (raw - raw.mean(axis=1, keepdims=True)) / raw.std(axis=1, keepdims=True)
    sds = list(LIKELIHOODS[name].forests.values())
    f = np.array(sds)[:, None] * scaled[: len(sds)]
    return X, f, LIKELIHOODS[name].draw(f, rng)


def run(method: str, name: str, num_rows: int, args: argparse.Namespace, seed: int) -> list[dict]:
    """Sample by one method in a process of its own, and judge each of its forests."""
    X, truth, y = simulate(name, num_rows, seed)
    settings = {"likelihood": name, "num_trees": NUM_TREES, "chains": NUM_CHAINS, "seed": seed}
    settings |= {"tune": args.draws, "draws": args.draws}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "y.npy"), y)
        times = run_alone(ONE_LIKELIHOOD, method, Path(folder), settings, ENVIRONMENTS[method])
        f = np.load(Path(folder, "f.npy"))
    labels = {"rows": num_rows, "method": method, "replication": seed}
    runs = []
    for k, forest in enumerate(LIKELIHOODS[name].forests):
        judged = judge(f[:, :, k], truth[k, :NUM_POINTS])
        per_draw = {"seconds_per_effective_draw": times["seconds"] / judged["ess"]}
        runs.append({"forest": forest, **labels, **judged, **per_draw, **times})
    return runs


def run_all(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All methods, in turn; one line for each forest."""
    runs = []
    for seed, num_rows, name in product(range(args.reps), args.rows, args.likelihoods):
        for method in in_turn(LIKELIHOODS[name].methods, seed):
            runs += run(method, name, num_rows, args, seed)
            print(f"{name}, n = {num_rows}, {method}: {runs[-1]}", file=sys.stderr)
            keep(args.name, report(runs, args), runs)
    return runs


def report(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    frame = pd.DataFrame(runs)
    versions = describe_peers({"pymc-bart": "pymc-bart", "stochtree": "peers"})
    return "\n\n".join(
        [
            "# Responses that are not Normal",
            f"{describe_machine()}; peers: {versions}. One thread each. {NUM_COLUMNS} columns, "
            f"{NUM_TREES} trees; {NUM_CHAINS} chains of {args.draws} kept draws after as many; "
            f"f at {NUM_POINTS} training rows. Replications: {number_of_replications(frame)}.",
            table_of_methods(frame),
            *notes_on_timing(runs),
            f"## {OURS} over each peer",
            table_of_ratios(frame),
            f"Wanted: RMSE at most {MAX_RMSE} x, coverage no worse, and at most {MAX_TIME} of "
            "pymc-bart's time per effective draw.",
        ]
    )


def number_of_replications(frame: pd.DataFrame) -> str:
    """Runs behind each row of the table: their number, or the fewest and the most."""
    sizes = frame.groupby(["forest", "rows", "method"]).size()
    fewest, most = sizes.min(), sizes.max()
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def table_of_methods(frame: pd.DataFrame) -> str:
    header = ["forest", "n", "method", "ESS", "seconds", "s / effective draw"]
    header += ["R-hat, median", "RMSE", "coverage"]
    rows = []
    for (forest, num_rows, method), runs in frame.groupby(["forest", "rows", "method"], sort=False):
        mean, median = runs.mean(numeric_only=True), runs.median(numeric_only=True)
        seconds = number(median["seconds"], 1), number(median["seconds_per_effective_draw"], 3)
        quality = (number(mean[field], 3) for field in ("rhat_median", "rmse", "coverage"))
        rows.append([forest, str(num_rows), method, number(mean["ess"], 0), *seconds, *quality])
    return table(header, rows)


def table_of_ratios(frame: pd.DataFrame) -> str:
    header = ["forest", "n", "peer", "time per effective draw", "RMSE", "coverage"]
    rows = []
    for (forest, num_rows), cell in frame.groupby(["forest", "rows"], sort=False):
        by = cell.pivot(index="replication", columns="method")
        for peer in (name for name in by["ess"].columns if name != OURS):
            time, rmse, coverage = (
                by[field][[OURS, peer]].dropna()
                for field in ("seconds_per_effective_draw", "rmse", "coverage")
            )
            row = [forest, str(num_rows), peer, number((time[OURS] / time[peer]).median(), 3)]
            row += [number(rmse[OURS].mean() / rmse[peer].mean())]
            rows.append([*row, " / ".join(number(coverage[m].mean(), 3) for m in (OURS, peer))])
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5, help="data sets")
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--likelihoods", nargs="+", choices=LIKELIHOODS, default=list(LIKELIHOODS))
    parser.add_argument("--draws", type=int, default=1_000, help="kept draws, and as many before")
    parser.add_argument("--name", default="likelihoods", help="of the files in results")
    args = parser.parse_args()
    print(report(run_all(args), args))


if __name__ == "__main__":
    main()
