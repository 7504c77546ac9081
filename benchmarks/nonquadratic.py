"""What a sweep costs where the likelihood is not Normal.

    uv run benchmarks/nonquadratic.py

Friedman's function, scaled to standard deviation 1 (0.7 for counts), is the mean, the logit or the
log of the mean of a response: Normal, Bernoulli, Poisson. n = 10 000, 10 columns, 50 trees, noise
of the Normal response 1. One step of `XBARTStep` for each takes turns, after some to arrive;
processor time, one thread. A ratio is taken within a turn, since neighbours in time drift alike.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import numpy as np
import pymc as pm
from friedman import NUM_COLUMNS, friedman
from results import describe_machine, keep, number, table

import pymc_xbart as pxb

NUM_TREES = 50
ARRIVE = 100  # steps before those that are timed: blocks of trees find their size
MAX_RATIO = 5  # of Bernoulli to Normal: what this project asks of itself

Response = Callable[[Any, np.ndarray, np.random.Generator], Any]
RESPONSES: dict[str, tuple[float, Response]] = {  # sd of f, and the likelihood
    "Normal": (1.0, lambda f, z, rng: pm.Normal("y", f, 1, observed=z + rng.normal(size=z.size))),
    "Bernoulli": (
        1.0,
        lambda f, z, rng: pm.Bernoulli(
            "y", logit_p=f, observed=rng.binomial(1, 1 / (1 + np.exp(-z)))
        ),
    ),
    "Poisson": (
        0.7,
        lambda f, z, rng: pm.Poisson("y", pm.math.exp(f), observed=rng.poisson(np.exp(z))),
    ),
}


class Chain:
    """A step method and where it is."""

    def __init__(self, name: str, num_rows: int) -> None:
        sd, respond = RESPONSES[name]
        rng = np.random.default_rng(1)
        X = rng.uniform(size=(num_rows, NUM_COLUMNS))
        z = friedman(X)
        z = sd * (z - z.mean()) / z.std()
        with pm.Model() as model:
            respond(pxb.XBARTForest("f", X, sigma=sd, num_trees=NUM_TREES), z, rng)
            self.step = pxb.XBARTStep()
        self.step.setup_chain(rng, tune=2 * ARRIVE, draws=10_000)
        self.point = model.initial_point()
        for _ in range(ARRIVE):
            self.move()
        self.step.tune = False
        self.acceptance: list[float] = []

    def move(self) -> float:
        """Take a step. Returns its seconds."""
        start = time.process_time()
        self.point, (stats,) = self.step.step(self.point)
        seconds = time.process_time() - start
        if not self.step.tune:
            self.acceptance.append(stats["f_acceptance"])
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=20)
    args = parser.parse_args()
    chains = {name: Chain(name, args.rows) for name in RESPONSES}
    runs = [{name: chain.move() for name, chain in chains.items()} for _ in range(args.turns)]
    text = report(chains, runs, args.rows)
    print(text)
    keep("nonquadratic", text, runs)


def report(chains: dict[str, Chain], runs: list[dict[str, float]], num_rows: int) -> str:
    rows = []
    for name, chain in chains.items():
        milliseconds = 1e3 * statistics.median(run[name] for run in runs)
        ratio = statistics.median(run[name] / run["Normal"] for run in runs)
        accepted = statistics.mean(chain.acceptance)
        rows.append([name, number(milliseconds, 1), number(ratio), number(accepted)])
    return "\n\n".join(
        [
            "# Steps under likelihoods that are not Normal",
            f"{describe_machine()}. n = {num_rows}, {NUM_TREES} trees, {len(runs)} turns.",
            table(["response", "ms a step", "x Normal", "accepted"], rows),
            f"Wanted: Bernoulli at most {MAX_RATIO} x Normal.",
        ]
    )


if __name__ == "__main__":
    main()
