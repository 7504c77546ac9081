"""Exact posteriors of tiny forests, and independent draws from them.

A chain that starts at its posterior must stay there. Replications of a few sweeps each then are an
independent sample, whose law is known.
"""

import math
from collections import defaultdict
from itertools import pairwise, product

import numpy as np

from pymc_xbart.kernels import Forest
from tests.helpers import law, slow


def tree_posterior(problem):
    """Log-probability of each tree: prior times the evidences of its leaves."""
    log_joint = {}
    for tree, log_prior in slow.enumerate_law(problem, slow.prior_options).items():
        leaf_of_row = leaf_numbers(tree, problem.codes)
        evidences = [
            slow.log_evidence(problem.g[rows], problem.h[rows], problem.prior.leaf_var)
            for rows in (leaf_of_row == leaf for leaf in range(leaf_of_row.max() + 1))
        ]
        log_joint[tree] = log_prior + math.fsum(evidences)
    return normalize(log_joint)


def forest_posterior(problem, num_trees):
    """Log-probability of each tuple of trees, from dense Gaussian densities of the response.

    Rows without curvature say nothing about f (they must have no gradient, as under a Normal
    likelihood), but they are rows when cuts are found.
    """
    informative = np.flatnonzero(problem.h)
    y, noise_var = problem.g[informative] / problem.h[informative], 1 / problem.h[informative]
    prior = slow.enumerate_law(problem, slow.prior_options)
    leaf_of_row = {tree: leaf_numbers(tree, problem.codes)[informative] for tree in prior}
    log_joint = {}
    for trees in product(prior, repeat=num_trees):
        leaves = [leaf_of_row[tree] for tree in trees]
        density = slow.dense_log_density(y, noise_var, problem.prior.leaf_var, *leaves)
        log_joint[trees] = density + math.fsum(prior[tree] for tree in trees)
    return normalize(log_joint)


def dense_tree_posterior(problem):
    """`forest_posterior` of one tree: {tree: log_prob}."""
    return {tree: log_prob for (tree,), log_prob in forest_posterior(problem, 1).items()}


def normalize(log_joint):
    log_total = slow.log_sum_exp(log_joint.values())
    return {outcome: weight - log_total for outcome, weight in log_joint.items()}


def leaf_numbers(tree, codes):
    """Number of each row's leaf, counted from the left, (n,)."""
    leaf = np.zeros(codes.shape[1], int)
    next_leaf = 0
    waiting = [(tree, np.ones(codes.shape[1], bool))]
    while waiting:
        subtree, has_row = waiting.pop()
        if subtree == slow.LEAF:
            leaf[has_row] = next_leaf
            next_leaf += 1
        else:
            goes_left = codes[subtree[0]] <= subtree[1]
            waiting += [(subtree[3], has_row & ~goes_left), (subtree[2], has_row & goes_left)]
    return leaf


def leaf_law(problem, trees):
    """Posterior of all leaf values given the trees, jointly Normal.

    Returns the mean (leaves,), tree after tree and from left to right, and the lower Cholesky
    factor of the precision matrix.
    """
    is_in_leaf = np.column_stack(
        [
            leaf_of_row == leaf
            for leaf_of_row in (leaf_numbers(tree, problem.codes) for tree in trees)
            for leaf in range(leaf_of_row.max() + 1)
        ]
    ).astype(float)
    precision = is_in_leaf.T @ (problem.h[:, None] * is_in_leaf)
    precision += np.eye(len(precision)) / problem.prior.leaf_var
    return np.linalg.solve(precision, is_in_leaf.T @ problem.g), np.linalg.cholesky(precision)


def draw_forests(problem, posterior, num_draws, rng):
    """Independent draws from the posterior, one after another as one `Forest`."""
    probabilities = np.exp(np.array(list(posterior.values())))
    counts = rng.multinomial(num_draws, probabilities / probabilities.sum())
    parts = []
    for trees, count in zip(posterior, counts.tolist(), strict=True):
        if count > 0:
            mean, lower = leaf_law(problem, trees)
            noise = rng.standard_normal((count, mean.size))
            parts.append(as_forest(trees, mean + np.linalg.solve(lower.T, noise.T).T))
    return join(parts)


def as_forest(trees, values):
    """Forests of the same trees, one for each row of `values` (forests, leaves)."""
    nodes = [number_nodes(tree) for tree in trees]
    column, cut, left = (np.concatenate(arrays) for arrays in list(zip(*nodes, strict=True))[:3])
    starts = np.cumsum([0, *(len(arrays[0]) for arrays in nodes)])
    leaves = np.concatenate(
        [start + arrays[3] for start, arrays in zip(starts, nodes, strict=False)]
    )
    value = np.zeros((len(values), column.size))
    value[:, leaves] = values
    times = len(values)
    sizes = np.tile(np.diff(starts), times)
    return Forest(
        np.concatenate([[0], np.cumsum(sizes)]),
        *(np.tile(array, times) for array in (column, cut, left)),
        value.ravel(),
    )


