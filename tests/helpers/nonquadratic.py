"""Chains of samplers for log-likelihoods that are not quadratic, and the laws that they must keep.

Two comparisons. Forests and data, drawn in turn, keep their joint law (`replicate`, `failures`;
see `tests.helpers.geweke`). And chains of one tree, over five rows, that start in their posterior,
which is known tree by tree, stay there (`num_wrong_features`).

A sampler is a class with the arguments and the `sweep` of `TreeSampler`.
"""

import math

import numpy as np
from scipy import stats

from pymc_xbart.forest.nonquadratic import TreeSampler
from pymc_xbart.kernels import (
    Prior,
    column_choice,
    draw_prior_forest,
    encode,
    find_leaves,
    make_workspace,
    sum_of_trees,
)
from tests.helpers import exact, geweke, law, slow
from tests.helpers.families import OfData

N, NUM_TREES = 10, 2
X = np.random.default_rng(1).normal(size=(N, 2))  # no ties, so that the law of leaves is known
ALPHA, BETA, SIGMA = 0.95, 0.3, 1.0
DESIGN = encode(X)
PRIOR = Prior(ALPHA, BETA, SIGMA**2 / NUM_TREES, np.ones(2), 100, 1, 2**31 - 1)
LEAVES = geweke.law_of_leaves(N, ALPHA, BETA)
DRAWS, ROUNDS = 700, 4
MANY, MANY_ROUNDS = 4_000, 8


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


# One tree, all of them known.

GRID = np.linspace(-6, 6, 4_001)  # leaf values, in prior standard deviations
SMALL = np.random.default_rng(2).normal(size=(5, 2))
SMALL_DESIGN = encode(SMALL)
SMALL_PRIOR = PRIOR._replace(leaf_var=0.25, alpha=0.8, beta=0.5, max_depth=3)
VALUES = GRID * math.sqrt(SMALL_PRIOR.leaf_var)
MOMENTS_OF_GRID = np.stack([VALUES, VALUES**2])
SMALL_F = 0.3 * np.array([-1.0, 1.0, 0.0, 1.5, -1.5])
CHAINS, LENGTH = 300, 20
# Of a tree that is looked at by itself: chains that stay long at rarer ones leave too few visits
# for a standard error that can be trusted.
MIN_PROBABILITY = 0.05


class Posterior:
    """Exact posterior of one tree and its leaf values, given y."""

    def __init__(self, family, y):
        problem = slow.Problem(slow.ranks(SMALL), y, y, SMALL_PRIOR)  # its g and h are not used
        log_p = np.array([family.log_p(y, np.full(y.size, t)) for t in VALUES])
        log_prior = stats.norm.logpdf(GRID) - math.log(np.exp(stats.norm.logpdf(GRID)).sum())
        # By the rows of a leaf: log of the integral, and probability of each value of the grid.
        leaf_laws = {}

        def leaf_law(rows):
            key = rows.tobytes()
            if key not in leaf_laws:
                weights = log_prior + log_p[:, rows].sum(axis=1)
                total = np.logaddexp.reduce(weights)
                leaf_laws[key] = total, np.exp(weights - total)
            return leaf_laws[key]

        log_joint, self._leaf_laws, self.moments = {}, {}, {}
        for tree, log_prior_of_tree in slow.enumerate_law(problem, slow.prior_options).items():
            leaf = exact.leaf_numbers(tree, problem.codes)
            laws = [leaf_law(leaf == k) for k in range(leaf.max() + 1)]
            log_joint[tree] = log_prior_of_tree + math.fsum(total for total, _ in laws)
            self._leaf_laws[tree] = [p.cumsum() for _, p in laws]
            self.moments[tree] = np.mean([MOMENTS_OF_GRID @ laws[k][1] for k in leaf], axis=0)
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
        values = VALUES[places]
        forest = exact.as_forest([tree], values[None])
        return forest, find_leaves(forest, SMALL_DESIGN.codes)


def features(tree, moments, common):
    """What a chain is judged by: which tree it is at, and what that is like.

    `moments` are means over rows of f and its square.
    """
    columns = columns_of(tree)
    is_at = [tree == each for each in common]
    return np.array([*is_at, len(columns), len(set(columns)), 0 in columns, *moments], float)


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
    expected = sum(
        math.exp(p) * features(tree, posterior.moments[tree], common)
        for tree, p in posterior.trees.items()
    )
    work = make_workspace(len(SMALL), 2, PRIOR.num_cutpoints)
    mtry = move.get("mtry")
    choice = column_choice(2, mtry, is_per_tree=mtry is not None)
    trees = sampler(OfData(family, y), SMALL_DESIGN, SMALL_PRIOR, choice, work, rng)
    mean = np.zeros((num_chains, expected.size))
    for chain in mean:
        forest, leaf_of_row = posterior.draw(rng)
        for _ in range(LENGTH):
            forest, leaf_of_row = one_sweep(trees, forest, leaf_of_row, move)
            f = sum_of_trees(forest, leaf_of_row)
            moments = f.mean(), np.mean(f**2)
            chain += features(slow.as_tree(forest, 0), moments, common) / LENGTH
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
