import math

import numpy as np
import pytest

from pymc_xbart.kernels import (
    describe_forest,
    draw_prior_forest,
    make_workspace,
    proposal_log_density,
    propose_forest,
    stump_forest,
)
from tests.helpers import cases, check, inside, slow

every_scan = pytest.mark.parametrize("scan", ["paper", "reversible"])


def start_many(rng, count=20, num_trees=3):
    """Small cases, each with a forest from the prior, its leaves of rows, and g there."""
    for case in cases.cases(rng, count):
        forest, leaf_of_row = draw_prior_forest(case.design, case.prior, num_trees, rng)
        g = case.g - case.h * slow.forest_values(forest, leaf_of_row)
        yield case, forest, leaf_of_row, g


def propose(case, forest, leaf_of_row, g, rng, scan):
    arguments = forest, leaf_of_row, g, case.h, case.design, case.prior, case.work, rng
    return propose_forest(*arguments, scan=scan)


@every_scan
def test_proposed_forests_are_sound(rng, scan):
    """Those proposed backward, too: half of all under the reversible scan."""
    for case, forest, leaf_of_row, g in start_many(rng):
        for _ in range(4):
            new, new_leaf_of_row, log_ratio, _ = propose(case, forest, leaf_of_row, g, rng, scan)
            check.check_forest(new, new_leaf_of_row, case.design, case.prior, case.X)
            assert new_leaf_of_row.flags.c_contiguous
            assert isinstance(log_ratio, float)
            assert math.isfinite(log_ratio)


@every_scan
def test_only_the_workspace_is_overwritten(rng, scan):
    for case, forest, leaf_of_row, g in start_many(rng):
        inputs = [*forest, leaf_of_row, g, case.h, *case.design, case.prior.split_weights]
        before = [array.copy() for array in inputs]
        for _ in range(3):
            new, new_leaf_of_row, _, _ = propose(case, forest, leaf_of_row, g, rng, scan)
            for array, copy in zip(inputs, before, strict=True):
                assert np.array_equal(array, copy)
            for array in (*new, new_leaf_of_row):
                for other in (*inputs, case.work.tree, case.work.current):
                    assert not np.shares_memory(array, other)


def test_a_density_overwrites_nothing(rng):
    for case, forest, _, g in start_many(rng):
        other, _ = draw_prior_forest(case.design, case.prior, 3, rng)
        inputs = [*forest, *other, g, case.h, *case.design, case.prior.split_weights]
        before = [array.copy() for array in inputs]
        state = rng.bit_generator.state
        densities = [
            proposal_log_density(forest, other, g, case.h, case.design, case.prior)
            for _ in range(2)
        ]
        assert densities[0] == densities[1]
        assert rng.bit_generator.state == state
        for array, copy in zip(inputs, before, strict=True):
            assert np.array_equal(array, copy)


@every_scan
def test_info_describes_the_proposed_forest(rng, scan):
    for case, forest, leaf_of_row, g in start_many(rng):
        for _ in range(4):
            new, _, _, info = propose(case, forest, leaf_of_row, g, rng, scan)
            described = describe_forest(new)
            assert np.array_equal(info.num_leaves, described.num_leaves)
            assert np.array_equal(info.depth, described.depth)
            assert info.accepted.all()


def test_a_forest_is_described_by_leaves_and_levels(rng):
    for _, forest, _, _ in start_many(rng):
        info = describe_forest(forest)
        trees = [slow.as_tree(forest, index) for index in range(3)]
        assert info.num_leaves.tolist() == [num_leaves(tree) for tree in trees]
        assert info.depth.tolist() == [depth(tree) for tree in trees]
        assert info.accepted.tolist() == [False] * 3
        assert [array.dtype for array in info] == [np.int32, np.int32, bool, bool]


def num_leaves(tree):
    return 1 if tree == slow.LEAF else sum(map(num_leaves, tree[2:]))


def depth(tree):
    return 0 if tree == slow.LEAF else 1 + max(map(depth, tree[2:]))


@every_scan
def test_the_generator_is_the_only_source_of_chance(rng, scan):
    for case, forest, leaf_of_row, g in start_many(rng, count=5):
        seed = int(rng.integers(2**32))
        found = []
        # A workspace that has been used, and one of its own.
        for work in (
            case.work,
            make_workspace(case.num_rows, case.num_columns, case.prior.num_cutpoints),
        ):
            own_rng = np.random.default_rng(seed)
            found.append(propose(case._replace(work=work), forest, leaf_of_row, g, own_rng, scan))
        assert cases.same_forest(found[0][0], found[1][0])
        assert np.array_equal(found[0][1], found[1][1])
        assert found[0][2] == found[1][2]


@every_scan
def test_two_proposals_in_a_row_use_different_numbers(rng, scan):
    case = inside.make_case(rng.standard_normal((20, 2)), rng.standard_normal(20), np.ones(20))
    start = case, stump_forest(3), np.zeros((3, 20), np.int32), case.g
    first, second = (propose(*start, rng, scan)[0] for _ in range(2))
    assert not cases.same_forest(first, second)


@every_scan
def test_without_data_every_proposal_is_accepted(rng, scan):
    """Growing then draws from the prior, whatever the way."""
    for case, forest, leaf_of_row, _ in start_many(rng):
        blind = case._replace(h=np.zeros_like(case.h))
        g = np.zeros_like(case.g)
        for _ in range(3):
            log_ratio = propose(blind, forest, leaf_of_row, g, rng, scan)[2]
            assert log_ratio == pytest.approx(0, abs=1e-10)


def test_the_scans_agree_on_a_single_tree(rng):
    """There is but one order, and all is the same from the same numbers on."""
    for case, forest, leaf_of_row, g in start_many(rng, num_trees=1):
        seed = int(rng.integers(2**32))
        paper, reversible = (np.random.default_rng(seed) for _ in range(2))
        paper.random()  # in place of the coin for the order
        new, _, log_ratio, _ = propose(case, forest, leaf_of_row, g, paper, "paper")
        again, _, other, _ = propose(case, forest, leaf_of_row, g, reversible, "reversible")
        assert cases.same_forest(new, again)
        assert other == pytest.approx(log_ratio, rel=1e-10, abs=1e-10)
