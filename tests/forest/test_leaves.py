"""All leaf values are drawn from their joint law given the trees."""

import numpy as np
import pytest

from pymc_xbart.forest import leaves
from pymc_xbart.forest.leaves import redraw_leaves
from pymc_xbart.kernels import Forest, draw_prior_forest, shared_rows, sum_of_trees, sums_by_leaf
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


def test_nothing_is_drawn_where_rows_differ_in_curvature(rng):
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    h = case.h.copy()
    h[3] *= 2
    assert redraw_leaves(forest, leaf_of_row, case.g, h, 0.6, None) is forest


def redraw_in_blocks(case, forest, leaf_of_row, rng, g_of_block=None):
    """Leaf values that start at their law, after one redraw in blocks; many times over."""
    start = [
        redraw_leaves(forest, leaf_of_row, case.g, case.h, case.prior.leaf_var, rng)
        for _ in range(2_000)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves, "MAX_LEAVES", 4)
        if g_of_block is not None:
            patch.setattr(leaves, "sum_of_trees", g_of_block)
        return [
            redraw_leaves(forest, leaf_of_row, case.g, case.h, case.prior.leaf_var, rng)
            for forest in start
        ]


def case_of_several_blocks(rng):
    while True:
        case = uniform_case(rng, 12)
        forest, leaf_of_row = drawn(case, rng)
        if forest.column.size >= 16:  # ten leaves or more
            return case, forest, leaf_of_row


def test_blocks_leave_the_exact_law_of_leaf_values_as_it_is(rng):
    case, forest, leaf_of_row = case_of_several_blocks(rng)
    trees = tuple(slow.as_tree(forest, tree) for tree in range(NUM_TREES))
    redrawn = redraw_in_blocks(case, forest, leaf_of_row, rng)
    uniforms = exact.uniforms_behind(case.problem, exact.join(redrawn), NUM_TREES)[trees]
    law.assert_uniform(uniforms.ravel())  # false fail 1e-6


def test_that_the_check_would_see_blocks_that_forget_the_others(rng):
    case, forest, leaf_of_row = case_of_several_blocks(rng)
    trees = tuple(slow.as_tree(forest, tree) for tree in range(NUM_TREES))

    def forget(_, leaf_of_row):
        return np.zeros(leaf_of_row.shape[1])

    redrawn = redraw_in_blocks(case, forest, leaf_of_row, rng, forget)
    uniforms = exact.uniforms_behind(case.problem, exact.join(redrawn), NUM_TREES)[trees]
    with pytest.raises(AssertionError):
        law.assert_uniform(uniforms.ravel())


def test_every_tree_is_in_one_block_of_few_leaves(rng, monkeypatch):
    monkeypatch.setattr(leaves, "MAX_LEAVES", 10)
    tree_start = np.cumsum([0, *(2 * rng.integers(1, 6, 50) - 1)])
    blank = np.zeros(tree_start[-1])
    forest = Forest(tree_start, blank, blank, blank, blank)
    one, other = (leaves._draw_blocks(forest, rng) for _ in range(2))
    for blocks in (one, other):
        assert sorted(np.concatenate(blocks)) == list(range(50))
        sizes = [((np.diff(tree_start)[block] + 1) // 2).sum() for block in blocks]
        assert max(sizes) <= 10 + 5  # a tree may reach over the end of its block
    assert any(set(a) != set(b) for a, b in zip(one, other, strict=False))


def test_f_is_far_from_where_it_was(rng):
    """What the joint draw is for: given the trees, the new f knows nothing of the old one."""
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    far = forest._replace(value=np.where(forest.left < 0, 1e6, 0.0))
    new = redraw_leaves(far, leaf_of_row, case.g, case.h, 0.6, rng)
    assert np.abs(sum_of_trees(new, leaf_of_row)).max() < 100
