"""Trees taken from forests, and forests put together."""

import numpy as np

from pymc_xbart.kernels import draw_prior_forest, join_forests, split_forest, take_trees
from tests.helpers import cases, slow

NUM_TREES = 5


def forests(rng):
    for case in cases.cases(rng, 10):
        yield draw_prior_forest(case.design, case.prior, NUM_TREES, rng)[0]


def test_trees_are_taken_in_the_order_asked_for(rng):
    for forest in forests(rng):
        taken = take_trees(forest, np.array([3, 0, 3]))
        for index, source in enumerate([3, 0, 3]):
            assert slow.as_tree(taken, index) == slow.as_tree(forest, source)
        values = [tree.value for tree in split_forest(forest)]
        assert np.array_equal(taken.value, np.concatenate([values[i] for i in (3, 0, 3)]))
        assert [array.dtype for array in taken] == [array.dtype for array in forest]


def test_parts_of_a_forest_make_it_up(rng):
    for forest in forests(rng):
        parts = [take_trees(forest, trees) for trees in np.split(np.arange(NUM_TREES), [2])]
        for joined in (join_forests(parts), join_forests(split_forest(forest))):
            for array, original in zip(joined, forest, strict=True):
                assert np.array_equal(array, original)
                assert array.dtype == original.dtype
