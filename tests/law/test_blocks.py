"""Blocks of trees that are updated under a quadratic stand-in keep the law of the model.

By the comparisons of `tests.helpers.nonquadratic`. Each fails correct sweeps with probability 1e-6;
there are some 30, slow ones included.
"""

import math

import numpy as np
import pytest

from pymc_xbart.forest.blocks import BlockSampler
from pymc_xbart.forest.surrogate import Surrogate, coarsen, linearise
from tests.helpers.families import FAMILIES
from tests.helpers.nonquadratic import (
    CHAINS,
    DRAWS,
    MANY,
    MANY_ROUNDS,
    NUM_TREES,
    ROUNDS,
    failures,
    num_wrong_features,
    replicate,
)

MOVES = {
    "one-block": {"num_regrown": 1, "num_blocks": 1},
    "regrown": {"num_regrown": NUM_TREES, "num_blocks": 1},
    "redrawn": {"num_regrown": 0, "num_blocks": 1},
    "two-blocks": {"num_regrown": 1, "num_blocks": 2},
    "mtry": {"num_regrown": 1, "num_blocks": 1, "mtry": 1},
}
ONE_TREE = {
    "regrown": {"num_regrown": 1},
    "redrawn": {"num_regrown": 0},
    "mtry": {"num_regrown": 1, "mtry": 1},
}
VAR = 0.5  # of f, as if it had been learnt; right for nothing in particular


class FixedBlocks:
    """A sampler in blocks that has learnt what it is told."""

    def __init__(self, likelihood, design, prior, *others):
        num_rows = design.codes.shape[1]
        learnt = Surrogate(np.zeros(num_rows), np.full(num_rows, VAR), 100, math.log(NUM_TREES), 1)
        self.likelihood = likelihood
        self.quadratic = coarsen(linearise(learnt, likelihood, prior.leaf_var), others[-1])
        self.others = design, prior, *others

    def sweep(self, forest, leaf_of_row, f, *, num_regrown, num_blocks=1, is_corrected=True):
        assert is_corrected
        how = {"num_regrown": num_regrown, "num_blocks": num_blocks}
        self.look_at(f)
        return self.blocks().sweep(forest, leaf_of_row, f, **how)[:3]

    def look_at(self, f):
        """Let what stands in for the likelihood depend on f, which it must not."""

    def blocks(self):
        return BlockSampler(self.likelihood, self.quadratic, *self.others)


@pytest.mark.parametrize(
    ("family", "move"),
    [
        *[("poisson", move) for move in MOVES],
        *[
            pytest.param(family, "one-block", marks=pytest.mark.slow)
            for family in FAMILIES
            if family != "poisson"
        ],
    ],
)
def test_joint_law_is_kept(family, move, rng):
    is_slow = family != "poisson"
    count, rounds = (MANY, MANY_ROUNDS) if is_slow else (DRAWS, ROUNDS)
    replicas = replicate(FAMILIES[family], MOVES[move], rng, count, rounds, sampler=FixedBlocks)
    assert failures(replicas) == set()


@pytest.mark.parametrize(
    ("family", "move"),
    [
        *[("poisson", move) for move in ONE_TREE],
        ("laplace", "regrown"),
        ("laplace", "redrawn"),
        *[
            pytest.param(family, move, marks=pytest.mark.slow)
            for family in ("binomial", "log-scale", "student", "normal")
            for move in ONE_TREE
        ],
    ],
)
def test_one_tree_stays_in_its_posterior(family, move, rng):
    assert num_wrong_features(FAMILIES[family], ONE_TREE[move], rng, FixedBlocks) == 0


# Broken twins.


class Untested(FixedBlocks):
    """The quadratic function as it stands."""

    def blocks(self):
        blocks = super().blocks()
        blocks._log_weight = lambda _: 0.0
        return blocks


class Following(FixedBlocks):
    """A quadratic function that follows the trees which it is to judge."""

    def look_at(self, f):
        here = Surrogate(-2.0 * f, np.full(f.size, VAR), 100, 0.0, 1)
        self.quadratic = linearise(here, self.likelihood, 1.0)


@pytest.mark.parametrize("sampler", [Untested, Following])
def test_that_it_would_catch_a_wrong_test(sampler, rng):
    family = FAMILIES["poisson" if sampler is Untested else "laplace"]
    assert num_wrong_features(family, ONE_TREE["regrown"], rng, sampler, 4 * CHAINS)


def test_that_the_joint_law_shows_a_wrong_test(rng):
    # Without a test f may run away, which a law of locations takes without overflow.
    assert failures(replicate(FAMILIES["student"], MOVES["one-block"], rng, sampler=Untested))