def number_nodes(tree):
    """Columns, cuts and left children of a tree's nodes, and its leaves from left to right."""
    column, cut, left, leaves = [-1], [0], [-1], []
    waiting = [(0, tree)]
    while waiting:
        node, subtree = waiting.pop()
        if subtree == slow.LEAF:
            leaves.append(node)
            continue
        child = len(column)
        column[node], cut[node], left[node] = subtree[0], subtree[1], child
        column += [-1, -1]
        cut += [0, 0]
        left += [-1, -1]
        waiting += [(child + 1, subtree[3]), (child, subtree[2])]
    return *(np.array(numbers, np.int32) for numbers in (column, cut, left)), np.array(leaves)


def join(forests):
    """The trees of all forests, one after another."""
    sizes = np.concatenate([np.diff(forest.tree_start) for forest in forests])
    tree_start = np.concatenate([[0], np.cumsum(sizes)])
    return Forest(tree_start, *map(np.concatenate, list(zip(*forests, strict=True))[1:]))


def read_trees(forest):
    """Every tree of a forest, as nested tuples and its leaf values from left to right."""
    nodes = np.column_stack([forest.column, forest.cut, forest.left])
    shapes = {}
    trees = []
    for tree, (start, stop) in enumerate(pairwise(forest.tree_start.tolist())):
        key = nodes[start:stop].tobytes()
        if key not in shapes:
            shapes[key] = slow.as_tree(forest, tree), leaves_from_left(forest.left[start:stop])
        nested, leaves = shapes[key]
        trees.append((nested, forest.value[start + leaves]))
    return trees


def leaves_from_left(left):
    """Leaves of one tree, from left to right."""
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if left[node] == -1:
            leaves.append(node)
        else:
            waiting += [left[node] + 1, left[node]]
    return np.array(leaves)


def uniforms_behind(problem, forest, num_trees):
    """Trees of each of many forests, and the uniform variates behind its leaf values.

    Given the trees, leaf values are Normal with a known law. What they are in units of it, one leaf
    after the other, are independent standard Normal variates, and their distribution function is
    uniform: {trees: (forests, leaves)}.
    """
    trees = read_trees(forest)
    values = defaultdict(list)
    for first in range(0, len(trees), num_trees):
        nested, leaf_values = zip(*trees[first : first + num_trees], strict=True)
        values[nested].append(np.concatenate(leaf_values))
    uniforms = {}
    for nested, rows in values.items():
        mean, lower = leaf_law(problem, nested)
        uniforms[nested] = normal_cdf((np.array(rows) - mean) @ lower)
    return uniforms


normal_cdf = np.vectorize(slow.normal_cdf)


def assert_follows(uniforms, posterior, false_fail=law.FALSE_FAIL):
    """Fail unless independent forests, read by `uniforms_behind`, follow `posterior` (of trees).

    Tests, each at `false_fail`: of all leaf values given the trees; of the trees together with the
    side of its median on which the first leaf value falls; and, where there are several, of each
    tree by itself, since most of their combinations are too rare to be told apart.

    Power: see `smallest_visible_error`.
    """
    law.assert_uniform(np.concatenate([rows.ravel() for rows in uniforms.values()]), false_fail)
    sides = law.Counter()
    for trees, rows in uniforms.items():
        is_low = rows[:, 0] < 0.5
        sides[trees, True] += int(is_low.sum())
        sides[trees, False] += int((~is_low).sum())
    law.assert_law(sides, with_sides(posterior), false_fail)
    counts = {trees: len(rows) for trees, rows in uniforms.items()}
    for index, tree_law in enumerate(laws_of_single_trees(posterior)):
        law.assert_law(law.Counter(marginal(counts, index)), tree_law, false_fail)


def smallest_visible_error(posterior, num_draws):
    """Total variation in the law of any one tree from which on `assert_follows` is sure to see it.

    See `law.smallest_visible_error`.
    """
    laws = laws_of_single_trees(posterior) or [with_sides(posterior)]
    return max(law.smallest_visible_error(tree_law, num_draws) for tree_law in laws)


def with_sides(posterior):
    """The law of trees and of a fair coin."""
    return {
        (trees, side): log_prob - math.log(2)
        for trees, log_prob in posterior.items()
        for side in (True, False)
    }


def laws_of_single_trees(posterior):
    """The law of each of several trees."""
    num_trees = len(next(iter(posterior)))
    if num_trees == 1:
        return []
    probabilities = {trees: math.exp(log_prob) for trees, log_prob in posterior.items()}
    laws = [marginal(probabilities, index) for index in range(num_trees)]
    return [{tree: math.log(p) for tree, p in tree_law.items()} for tree_law in laws]


def marginal(weights, index):
    """Sums over all tuples of trees that share the tree at one place."""
    sums = defaultdict(type(next(iter(weights.values()))))
    for trees, weight in weights.items():
        sums[trees[index]] += weight
    return sums
