"""Sample one model by one method, save the draws, and print the times as JSON.

Not meant to be called by hand: `sampling` runs it with the interpreter of the method's library.

Why the comparison is fair:

* Same model: y = f(x) + Normal noise, f a sum of as many trees, its prior mean the mean of y.
* Same prior of the trees, as far as a package lets one choose it: alpha and beta are those of
  `XBARTForest`, and so is the standard deviation of f, sqrt(0.3 var(y)); leaves may be as small as
  one row. pymc-bart takes neither (see `pymc_bart`). Depth is unlimited in pymc_xbart and
  stochtree, and at most 5, the default, in bartz. Cuts are each package's own. Under the same
  alpha and beta trees of stochtree have fewer leaves, and Friedman's function likes them better:
  `pymc_xbart_small` is pymc_xbart with a beta that makes its trees as small.
* Same noise, as far as some hundred rows can tell: HalfNormal(s) in PyMC, with s the true standard
  deviation, flat in log(noise) in stochtree, and in bartz three degrees of freedom around s. (Its
  default centres them at var(y), 25 times the true noise variance in `mixing`, which would show:
  3 * 25 beside 1 000 * 1.)
* Same numbers of chains, of draws that are kept, and of draws before, which are spent on burn-in or
  tuning. A draw is a full step of the sampler with its default options.
* One thread, chains one after another. bartz has its chains in one array, which is its way and to
  its advantage.
* Each method has compiled what it needs before the clock starts, in the same process, by a few
  draws, or, where a new number of draws compiles anew (bartz), by none of as many. What is timed,
  `seconds`, is all draws, kept or not, of all chains, with f at all training rows on its way to
  memory. The two PyMC packages report it themselves (`sampling_time`). It leaves out that
  `pm.sample` makes its functions anew in each call, which is compilation; `seconds_in_all` has
  that, too, and importing the library. There,
  machine code that pymc_xbart and PyTensor keep on disk is read, not made, if earlier runs have
  left it.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ALPHA, BETA = 0.95, 1.25
BETA_SMALL = 1.9
VARIANCE_SHARE = 0.3  # prior variance of f = VARIANCE_SHARE * var(y)
NUM_POINTS = 200  # the first training rows
NUM_GFR = 5  # stochtree's default
FEW = {"tune": 10, "draws": 10}


class Sampled(NamedTuple):
    """Kept draws of all chains."""

    f: np.ndarray  # (chains, draws, n)
    noise: np.ndarray  # (chains, draws), standard deviation
    seconds: float | None = None  # of sampling alone, where the package tells
    leaves: float | None = None  # of a tree, on average, where it tells


Method = Callable[[np.ndarray, np.ndarray, dict[str, Any]], Sampled]


def pymc_xbart(
    X: np.ndarray, y: np.ndarray, settings: dict[str, Any], beta: float = BETA
) -> Sampled:
    """`XBARTForest` with the step method that `pm.sample` gives it, both with their defaults."""
    import pymc as pm

    from pymc_xbart import XBARTForest

    with pm.Model():
        f = XBARTForest("f", X, y=y, num_trees=settings["num_trees"], beta=beta)
        noise = pm.HalfNormal("noise", settings["noise_scale"])
        pm.Normal("y", f, noise, observed=y)
        idata = sample_with_pymc(settings["chains"], settings["seed"], settings)
        leaves = float(idata["sample_stats"]["f_leaves"].mean())
        return sampled(idata)._replace(leaves=leaves)


def pymc_xbart_small(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """The same with trees as small as those of stochtree."""
    return pymc_xbart(X, y, settings, BETA_SMALL)


def pymc_bart(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """pymc-bart with its defaults.

    They include the prior: leaf values get the standard deviation sd(y) / sqrt(num_trees), which
    has no option, and beta is 2, because with 1.25 it asks for 1 TiB of memory. A draw replaces a
    tenth of the trees, by default.

    Each chain has a model of its own. Within one call of `pm.sample(cores=1)` the second chain
    would go on from the trees of the first one, and R-hat would compare a chain with itself.
    """
    import pymc as pm
    import pymc_bart as pmb

    chains = []
    for chain in range(settings["chains"]):
        with pm.Model():
            f = pmb.BART("f", X, y, m=settings["num_trees"])
            noise = pm.HalfNormal("noise", settings["noise_scale"])
            pm.Normal("y", f, noise, observed=y)
            # Only the noise has this seed; the trees are drawn by a fixed one. They soon differ.
            chains.append(sampled(sample_with_pymc(1, [settings["seed"], chain], settings)))
    f, noise, seconds, _ = zip(*chains, strict=True)
    return Sampled(np.concatenate(f), np.concatenate(noise), sum(seconds))


def sample_with_pymc(chains: int, seed: int | list[int], settings: dict[str, Any]) -> Any:
    """Sample the model on PyMC's context stack. Returns all groups."""
    import pymc as pm

    return pm.sample(
        chains=chains,
        tune=settings["tune"],
        draws=settings["draws"],
        random_seed=np.random.default_rng(seed),
        cores=1,
        quiet=True,
        compute_convergence_checks=False,
    )


