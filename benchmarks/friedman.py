"""Friedman's function, on which several benchmarks judge methods."""

import numpy as np

NUM_COLUMNS = 10  # of which the function uses five


def friedman(X: np.ndarray) -> np.ndarray:
    """Friedman (1991), "Multivariate adaptive regression splines", section 4.3.

    Two columns interact, one bends, two are linear.
    """
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
