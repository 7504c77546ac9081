"""Sweeps under log-likelihoods that are not quadratic keep the joint law of trees and data.

Trees are drawn from their prior, and data given the trees. Then, in turn, the trees are swept over
and the data drawn anew. Each leaves the joint law as it is, so that trees must end as draws from
their prior, with replications that are independent (see `tests.helpers.geweke`).

Each comparison fails correct sweeps with probability 1e-6; there are some 250, slow ones
included.
"""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_xbart.forest.nonquadratic import TreeSampler
from pymc_xbart.kernels import (
    Prior,
    column_choice,
    draw_prior_forest,
    encode,
    make_workspace,
    one_tree,
    route_codes,
    sum_of_trees,
)
from tests.helpers import exact, geweke, law, slow
from tests.helpers.families import FAMILIES, OfData

N, NUM_TREES = 10, 2
X = np.random.default_rng(1).normal(size=(N, 2))  # no ties, so that the law of leaves is known
ALPHA, BETA, SIGMA = 0.95, 0.3, 1.0
DESIGN = encode(X)
PRIOR = Prior(ALPHA, BETA, SIGMA**2 / NUM_TREES, np.ones(2), 100, 1, 2**31 - 1)
LEAVES = geweke.law_of_leaves(N, ALPHA, BETA)
DRAWS, ROUNDS = 700, 4
MANY, MANY_ROUNDS = 4_000, 8

MOVES = {
    "regrown": {"num_regrown": NUM_TREES},
    "redrawn": {"num_regrown": 0},
    "mixed": {"num_regrown": 1},
    "mtry": {"num_regrown": 1, "mtry": 1},
    "sweep": {"scan": "paper"},
    "sweep-reversible": {"scan": "reversible"},
}

OTHERS = [family for family in FAMILIES if family != "poisson"]


def replicate(family, move, rng, count=DRAWS, rounds=ROUNDS, sampler=TreeSampler):
    """Forests that are draws from the prior, if all is right."""
    work = make_workspace(N, 2, PRIOR.num_cutpoints)
    mtry = move.get("mtry")
    choice = column_choice(2, mtry, is_per_tree=mtry is not None)
    forests = []
    for _ in range(count):
        forest, leaf_of_row = draw_prior_forest(DESIGN, PRIOR, NUM_TREES, rng)
        for _ in range(rounds):
            f = sum_of_trees(forest, leaf_of_row)
            likelihood = OfData(family, family.draw(f, rng))
            trees = sampler(likelihood, DESIGN, PRIOR, choice, work, rng)
            forest, leaf_of_row = one_sweep(trees, forest, leaf_of_row, move)
        forests.append((forest, sum_of_trees(forest, leaf_of_row)))
    return forests


