"""Few columns that matter among many.

    uv run benchmarks/wide.py
    uv run benchmarks/wide.py --reps 1 --columns 1000          a look

Friedman's function of five columns, noise 1, n = 500 rows of p uniform columns, float32: fitted
with the five alone, and with all p under `split_weights="sparse"` and under equal ones. 50 trees, 2
chains of 500 draws after 500, one process. Judged at 1 000 new rows by the RMSE of the mean of f;
"found" is how many of the five have the largest mean split weights, or shares of splits, and
"weight" what these five have together. Each fit runs in a process of its own, whose peak memory is
taken (with libraries and compiler, some 0.3 GB), fits of the same data one after another.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import product
from statistics import mean
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import numpy as np
from friedman import friedman
from measuring import peak_bytes
from results import describe_machine, keep, number, table

NUM_ROWS, NUM_NEW, NUM_TREES, DRAWS = 500, 1_000, 50, 500
TRUE = 5  # columns that matter, the first ones
ALONE, SPARSE, EQUAL = "the five alone", "sparse", "equal"
WANTED = 1.2  # RMSE with all columns over that with the five: what this project asks of itself


def fit(prior: str, num_columns: int, seed: int) -> dict[str, Any]:
    """Sample one model in this process."""
    import pymc as pm

    import pymc_xbart as pxb

    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(NUM_ROWS, num_columns)).astype(np.float32)
    new = rng.uniform(size=(NUM_NEW, num_columns)).astype(np.float32)
    y = friedman(X) + rng.normal(0.0, 1.0, NUM_ROWS)
    if prior == ALONE:
        X, new = X[:, :TRUE], new[:, :TRUE]
    start = time.perf_counter()
    with pm.Model():
        f = pxb.XBARTForest(
            *("f", X),
            y=y,
            num_trees=NUM_TREES,
            split_weights="sparse" if prior == SPARSE else None,
        )
        pm.Normal("y", f, pm.HalfNormal("noise", 3.0), observed=y)
        idata = pm.sample(
            **{"draws": DRAWS, "tune": DRAWS, "chains": 2, "cores": 1, "random_seed": seed},
            **{"progressbar": False, "quiet": True, "compute_convergence_checks": False},
        )
    seconds = time.perf_counter() - start
    weights = shares(pxb, idata, prior, X.shape[1])
    truth = friedman(new)
    predicted = pxb.predict(idata, new, reduce=lambda f: f.mean(("chain", "draw"))).values
    return {
        "rmse": float(np.sqrt(np.mean((predicted - truth) ** 2))),
        "found": int((np.argsort(weights)[-TRUE:] < TRUE).sum()),
        "weight": float(weights[:TRUE].sum()),
        "seconds": seconds,
        "gigabytes": peak_bytes() / 1e9,
    }


def shares(pxb: Any, idata: Any, prior: str, num_columns: int) -> np.ndarray:
    """Mean split weight of each column, or its share of all splits where weights are equal."""
    if prior == SPARSE:
        return idata["posterior"]["f_split_weights"].mean(("chain", "draw")).values
    splits = pxb.trees(idata, draw=list(range(0, DRAWS, 50)))["column"].dropna()
    return np.bincount(splits.astype(int), minlength=num_columns) / splits.size


def run_alone(prior: str, num_columns: int, seed: int) -> dict[str, Any]:
    """`fit` in a process of its own."""
    command = [sys.executable, __file__, "--one", prior, str(num_columns), str(seed)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--columns", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        prior, num_columns, seed = args.one
        warnings.simplefilter("ignore")
        print(json.dumps(fit(prior, int(num_columns), int(seed))))
        return
    settings = [(ALONE, TRUE), *product([SPARSE, EQUAL], args.columns)]
    runs = []
    for seed, (prior, num_columns) in product(range(1, args.reps + 1), settings):
        run = {"prior": prior, "columns": num_columns, "seed": seed}
        runs.append(run | run_alone(prior, num_columns, seed))
        print(json.dumps(runs[-1]), file=sys.stderr)
    text = report(runs, settings, args.reps)
    print(text)
    keep("wide", text, runs)


def report(runs: list[dict[str, Any]], settings: list[tuple[str, int]], reps: int) -> str:
    def means(prior: str, num_columns: int) -> dict[str, float]:
        own = [run for run in runs if (run["prior"], run["columns"]) == (prior, num_columns)]
        return {name: mean(run[name] for run in own) for name in own[0] if name != "prior"}

    alone = means(ALONE, TRUE)["rmse"]
    rows = []
    for prior, num_columns in settings:
        m = means(prior, num_columns)
        rows.append(
            [
                f"{num_columns} columns, {prior}" if prior != ALONE else ALONE,
                *(number(m["rmse"], 3), number(m["rmse"] / alone), number(m["found"], 1)),
                *(number(m["weight"]), number(m["seconds"], 0), number(m["gigabytes"], 1)),
            ]
        )
    header = ["", "RMSE", "over the five", "found", "weight", "seconds", "GB at most"]
    return "\n\n".join(
        [
            "# Few columns that matter among many",
            f"{describe_machine()}. n = {NUM_ROWS}, {NUM_TREES} trees, {reps} data sets, means.",
            table(header, rows),
            f"Wanted: at most {WANTED} times the RMSE of the five alone, with sparse weights.",
        ]
    )


if __name__ == "__main__":
    main()
