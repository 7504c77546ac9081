"""Why `noise_update="sweep"` is the default of `XBARTRegressor`.

    uv run benchmarks/noise_update.py                           about ten minutes
    uv run benchmarks/noise_update.py --n 2000 --reps 2         a quick look

The paper draws the noise variance after every tree, "tree". In the first sweep it then falls from
one tree to the next, and the smaller it is, the more finely a tree splits: a few large trees follow
all that there is of f, the others find nothing to do, and later sweeps leave it at that. Drawn once
a sweep, it is that of y for all trees of the first sweep, and they share what they follow.

The functions, noises and settings are those of the paper's study (see `simulation`), with all
columns and with 10 of 30. Both ways see the same data sets and seeds, and take turns.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd
from cut_priors import fit_one
from results import describe_machine, keep, number, table
from simulation import FUNCTIONS, simulate

from pymc_xbart.forest.options import NOISE_UPDATES

KAPPAS = (0.1, 1.0, 10.0)
MTRY = (None, 10)
CELL = ["function", "kappa", "mtry"]
FIRST_SEED = 2000  # other data sets than those of `paper_table`


def main() -> None:
    args = parse_arguments()
    for noise_update, mtry in product(NOISE_UPDATES, MTRY):  # keeps compilation out of the seconds
        fit_one(simulate("Max", 1.0, 100, 0), noise_update=noise_update, mtry=mtry)
    runs = []
    for replication, function, kappa, mtry in product(range(args.reps), FUNCTIONS, KAPPAS, MTRY):
        seed = FIRST_SEED + replication
        problem = simulate(function, kappa, args.n, seed)
        turn = NOISE_UPDATES if replication % 2 == 0 else NOISE_UPDATES[::-1]
        for noise_update in turn:
            cell = {"function": function, "kappa": kappa, "mtry": "all" if mtry is None else mtry}
            options = {"noise_update": noise_update, "mtry": mtry, "random_state": seed}
            result = fit_one(problem, **options)
            runs.append({**cell, "seed": seed, "noise_update": noise_update, **result})
    text = report(pd.DataFrame(runs), args)
    print(text)
    keep("noise_update", text, runs)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="rows")
    parser.add_argument("--reps", type=int, default=10, help="data sets of each cell")
    return parser.parse_args()


def report(runs: pd.DataFrame, args: argparse.Namespace) -> str:
    """One line a cell, and one for all."""
    in_noise = {field: runs[field] / runs["true_noise_sd"] for field in ("rmse", "noise_sd")}
    by_way = runs.assign(**in_noise).pivot(index=[*CELL, "seed"], columns="noise_update")
    log_ratio = np.log(by_way["rmse"]["tree"] / by_way["rmse"]["sweep"])
    seconds = by_way["seconds"]["tree"] / by_way["seconds"]["sweep"]
    lines = []
    for cell, own in by_way.groupby(CELL, sort=False):
        means = own.mean()
        line = [cell[0], f"{cell[1]:g}", str(cell[2]), ratio(log_ratio[own.index])]
        for field, digits in (("rmse", 3), ("leaves", 1), ("noise_sd", 3)):
            line += [number(means[field][way], digits) for way in ("tree", "sweep")]
        lines.append([*line, number(seconds[own.index].median())])
    header = ["function", "noise", "columns", "RMSE, tree / sweep"]
    header += [
        f"{what}: {way}" for what in ("RMSE", "leaves", "noise") for way in ("tree", "sweep")
    ]
    return "\n\n".join(
        [
            "# How often the noise is drawn",
            f"{describe_machine()}. One thread. n = {args.n}, 40 sweeps; {args.reps} data sets. "
            "RMSE and noise over the true noise; ratios with their standard errors.",
            table([*header, "seconds, tree / sweep"], lines),
            f"RMSE, tree / sweep, over all cells: {ratio(log_ratio)}.",
        ]
    )


def ratio(log_ratios: pd.Series) -> str:
    """Geometric mean with its standard error, that of its logarithm."""
    return f"{np.exp(log_ratios.mean()):.3f} ({log_ratios.std() / np.sqrt(log_ratios.size):.3f})"


if __name__ == "__main__":
    main()
