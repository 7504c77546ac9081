"""Proposals of whole forests, slow and obvious, from the definition.

`problem.g` belongs to f = 0. A walk from one forest to another replaces the trees in some order,
each given the trees before it (new) and after it (old).
"""

import math
from itertools import pairwise

import numpy as np

from pymc_xbart.kernels import Forest
from tests.helpers import exact, slow


def at(problem, forest):
    """The problem with g at the sum of the trees."""
    f = slow.forest_values(forest, slow.route(forest, problem.codes))
    return problem._replace(g=problem.g - problem.h * f)


def proposal_log_density(problem, origin, destination, order=None, *, leaf_values=True, **variant):
    """Log-density with which a sweep of `origin` makes `destination`; leaf values count or not."""
    terms = proposal_terms(problem, origin, destination, order, **variant)
    return math.fsum(terms[:, : 2 if leaf_values else 1].ravel())


def proposal_terms(problem, origin, destination, order=None, *, keeps_tree=False):
    """Log-probability of each tree and log-density of its leaf values, (num_trees, 2).

    `keeps_tree` leaves each old tree in the residual that the new one sees.
    """
    problem = at(problem, origin)
    terms = []
    for index in range(num_trees(origin)) if order is None else order:
        old, new = (values_of_rows(problem, forest, index) for forest in (origin, destination))
        without = problem._replace(g=problem.g + problem.h * old)
        seen = problem if keeps_tree else without
        log_prob = slow.tree_log_prob(seen, slow.as_tree(destination, index))
        terms.append([log_prob, leaf_log_density(seen, destination, index)])
        problem = problem._replace(g=without.g - problem.h * new)
    return np.array(terms)


def num_trees(forest):
    return forest.tree_start.size - 1


def values_of_rows(problem, forest, index):
    """Value of one tree at each row, (n,)."""
    leaf = slow.route(forest, problem.codes)[index]
    return forest.value[forest.tree_start[index] + leaf]


def leaf_log_density(problem, forest, index):
    """Log-density of one tree's leaf values given their rows."""
    leaf_of_row = slow.route(forest, problem.codes)[index]
    total = 0.0
    for leaf in set(leaf_of_row.tolist()):
        rows = leaf_of_row == leaf
        mean, var = slow.leaf_posterior(problem.g[rows], problem.h[rows], problem.prior.leaf_var)
        value = forest.value[forest.tree_start[index] + leaf]
        total -= 0.5 * ((value - mean) ** 2 / var + math.log(2 * math.pi * var))
    return total


def log_joint(problem, forest):
    """Log of prior times likelihood, leaf values included."""
    nothing_seen = problem._replace(g=np.zeros_like(problem.g), h=np.zeros_like(problem.h))
    f = slow.forest_values(forest, slow.route(forest, problem.codes))
    total = float(problem.g @ f - 0.5 * problem.h @ f**2)
    for index in range(num_trees(forest)):
        tree = slow.as_tree(forest, index)
        total += slow.tree_log_prob(problem, tree, slow.prior_options)
        total += leaf_log_density(nothing_seen, forest, index)
    return total


def log_ratio(problem, forest, proposed, there=None, back=None, **variant):
    """Log of the Metropolis-Hastings ratio of a proposal, with the tree orders of both ways."""
    return (
        log_joint(problem, proposed)
        - log_joint(problem, forest)
        + proposal_log_density(problem, proposed, forest, back, **variant)
        - proposal_log_density(problem, forest, proposed, there, **variant)
    )


def orders(forest):
    """First to last, and last to first."""
    forward = list(range(num_trees(forest)))
    return forward, forward[::-1]


def backward(forest):
    """The same trees, the last one first."""
    return exact.join(split(forest)[::-1])


def split(forest):
    """Every tree as a forest of its own."""
    return [
        Forest(np.array([0, stop - start]), *(array[start:stop] for array in forest[1:]))
        for start, stop in pairwise(forest.tree_start.tolist())
    ]
