"""The simulation study of the paper: functions, noise, settings and published figures.

He, Yalov & Hahn (2019), "XBART: Accelerated Bayesian Additive Regression Trees", AISTATS, section
"Simulation studies". x has 30 independent N(0, 1) columns, y = f(x) + noise, and the judge of a
method is its root mean squared error (RMSE) for f on a hold-out set of n / 4 rows.

The paper gives the noise as kappa * Var(f). Here it is kappa * sd(f): that yields the published
figures for Linear, Single index and Trig + poly, and Var(f) does not. The published Max figures
follow from neither.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NUM_COLUMNS = 30
KAPPAS = (1, 10)
SIZES = (10_000, 50_000, 250_000)

NUM_SWEEPS, BURNIN = 40, 15
ALPHA, BETA = 0.95, 1.25
VARIANCE_SHARE = 0.3  # leaf variance = VARIANCE_SHARE * var(y) / num_trees


def linear(x: np.ndarray) -> np.ndarray:
    return x @ np.linspace(-2, 2, NUM_COLUMNS)


def single_index(x: np.ndarray) -> np.ndarray:
    a = ((x[:, :10] - (-1.5 + np.arange(10) / 3)) ** 2).sum(axis=1)
    return 10 * np.sqrt(a) + np.sin(5 * a)


def trig_poly(x: np.ndarray) -> np.ndarray:
    return 5 * np.sin(3 * x[:, 0]) + 2 * x[:, 1] ** 2 + 3 * x[:, 2] * x[:, 3]


def maximum(x: np.ndarray) -> np.ndarray:
    return x[:, :3].max(axis=1)


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Linear": linear,
    "Max": maximum,
    "Single index": single_index,
    "Trig + poly": trig_poly,
}
# Where the published column follows from the formula, so that it can be a yardstick.
REPRODUCIBLE = ("Linear", "Single index", "Trig + poly")


class Problem(NamedTuple):
    """One simulated data set."""

    X: np.ndarray  # (n, 30) training rows
    y: np.ndarray  # (n,)
    X_new: np.ndarray  # (n // 4, 30) hold-out rows
    f_new: np.ndarray  # (n // 4,) noise-free
    noise_sd: float


def simulate(function: str, kappa: float, n: int, seed: int) -> Problem:
    """Draw a training set of n rows and its hold-out set."""
    rng = np.random.default_rng([seed, n, int(10 * kappa), list(FUNCTIONS).index(function)])
    x = rng.normal(size=(n + n // 4, NUM_COLUMNS))
    f = FUNCTIONS[function](x)
    noise_sd = float(kappa * f.std())
    y = f[:n] + noise_sd * rng.normal(size=n)
    return Problem(x[:n], y, x[n:], f[n:], noise_sd)


class Published(NamedTuple):
    """Table "RMSE of each method": RMSE, and in brackets seconds, of another machine in 2018."""

    xbart: tuple[float, int]
    xgb_cv: tuple[float, int]
    xgb: tuple[float, int]
    network: tuple[float, int]


# fmt: off
PUBLISHED: dict[tuple[str, int, int], Published] = {  # by function, kappa, n
    ("Linear", 1, 10_000): Published((1.74, 20), (2.63, 64), (3.23, 0), (1.39, 26)),
    ("Linear", 1, 50_000): Published((1.04, 180), (1.99, 142), (2.56, 4), (0.66, 28)),
    ("Linear", 1, 250_000): Published((0.67, 1774), (1.50, 1399), (2.00, 55), (0.28, 40)),
    ("Max", 1, 10_000): Published((0.39, 16), (0.42, 62), (0.79, 0), (0.40, 30)),
    ("Max", 1, 50_000): Published((0.25, 134), (0.29, 140), (0.58, 4), (0.20, 32)),
    ("Max", 1, 250_000): Published((0.14, 1188), (0.21, 1554), (0.41, 60), (0.16, 44)),
    ("Single index", 1, 10_000): Published((2.27, 17), (2.65, 61), (3.65, 0), (2.76, 28)),
    ("Single index", 1, 50_000): Published((1.54, 153), (1.61, 141), (2.81, 4), (1.93, 31)),
    ("Single index", 1, 250_000): Published((1.14, 1484), (1.18, 1424), (2.16, 55), (1.67, 41)),
    ("Trig + poly", 1, 10_000): Published((1.31, 17), (2.08, 61), (2.70, 0), (3.96, 26)),
    ("Trig + poly", 1, 50_000): Published((0.74, 147), (1.29, 141), (1.67, 4), (3.33, 29)),
    ("Trig + poly", 1, 250_000): Published((0.45, 1324), (0.82, 1474), (1.11, 59), (2.56, 41)),
    ("Linear", 10, 10_000): Published((5.07, 16), (8.04, 61), (21.25, 0), (7.39, 12)),
    ("Linear", 10, 50_000): Published((3.16, 135), (5.47, 140), (16.17, 4), (3.62, 14)),
    ("Linear", 10, 250_000): Published((2.03, 1228), (3.15, 1473), (11.49, 54), (1.89, 19)),
    ("Max", 10, 10_000): Published((1.94, 16), (2.76, 60), (7.18, 0), (2.98, 15)),
    ("Max", 10, 50_000): Published((1.22, 133), (1.85, 139), (5.49, 4), (1.63, 16)),
    ("Max", 10, 250_000): Published((0.75, 1196), (1.05, 1485), (3.85, 54), (0.85, 22)),
    ("Single index", 10, 10_000): Published((7.13, 16), (10.61, 61), (28.68, 0), (9.43, 14)),
    ("Single index", 10, 50_000): Published((4.51, 133), (6.91, 139), (21.18, 4), (6.42, 16)),
    ("Single index", 10, 250_000): Published((3.06, 1214), (4.10, 1547), (14.82, 54), (4.72, 21)),
    ("Trig + poly", 10, 10_000): Published((4.94, 16), (7.16, 61), (17.97, 0), (8.20, 13)),
    ("Trig + poly", 10, 50_000): Published((3.01, 132), (4.92, 139), (13.30, 4), (5.53, 14)),
    ("Trig + poly", 10, 250_000): Published((1.87, 1216), (3.17, 1462), (9.37, 49), (4.13, 20)),
}
# fmt: on
