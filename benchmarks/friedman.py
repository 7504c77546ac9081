"""Friedman's function, on which several benchmarks judge methods."""

from typing import NamedTuple

import numpy as np

NUM_COLUMNS = 10  # of which the function uses five


def friedman(X: np.ndarray) -> np.ndarray:
    """Friedman (1991), "Multivariate adaptive regression splines", section 4.3.

    Two columns interact, one bends, two are linear.
    """
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


class Problem(NamedTuple):
    """One simulated data set."""

    X: np.ndarray  # (n, p)
    y: np.ndarray  # (n,)
    f: np.ndarray  # (n,) noise-free
    noise_sd: float


def draw_problem(
    rng: np.random.Generator, num_rows: int, kappa: float, num_columns: int = NUM_COLUMNS
) -> Problem:
    """Uniform columns, and noise of kappa times the standard deviation of f."""
    X = rng.uniform(size=(num_rows, num_columns))
    f = friedman(X)
    noise_sd = float(kappa * f.std())
    return Problem(X, f + noise_sd * rng.normal(size=num_rows), f, noise_sd)
