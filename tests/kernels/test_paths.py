"""Columns meet where a split on one is below a split on the other."""

import numpy as np

from pymc_xbart.kernels import count_meetings, draw_prior_forest, stump_forest
from tests.helpers import averaging, inside, slow


def test_trees_are_counted_in_which_two_columns_share_a_path(rng):
    for beta in (0.1, 0.8, 2.0):
        case = inside.make_case(rng.standard_normal((60, 4)), alpha=0.97, beta=beta)
        forest, _ = draw_prior_forest(case.design, case.prior, 25, rng)
        trees = [slow.as_tree(forest, tree) for tree in range(25)]
        counts = count_meetings(forest, 4)
        np.testing.assert_array_equal(counts, averaging.meetings(trees, 4))
        assert counts.max() > 1


def test_columns_side_by_side_do_not_meet():
    """The root splits on column 0, its children on 1 and 2."""
    forest = stump_forest(1)._replace(
        tree_start=np.array([0, 7]),
        column=np.array([0, 1, 2, -1, -1, -1, -1], np.int32),
        left=np.array([1, 3, 5, -1, -1, -1, -1], np.int32),
    )
    np.testing.assert_array_equal(count_meetings(forest, 3), [[0, 1, 1], [1, 0, 0], [1, 0, 0]])


def test_single_leaves_have_no_paths():
    np.testing.assert_array_equal(count_meetings(stump_forest(3), 2), np.zeros((2, 2)))
