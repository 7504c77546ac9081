"""Noise variance and column weights come from their conditional laws, and a sweep keeps count."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import SideDraws, column_choice, make_leaf_of_row, stump_forest, sweep
from tests.helpers import entrances, inside, law

NUM_DRAWS = 10_000
SHAPE, RATE = 3.0, 0.7


def side_draws(noise_var=1.0, num_columns=1, **fields):
    defaults = {
        "draws_noise": True,
        "noise_var": np.array([noise_var]),
        "noise_shape": SHAPE,
        "noise_rate": RATE,
        "draws_weights": False,
        "split_counts": np.zeros(num_columns, np.int64),
    }
    return SideDraws(**(defaults | fields))


class Residuals:
    """y - f of six rows with weights, one of them 0, as gradient and curvature."""

    def __init__(self, rng):
        self.r = 0.4 * rng.standard_normal(6)
        self.weight = np.append(rng.gamma(2.0, 1.0, 5), 0.0)

    def gradient_curvature(self, noise_var):
        h = self.weight / noise_var
        return h * self.r, h

    def draw(self, rng, num_draws=NUM_DRAWS):
        """Draws one after the other, each starting from the one before."""
        side = side_draws(noise_var=5.0)
        g, h = self.gradient_curvature(5.0)
        draws = np.empty(num_draws)
        for k in range(num_draws):
            entrances.redraw_noise(g, h, side, rng)
            draws[k] = side.noise_var[0]
        return draws

    def cdf(self, num_rows=5, rate=RATE, factor=1.0):
        """The rate of all evidence over the noise variance is chi-square."""
        total = rate + math.fsum(self.weight * self.r**2)
        dof = round(SHAPE + num_rows)
        return lambda x: law.chi_square_tail(factor * total / x, round(factor * dof))


def test_the_noise_variance_follows_its_inverse_gamma_law(rng):
    residuals = Residuals(rng)
    law.assert_cdf(residuals.draw(rng), residuals.cdf(), false_fail=1e-6)
    assert law.cdf_limit(NUM_DRAWS) < 0.03


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"num_rows": 6}, id="rows without weight count"),
        pytest.param({"rate": 0.0}, id="no prior rate"),
        pytest.param({"factor": 2.0}, id="without the halves, as the paper prints"),
    ],
)
def test_that_the_check_would_catch_another_law(rng, wrong):
    residuals = Residuals(rng)
    with pytest.raises(AssertionError, match="distribution functions differ"):
        law.assert_cdf(residuals.draw(rng), residuals.cdf(**wrong), false_fail=1e-6)


def test_gradient_and_curvature_move_to_the_new_variance(rng):
    residuals = Residuals(rng)
    side = side_draws(noise_var=5.0)
    g, h = residuals.gradient_curvature(5.0)
    entrances.redraw_noise(g, h, side, rng)
    expected = residuals.gradient_curvature(side.noise_var[0])
    np.testing.assert_allclose(g, expected[0], rtol=1e-14)
    np.testing.assert_allclose(h, expected[1], rtol=1e-14)


def test_equal_curvatures_stay_equal(rng):
    """To the last bit, or sweeps would have to add up h."""
    g, h = rng.standard_normal(50), np.full(50, 0.3)
    entrances.redraw_noise(g, h, side_draws(), rng)
    assert h.min() == h.max()


def beta_cdf(a, b):
    """Distribution function of the beta law with whole parameters: a sum of binomial weights."""

    def cdf(x):
        n = a + b - 1
        return math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))

    return cdf


COUNTS = np.array([0, 7, 2, 1], np.int64)


def draw_weights(rng):
    draws = np.empty((NUM_DRAWS, COUNTS.size))
    weights = np.ones(COUNTS.size)
    for k in range(NUM_DRAWS):
        entrances.redraw_weights(weights, COUNTS, rng)
        draws[k] = weights
    return draws


def test_column_weights_follow_their_dirichlet_law(rng):
    draws = draw_weights(rng)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-12)
    assert (draws > 0).all()
    alpha = COUNTS + 1
    for v in range(COUNTS.size):
        cdf = beta_cdf(int(alpha[v]), int(alpha.sum() - alpha[v]))
        law.assert_cdf(draws[:, v], cdf, false_fail=1e-6)
    # Shares among some of the columns are beta as well, and know nothing of the others.
    share = draws[:, 2] / (draws[:, 1] + draws[:, 2])
    is_large = draws[:, 0] + draws[:, 3] > np.median(draws[:, 0] + draws[:, 3])
    for part in (share[is_large], share[~is_large]):
        law.assert_cdf(part, beta_cdf(int(alpha[2]), int(alpha[1])), false_fail=1e-6)


@pytest.mark.parametrize("extra", [1, -1])
def test_that_the_check_would_catch_one_split_more_or_less(rng, extra):
    draws = draw_weights(rng)
    alpha = COUNTS + 1
    wrong = beta_cdf(int(alpha[1]) + extra, int(alpha.sum() - alpha[1]))
    with pytest.raises(AssertionError, match="distribution functions differ"):
        law.assert_cdf(draws[:, 1], wrong, false_fail=1e-6)


def splits_on(forest, num_columns):
    return np.bincount(forest.column[forest.column >= 0], minlength=num_columns)


def some_sweeps(rng, side, mtry=None):
    X = rng.standard_normal((80, 3))
    noise_var, weight = 0.5, np.full(80, 2.0)
    y = X[:, 0] + X[:, 1] ** 2
    case = inside.make_case(X, weight * y / noise_var, weight / noise_var, leaf_var=0.2)
    choice = column_choice(3, mtry)
    forest, leaf_of_row = stump_forest(4), make_leaf_of_row(4, 80)
    for _ in range(3):
        f = forest.value[forest.tree_start[:-1, None] + leaf_of_row].sum(axis=0)
        h = weight / (side.noise_var[0] if side.draws_noise else noise_var)
        forest, leaf_of_row, _ = sweep(
            forest,
            leaf_of_row,
            h * (y - f),
            h,
            case.design,
            case.prior,
            case.work,
            rng,
            choice=choice,
            side=side,
        )
    return forest, choice


def test_a_sweep_counts_splits_and_draws_what_it_is_asked_to(rng):
    side = side_draws(noise_var=0.5, num_columns=3, draws_weights=True)
    forest, choice = some_sweeps(rng, side, mtry=2)
    assert np.array_equal(side.split_counts, splits_on(forest, 3))
    assert side.split_counts.sum() > 0
    assert side.noise_var[0] != 0.5
    assert choice.weights.sum() == pytest.approx(1)


def test_a_sweep_leaves_alone_what_it_is_not_asked_to_draw(rng):
    side = side_draws(draws_noise=False)
    _, choice = some_sweeps(rng, side)
    assert side.noise_var[0] == 1.0
    np.testing.assert_array_equal(choice.weights, np.ones(3))
