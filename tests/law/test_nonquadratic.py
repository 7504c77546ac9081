"""Sweeps under log-likelihoods that are not quadratic keep the joint law of trees and data.

Trees are drawn from their prior, and data given the trees. Then, in turn, the trees are swept over
and the data drawn anew. Each leaves the joint law as it is, so that trees must end as draws from
their prior, with replications that are independent (see `tests.helpers.geweke`).

Each comparison fails correct sweeps with probability 1e-6; there are some 250, slow ones
included.
"""

import numpy as np
import pytest

from pymc_xbart.forest.nonquadratic import TreeSampler
from pymc_xbart.kernels import one_tree
from tests.helpers import law
from tests.helpers.families import FAMILIES
from tests.helpers.nonquadratic import (
    CHAINS,
    DRAWS,
    LEAVES,
    MANY,
    MANY_ROUNDS,
    NUM_TREES,
    failures,
    num_wrong_features,
    replicate,
)

MOVES = {
    "regrown": {"num_regrown": NUM_TREES},
    "redrawn": {"num_regrown": 0},
    "mixed": {"num_regrown": 1},
    "mtry": {"num_regrown": 1, "mtry": 1},
    "sweep": {"scan": "paper"},
    "sweep-reversible": {"scan": "reversible"},
}

OTHERS = [family for family in FAMILIES if family != "poisson"]


@pytest.mark.parametrize(
    ("family", "move"),
    [*[("poisson", move) for move in MOVES], *[(family, "mixed") for family in OTHERS]],
)
def test_joint_law_is_kept(family, move, rng):
    assert failures(replicate(FAMILIES[family], MOVES[move], rng)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("family", FAMILIES)
def test_joint_law_is_kept_to_a_few_hundredths(family, move, rng):
    replicas = replicate(FAMILIES[family], MOVES[move], rng, MANY, MANY_ROUNDS)
    assert failures(replicas) == set()


def test_what_these_tests_are_sure_to_see():
    # Differences between distribution functions, for what occurs once in each replication; total
    # variation, for the number of leaves.
    assert 2 * law.cdf_limit(DRAWS) < 0.21
    assert law.smallest_visible_error(LEAVES, 2 * DRAWS) < 0.16
    assert 2 * law.cdf_limit(MANY) < 0.09
    assert law.smallest_visible_error(LEAVES, 2 * MANY) < 0.07


# One tree, all of them known.

ONE_TREE = {
    "regrown": {},
    "redrawn": {"num_regrown": 0},
    "mtry": {"mtry": 1},
    "mtry-redrawn": {"mtry": 1, "num_regrown": 0},
    "sweep": {"scan": "paper"},
    "sweep-reversible": {"scan": "reversible"},
}


@pytest.mark.parametrize(
    ("family", "move"),
    [
        *[("poisson", move) for move in ONE_TREE],
        *[("laplace", move) for move in ("regrown", "redrawn")],
        *[
            pytest.param(family, move, marks=pytest.mark.slow)
            for family in OTHERS
            for move in ONE_TREE
            if (family, move) not in {("laplace", "regrown"), ("laplace", "redrawn")}
        ],
    ],
)
def test_one_tree_stays_in_its_posterior(family, move, rng):
    assert num_wrong_features(FAMILIES[family], ONE_TREE[move], rng) == 0


# Broken twins.


class EvidenceForgotten(TreeSampler):
    """The kernels' share in how trees are proposed, left out."""

    def _leaf_laws(self, *args):
        return super()._leaf_laws(*args)._replace(evidence=0.0)


class ProposalForgotten(TreeSampler):
    """w of both trees left out."""

    def _grow(self, tree, g, h, *, evaluates=True):
        proposal = super()._grow(tree, g, h, evaluates=evaluates)
        return proposal._replace(log_w=0.0, current_log_w=0.0)


class WidthForgotten(TreeSampler):
    """Leaf values weighed by the exponents of their densities alone."""

    def _leaf_weight(self, tree, laws):
        v, value = self._leaf_var, tree.nodes.value
        log_ratio = (value - laws.mean) ** 2 / laws.var - value**2 / v
        return 0.5 * float(np.sum(log_ratio[tree.nodes.left < 0])) - laws.evidence


BROKEN = {
    "evidence": (EvidenceForgotten, "student", "regrown"),
    "evidence, redrawn": (EvidenceForgotten, "binomial", "redrawn"),
    "proposal": (ProposalForgotten, "poisson", "regrown"),
    "width": (WidthForgotten, "poisson", "redrawn"),
    "evidence of a sweep": (EvidenceForgotten, "poisson", "sweep"),
    "width in a sweep": (WidthForgotten, "binomial", "sweep-reversible"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_that_it_would_catch_a_wrong_ratio(case, rng):
    sampler, family, move = BROKEN[case]
    chains = 2 * CHAINS
    assert num_wrong_features(FAMILIES[family], ONE_TREE[move], rng, sampler, chains)


def test_that_it_would_catch_uncorrected_sweeps(rng):
    assert num_wrong_features(FAMILIES["log-scale"], {"is_corrected": False}, rng)


def test_that_it_would_catch_columns_that_do_not_count(rng, monkeypatch):
    monkeypatch.setattr(one_tree, "_log_share_used", lambda *_: 0.0)
    assert num_wrong_features(FAMILIES["poisson"], ONE_TREE["mtry"], rng)


def test_that_the_joint_law_shows_a_wrong_ratio(rng):
    assert failures(
        replicate(FAMILIES["poisson"], MOVES["regrown"], rng, sampler=ProposalForgotten)
    )
    assert failures(
        replicate(FAMILIES["binomial"], MOVES["sweep-reversible"], rng, sampler=WidthForgotten)
    )
