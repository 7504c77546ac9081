"""Curvatures that are whole multiples of one number are known as such, and any others are not."""

import numpy as np
import pytest

from pymc_xbart.kernels import whole_multiples
from pymc_xbart.kernels.weights import MAX_MEAN_WEIGHT, MAX_ROWS, MAX_SMALLEST
from tests.helpers import inside

SCALES = [1e-150, 0.3, 7.0, 1e100]


@pytest.mark.parametrize("scale", SCALES)
def test_multiples_of_the_smallest_curvature_are_found(rng, scale):
    for n in (2, 5, 100, 3000):
        weights = rng.poisson(4.0, n)
        weights[:2] = 1, 2
        assert inside.weights_of(scale * rng.permutation(weights))[0] == scale
        divisor, found = inside.weights_of(scale * weights)
        assert divisor == scale
        assert found == weights.tolist()


@pytest.mark.parametrize("smallest", range(1, MAX_SMALLEST + 1))
def test_the_smallest_curvature_may_be_a_multiple_itself(smallest):
    weights = [smallest, 0, smallest + 1]
    assert inside.weights_of(0.375 * np.array(weights)) == (0.375, weights)


def test_the_common_number_is_as_large_as_can_be():
    assert inside.weights_of([1.5, 3.0, 0.0, 6.0]) == (1.5, [1, 2, 0, 4])
    assert inside.weights_of([6.0, 9.0]) == (3.0, [2, 3])


def test_equal_curvatures_weigh_one_each():
    assert inside.weights_of([0.7] * 5) == (0.7, [1] * 5)
    assert inside.weights_of([0.0] * 5) == (0.0, [1] * 5)


def test_a_multiple_that_is_off_by_one_bit_is_none(rng):
    h = 0.3 * np.array([1.0, 5.0, 2.0, 2.0, 0.0])
    off = int(rng.integers(4))
    h[off] = np.nextafter(h[off], 9.0)
    assert inside.weights_of(h) is None


@pytest.mark.parametrize("n", [3, 20, 1000])
def test_curvatures_at_random_are_none(rng, n):
    for _ in range(100):
        assert inside.weights_of(rng.gamma(1.0, 1.0, n)) is None


def test_weights_that_are_too_large_are_none():
    h = np.ones(10)
    h[0] = 10 * MAX_MEAN_WEIGHT - 9
    assert inside.weights_of(h)[1] == h.tolist()
    h[0] += 1
    assert inside.weights_of(h) is None


@pytest.mark.parametrize(("n", "are_found"), [(MAX_ROWS, True), (MAX_ROWS + 1, False)])
def test_too_many_rows_get_no_weights(n, are_found):
    h = np.ones(n)
    h[-1] = 2.0
    assert (inside.weights_of(h) is not None) == are_found
    assert inside.weights_of(np.ones(n)) is not None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_curvatures_that_are_none_have_no_weights(bad):
    for h in ([bad, 1.0], [1.0, bad, 2.0], [0.0, bad, bad, 0.5]):
        assert inside.weights_of(h) is None


def test_the_smallest_numbers_there_are_do_no_harm():
    tiny = 5e-324
    assert inside.weights_of([2 * tiny, 3 * tiny]) == (tiny, [2, 3])
    assert inside.weights_of([tiny, 1.0]) is None


@pytest.mark.parametrize("coarse", [1.0, 4.0, 7.0])
@pytest.mark.parametrize("scale", SCALES)
def test_rounded_curvatures_are_always_multiples(rng, scale, coarse):
    for n in (1, 2, 3, 50, 1000):
        for shape in (0.2, 1.0, 10.0):  # the last: hardly any small weight
            h = scale * rng.gamma(shape, 1.0, n)
            rounded = whole_multiples(h, coarse, rng)
            divisor = h.mean() / coarse
            assert (np.abs(rounded - h) <= divisor * (1 + 1e-6)).all()
            common, weights = inside.weights_of(rounded)
            assert (common * np.array(weights) == rounded).all()
            if np.ptp(rounded) > 0:
                assert common >= divisor * (1 - 1e-6)


def test_rounding_is_unbiased(rng):
    h = np.array([0.0, 0.01, 1.0, 2.7, 5.0])
    num_draws = 20_000
    mean = np.mean([whole_multiples(h, 4.0, rng) for _ in range(num_draws)], axis=0)
    # Hoeffding: each draw is one of two numbers a divisor apart. False fail 1e-6.
    limit = h.mean() / 4.0 * np.sqrt(np.log(2 * h.size / 1e-6) / (2 * num_draws))
    assert np.abs(mean - h).max() < limit
    assert limit < 0.01
    nearest = np.rint(h / (h.mean() / 4.0)) * h.mean() / 4.0
    assert np.abs(nearest - h).max() > 2 * limit, "the check would miss a bias"
