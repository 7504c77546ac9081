"""One sampler on one data set, in a process of its own, judged: for `mixing` and `exact_grid`."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judging import judge
from one_sampling import NUM_POINTS
from peers import describe_peers, run_alone

NUM_CHAINS = 2
ONE_SAMPLING = Path(__file__).with_name("one_sampling.py")
OURS, SMALL = "pymc_xbart", "pymc_xbart_small"


class Method(NamedTuple):
    """One line of a table."""

    label: str
    package: str | None = None  # None for this project
    environment: str | None = None  # in `peers.ENVIRONMENTS`


METHODS = {  # by their names in `one_sampling.METHODS`
    OURS: Method("pymc_xbart"),
    SMALL: Method("pymc_xbart, smaller trees"),
    "stochtree": Method("stochtree", "stochtree", "peers"),
    "stochtree_warm": Method("stochtree, warm start", "stochtree", "peers"),
    "pymc_bart": Method("pymc-bart", "pymc-bart", "pymc-bart"),
    "bartz": Method("bartz", "bartz", "bartz"),
}


class Problem(NamedTuple):
    """One simulated data set."""

    X: np.ndarray  # (n, p)
    y: np.ndarray  # (n,)
    f: np.ndarray  # (n,) noise-free


def sample_alone(method: str, problem: Problem, settings: dict[str, Any]) -> dict[str, float]:
    """Sample by one method in a process of its own, and judge its draws.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    problem : Problem
    settings : dict
        `num_trees`, `tune`, `draws`, `noise_scale` (true standard deviation of the noise), `seed`.

    Returns
    -------
    dict
        What `judge` and `one_sampling` say, the mean of the noise, and ESS per second.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", problem.X)
        np.save(folder / "y.npy", problem.y)
        wanted = settings | {"chains": NUM_CHAINS}
        times = run_alone(ONE_SAMPLING, method, folder, wanted, METHODS[method].environment)
        f, noise = np.load(folder / "f.npy"), np.load(folder / "noise.npy")
    judged = judge(f, problem.f[:NUM_POINTS]) | {"noise": float(noise.mean())}
    return {**judged, "ess_per_second": judged["ess"] / times["seconds"], **times}


def versions_of(methods: Iterable[str]) -> str:
    """Names and versions of the peers among the methods."""
    used = (METHODS[name] for name in METHODS if name in methods)
    return describe_peers({m.package: m.environment for m in used if m.package is not None})
