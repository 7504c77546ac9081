"""All leaf values are drawn from their joint law given the trees."""

import numpy as np
import pytest

from pymc_xbart.forest import leaves
from pymc_xbart.forest.leaves import redraw_leaves
from pymc_xbart.kernels import draw_prior_forest, shared_rows, sum_of_trees, sums_by_leaf
from tests.helpers import cases, exact, inside, law, slow

NUM_TREES = 4


def uniform_case(rng, n=40):
    X = cases.random_X(rng, n, 3)
    return inside.make_case(X, g=2 * rng.standard_normal(n), h=np.full(n, 0.8), leaf_var=0.6)


def drawn(case, rng):
    return draw_prior_forest(case.design, case.prior, NUM_TREES, rng)


def in_leaf(forest, leaf_of_row):
    """Which row is in which leaf, (n, leaves), read off row by row."""
    nodes = forest.tree_start[:-1, None] + leaf_of_row
    is_leaf = np.flatnonzero(forest.left < 0)
    return (nodes[:, :, None] == is_leaf).any(0).astype(float)


def test_shared_rows_are_those_of_the_sets(rng):
    for n in (1, 63, 64, 65, 200):
        case = uniform_case(rng, n)
        forest, leaf_of_row = drawn(case, rng)
        found, shared = shared_rows(forest, leaf_of_row)
        Z = in_leaf(forest, leaf_of_row)
        assert np.array_equal(found, np.flatnonzero(forest.left < 0))
        assert np.array_equal(shared, Z.T @ Z)
        sums = sums_by_leaf(forest, leaf_of_row, case.g)
        np.testing.assert_allclose(sums[found], Z.T @ case.g, atol=1e-12)
        assert not sums[forest.left >= 0].any()


class Fixed:
    """Generator that gives the same variates each time."""

    def __init__(self, z):
        self.z = z

    def standard_normal(self, size):
        assert size == self.z.size
        return self.z.copy()


def test_mean_and_covariance_are_those_of_the_dense_law(rng):
    for _ in range(10):
        case = uniform_case(rng)
        forest, leaf_of_row = drawn(case, rng)
        Z = in_leaf(forest, leaf_of_row)
        size = Z.shape[1]
        covariance = np.linalg.inv(0.8 * Z.T @ Z + np.eye(size) / 0.6)
        is_leaf = forest.left < 0

        def redrawn(z, case=case, forest=forest, leaf_of_row=leaf_of_row, is_leaf=is_leaf):
            new = redraw_leaves(forest, leaf_of_row, case.g, case.h, 0.6, Fixed(z))
            assert not new.value[~is_leaf].any()
            return new.value[is_leaf]

        mean = redrawn(np.zeros(size))
        np.testing.assert_allclose(mean, covariance @ Z.T @ case.g, rtol=1e-9, atol=1e-10)
        root = np.column_stack([redrawn(unit) - mean for unit in np.eye(size)])
        np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-9, atol=1e-10)


def test_draws_follow_the_exact_law_of_leaf_values(rng):
    """By way of the enumerating helpers, which know nothing of this module."""
    case = uniform_case(rng, 12)
    forest, leaf_of_row = drawn(case, rng)
    trees = tuple(slow.as_tree(forest, tree) for tree in range(NUM_TREES))
    draws = [
        redraw_leaves(forest, leaf_of_row, case.g, case.h, case.prior.leaf_var, rng)
        for _ in range(2_000)
    ]
    uniforms = exact.uniforms_behind(case.problem, exact.join(draws), NUM_TREES)[trees]
    law.assert_uniform(uniforms.ravel())  # false fail 1e-6
    # A law with another variance of the prior is told from it.
    wrong = [
        redraw_leaves(forest, leaf_of_row, case.g, case.h, 1.5 * case.prior.leaf_var, rng)
        for _ in range(2_000)
    ]
    uniforms = exact.uniforms_behind(case.problem, exact.join(wrong), NUM_TREES)[trees]
    with pytest.raises(AssertionError):
        law.assert_uniform(uniforms.ravel())


def test_nothing_is_drawn_where_it_would_take_too_long(rng, monkeypatch):
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    h = case.h.copy()
    h[3] *= 2
    assert redraw_leaves(forest, leaf_of_row, case.g, h, 0.6, None) is forest
    monkeypatch.setattr(leaves, "MAX_LEAVES", NUM_TREES - 1)
    assert redraw_leaves(forest, leaf_of_row, case.g, case.h, 0.6, None) is forest


def test_f_is_far_from_where_it_was(rng):
    """What the joint draw is for: given the trees, the new f knows nothing of the old one."""
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    far = forest._replace(value=np.where(forest.left < 0, 1e6, 0.0))
    new = redraw_leaves(far, leaf_of_row, case.g, case.h, 0.6, rng)
    assert np.abs(sum_of_trees(new, leaf_of_row)).max() < 100
