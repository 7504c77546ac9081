import numpy as np
import pytest

from pymc_xbart.kernels import STEEPEST, cautious, log_prior_ratio, newton_step
from tests.helpers import entrances

LEAF = np.array([1, 3, 3, 4, 1], np.int32)  # splits are nodes 0 and 2
LEFT = np.array([1, -1, 3, -1, -1], np.int32)
VAR = 0.7


@pytest.fixture
def rows(rng):
    """f without the tree, and a quadratic log-likelihood around another f: (without, y, h)."""
    return rng.normal(size=5), rng.normal(size=5), rng.uniform(0.1, 3, 5)


def step_from(t, without, y, h, longest=np.inf):
    return newton_step(without, LEAF, t, h * (y - without - t[LEAF]), h, VAR, longest)


def test_curvature_is_positive_where_there_is_a_gradient():
    g, h = cautious(np.array([2.0, 2.0, 0.0, -3.0]), np.array([5.0, -1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(h, [5.0, 4.0, 0.0, 9.0])
    np.testing.assert_array_equal(g, [2.0, 2.0, 0.0, -3.0])


def test_rows_without_a_finite_derivative_say_nothing():
    strange = [np.nan, np.inf, -np.inf, 2 * STEEPEST]
    g, h = np.array([*strange, *[1.0] * 4, 1.0]), np.array([*[1.0] * 4, *strange, 1.0])
    careful = np.array(cautious(g, h))
    assert not careful[:, :-1].any()
    assert careful[:, -1].all()


def test_one_step_is_enough_for_a_quadratic_log_likelihood(rows, rng):
    without, y, h = rows
    precision = np.bincount(LEAF, h, 5) + 1 / VAR
    mean = np.bincount(LEAF, h * (y - without), 5) / precision
    for start in (np.zeros(5), np.where(LEFT < 0, rng.normal(size=5), 0.0)):
        t, var, _, f, _ = step_from(start, *rows)
        np.testing.assert_allclose(t, mean, atol=1e-14)
        np.testing.assert_allclose(var, 1 / precision)
        np.testing.assert_allclose(f, without + mean[LEAF])
        *_, distance = step_from(t, *rows)
        assert distance < 1e-12


def test_splits_stay_at_zero_with_the_variance_of_the_prior(rows):
    t, var, *_ = step_from(np.zeros(5), *rows)
    np.testing.assert_array_equal(t[LEFT >= 0], 0.0)
    np.testing.assert_array_equal(var[LEFT >= 0], VAR)


def test_evidence_is_that_of_the_leaves(rows):
    without, y, h = rows
    sums = (np.bincount(LEAF, x, 5)[LEFT < 0] for x in (h * (y - without), h))
    expected = sum(entrances.log_evidence(*pair, VAR) for pair in zip(*sums, strict=True))
    _, _, evidence, _, _ = step_from(np.zeros(5), *rows)
    assert evidence == pytest.approx(expected)


def test_steps_are_no_longer_than_allowed_but_known_in_full(rows):
    far, var, _, _, distance = step_from(np.zeros(5), *rows)
    near, _, _, f, same_distance = step_from(np.zeros(5), *rows, longest=0.1)
    np.testing.assert_array_equal(near, np.clip(far, -0.1, 0.1))
    np.testing.assert_array_equal(f, rows[0] + near[LEAF])
    assert distance == same_distance == pytest.approx(np.max(np.abs(far) / np.sqrt(var)))


def log_density(x, mean, var):
    """Of a Normal law."""
    return -0.5 * ((x - mean) ** 2 / var + np.log(2 * np.pi * var))


def test_ratio_to_the_prior_counts_leaves_only(rng):
    value, mean, var = rng.normal(size=5), rng.normal(size=5), rng.uniform(0.1, 3, 5)
    expected = (log_density(value, 0.0, VAR) - log_density(value, mean, var))[LEFT < 0].sum()
    assert log_prior_ratio(LEFT, value, mean, var, VAR) == pytest.approx(expected)
