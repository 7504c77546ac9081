"""Leaf values of several trees are drawn from their joint law given the structure of all."""

import numpy as np
import pytest

from pymc_xbart.kernels import (
    draw_prior_forest,
    make_leaf_of_row,
    stump_forest,
    sum_of_trees,
    sweep,
)
from tests.helpers import cases, entrances, exact, inside, law, slow

NUM_TREES = 4
ALL = 40  # leaves: more than any forest here has


def uniform_case(rng, n=40):
    X = cases.random_X(rng, n, 3)
    return inside.make_case(X, g=2 * rng.standard_normal(n), h=np.full(n, 0.8), leaf_var=0.6)


def drawn(case, rng):
    return draw_prior_forest(case.design, case.prior, NUM_TREES, rng)


def several_leaves(rng):
    """Case of few rows, and a forest of ten leaves or more."""
    while True:
        case = uniform_case(rng, 12)
        forest, leaf_of_row = drawn(case, rng)
        if forest.column.size >= 16:
            return case, forest, leaf_of_row


def in_leaf(forest, leaf_of_row, tree):
    """Which row is in which leaf of a tree, (n, leaves), read off row by row; and these leaves."""
    left = forest.left[forest.tree_start[tree] : forest.tree_start[tree + 1]]
    nodes = np.flatnonzero(left < 0)
    return (leaf_of_row[tree][:, None] == nodes).astype(float), forest.tree_start[tree] + nodes


def test_leaves_that_share_rows(rng):
    for n in (1, 63, 64, 65, 200):
        one, other = (rng.random(n) < 0.4 for _ in range(2))
        shared = entrances.num_shared(one.astype(np.int32), other.astype(np.int32), np.int64(1))
        assert shared == (one & other).sum()


def test_factor_and_solutions(rng):
    for size in (1, 2, 7, 30):
        root = rng.standard_normal((size, size + 2))
        matrix = root @ root.T
        r = np.triu(matrix) + np.tril(np.full((size, size), np.nan), -1)  # the rest is not read
        assert entrances.factorise(r)
        upper = np.triu(r)
        np.testing.assert_allclose(upper.T @ upper, matrix, rtol=1e-12, atol=1e-12)
        b = rng.standard_normal(size)
        x = b.copy()
        entrances.solve_transposed(r, x)
        np.testing.assert_allclose(upper.T @ x, b, rtol=1e-9, atol=1e-9)
        x = b.copy()
        entrances.solve(r, x)
        np.testing.assert_allclose(upper @ x, b, rtol=1e-9, atol=1e-9)
    assert not entrances.factorise(np.ones((2, 2)))
    assert not entrances.factorise(np.full((1, 1), np.nan))


def test_mean_and_spread_are_those_of_the_dense_law(rng):
    for max_leaves in (6, ALL):
        for seed in range(10):
            case = uniform_case(rng)
            forest, leaf_of_row = drawn(case, rng)
            f = sum_of_trees(forest, leaf_of_row)
            new, g, trees = inside.redraw_leaves(case, forest, leaf_of_row, max_leaves, seed)
            if trees.size < 2:
                assert np.array_equal(new.value, forest.value)
                continue
            same = np.random.default_rng(seed)
            for _ in range(min(trees.size + 1, NUM_TREES)):  # the last may not have fitted in
                same.random()
            parts = [in_leaf(forest, leaf_of_row, tree) for tree in trees]
            Z, leaves = (np.concatenate(arrays, -1) for arrays in zip(*parts, strict=True))
            assert leaves.size <= max_leaves
            z = same.standard_normal(leaves.size)
            precision = 0.8 * Z.T @ Z + np.eye(leaves.size) / 0.6
            # case.g is taken where f is what the forest makes it: without the block it is more.
            g_without = case.g + 0.8 * Z @ forest.value[leaves]
            mean = np.linalg.solve(precision, Z.T @ g_without)
            expected = mean + np.linalg.solve(np.linalg.cholesky(precision).T, z)
            np.testing.assert_allclose(new.value[leaves], expected, rtol=1e-9, atol=1e-9)
            others = np.setdiff1d(np.arange(forest.value.size), leaves)
            assert np.array_equal(new.value[others], forest.value[others])
            moved = sum_of_trees(new, leaf_of_row) - f
            np.testing.assert_allclose(g, case.g - 0.8 * moved, atol=1e-9)


