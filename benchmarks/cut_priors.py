"""Why `cut_prior="columns"` is the default.

    uv run benchmarks/cut_priors.py                     about three minutes
    uv run benchmarks/cut_priors.py --num-sweeps 10     a quick look

`cut_prior` says how a node's prior weight is shared among its cuts and stopping:

* "columns": a node splits with probability p_d; each column is as likely as the others, and so are
  the cuts within a column.
* "cuts", as in the code that the paper's authors released: it splits with probability p_d, and all
  cuts are equally likely, so that a column counts for as much as it has cuts.
* "paper", as in the paper's text: stopping weighs V (1 - p_d), with V columns, and each cut p_d, so
  that a node with K cuts splits a priori with odds K / V times as high as those of p_d.

The first table has continuous columns only, as the paper's study: there the first two are the same
prior, and the third lets trees grow that follow the noise, so that the noise is underestimated.

The second has columns of three kinds, and one of each kind bears the same signal: a step between
two halves of the rows, which each column can express by one cut. The other columns bear none. What
tells the priors apart is whether a signal is found whatever the kind of its column.
"""

import argparse
import time
from typing import Any

import numpy as np
from results import describe_machine, keep, number, table
from simulation import Problem, simulate

from pymc_xbart import XBARTRegressor
from pymc_xbart.kernels import CUT_PRIORS

FUNCTION = "Trig + poly"

KINDS = ("0/1", "5 values", "continuous")
SHARES_OF_5_VALUES = (0.25, 0.25, 0.25, 0.15, 0.10)  # two and three values make the halves
COLUMNS_PER_KIND = 4  # the first bears the signal
NUM_ROWS_OF_KINDS = 300
EFFECT = 0.15  # of half the step, in standard deviations of the noise: findable, not obvious
TREES_OF_KINDS, SWEEPS_OF_KINDS, BURNIN_OF_KINDS = 10, 100, 20


def main() -> None:
    args = parse_arguments()
    compile_kernels()
    runs = compare_on_continuous_columns(args)
    kinds = compare_on_kinds_of_columns(args)
    text = "\n\n".join(
        [
            "# Three cut priors",
            f"{describe_machine()}. One thread.",
            f"## Continuous columns: {FUNCTION}, n = {args.n}, {args.num_sweeps} sweeps, "
            f"mean over {args.reps} data sets",
            table_of_continuous(runs),
            f"## {COLUMNS_PER_KIND} columns of each kind, one of them with signal: n = "
            f"{NUM_ROWS_OF_KINDS}, {TREES_OF_KINDS} trees, mean over {args.kind_reps} data sets",
            table_of_kinds(kinds),
            "Found: share of sweeps in which some tree splits on the column. Splits: share of all "
            "splits. Both for the column with the signal, and in brackets for the mean of the "
            "other columns of its kind.",
        ]
    )
    print(text)
    for path in keep("cut_priors", text, [*runs, *kinds]):
        print(f"\nWritten: {path}", end="")
    print()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="rows of the first table")
    parser.add_argument("--reps", type=int, default=1, help="data sets of the first table")
    parser.add_argument("--num-sweeps", type=int, default=40, help="of the first table")
    parser.add_argument("--kind-reps", type=int, default=20, help="data sets of the second table")
    return parser.parse_args()


def compile_kernels() -> None:
    """Keep compilation out of the seconds."""
    X = np.arange(20.0)[:, None]
    XBARTRegressor(num_sweeps=2, burnin=1).fit(X, X[:, 0]).predict(X)


