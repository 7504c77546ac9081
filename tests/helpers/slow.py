"""Slow, obvious twins of the kernels, written from the model's definition and not from their code.

Rows are arrays of row numbers. A tree is `LEAF` or `(column, cut, left, right)`: rows with code <=
cut go left, and the cut is named by the largest code on the left, so that equal trees are equal
tuples.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels import CUT_PRIORS

LEAF = ()
STOP = None  # among the options of a node; the others are (column, cut)


class Problem(NamedTuple):
    """One tree to draw, given g and h of the forest without it."""

    codes: np.ndarray  # (p, n) integers, rank of each value among the distinct values of its column
    g: np.ndarray  # (n,)
    h: np.ndarray  # (n,)
    prior: NamedTuple  # with the fields of `pymc_xbart.kernels.Prior`
    num_buckets: float = math.inf  # what a node tells apart in a column, see `merge`

    @property
    def all_rows(self):
        return np.arange(self.codes.shape[1])


def ranks(X):
    """Rank of each value among the distinct values of its column, (p, n)."""
    codes = []
    for column in X.T:
        rank = {x: k for k, x in enumerate(sorted(set(column.tolist())))}
        codes.append([rank[x] for x in column.tolist()])
    return np.array(codes).reshape(X.shape[1], X.shape[0])


def merge(codes, num_buckets):
    """Codes of a node once neighbours are merged, two, four, ... at a time, to fit the buckets."""
    width = 1
    while max(codes) // width - min(codes) // width >= num_buckets:
        width *= 2
    return np.asarray(codes) // width


def candidate_cuts(codes, num_cutpoints, min_samples_leaf, num_buckets=math.inf):
    """Candidate cuts of a node whose rows have these codes, as (cut, rows on the left) pairs."""
    codes = np.asarray(codes)
    num_rows = codes.size
    merged = merge(codes, num_buckets)
    legal = []
    for value in np.unique(merged):
        left = codes[merged <= value]
        if min(left.size, num_rows - left.size) >= min_samples_leaf:
            legal.append((int(left.max()), left.size))
    if len(legal) <= num_cutpoints:
        return legal
    step = max(1, (num_rows - 2) // num_cutpoints)
    counts_before = [0] + [count for _, count in legal]
    candidates = [
        (cut, count)
        for (cut, count), before in zip(legal, counts_before, strict=False)
        if count // step > before // step
    ]
    return candidates or legal[:1]


def log_evidence(g, h, leaf_var):
    """Log of the integral of exp(G t - H t^2 / 2) over t ~ N(0, leaf_var)."""
    sum_g, sum_h = math.fsum(g), math.fsum(h)
    ratio = 1 + leaf_var * sum_h
    return -math.log(ratio) / 2 + leaf_var * sum_g**2 / (2 * ratio)


def leaf_posterior(g, h, leaf_var):
    """Mean and variance of a leaf value given the rows of the leaf."""
    sum_g, sum_h = math.fsum(g), math.fsum(h)
    return leaf_var * sum_g / (1 + leaf_var * sum_h), leaf_var / (1 + leaf_var * sum_h)


def dense_log_density(y, noise_var, leaf_var, *leaf_of_row):
    """Log density of y = (sum of its leaves' values) + noise as one multivariate Gaussian.

    `noise_var` and, for each tree, `leaf_of_row` are (n,); leaf values are N(0, leaf_var).
    """
    shared_leaves = sum(np.equal.outer(leaf, leaf).astype(int) for leaf in leaf_of_row)
    covariance = np.diag(noise_var) + leaf_var * shared_leaves
    _, log_determinant = np.linalg.slogdet(covariance)
    quadratic = y @ np.linalg.solve(covariance, y)
    return -0.5 * (quadratic + log_determinant + y.size * math.log(2 * math.pi))


def partition(codes, cut, rows):
    """Rows on either side of a cut: on the left as they came, on the right the last one first."""
    rows = np.asarray(rows, int)
    goes_left = codes[rows] <= cut
    return rows[goes_left], rows[~goes_left][::-1]


def available_cuts(problem, rows, depth):
    """Candidate cuts of every column that has some: {column: [cut, ...]}."""
    prior = problem.prior
    if depth >= prior.max_depth:
        return {}
    available = {}
    for v, weight in enumerate(prior.split_weights):
        if weight > 0:
            pairs = candidate_cuts(
                problem.codes[v][rows],
                prior.num_cutpoints,
                prior.min_samples_leaf,
                problem.num_buckets,
            )
            if pairs:
                available[v] = [cut for cut, _ in pairs]
    return available


def considering(problem, columns):
    """The same problem, in which no other columns can be split on."""
    weights = [s if v in columns else 0.0 for v, s in enumerate(problem.prior.split_weights)]
    return problem._replace(prior=problem.prior._replace(split_weights=np.array(weights)))


def prior_options(problem, rows, depth):
    """Log prior weight of everything that can happen to a node.

    Probabilities, unless the cut prior is "paper".
    """
    available = available_cuts(problem, rows, depth)
    if not available:
        return {STOP: 0.0}
    prior = problem.prior
    weights = prior.split_weights
    split = prior.alpha * (1 + depth) ** -prior.beta
    options = {STOP: math.log(1 - split)}
    for v, cuts in available.items():
        if prior.cut_prior == CUT_PRIORS["columns"]:
            share = weights[v] / sum(weights[u] for u in available) / len(cuts)
        elif prior.cut_prior == CUT_PRIORS["cuts"]:
            share = weights[v] / sum(weights[u] * len(available[u]) for u in available)
        else:
            share = weights[v] / sum(weights)
        for cut in cuts:
            options[v, cut] = math.log(split * share)
    return options


def node_options(problem, rows, depth):
    """Log-weight of everything that can happen to a node: prior times integrated likelihood."""

    def evidence(some_rows):
        return log_evidence(problem.g[some_rows], problem.h[some_rows], problem.prior.leaf_var)

    options = prior_options(problem, rows, depth)
    for option in options:
        if option is STOP:
            options[option] += evidence(rows)
        else:
            v, cut = option
            left, right = partition(problem.codes[v], cut, rows)
            options[option] += evidence(left) + evidence(right)
    return options


def log_sum_exp(log_weights):
    largest = max(log_weights)
    return largest + math.log(math.fsum(math.exp(w - largest) for w in log_weights))


def tree_log_prob(problem, tree, options=node_options):
    """Log-probability that growing from the root draws this tree."""
    total = 0.0
    waiting = [(tree, problem.all_rows, 0)]
    while waiting:
        subtree, rows, depth = waiting.pop()
        log_weights = options(problem, rows, depth)
        choice = STOP if subtree == LEAF else subtree[:2]
        if choice not in log_weights:
            return -math.inf
        total += log_weights[choice] - log_sum_exp(log_weights.values())
        if choice is not STOP:
            v, cut = choice
            left, right = partition(problem.codes[v], cut, rows)
            waiting += [(subtree[2], left, depth + 1), (subtree[3], right, depth + 1)]
    return total


def enumerate_law(problem, options=node_options):
    """Log-probability of every tree that growing from the root can draw: {tree: log_prob}."""
    laws = {}

    def law_below(rows, depth):
        key = tuple(rows.tolist()), depth
        if key not in laws:
            laws[key] = law = {}
            log_weights = options(problem, rows, depth)
            log_total = log_sum_exp(log_weights.values())
            for option, log_weight in log_weights.items():
                if option is STOP:
                    law[LEAF] = log_weight - log_total
                    continue
                v, cut = option
                left, right = partition(problem.codes[v], cut, rows)
                for left_tree, left_log_prob in law_below(left, depth + 1).items():
                    for right_tree, right_log_prob in law_below(right, depth + 1).items():
                        tree = (v, cut, left_tree, right_tree)
                        law[tree] = log_weight - log_total + left_log_prob + right_log_prob
        return laws[key]

    return law_below(problem.all_rows, 0)


def leaf_of(forest, tree, goes_left):
    """Leaf that a row reaches in a tree; `goes_left(column, cut)` decides at each split."""
    start = forest.tree_start[tree]
    node = 0
    while forest.column[start + node] != -1:
        left = forest.left[start + node]
        goes = goes_left(forest.column[start + node], start + node)
        node = left if goes else left + 1
    return int(node)


def route(forest, codes):
    """Leaf of each row in each tree, (num_trees, n)."""
    num_trees, num_rows = forest.tree_start.size - 1, codes.shape[1]
    leaf = np.empty((num_trees, num_rows), int)
    for tree, i in np.ndindex(num_trees, num_rows):
        leaf[tree, i] = leaf_of(forest, tree, lambda v, k, i=i: codes[v, i] <= forest.cut[k])
    return leaf


def forest_values(forest, leaf_of_row):
    """Sum over trees of each row's leaf value."""
    starts = forest.tree_start[:-1]
    return sum(forest.value[k + leaf] for k, leaf in zip(starts, leaf_of_row, strict=True))


def as_tree(forest, tree, node=0):
    """A tree of a forest as nested tuples."""
    k = forest.tree_start[tree] + node
    if forest.column[k] == -1:
        return LEAF
    left = forest.left[k]
    return (
        int(forest.column[k]),
        int(forest.cut[k]),
        as_tree(forest, tree, left),
        as_tree(forest, tree, left + 1),
    )


def replay_sweep(problem, forest, leaf_of_row, new_forest, rng):
    """Uniform variates that a sweep from `forest` would have turned into `new_forest`.

    A sweep that follows the law draws each choice by inverting a distribution function. Given its
    outcome this finds the uniform that went in: for a leaf value Phi((value - mean) / sd), for a
    choice among options a point drawn anew within the chosen option's share of [0, 1]. Whatever the
    data, the uniforms are then independent and uniform, over trees, nodes and sweeps.

    `problem.g` is taken at the sum of the trees of `forest`, whose leaves `leaf_of_row`
    (num_trees, n) names.

    Returns
    -------
    choices, values : list of float
    """
    choices, values = [], []
    g = problem.g
    for tree, leaf in enumerate(leaf_of_row):
        g = g + problem.h * forest.value[forest.tree_start[tree] + leaf]
        others = problem._replace(g=g)
        new_value = np.zeros(g.size)
        start = new_forest.tree_start[tree]
        waiting = [(0, problem.all_rows, 0)]
        while waiting:
            node, rows, depth = waiting.pop()
            v, cut = int(new_forest.column[start + node]), int(new_forest.cut[start + node])
            choice = STOP if v == -1 else (v, cut)
            choices.append(_uniform_of_choice(node_options(others, rows, depth), choice, rng))
            if choice is STOP:
                mean, var = leaf_posterior(g[rows], problem.h[rows], problem.prior.leaf_var)
                new_value[rows] = new_forest.value[start + node]
                values.append(normal_cdf((new_forest.value[start + node] - mean) / math.sqrt(var)))
            else:
                left_child = int(new_forest.left[start + node])
                left, right = partition(problem.codes[v], cut, rows)
                waiting += [(left_child, left, depth + 1), (left_child + 1, right, depth + 1)]
        g = g - problem.h * new_value
    return choices, values


def _uniform_of_choice(log_weights, choice, rng):
    log_total = log_sum_exp(log_weights.values())
    below = 0.0
    for option, log_weight in log_weights.items():
        probability = math.exp(log_weight - log_total)
        if option == choice:
            return below + rng.random() * probability
        below += probability
    msg = f"{choice} was drawn, but the node only offers {list(log_weights)}."
    raise AssertionError(msg)


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))
