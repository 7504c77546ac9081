"""Settings of the prior arrive at the kernels as given, or are refused by name."""

import numpy as np
import pytest

from pymc_xbart.forest.prior import (
    TreeSettings,
    check_mu,
    check_settings,
    check_sigma,
    check_split_weights,
    tree_prior,
)
from pymc_xbart.kernels import CUT_PRIORS


def test_defaults_are_those_of_the_settings():
    assert check_settings() == TreeSettings()


def test_settings_become_plain_numbers():
    settings = check_settings(num_trees=np.int32(7), alpha=np.float32(0.5), beta=2, max_depth=3)
    assert settings == TreeSettings(num_trees=7, alpha=0.5, beta=2.0, max_depth=3)
    assert {type(value) for value in settings} <= {int, float, str, tuple, type(None)}


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, np.nan, np.inf])
def test_alpha_must_lie_inside_the_unit_interval(alpha):
    with pytest.raises(ValueError, match=r"alpha is .* strictly between 0 and 1"):
        check_settings(alpha=alpha)


@pytest.mark.parametrize("beta", [-0.1, np.nan, np.inf])
def test_beta_must_be_finite_and_not_negative(beta):
    with pytest.raises(ValueError, match=r"beta is .* at least 0"):
        check_settings(beta=beta)


COUNTS = ["num_trees", "num_cutpoints", "min_samples_leaf", "max_depth"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -3])
def test_counts_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}, but must be at least 1"):
        check_settings(**{name: value})


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [2.0, "2", True, np.True_])
def test_counts_must_be_whole_numbers(name, value):
    with pytest.raises(TypeError, match=f"{name} is .* must be a whole number"):
        check_settings(**{name: value})


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", ["0.5", None, True, 1j])
def test_alpha_and_beta_must_be_real_numbers(name, value):
    with pytest.raises(TypeError, match=f"{name} is .* must be a real number"):
        check_settings(**{name: value})


@pytest.mark.parametrize("cut_prior", ["columns", "cuts", "paper"])
def test_every_cut_prior_arrives_at_the_kernels(cut_prior):
    settings = check_settings(cut_prior=cut_prior)
    prior = tree_prior(settings, sigma=1.0, split_weights=np.ones(1), num_rows=10)
    assert prior.cut_prior == CUT_PRIORS[cut_prior]


@pytest.mark.parametrize("cut_prior", ["rows", None, 0, ["columns"]])
def test_unknown_cut_priors_are_refused(cut_prior):
    with pytest.raises(ValueError, match="'columns', 'cuts', 'paper'"):
        check_settings(cut_prior=cut_prior)


def test_split_weights_are_equal_by_default():
    np.testing.assert_allclose(check_split_weights(None, 4), 0.25)


def test_split_weights_need_not_sum_to_one():
    np.testing.assert_array_equal(check_split_weights([3, 0, 1], 3), [3.0, 0.0, 1.0])


def test_split_weights_next_to_nothing_keep_a_logarithm():
    weights = check_split_weights([[1.0, 5e-324, 0.0], [1e-200, 1e-200, 1.0]], 3)
    np.testing.assert_array_equal(weights, [[1.0, 1e-150, 0.0], [1e-150, 1e-150, 1.0]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\), but X has 3 column"),
        (1.0, r"shape \(\), but X has 3 column"),
        ([1.0, -1.0, 2.0], r"split_weights\[1\] .*negative or not finite"),
        ([1.0, 1.0, np.nan], r"split_weights\[2\] .*negative or not finite"),
        ([0.0, 0.0, 0.0], "all 0"),
        ([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], "all 0"),
        ([1e308, 1e308, 1.0], r"sum of split_weights is beyond.*Rescale"),
    ],
)
def test_bad_split_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        check_split_weights(weights, 3)


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, [1.0, -1.0]])
def test_sigma_must_be_positive_and_finite(sigma):
    with pytest.raises(ValueError, match=r"sigma is .* must be positive and finite"):
        check_sigma(sigma)


def test_mu_must_be_finite():
    with pytest.raises(ValueError, match="mu must be finite"):
        check_mu(np.nan)


def test_leaves_share_the_variance_of_the_forest():
    settings = check_settings(num_trees=25, min_samples_leaf=4, max_depth=6, num_cutpoints=50)
    prior = tree_prior(settings, sigma=10.0, split_weights=np.array([1.0, 2.0]), num_rows=1000)
    assert prior.leaf_var == pytest.approx(4.0)
    assert (prior.alpha, prior.beta) == (0.95, 1.25)
    assert (prior.num_cutpoints, prior.min_samples_leaf, prior.max_depth) == (50, 4, 6)
    np.testing.assert_array_equal(prior.split_weights, [1.0, 2.0])


@pytest.mark.parametrize(("num_rows", "cutpoints"), [(1, 1), (2, 1), (50, 49), (40_000, 200)])
def test_cutpoints_follow_the_rows(num_rows, cutpoints):
    prior = tree_prior(TreeSettings(), sigma=1.0, split_weights=np.ones(1), num_rows=num_rows)
    assert prior.num_cutpoints == cutpoints


def test_unlimited_depth_is_deeper_than_any_tree():
    prior = tree_prior(TreeSettings(), sigma=1.0, split_weights=np.ones(1), num_rows=10)
    assert prior.max_depth > 10**6
