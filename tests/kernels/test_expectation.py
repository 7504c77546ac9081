"""Columns that are left out are averaged out, by the rows of the fit."""

import numpy as np
import pytest

from pymc_xbart.kernels import (
    WeightedForest,
    cut_values,
    draw_prior_forest,
    expected_changes,
    expected_values,
    route_values,
    rows_of_leaves,
    shares_left,
)
from tests.helpers import averaging, inside

P, TREES = 4, 6


class Drawn:
    """A forest of the prior, and other rows to evaluate it at."""

    def __init__(self, rng, num_rows=30, beta=0.4):
        case = inside.make_case(rng.standard_normal((50, P)), alpha=0.95, beta=beta)
        self.forest, leaf_of_row = draw_prior_forest(case.design, case.prior, TREES, rng)
        self.num_rows = rows_of_leaves(self.forest, leaf_of_row)
        self.rows = rng.standard_normal((P, num_rows))
        self.cuts = cut_values(case.design, self.forest.column, self.forest.cut)
        share_left = shares_left(self.forest, self.num_rows)
        self.trees = WeightedForest(self.forest, self.forest.column, self.cuts, share_left)

    def values(self, is_included):
        f = np.full(self.rows.shape[1], np.nan)
        expected_values(self.trees, is_included, self.rows, f)
        return f

    def slow_values(self, is_included):
        forest, cuts = self.forest, self.cuts
        return [
            sum(
                averaging.expected_value(
                    forest,
                    self.num_rows,
                    lambda k, x=x: x[forest.column[k]] <= cuts[k],
                    is_included,
                    tree,
                )
                for tree in range(TREES)
            )
            for x in self.rows.T
        ]


def test_columns_left_out_are_averaged_by_the_rows_of_the_fit(rng):
    for _ in range(10):
        drawn = Drawn(rng)
        is_included = rng.random(P) < 0.5
        expected = drawn.slow_values(is_included)
        np.testing.assert_allclose(drawn.values(is_included), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("num_rows", [1, 511, 512, 513, 1100])
def test_with_all_columns_it_is_the_forest_to_the_last_bit(rng, num_rows):
    drawn = Drawn(rng, num_rows)
    f = np.empty(num_rows)
    route_values(drawn.forest, drawn.cuts, drawn.rows, f)
    np.testing.assert_array_equal(drawn.values(np.ones(P, bool)), f)


def test_without_any_it_is_the_mean_over_the_rows_of_the_fit(rng):
    drawn = Drawn(rng)
    mean = drawn.forest.value @ drawn.num_rows / 50
    np.testing.assert_allclose(drawn.values(np.zeros(P, bool)), mean, rtol=1e-12)


@pytest.mark.parametrize("num_rows", [3, 512, 700])
def test_changes_are_those_of_one_column_more_or_less(rng, num_rows):
    for beta in (0.2, 3.0):
        drawn = Drawn(rng, num_rows, beta)
        is_included, is_candidate = rng.random((2, P)) < 0.6
        before = is_included.copy()
        changes = np.full((P, num_rows), np.nan)
        expected_changes(drawn.trees, is_included, is_candidate, drawn.rows, changes)
        for column in range(P):
            toggled = is_included ^ (np.arange(P) == column) & is_candidate
            expected = drawn.values(toggled) - drawn.values(is_included)
            np.testing.assert_allclose(changes[column], expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(is_included, before)


def test_shares_are_those_of_therows_below(rng):
    drawn = Drawn(rng)
    forest = drawn.forest
    for tree in range(TREES):
        start, stop = forest.tree_start[tree : tree + 2]
        for k in range(start, stop):
            share = drawn.trees.share_left[k]
            if forest.column[k] == -1:
                assert share == 0
            else:
                below = [
                    averaging.rows_below(forest, drawn.num_rows, tree, child)
                    for child in (forest.left[k], forest.left[k] + 1)
                ]
                assert share == below[0] / sum(below)