def test_rows_that_leaves_share_are_counted_chunk_by_chunk(rng):
    for n in (64, 65, 128, 150):
        case = uniform_case(rng, n)
        forest, leaf_of_row = drawn(case, rng)
        whole, *_ = inside.redraw_leaves(case, forest, leaf_of_row, ALL, 0)
        chunks, *_ = inside.redraw_leaves(case, forest, leaf_of_row, ALL, 0, chunk_rows=64)
        np.testing.assert_allclose(chunks.value, whole.value, rtol=1e-9, atol=1e-9)
        assert not np.array_equal(whole.value, forest.value)


def test_every_tree_comes_into_a_block(rng):
    case = uniform_case(rng)
    leaf_of_row = make_leaf_of_row(8, 40)
    times = np.zeros(8)
    for seed in range(400):
        _, _, trees = inside.redraw_leaves(case, stump_forest(8), leaf_of_row, 4, seed)
        assert np.unique(trees).size == trees.size == 4
        times[trees] += 1
    # Each half the time; this or more off: 1e-6 for any of the eight
    assert np.abs(times - 200).max() < 53


def test_nothing_moves_where_rounding_leaves_no_factor(rng):
    case = uniform_case(rng)
    two = stump_forest(2)
    leaf_of_row = make_leaf_of_row(2, 40)
    # 1 / leaf_var disappears beside the curvature of 40 rows.
    singular = case._replace(prior=case.prior._replace(leaf_var=1e30))
    new, g, _ = inside.redraw_leaves(singular, two, leaf_of_row, ALL, 0)
    assert not new.value.any()
    assert np.array_equal(g, case.g)


def uniforms_behind(case, forests, trees):
    """By way of the enumerating helpers, which know nothing of the kernel."""
    return exact.uniforms_behind(case.problem, exact.join(forests), NUM_TREES)[trees].ravel()


def with_g_at(case, forest, leaf_of_row):
    """The case's g is where f is 0; move it to where f is."""
    return case._replace(g=case.g - case.h * sum_of_trees(forest, leaf_of_row))


def from_their_law(case, forest, leaf_of_row):
    """Forests of the same trees, each with leaf values from their joint law."""
    at_f = with_g_at(case, forest, leaf_of_row)
    return [inside.redraw_leaves(at_f, forest, leaf_of_row, ALL, seed)[0] for seed in range(2_000)]


def test_draws_follow_the_exact_law_of_leaf_values(rng):
    case, forest, leaf_of_row = several_leaves(rng)
    trees = tuple(slow.as_tree(forest, tree) for tree in range(NUM_TREES))
    draws = from_their_law(case, forest, leaf_of_row)
    law.assert_uniform(uniforms_behind(case, draws, trees))  # false fail 1e-6
    # A law with another variance of the prior is told from it.
    other = case._replace(prior=case.prior._replace(leaf_var=1.5 * case.prior.leaf_var))
    with pytest.raises(AssertionError):
        law.assert_uniform(uniforms_behind(case, from_their_law(other, forest, leaf_of_row), trees))


def test_blocks_leave_the_exact_law_of_leaf_values_as_it_is(rng):
    case, forest, leaf_of_row = several_leaves(rng)
    trees = tuple(slow.as_tree(forest, tree) for tree in range(NUM_TREES))
    start = from_their_law(case, forest, leaf_of_row)

    def redrawn(case_of):
        return [
            inside.redraw_leaves(case_of(forest), forest, leaf_of_row, 8, seed)[0]
            for seed, forest in enumerate(start)
        ]

    right = redrawn(lambda forest: with_g_at(case, forest, leaf_of_row))
    law.assert_uniform(uniforms_behind(case, right, trees))  # false fail 1e-6
    # Blocks that forget the trees outside of them are found out.
    wrong = redrawn(lambda _: with_g_at(case, start[0], leaf_of_row))
    with pytest.raises(AssertionError):
        law.assert_uniform(uniforms_behind(case, wrong, trees))


def test_f_is_far_from_where_it_was(rng):
    """What the joint draw is for: given the trees, the new f knows nothing of the old one."""
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    far = forest._replace(value=np.where(forest.left < 0, 1e6, 0.0))
    new, _, _ = inside.redraw_leaves(with_g_at(case, far, leaf_of_row), far, leaf_of_row, ALL, 0)
    assert np.abs(sum_of_trees(new, leaf_of_row)).max() < 100


def test_a_sweep_leaves_the_forest_it_starts_from_as_it_is(rng):
    case = uniform_case(rng)
    forest, leaf_of_row = drawn(case, rng)
    before = [array.copy() for array in forest]
    given = (case.design, case.prior, case.work, rng)
    sweep(forest, leaf_of_row, case.g, case.h, *given, is_corrected=True, num_regrown=1)
    assert all(map(np.array_equal, forest, before))