def failures(forests):
    """What does not follow the prior."""
    trees = [forest for forest, _ in forests]
    leaves = [forest.value[forest.column < 0] / math.sqrt(PRIOR.leaf_var) for forest in trees]
    squares = [stats.chi2.cdf(np.sum(values**2), values.size) for values in leaves]
    found = geweke.failures(
        {
            "f": stats.norm.cdf([f[0] / SIGMA for _, f in forests]),
            "leaves": stats.norm.cdf(np.concatenate(leaves)),
            "squares": np.array(squares),
        }
    )
    bounds = np.array([forest.tree_start for forest in trees])
    try:
        law.assert_law(((np.diff(bounds, axis=1) + 1) // 2).ravel().tolist(), LEAVES)
    except AssertionError:
        found.add("numbers of leaves")
    return found


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

GRID = np.linspace(-6, 6, 4_001)  # leaf values, in prior standard deviations
SMALL = np.random.default_rng(2).normal(size=(5, 2))
SMALL_DESIGN = encode(SMALL)
SMALL_PRIOR = PRIOR._replace(leaf_var=0.25, alpha=0.8, beta=0.5, max_depth=3)
SMALL_F = 0.3 * np.array([-1.0, 1.0, 0.0, 1.5, -1.5])
CHAINS, LENGTH = 300, 20
# Of a tree that is looked at by itself: chains that stay long at rarer ones leave too few visits
# for a standard error that can be trusted.
MIN_PROBABILITY = 0.05


class Posterior:
    """Exact posterior of one tree and its leaf values, given y."""

    def __init__(self, family, y):
        problem = slow.Problem(slow.ranks(SMALL), y, y, SMALL_PRIOR)  # its g and h are not used
        log_p = np.array(
            [family.log_p(y, np.full(y.size, t)) for t in GRID * math.sqrt(SMALL_PRIOR.leaf_var)]
        )
        log_prior = stats.norm.logpdf(GRID) - math.log(np.exp(stats.norm.logpdf(GRID)).sum())
        leaf_laws = {}  # by the rows of a leaf: log of the integral, and distribution function

        def leaf_law(rows):
            key = rows.tobytes()
            if key not in leaf_laws:
                weights = log_prior + log_p[:, rows].sum(axis=1)
                total = np.logaddexp.reduce(weights)
                leaf_laws[key] = total, np.exp(weights - total).cumsum()
            return leaf_laws[key]

        log_joint, self._leaf_laws = {}, {}
        for tree, log_prior_of_tree in slow.enumerate_law(problem, slow.prior_options).items():
            leaf = exact.leaf_numbers(tree, problem.codes)
            laws = [leaf_law(leaf == k) for k in range(leaf.max() + 1)]
            log_joint[tree] = log_prior_of_tree + math.fsum(total for total, _ in laws)
            self._leaf_laws[tree] = [cdf for _, cdf in laws]
        self.trees = exact.normalize(log_joint)
        self._names = list(self.trees)
        cumulated = np.exp(list(self.trees.values())).cumsum()
        self._cumulated = cumulated / cumulated[-1]

    def draw(self, rng):
        """One tree as a forest, and the leaf of each row."""
        tree = self._names[np.searchsorted(self._cumulated, rng.random())]
        uniform = rng.random(len(self._leaf_laws[tree]))
        places = [
            min(np.searchsorted(cdf, u), GRID.size - 1)
            for cdf, u in zip(self._leaf_laws[tree], uniform, strict=True)
        ]
        values = GRID[places] * math.sqrt(SMALL_PRIOR.leaf_var)
        forest = exact.as_forest([tree], values[None])
        leaf_of_row = np.empty((1, len(SMALL)), np.int32)
        route_codes(forest, SMALL_DESIGN.codes, leaf_of_row)
        return forest, leaf_of_row


def features(tree, common):
    """What a chain is judged by: which tree it is at, and what that is like."""
    columns = columns_of(tree)
    return [*(tree == each for each in common), len(columns), len(set(columns)), 0 in columns]


def columns_of(tree):
    return [] if tree == slow.LEAF else [tree[0], *columns_of(tree[2]), *columns_of(tree[3])]


def num_wrong_features(family, move, rng, sampler=TreeSampler, num_chains=CHAINS):
    """How many features chains that start in their posterior have too often, or too rarely.

    Each is compared in units of the standard error over independent chains. Correct sweeps fail
    with probability 1e-6 in all, as far as means over chains are Normal.
    """
    y = family.draw(SMALL_F, rng)
    posterior = Posterior(family, y)
    common = [tree for tree, p in posterior.trees.items() if math.exp(p) > MIN_PROBABILITY]
    table = {tree: np.array(features(tree, common), float) for tree in posterior.trees}
    work = make_workspace(len(SMALL), 2, PRIOR.num_cutpoints)
    mtry = move.get("mtry")
    choice = column_choice(2, mtry, is_per_tree=mtry is not None)
    trees = sampler(OfData(family, y), SMALL_DESIGN, SMALL_PRIOR, choice, work, rng)
    mean = np.zeros((num_chains, len(common) + 3))
    for chain in mean:
        forest, leaf_of_row = posterior.draw(rng)
        for _ in range(LENGTH):
            forest, leaf_of_row = one_sweep(trees, forest, leaf_of_row, move)
            chain += table[slow.as_tree(forest, 0)] / LENGTH
    expected = sum(math.exp(p) * table[tree] for tree, p in posterior.trees.items())
    error = (mean.mean(axis=0) - expected) / (mean.std(axis=0, ddof=1) / math.sqrt(num_chains))
    limit = stats.t.isf(0.5e-6 / error.size, num_chains - 1)
    return int(np.sum(~(np.abs(error) <= limit)))


def one_sweep(trees, forest, leaf_of_row, move):
    f = sum_of_trees(forest, leaf_of_row)
    if "scan" in move:
        return trees.sweep_as_one(forest, leaf_of_row, f, scan=move["scan"])[:2]
    how = {"is_corrected": True, "num_regrown": 1} | move
    how.pop("mtry", None)
    return trees.sweep(forest, leaf_of_row, f, **how)[:2]


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
