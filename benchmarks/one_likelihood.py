"""Sample one model of `likelihoods` by one method, save draws of f, print the times as JSON.

Not meant to be called by hand: `likelihoods` runs it with the interpreter that has the method's
library. `one_sampling` says what is timed, and why the comparison is fair; here, further,

* pymc_xbart and pymc-bart sample the same model with the step methods that `pm.sample` gives them,
  all else at their defaults;
* the prior standard deviation of f is 1 in pymc_xbart, 0.5 for the log scale, as in the recipes of
  its documentation; it is 1 in stochtree for probit f (its default, 1 / num_trees for a leaf).
  pymc-bart takes a prior mean and scale only by way of a response: it is given y where y is 0 or 1,
  which it knows, and what y says about f elsewhere, as its documentation does for counts;
* stochtree's forest of the variance has its own prior, inverse Gamma for exp(leaf), with defaults.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from one_sampling import ALPHA, BETA, FEW, NUM_POINTS, sample_with_pymc
from scipy.stats import norm

EULER = 0.635  # minus the mean of log |z|, z standard Normal


class Sampled(NamedTuple):
    """Kept draws of all chains."""

    f: np.ndarray  # (chains, draws, forests, n)
    seconds: float | None = None  # of sampling alone, where the package tells


Method = Callable[[np.ndarray, np.ndarray, dict[str, Any]], Sampled]
Forest = Callable[[str, np.ndarray], Any]  # (name, what y says of f) -> random variable


def build(likelihood: str, forest: Forest, y: np.ndarray) -> list[str]:
    """Add forests and likelihood to the model on PyMC's stack. Returns the forests' names."""
    import pymc as pm

    if likelihood == "binary":
        pm.Bernoulli("y", p=pm.math.invprobit(forest("f", y)), observed=y)
        return ["f"]
    if likelihood == "counts":
        pm.Poisson("y", pm.math.exp(forest("f", np.log(y + 0.5))), observed=y)
        return ["f"]
    spread = np.log(np.abs(y - y.mean()) + 1e-3) + EULER
    pm.Normal("y", forest("f", y), pm.math.exp(forest("log_scale", spread)), observed=y)
    return ["f", "log_scale"]


def prior_mean(likelihood: str, y: np.ndarray, guess: np.ndarray) -> float:
    """Prior mean of f: what a model without columns would estimate, roughly."""
    if likelihood == "binary":
        return float(norm.ppf(y.mean()))
    return float(np.log(y.mean()) if likelihood == "counts" else guess.mean())


def pymc_xbart(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """`XBARTForest`, with the defaults of `XBARTStep`."""
    import pymc as pm

    from pymc_xbart import XBARTForest

    def forest(name: str, guess: np.ndarray) -> Any:
        mu = prior_mean(settings["likelihood"], y, guess)
        sigma = 0.5 if name == "log_scale" else 1
        return XBARTForest(name, X, mu=mu, sigma=sigma, num_trees=settings["num_trees"])

    with pm.Model():
        names = build(settings["likelihood"], forest, y)
        idata = sample_with_pymc(settings["chains"], settings["seed"], settings)
        return sampled(names, idata["posterior"])


def pymc_bart(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """pymc-bart with its defaults; why each chain has a model of its own, `one_sampling` says."""
    import pymc as pm
    import pymc_bart as pmb

    def forest(name: str, guess: np.ndarray) -> Any:
        return pmb.BART(name, X, guess, m=settings["num_trees"])

    chains = []
    for chain in range(settings["chains"]):
        with pm.Model():
            names = build(settings["likelihood"], forest, y)
            idata = sample_with_pymc(1, [settings["seed"], chain], settings)
            chains.append(sampled(names, idata["posterior"]))
    f, seconds = zip(*chains, strict=True)
    return Sampled(np.concatenate(f), sum(seconds))


def sampled(names: list[str], posterior: Any) -> Sampled:
    """Read draws of some forests, and the time they took."""
    f = np.stack([posterior[name].to_numpy() for name in names], axis=2)
    return Sampled(f, posterior.attrs["sampling_time"])


def stochtree(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """MCMC of stochtree from trees without splits: probit, or mean and variance."""
    from stochtree import BARTModel, OutcomeModel

    is_binary = settings["likelihood"] == "binary"
    general = {
        "num_chains": settings["chains"],
        "random_seed": settings["seed"],
        "num_threads": 1,
        # One variance for all would be a second level beside the forest's own.
        "sample_sigma2_global": False,
    }
    if is_binary:
        general["outcome_model"] = OutcomeModel(outcome="binary", link="probit")
    trees = {"alpha": ALPHA, "beta": BETA, "min_samples_leaf": 1, "max_depth": -1}
    trees["num_trees"] = settings["num_trees"]
    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y.astype(float),
        num_gfr=0,
        num_burnin=settings["tune"],
        num_mcmc=settings["draws"],
        general_params=general,
        mean_forest_params={**trees, "sample_sigma2_leaf": False},
        variance_forest_params={} if is_binary else trees,
    )
    f = [model.y_hat_train]
    if not is_binary:
        f.append(np.log(model.sigma2_x_train) / 2)
    shape = (settings["chains"], settings["draws"], len(y))
    return Sampled(np.stack([draws.T.reshape(shape) for draws in f], axis=2))


METHODS: dict[str, Method] = {
    "pymc_xbart": pymc_xbart,
    "pymc_bart": pymc_bart,
    "stochtree": stochtree,
}


def main() -> None:
    name, folder, settings = sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    METHODS[name](X, y, settings | FEW)
    wall, cpu = time.perf_counter(), time.process_time()
    f, seconds = METHODS[name](X, y, settings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    np.save(folder / "f.npy", f[..., :NUM_POINTS])
    print(json.dumps({"seconds": wall if seconds is None else seconds, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main()
