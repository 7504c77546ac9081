"""Responses of PyMC that are not quadratic in a forest, and how to draw them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit, ndtr, softmax

CENSORED_AT = 2.5
CUTPOINTS = np.array([-1.0, 0.0, 1.5])
LAPLACE_SCALE = 0.3


class Response(NamedTuple):
    """A response `y` given a forest, one observation for each row of X."""

    build: Callable  # (f, y) -> random variable, with y as observed
    draw: Callable  # (f, rng) -> y
    sd: float = 1.0  # of f, where signal and noise are of similar size
    num_forests: int | None = None  # k, where f is (k, n)
    is_count: bool = False


def asymmetric_laplace(q):
    """Quantile regression: f is the quantile q of y."""

    def draw(f, rng):
        is_above = rng.random(f.size) > q
        distance = rng.exponential(LAPLACE_SCALE, f.size)
        return f + np.where(is_above, distance / q, -distance / (1 - q))

    scale = np.sqrt(q * (1 - q)) / LAPLACE_SCALE
    return Response(lambda f, y: pm.AsymmetricLaplace("y", q=q, b=scale, mu=f, observed=y), draw)


def draw_ordered(f, rng):
    return (f + rng.logistic(size=f.size) > CUTPOINTS[:, None]).sum(axis=0)


def draw_categories(f, rng):
    return (rng.random(f.shape[1]) > softmax(f, axis=0).cumsum(axis=0)).sum(axis=0)


def draw_inflated(f, rng):
    return rng.poisson(np.exp(f)) * rng.binomial(1, 0.7, f.size)


def draw_mixture(f, rng):
    return f + np.where(rng.random(f.size) < 0.7, 0.5, 2.0) * rng.standard_normal(f.size)


RESPONSES = {
    "bernoulli, logit": Response(
        lambda f, y: pm.Bernoulli("y", logit_p=f, observed=y),
        lambda f, rng: rng.binomial(1, expit(f)),
        is_count=True,
    ),
    "bernoulli, probit": Response(
        lambda f, y: pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y),
        lambda f, rng: rng.binomial(1, ndtr(f)),
        is_count=True,
    ),
    "binomial": Response(
        lambda f, y: pm.Binomial("y", n=5, logit_p=f, observed=y),
        lambda f, rng: rng.binomial(5, expit(f)),
        is_count=True,
    ),
    "poisson": Response(
        lambda f, y: pm.Poisson("y", pt.exp(f), observed=y),
        lambda f, rng: rng.poisson(np.exp(f)),
        sd=0.7,
        is_count=True,
    ),
    "negative binomial": Response(
        lambda f, y: pm.NegativeBinomial("y", mu=pt.exp(f), alpha=2.0, observed=y),
        lambda f, rng: rng.negative_binomial(2, 2 / (2 + np.exp(f))),
        sd=0.7,
        is_count=True,
    ),
    "student": Response(
        lambda f, y: pm.StudentT("y", nu=3, mu=f, sigma=0.6, observed=y),
        lambda f, rng: f + 0.6 * rng.standard_t(3, f.size),
    ),
    "gamma": Response(
        lambda f, y: pm.Gamma("y", alpha=2.0, beta=2 * pt.exp(-f), observed=y),
        lambda f, rng: rng.gamma(2, np.exp(f) / 2),
        sd=0.6,
    ),
    "weibull, censored": Response(
        lambda f, y: pm.Censored(
            "y", pm.Weibull.dist(1.5, pt.exp(f)), lower=None, upper=CENSORED_AT, observed=y
        ),
        lambda f, rng: np.minimum(np.exp(f) * rng.weibull(1.5, f.size), CENSORED_AT),
        sd=0.6,
    ),
    "median": asymmetric_laplace(0.5),
    "quantile": asymmetric_laplace(0.9),
    "ordered": Response(
        lambda f, y: pm.OrderedLogistic(
            "y", eta=f, cutpoints=CUTPOINTS, compute_p=False, observed=y
        ),
        draw_ordered,
        is_count=True,
    ),
    "zero-inflated poisson": Response(
        lambda f, y: pm.ZeroInflatedPoisson("y", psi=0.7, mu=pt.exp(f), observed=y),
        draw_inflated,
        sd=0.7,
        is_count=True,
    ),
    "categorical": Response(
        lambda f, y: pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=y),
        draw_categories,
        num_forests=3,
        is_count=True,
    ),
    "mean and log scale": Response(
        lambda f, y: pm.Normal("y", f[0], pt.exp(f[1]), observed=y),
        lambda f, rng: f[0] + np.exp(f[1]) * rng.standard_normal(f.shape[1]),
        sd=0.6,
        num_forests=2,
    ),
    "mixture": Response(
        lambda f, y: pm.Mixture(
            "y",
            w=np.array([0.7, 0.3]),
            comp_dists=[pm.Normal.dist(f, 0.5), pm.Normal.dist(f, 2.0)],
            observed=y,
        ),
        draw_mixture,
    ),
}
