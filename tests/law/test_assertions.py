"""The statistical assertions are wrong as often as they say, and see what they say they see."""

import math

import numpy as np
import pytest

from tests.helpers import law

SKEWED = {k: math.log(0.45 * 0.55**k) for k in range(60)}
SKEWED[60] = math.log(1 - math.fsum(map(math.exp, SKEWED.values())))


def sample(rng, weights, num_draws):
    probability = np.array([math.exp(w) for w in weights.values()])
    counts = rng.multinomial(num_draws, probability / probability.sum())
    return law.Counter(dict(zip(weights, counts.tolist(), strict=True)))


def share_of_failures(check, num_trials):
    failures = 0
    for _ in range(num_trials):
        try:
            check()
        except AssertionError:
            failures += 1
    return failures / num_trials


def upper_limit(false_fail, num_trials):
    """What the share of trials that fail exceeds with probability 1e-6 (Chernoff)."""
    nats = -math.log(1e-6)
    return false_fail + math.sqrt(2 * false_fail * nats / num_trials) + nats / num_trials


CHECKS = {
    "law": lambda rng: law.assert_law(sample(rng, SKEWED, 3000), SKEWED, 0.01),
    "same law": lambda rng: law.assert_same_law(
        sample(rng, SKEWED, 3000), sample(rng, SKEWED, 3000), 0.01
    ),
    "total variation": lambda rng: law.assert_close_in_total_variation(
        sample(rng, SKEWED, 300), SKEWED, 0.01
    ),
    "uniform": lambda rng: law.assert_uniform(rng.random(200), 0.01),
}


@pytest.mark.parametrize("name", CHECKS)
def test_correct_draws_fail_no_more_often_than_declared(rng, name):
    share = share_of_failures(lambda: CHECKS[name](rng), 3000)
    assert share <= 1.1 * upper_limit(0.01, 3000)


def far_tail(rate, limit, false_fail):
    """P(likelihood ratio of a Poisson count > limit) under rate `rate`, over `false_fail`."""
    total = 0.0
    for k in range(int(10 * rate)):
        ratio = (k / rate) if k else 1.0
        if 2 * (k * math.log(ratio) - (k - rate)) > limit:
            total += math.exp(k * math.log(rate) - rate - math.lgamma(k + 1))
    return total / false_fail


def test_the_level_holds_in_the_far_tail_of_the_rarest_cell():
    """A level of 1e-6 cannot be simulated, but one Poisson cell can be summed."""
    limit = law.chi_square_quantile(1e-6, 1)
    assert far_tail(law.MIN_EXPECTED, limit, 1e-6) < 1.5


@pytest.mark.parametrize("dof", [1, 2, 3, 10, 57, 400])
def test_chi_square_tails_agree_with_simulation_and_with_themselves(rng, dof):
    draws = rng.chisquare(dof, 4000)
    law.assert_cdf(draws, lambda x: 1 - law.chi_square_tail(x, dof))
    for tail in (0.3, 1e-3, 1e-6):
        quantile = law.chi_square_quantile(tail, dof)
        assert law.chi_square_tail(quantile, dof) == pytest.approx(tail, rel=1e-6)


def test_known_quantiles_of_chi_square():
    # Tables: 6.635 leaves 1 percent with one degree of freedom, 29.588 leaves 0.1 percent with ten.
    assert law.chi_square_quantile(0.01, 1) == pytest.approx(6.635, abs=5e-4)
    assert law.chi_square_quantile(0.001, 10) == pytest.approx(29.588, abs=5e-4)


def test_an_error_as_small_as_stated_is_seen(rng):
    num_draws = 20_000
    visible = law.smallest_visible_error(SKEWED, num_draws)
    wrong = dict(SKEWED)
    # The error that is hardest to see: between two cells of the largest probability.
    wrong[0] = math.log(math.exp(SKEWED[0]) + visible)
    wrong[1] = math.log(math.exp(SKEWED[1]) - visible)
    assert law.total_variation(wrong, SKEWED) == pytest.approx(visible)
    missed = 1 - share_of_failures(
        lambda: law.assert_law(sample(rng, wrong, num_draws), SKEWED), 300
    )
    assert missed <= upper_limit(1e-3, 300)


def test_twice_the_limit_in_total_variation_is_seen(rng):
    limit = law.total_variation_limit(SKEWED, 3000)
    wrong = dict(SKEWED)
    wrong[0] = math.log(math.exp(SKEWED[0]) + 2 * limit)
    wrong[1] = math.log(math.exp(SKEWED[1]) - 2 * limit)
    assert (
        share_of_failures(
            lambda: law.assert_close_in_total_variation(sample(rng, wrong, 3000), SKEWED), 300
        )
        > 0.98
    )


def test_what_the_law_lacks_fails_at_once():
    with pytest.raises(AssertionError, match="impossible"):
        law.assert_law(["a"] * 1000 + ["c"], {"a": math.log(0.5), "b": math.log(0.5)})


def test_a_law_that_does_not_sum_to_one_is_refused():
    with pytest.raises(AssertionError, match="sums to"):
        law.assert_law(["a"], {"a": math.log(0.9)})


def test_rare_cells_are_pooled_until_they_hold_enough():
    cell = law.pool(np.array([500.0, 3.0, 40.0, 9.0, 9.0, 1.0]))
    assert cell.tolist() == [0, 2, 1, 2, 2, 2]
    joined = law.pool(np.array([500.0, 3.0, 40.0, 9.0]))
    assert joined.tolist() == [0, 1, 1, 1]
    assert law.pool(np.array([3.0, 4.0])).tolist() == [0, 0]
