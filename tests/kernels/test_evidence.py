import math

import numpy as np
import pytest

from tests.helpers import cases, entrances, law, slow


def random_leaf(rng):
    n = int(rng.integers(1, 12))
    h = cases.random_h(rng, n)
    return 2 * rng.standard_normal(n), h, float(rng.choice([1e-3, 0.5, 20.0]))


def test_evidence_is_the_ratio_of_dense_gaussian_densities(rng):
    for _ in range(200):
        g, h, leaf_var = random_leaf(rng)
        # With f = 0 and a Normal likelihood, g = h y: y has noise variance 1 / h.
        h = h + 0.05
        y, noise_var = g / h, 1 / h
        together = np.zeros(g.size, int)
        with_leaf = slow.dense_log_density(y, noise_var, leaf_var, together)
        without = slow.dense_log_density(y, noise_var, 0.0, together)
        evidence = entrances.log_evidence(g.sum(), h.sum(), leaf_var)
        assert evidence == pytest.approx(with_leaf - without, rel=1e-9, abs=1e-9)


def test_evidence_is_the_integral_over_the_leaf_value_also_without_curvature(rng):
    for _ in range(100):
        g, h, leaf_var = random_leaf(rng)
        sum_g, sum_h = 0.3 * g.sum(), h.sum()
        # The trapezoid rule is exact to rounding for a Gaussian integrand.
        sd = math.sqrt(leaf_var)
        t = np.linspace(-40 * sd, 40 * sd, 20_001) + leaf_var * sum_g / (1 + leaf_var * sum_h)
        log_integrand = sum_g * t - sum_h * t**2 / 2 - t**2 / (2 * leaf_var)
        largest = log_integrand.max()
        step = (t[1] - t[0]) / (sd * math.sqrt(2 * math.pi))
        integral = step * np.exp(log_integrand - largest).sum()
        evidence = entrances.log_evidence(sum_g, sum_h, leaf_var)
        assert evidence == pytest.approx(largest + math.log(integral), rel=1e-9, abs=1e-9)


def test_evidence_and_its_twin_agree(rng):
    for _ in range(200):
        g, h, leaf_var = random_leaf(rng)
        assert entrances.log_evidence(g.sum(), h.sum(), leaf_var) == pytest.approx(
            slow.log_evidence(g, h, leaf_var), rel=1e-12, abs=1e-12
        )


def test_rows_without_gradient_and_curvature_say_nothing():
    assert entrances.log_evidence(0.0, 0.0, 3.0) == 0.0


def leaf_values(rng, sum_g, sum_h, leaf_var, num_draws=3000):
    return [entrances.draw_leaf_value(sum_g, sum_h, leaf_var, rng) for _ in range(num_draws)]


def posterior_cdf(g, h, leaf_var):
    mean, var = slow.leaf_posterior(g, h, leaf_var)
    return lambda t: slow.normal_cdf((t - mean) / math.sqrt(var))


@pytest.mark.parametrize("sum_h", [0.0, 1.7, 300.0])
def test_leaf_values_follow_their_posterior(rng, sum_h):
    draws = leaf_values(rng, 4.0, sum_h, 0.8)
    law.assert_cdf(draws, posterior_cdf([4.0], [sum_h], 0.8), false_fail=1e-6)
    # Sure to see: a mean that is off by a quarter of a standard deviation.
    assert law.cdf_limit(len(draws)) * 2 < slow.normal_cdf(0.25) - slow.normal_cdf(0)


def test_that_the_check_would_catch_a_prior_draw(rng):
    draws = leaf_values(rng, 0.0, 0.0, 0.8)
    with pytest.raises(AssertionError):
        law.assert_cdf(draws, posterior_cdf([0.0], [1.7], 0.8), false_fail=1e-6)
