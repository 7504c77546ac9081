"""Split weights are drawn from their law given the trees.

Each move starts from an exact draw of that law, so that it must end in one. Tests compare uniform
variates, and fail correct code with probability 1e-6 each.
"""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from pymc_xbart.forest.split_weights import (
    SplitCounts,
    draw_log_dirichlet,
    draw_refused,
    log_evidence,
    slice_sample,
)
from tests.helpers import law

DRAWS = 4000
CASES = {
    "all columns everywhere": SplitCounts(
        np.array([3.0, 1.0]), np.array([[1.0, 1.0]]), np.array([4.0])
    ),
    "one column used up": SplitCounts(
        np.array([5.0, 4.0]), np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([6.0, 3.0])
    ),
    "either used up": SplitCounts(
        np.array([4.0, 6.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([4.0, 6.0])
    ),
    "numbers of cuts": SplitCounts(
        np.array([2.0, 7.0]),
        np.array([[30.0, 1.0], [2.0, 5.0], [1.0, 0.0]]),
        np.array([5.0, 3.0, 1.0]),
    ),
    "one that never occurs": SplitCounts(
        np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 1.0])
    ),
}
CONCENTRATION = np.array([0.7, 0.4])


def exact_cdf(splits):
    """Distribution function of the first of two weights given the trees, on a grid."""
    # The middles of cells that are narrow near the ends, where the density has poles.
    edges = stats.beta(0.3, 0.3).ppf(np.linspace(0, 1, 40_001))
    s = (edges[1:] + edges[:-1]) / 2
    weights = np.array([s, 1 - s])
    exponents = CONCENTRATION - 1 + splits.counts
    log_density = exponents @ np.log(weights) - splits.occurrences @ np.log(
        splits.availability @ weights
    )
    mass = np.exp(log_density - log_density.max()) * np.diff(edges)
    return edges, np.append(0.0, np.cumsum(mass) / mass.sum())


def step(splits, weights, rng, refused=draw_refused):
    counts = splits.counts + refused(splits, weights, rng)
    return np.exp(draw_log_dirichlet(CONCENTRATION + counts, rng))


@pytest.mark.parametrize("case", CASES)
def test_they_keep_their_law(case, rng):
    edges, cdf = exact_cdf(CASES[case])
    starts = np.interp(rng.random(DRAWS), cdf, edges)
    ends = [step(CASES[case], np.array([s, 1 - s]), rng)[0] for s in starts]
    law.assert_uniform(np.interp(ends, edges, cdf), law.FALSE_FAIL)


def test_that_this_would_catch_columns_that_are_not_refused(rng):
    def never(splits, weights, rng):
        return 0.0

    case = CASES["one column used up"]
    edges, cdf = exact_cdf(case)
    starts = np.interp(rng.random(DRAWS), cdf, edges)
    ends = [step(case, np.array([s, 1 - s]), rng, never)[0] for s in starts]
    with pytest.raises(AssertionError):
        law.assert_uniform(np.interp(ends, edges, cdf), law.FALSE_FAIL)


def test_refusals_of_columns_that_are_hardly_ever_available(rng):
    case = SplitCounts(np.array([0.0, 1.0]), np.array([[0.0, 1.0]]), np.array([1.0]))
    refused = draw_refused(case, np.array([1.0, 1e-200]), rng)
    assert refused[1] == 0
    assert 1e190 < refused[0] < 1e210


def log_cdf_below(log_weight, shape, other):
    """log P(s < weight) of a beta law, by its leading term where the weight is close to zero."""
    if log_weight > -30:
        return stats.beta(shape, other).logcdf(np.exp(log_weight))
    beta = gammaln(shape) + gammaln(other) - gammaln(shape + other)
    return shape * log_weight - np.log(shape) - beta


@pytest.mark.parametrize("shape", [1e-4, 0.02, 1.0, 30.0])
def test_logarithms_of_dirichlet_draws(shape, rng):
    def cdf(log_weights):
        first, second = log_weights
        if first < second:
            return np.exp(log_cdf_below(first, shape, 2 * shape))
        return -np.expm1(log_cdf_below(second, 2 * shape, shape))

    draws = [draw_log_dirichlet(np.array([shape, 2 * shape]), rng) for _ in range(DRAWS)]
    law.assert_uniform(np.array(list(map(cdf, draws))), law.FALSE_FAIL)


def test_logarithms_sum_to_one(rng):
    log_weights = draw_log_dirichlet(np.full(20_000, 1 / 20_000), rng)
    assert np.isfinite(log_weights).all()
    assert log_weights.min() < -5000
    np.testing.assert_allclose(np.exp(log_weights).sum(), 1.0)


def test_evidence_is_an_integral_over_the_weights():
    counts = np.array([3.0, 0.0])
    prior = stats.beta(*CONCENTRATION)
    integral, _ = integrate.quad(lambda s: prior.pdf(s) * s**3, 0, 1)
    np.testing.assert_allclose(log_evidence(counts, CONCENTRATION), np.log(integral), rtol=1e-6)


def test_evidence_of_columns_one_after_the_other(rng):
    concentration, counts, total = rng.gamma(0.3, size=5), np.zeros(5), 0.0
    for v in rng.integers(0, 3, size=12):
        seen = concentration + counts
        total += np.log(seen[v] / seen.sum())
        counts[v] += 1
    np.testing.assert_allclose(log_evidence(counts, concentration), total, rtol=1e-10)


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_slices_keep_a_skewed_law(scale, rng):
    density = stats.gumbel_r(scale=scale)
    starts = density.rvs(DRAWS, random_state=rng)
    ends = [slice_sample(density.logpdf, start, rng) for start in starts]
    law.assert_uniform(density.cdf(ends), law.FALSE_FAIL)
    assert np.mean(np.abs(starts - ends) > 0.1 * min(scale, 5.0)) > 0.5


def test_slices_end_where_there_is_no_density(rng):
    with pytest.raises(ValueError, match=r"not a number at 2, where the chain is"):
        slice_sample(lambda _: np.nan, 2.0, rng)


def test_that_this_would_catch_a_slice_that_is_too_low(rng):
    density = stats.gumbel_r(scale=1.0)
    starts = density.rvs(DRAWS, random_state=rng)
    ends = [slice_sample(lambda x: density.logpdf(x) / 5, start, rng) for start in starts]
    with pytest.raises(AssertionError):
        law.assert_uniform(density.cdf(ends), law.FALSE_FAIL)
