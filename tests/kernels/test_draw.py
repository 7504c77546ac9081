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


def test_exponentials_of_many_are_those_of_the_library():
    """One weight against one of zero tells each exponential apart, down to the smallest."""
    for x in np.concatenate([np.linspace(-700, 0, 5001), -(2.0 ** np.arange(-40, 9))]):
        expected = np.exp(inside.sum_in_log_space([x, x - 1e-3, 0.0])) - 1.0
        found = np.exp(inside.sum_of_many_in_log_space([x, x - 1e-3, 0.0])) - 1.0
        assert found == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_logarithms_of_many_are_those_of_the_library(rng):
    """At all magnitudes, and where they are close to 0 or the mantissa is cut."""
    x = np.concatenate(
        [
            2.0 ** rng.uniform(0, 1023, 20_000),
            rng.uniform(1.0, 4.0, 20_000),
            1.0 + 2.0 ** rng.uniform(-52, 0, 20_000),
            (np.nextafter(2.0 ** np.arange(1, 1024), 0.0)[:, None] * [1.0, np.sqrt(0.5)]).ravel(),
            2.0 ** np.arange(1024),
            [np.finfo(float).max],
        ]
    )
    np.testing.assert_allclose(inside.logs_of_many(x), np.log(x), rtol=1e-15, atol=2e-16)
    for size in range(20):  # whatever is left over where several are taken at a time
        np.testing.assert_allclose(inside.logs_of_many(x[:size]), np.log(x[:size]), rtol=1e-15)


def test_the_logarithm_of_one_is_zero():
    assert inside.logs_of_many([1.0] * 5).tolist() == [0.0] * 5


def draw_many(log_weights, rng, num_draws=10_000):
    return [inside.draw_index(log_weights, rng) for _ in range(num_draws)]


LOG_WEIGHTS = np.array([math.log(0.2), -math.inf, *map(math.log, (0.05, 0.4, 0.3, 0.05))])
LAW = dict(enumerate(LOG_WEIGHTS))


@pytest.mark.parametrize("shift", [0.0, -1e4, 1e4])
def test_draws_follow_the_weights(rng, shift):
    law.assert_law(draw_many(LOG_WEIGHTS + shift, rng), LAW, false_fail=1e-6)
    assert law.smallest_visible_error(LAW, 10_000) < 0.055


def test_that_the_check_would_catch_a_missing_weight(rng):
    without_last = LOG_WEIGHTS.copy()
    without_last[5] = -np.inf
    with pytest.raises(AssertionError):
        law.assert_law(draw_many(without_last, rng), LAW, false_fail=1e-6)


def test_what_is_forbidden_is_never_drawn(rng):
    log_weights = np.array([-np.inf, 0.0, -np.inf, -1.0, -np.inf])
    assert set(draw_many(log_weights, rng, 500)) == {1, 3}


def test_one_option_is_always_drawn(rng):
    assert set(draw_many([-np.inf, -1e300], rng, 100)) == {1}


def test_nothing_is_drawn_where_everything_is_forbidden(rng):
    assert inside.draw_index([-np.inf, -np.inf], rng) == -1
    assert inside.draw_index([], rng) == -1
