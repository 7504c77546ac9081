"""Log-likelihoods of one row each, that are not quadratic in f, and how to draw from them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Family(NamedTuple):
    """Law of y given f, row by row. All functions take y and f, (n,)."""

    draw: Callable  # (f, rng) -> y
    log_p: Callable
    gradient: Callable  # d log p / d f
    curvature: Callable  # -d^2 log p / d f^2


def poisson(exposure=10.0):
    return Family(
        lambda f, rng: rng.poisson(exposure * np.exp(f)),
        lambda y, f: y * f - exposure * np.exp(f),
        lambda y, f: y - exposure * np.exp(f),
        lambda _, f: exposure * np.exp(f),
    )


def binomial(trials=20):
    return Family(
        lambda f, rng: rng.binomial(trials, expit(f)),
        lambda y, f: y * f - trials * np.logaddexp(0, f),
        lambda y, f: y - trials * expit(f),
        lambda _, f: trials * expit(f) * expit(-f),
    )


def log_scale(size=6):
    """Sum of squares of so many Normal variates around 0 with standard deviation exp(f)."""
    return Family(
        lambda f, rng: np.exp(2 * f) * rng.chisquare(size, f.size),
        lambda y, f: -size * f - 0.5 * y * np.exp(-2 * f),
        lambda y, f: y * np.exp(-2 * f) - size,
        lambda y, f: 2 * y * np.exp(-2 * f),
    )


def laplace(scale=0.3):
    """No curvature anywhere."""
    return Family(
        lambda f, rng: f + rng.laplace(0, scale, f.size),
        lambda y, f: -np.abs(y - f) / scale,
        lambda y, f: np.sign(y - f) / scale,
        lambda _, f: np.zeros(f.size),
    )


def student(nu=2.0, scale=0.3):
    """Negative curvature in the tails."""

    def ratio(y, f):
        z = (y - f) / scale
        return z, (nu + 1) / (nu + z**2)

    def curvature(y, f):
        z, weight = ratio(y, f)
        return weight * (1 - 2 * z**2 / (nu + z**2)) / scale**2

    return Family(
        lambda f, rng: f + scale * rng.standard_t(nu, f.size),
        lambda y, f: -0.5 * (nu + 1) * np.log1p(((y - f) / scale) ** 2 / nu),
        lambda y, f: np.multiply(*ratio(y, f)) / scale,
        curvature,
    )


def normal(sd=0.5):
    """Quadratic after all."""
    return Family(
        lambda f, rng: f + sd * rng.standard_normal(f.size),
        lambda y, f: -0.5 * ((y - f) / sd) ** 2,
        lambda y, f: (y - f) / sd**2,
        lambda _, f: np.full(f.size, sd**-2),
    )


FAMILIES = {
    "poisson": poisson(),
    "binomial": binomial(),
    "log-scale": log_scale(),
    "laplace": laplace(),
    "student": student(),
    "normal": normal(),
}


class OfData:
    """`pymc_xbart.forest.nonquadratic.LogLikelihood` of a family, given y."""

    def __init__(self, family, y):
        self.family, self.y = family, y

    def gradient_curvature(self, f):
        return self.family.gradient(self.y, f), self.family.curvature(self.y, f)

    def log_p(self, f):
        return float(np.sum(self.family.log_p(self.y, f)))
