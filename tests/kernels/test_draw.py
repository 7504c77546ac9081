import math

import numpy as np
import pytest

from tests.helpers import inside, law

both_sums = pytest.mark.parametrize(
    "log_sum_exp", [inside.sum_in_log_space, inside.sum_of_many_in_log_space]
)


@both_sums
def test_log_sum_exp_is_the_log_of_the_sum(rng, log_sum_exp):
    for _ in range(100):
        log_weights = 20 * rng.standard_normal(int(rng.integers(1, 40)))
        log_weights += rng.choice([-800, 0, 900])
        expected = np.logaddexp.reduce(log_weights)
        assert log_sum_exp(log_weights) == pytest.approx(expected, rel=1e-13, abs=1e-13)


@both_sums
def test_log_sum_exp_of_many_negligible_weights_keeps_its_digits(log_sum_exp):
    log_weights = np.full(4000, -45.0)
    log_weights[17] = 0.0
    expected = np.log1p(3999 * np.exp(-45.0))
    assert log_sum_exp(log_weights) == pytest.approx(expected, abs=1e-15)


@both_sums
def test_log_sum_exp_knows_forbidden_weights_and_its_size(log_sum_exp):
    assert log_sum_exp([-np.inf, -np.inf]) == -np.inf
    assert log_sum_exp([-np.inf, 3.0, -np.inf]) == 3.0
    assert log_sum_exp([3.0, 99.0], size=1) == 3.0
    assert log_sum_exp([3.0], size=0) == -np.inf


@pytest.mark.parametrize("shift", [1e17, -1e17, 1e60, -1e300])
def test_weights_beyond_the_resolution_of_a_nat_still_give_a_draw(rng, shift):
    log_weights = [-np.inf, shift, shift]
    assert inside.sum_in_log_space(log_weights) == pytest.approx(shift)
    assert inside.draw_index(log_weights, rng) in (1, 2)


def test_exponentials_of_many_are_those_of_the_library(rng):
    x = np.concatenate([np.linspace(-700, 0, 50_001), -(2.0 ** np.arange(-60, 9))])
    factor = rng.exponential(size=x.size)
    assert inside.terms_of_many(x, factor) == pytest.approx(factor * np.exp(x), rel=1e-13, abs=0)


def test_exponentials_that_are_not_negligible_are_right_to_the_last_digits():
    x = np.linspace(-40, 0, 50_001)
    assert inside.terms_of_many(x, np.ones(x.size)) == pytest.approx(np.exp(x), rel=5e-15, abs=0)


def test_exponentials_too_small_for_a_number_are_next_to_nothing():
    x = np.array([-701.0, -745.0, -1e300, 0.0])
    assert (inside.terms_of_many(x, np.ones(4)) <= [1e-304, 1e-304, 1e-304, 1.0]).all()


def test_terms_have_factors(rng):
    for size in range(1, 20):  # whatever is left over where several are taken at a time
        log_weights, factor = 20 * rng.standard_normal(30), rng.exponential(size=30)
        found = inside.sum_of_many_in_log_space(log_weights, size, factor)
        terms = np.log(factor[:size]) + log_weights[:size]
        assert found == pytest.approx(np.logaddexp.reduce(terms), rel=1e-13, abs=1e-13)


def draw_many(log_weights, rng, num_draws=10_000, draw=inside.draw_index):
    return [draw(log_weights, rng) for _ in range(num_draws)]


def draw_from_sum(log_weights, rng):
    """By the terms that summing up leaves."""
    return inside.draw_from_sum(log_weights, np.ones(len(log_weights)), rng)


def draw_from_factors(log_weights, rng):
    return inside.draw_from_sum(np.zeros(len(log_weights)), np.exp(log_weights), rng)


both_draws = pytest.mark.parametrize("draw", [inside.draw_index, draw_from_sum])


LOG_WEIGHTS = np.array([math.log(0.2), -math.inf, *map(math.log, (0.05, 0.4, 0.3, 0.05))])
LAW = dict(enumerate(LOG_WEIGHTS))


@both_draws
@pytest.mark.parametrize("shift", [0.0, -1e4, 1e4])
def test_draws_follow_the_weights(rng, shift, draw):
    law.assert_law(draw_many(LOG_WEIGHTS + shift, rng, draw=draw), LAW, false_fail=1e-6)
    assert law.smallest_visible_error(LAW, 10_000) < 0.055


def test_draws_follow_the_factors(rng):
    law.assert_law(draw_many(LOG_WEIGHTS, rng, draw=draw_from_factors), LAW, false_fail=1e-6)


def test_that_the_check_would_catch_a_missing_weight(rng):
    without_last = LOG_WEIGHTS.copy()
    without_last[5] = -np.inf
    with pytest.raises(AssertionError):
        law.assert_law(draw_many(without_last, rng), LAW, false_fail=1e-6)


@both_draws
def test_what_is_forbidden_is_never_drawn(rng, draw):
    log_weights = np.array([-np.inf, 0.0, -np.inf, -1.0, -np.inf])
    assert set(draw_many(log_weights, rng, 500, draw)) == {1, 3}


@both_draws
def test_one_option_is_always_drawn(rng, draw):
    assert set(draw_many([-np.inf, -1e300], rng, 100, draw)) == {1}


@both_draws
def test_nothing_is_drawn_where_everything_is_forbidden(rng, draw):
    assert draw([-np.inf, -np.inf], rng) == -1
    assert draw([], rng) == -1
