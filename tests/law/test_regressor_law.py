"""With a correction the regressor draws trees and noise from their exact joint posterior."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest.design import check_design
from tests.helpers import inside, law, slow

LEAF_VAR, SHAPE, RATE = 1.5, 4.0, 1.5
THIN = 8  # sweeps between two draws that are taken for independent
NUM_DRAWS = 2000
LOG_NOISE = np.linspace(math.log(1e-3), math.log(1e3), 1500)  # grid for the noise variance


class Drawn(NamedTuple):
    """Every `THIN`-th sweep."""

    trees: list[tuple]
    noise_var: np.ndarray


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal(7), [0, 1, 1, 0, 2, 2, 1]])
    # With less noise a chain may stay for hundreds of sweeps in a tree that is rarely proposed.
    y = 0.6 * (X[:, 0] > 0) * (X[:, 1] > 0) + 0.5 * rng.standard_normal(7)
    return X, y


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"mtry": 1},
        {"noise_update": "tree"},
        {"correction": "sweep"},
    ],
    ids=str,
)
def drawn(data, request):
    return draw(*data, **request.param)


def draw(X, y, **options):
    model = XBARTRegressor(
        **{
            "num_trees": 1,
            "num_sweeps": THIN * NUM_DRAWS + 50,
            "burnin": 50,
            "correction": "tree",
            "alpha": 0.8,
            "beta": 0.5,
            "max_depth": 2,
            "leaf_var": LEAF_VAR,
            "noise_shape": SHAPE,
            "noise_rate": RATE,
            "random_state": 3,
        }
        | options
    ).fit(X, y)
    noise_var = model.noise_sd_[model.burnin :: THIN] ** 2
    return Drawn([slow.as_tree(forest, 0) for forest in model.forests_[::THIN]], noise_var)


def log_likelihood(y, leaves):
    """Log density of y at every noise variance of the grid, with leaf values integrated out.

    `leaves` holds the rows of each leaf.
    """
    noise_var = np.exp(LOG_NOISE)
    total = np.zeros_like(noise_var)
    for rows in leaves:
        covariance_root = noise_var + LEAF_VAR * len(rows)
        total -= len(rows) / 2 * np.log(2 * math.pi * noise_var)
        total += 0.5 * np.log(noise_var / covariance_root)
        squares = np.sum(y[rows] ** 2) - LEAF_VAR * np.sum(y[rows]) ** 2 / covariance_root
        total -= squares / (2 * noise_var)
    return total


def leaves_of(tree, codes, rows):
    if tree == slow.LEAF:
        return [rows]
    v, cut, left, right = tree
    left_rows, right_rows = slow.partition(codes[v], cut, rows)
    return leaves_of(left, codes, left_rows) + leaves_of(right, codes, right_rows)


def joint_posterior(X, y):
    """Trees, and for each its posterior density over the grid of log noise variances, (tree, m)."""
    case = inside.make_case(
        check_design(X), alpha=0.8, beta=0.5, max_depth=2, leaf_var=LEAF_VAR, num_cutpoints=6
    )
    codes, rows = case.problem.codes, case.problem.all_rows
    prior = slow.enumerate_law(case.problem, slow.prior_options)
    y = y - y.mean()
    # Inverse gamma, on the scale of the logarithm.
    log_noise_prior = -SHAPE / 2 * LOG_NOISE - RATE / 2 * np.exp(-LOG_NOISE)
    log_density = np.array(
        [
            log_prior + log_noise_prior + log_likelihood(y, leaves_of(tree, codes, rows))
            for tree, log_prior in prior.items()
        ]
    )
    density = np.exp(log_density - log_density.max())
    return list(prior), density / density.sum()


def law_of_trees(trees, density):
    return dict(zip(trees, np.log(density.sum(axis=1)), strict=True))


def noise_cdf(density):
    cumulated = np.cumsum(density.sum(axis=0))
    return lambda noise_var: float(np.interp(math.log(noise_var), LOG_NOISE, cumulated))


def test_trees_and_noise_follow_the_exact_posterior(data, drawn):
    trees, density = joint_posterior(*data)
    law.assert_law(drawn.trees, law_of_trees(trees, density), false_fail=1e-6)
    law.assert_cdf(drawn.noise_var, noise_cdf(density), false_fail=1e-6)
    assert law.smallest_visible_error(law_of_trees(trees, density), NUM_DRAWS) < 0.25
    assert law.cdf_limit(NUM_DRAWS) < 0.07


def test_thinned_draws_hardly_know_of_each_other(data, drawn):
    """On which the levels of these checks rest."""
    expected = law_of_trees(*joint_posterior(*data))
    common = [tree for tree, log_prob in expected.items() if log_prob > math.log(0.01)]
    is_there = [np.array([other == tree for other in drawn.trees], float) for tree in common]
    for series in (np.log(drawn.noise_var), *is_there):
        assert abs(np.corrcoef(series[1:], series[:-1])[0, 1]) < 0.1


@pytest.mark.parametrize("options", [{"correction": "none"}, {"alpha": 0.7}], ids=str)
def test_that_the_check_would_catch_another_law_of_trees(data, options):
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draw(*data, **options).trees, law_of_trees(*joint_posterior(*data)))


@pytest.mark.parametrize("options", [{"noise_rate": 2.2}, {"noise_shape": 5.0}], ids=str)
def test_that_the_check_would_catch_another_law_of_the_noise(data, options):
    _, density = joint_posterior(*data)
    with pytest.raises(AssertionError, match="distribution functions differ"):
        law.assert_cdf(draw(*data, **options).noise_var, noise_cdf(density))