def sampled(idata: Any) -> Sampled:
    """Read draws and time of a model with f and noise."""
    posterior = idata["posterior"]
    draws = (posterior[name].to_numpy() for name in ("f", "noise"))
    return Sampled(*draws, posterior.attrs["sampling_time"])


def stochtree(X: np.ndarray, y: np.ndarray, settings: dict[str, Any], num_gfr: int = 0) -> Sampled:
    """MCMC of stochtree from trees without splits."""
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=num_gfr,
        num_burnin=settings["tune"],
        num_mcmc=settings["draws"],
        general_params={
            "num_chains": settings["chains"],
            "random_seed": settings["seed"],
            "num_threads": 1,
        },
        mean_forest_params={
            "num_trees": settings["num_trees"],
            "alpha": ALPHA,
            "beta": BETA,
            "min_samples_leaf": 1,
            "max_depth": -1,
            "sample_sigma2_leaf": False,
            # stochtree works on y scaled to variance 1.
            "sigma2_leaf_init": VARIANCE_SHARE / settings["num_trees"],
        },
    )
    shape = (settings["chains"], settings["draws"])
    noise = np.sqrt(model.global_var_samples).reshape(shape)
    forests = model.forest_container_mean
    leaves = np.mean([forests.num_forest_leaves(k) for k in range(noise.size)])
    leaves /= settings["num_trees"]
    return Sampled(model.y_hat_train.T.reshape(*shape, -1), noise, leaves=float(leaves))


def stochtree_warm(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """MCMC of stochtree from its default warm start: five forests grown from the root."""
    return stochtree(X, y, settings, num_gfr=NUM_GFR)


def bartz(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """MCMC of bartz."""
    # JAX takes a thread for each core that it may use, whatever its flags say. It counts them when
    # it is imported.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from bartz import Bart

    model = Bart(
        X.T,
        y,
        num_trees=settings["num_trees"],
        base=ALPHA,
        power=BETA,
        tau_num=np.sqrt(VARIANCE_SHARE * y.var()),
        k=1.0,
        sigma_scale=settings["noise_scale"],
        init_kw={"min_points_per_decision_node": 2, "min_points_per_leaf": 1},
        n_burn=settings["tune"],
        n_save=settings["draws"],
        num_chains=settings["chains"],
        num_chain_devices=None,
        seed=settings["seed"],
        printevery=None,
        precompute_predict_train=True,  # else f at training rows is evaluated once more
        run_mcmc_kw={"inner_loop_length": 0} if settings.get("only_compile") else {},
    )
    shape = (settings["chains"], settings["draws"])
    f = np.asarray(model.predict("train", kind="mean_samples"))
    return Sampled(f.reshape(*shape, -1), np.asarray(model.get_error_sdev()).reshape(shape))


METHODS: dict[str, Method] = {
    "pymc_xbart": pymc_xbart,
    "pymc_xbart_small": pymc_xbart_small,
    "stochtree": stochtree,
    "stochtree_warm": stochtree_warm,
    "pymc_bart": pymc_bart,
    "bartz": bartz,
}
# What a method is to do before the clock starts; bartz compiles anew for another number of draws.
WARM_UPS = {"bartz": {"only_compile": True}}


def main() -> None:
    began = time.perf_counter()
    name, folder, settings = sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    method = METHODS[name]
    method(X, y, settings | WARM_UPS.get(name, FEW))
    first = time.perf_counter() - began
    wall, cpu = time.perf_counter(), time.process_time()
    f, noise, seconds, leaves = method(X, y, settings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    np.save(folder / "f.npy", f[..., :NUM_POINTS])
    np.save(folder / "noise.npy", noise)
    result = {
        "seconds": wall if seconds is None else seconds,
        "seconds_in_all": first + wall,
        "wall_seconds": wall,  # of the second call, compiling and sampling
        "cpu_seconds": cpu,
        "leaves": leaves,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