def compare_on_continuous_columns(args: argparse.Namespace) -> list[dict[str, Any]]:
    # The paper's share of burn-in, 15 of 40, whatever the number of sweeps.
    sweeps = {"num_sweeps": args.num_sweeps, "burnin": args.num_sweeps * 15 // 40}
    runs = []
    for seed in range(args.reps):
        for kappa in (1, 10):
            problem = simulate(FUNCTION, kappa, args.n, seed)
            for cut_prior in CUT_PRIORS:
                result = fit_one(problem, cut_prior=cut_prior, random_state=seed, **sweeps)
                runs.append({"kappa": kappa, "cut_prior": cut_prior, **result})
    return runs


def fit_one(problem: Problem, **options: Any) -> dict[str, Any]:
    """Fit one regressor and describe it."""
    start = time.perf_counter()
    model = XBARTRegressor(**options).fit(problem.X, problem.y)
    predicted = model.predict(problem.X_new)
    seconds = time.perf_counter() - start
    kept = slice(model.burnin, None)
    return {
        "seconds": seconds,
        "rmse": float(np.sqrt(np.mean((predicted - problem.f_new) ** 2))),
        "leaves": float(model.num_leaves_[kept].mean()),
        "noise_sd": float(model.noise_sd_[kept].mean()),
        "true_noise_sd": problem.noise_sd,
    }


def simulate_kinds(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X with the columns of one kind side by side, y with noise sd 1, and f."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=(len(KINDS), COLUMNS_PER_KIND, NUM_ROWS_OF_KINDS))
    f = EFFECT * np.where(u[:, 0] > 0.5, 1, -1).sum(axis=0)
    five_values = np.searchsorted(np.cumsum(SHARES_OF_5_VALUES[:-1]), u[1])
    X = np.concatenate([u[0] > 0.5, five_values, u[2]]).T
    return X, f + rng.normal(size=NUM_ROWS_OF_KINDS), f


def compare_on_kinds_of_columns(args: argparse.Namespace) -> list[dict[str, Any]]:
    runs = []
    for cut_prior in CUT_PRIORS:
        for seed in range(args.kind_reps):
            X, y, f = simulate_kinds(seed)
            model = XBARTRegressor(
                num_trees=TREES_OF_KINDS,
                num_sweeps=SWEEPS_OF_KINDS,
                burnin=BURNIN_OF_KINDS,
                cut_prior=cut_prior,
                random_state=seed,
            ).fit(X, y)
            counts = model.split_counts_
            found = (counts > 0).mean(axis=0).reshape(len(KINDS), -1)
            splits = (counts.sum(axis=0) / counts.sum()).reshape(len(KINDS), -1)
            run = {
                "cut_prior": cut_prior,
                "rmse": float(np.sqrt(np.mean((model.predict(X) - f) ** 2))),
            }
            for kind, one_found, one_splits in zip(KINDS, found, splits, strict=True):
                run[f"found {kind}"] = one_found[0]
                run[f"found {kind}, no signal"] = one_found[1:].mean()
                run[f"splits {kind}"] = one_splits[0]
                run[f"splits {kind}, no signal"] = one_splits[1:].mean()
            runs.append(run)
    return runs


def mean(runs: list[dict[str, Any]], field: str, **chosen: Any) -> float:
    """Mean of a field over the runs with the chosen values."""
    return float(
        np.mean([run[field] for run in runs if all(run[k] == v for k, v in chosen.items())])
    )


def table_of_continuous(runs: list[dict[str, Any]]) -> str:
    fields = {"rmse": 2, "seconds": 2, "leaves": 1, "noise_sd": 2, "true_noise_sd": 2}
    header = ["cut_prior", "kappa", "RMSE", "seconds", "leaves a tree", "noise sd", "true noise sd"]
    rows = []
    for kappa in (1, 10):
        for cut_prior in CUT_PRIORS:
            row = [cut_prior, str(kappa)]
            for field, digits in fields.items():
                row.append(number(mean(runs, field, kappa=kappa, cut_prior=cut_prior), digits))
            rows.append(row)
    return table(header, rows)


def table_of_kinds(runs: list[dict[str, Any]]) -> str:
    header = ["cut_prior", *(f"{what} {kind}" for what in ("found", "splits") for kind in KINDS)]
    rows = []
    for cut_prior in CUT_PRIORS:
        row = [cut_prior]
        for what in header[1:]:
            with_signal = mean(runs, what, cut_prior=cut_prior)
            without = mean(runs, f"{what}, no signal", cut_prior=cut_prior)
            row.append(f"{with_signal:.2f} ({without:.2f})")
        row.append(number(mean(runs, "rmse", cut_prior=cut_prior), 3))
        rows.append(row)
    return table([*header, "RMSE"], rows)


if __name__ == "__main__":
    main()
