"""Trees whose nodes are numbered level by level are told by which nodes split."""

import numpy as np

from pymc_xbart.kernels import Forest, draw_prior_forest
from pymc_xbart.kernels.order import children_in_level_order, level_order, tree_starts
from tests.helpers import cases, inside, slow


def reordered(forest):
    """The forest as its shape bits tell it."""
    order = level_order(forest)
    is_split = forest.left[order] >= 0
    starts = tree_starts(is_split, forest.tree_start.size - 1)
    left = children_in_level_order(is_split, starts)
    return Forest(starts, forest.column[order], forest.cut[order], left, forest.value[order])


def trees_of(forest):
    return [slow.as_tree(forest, tree) for tree in range(forest.tree_start.size - 1)]


def test_trees_stay_what_they_are(rng):
    for case in cases.cases(rng, 40, max_rows=60):
        for forest in (
            draw_prior_forest(case.design, case.prior, 5, rng)[0],
            inside.grow_trees(case, 5, rng),  # numbers its nodes in another order
        ):
            moved = reordered(forest)
            assert np.array_equal(moved.tree_start, forest.tree_start)
            assert trees_of(moved) == trees_of(forest)
            assert cases.same_forest(reordered(moved), moved)


def test_trees_drawn_from_the_prior_are_in_that_order(rng):
    for case in cases.cases(rng, 20):
        forest, _ = draw_prior_forest(case.design, case.prior, 5, rng)
        assert cases.same_forest(reordered(forest), forest)
