"""Nodes that consider a few columns, drawn anew by weight, grow trees from the law that says so."""

import math
from itertools import permutations

import numpy as np
import pytest

from pymc_xbart.kernels import CUT_PRIORS, column_choice
from tests.helpers import cases, inside, law, slow, tiny

NUM_DRAWS = 20_000
KINDS = ["tied", "0/1", "unequal split weights", "max_depth 2"]
# To be drawn with these, whatever the split weights are.
COLUMN_WEIGHTS = np.array([0.5, 2.0, 1.0, 0.25])


def subsets(weights, mtry):
    """Probability of each set of columns, drawn one by one and without replacement."""
    positive = [v for v, weight in enumerate(weights) if weight > 0]
    probabilities = {}
    for drawn in permutations(positive, min(mtry, len(positive))):
        probability, left = 1.0, sum(weights)
        for v in drawn:
            probability *= weights[v] / left
            left -= weights[v]
        key = frozenset(drawn)
        probabilities[key] = probabilities.get(key, 0.0) + probability
    return probabilities


def options_with(draw, options=slow.node_options):
    """Options of a node that considers a random set of columns; `draw` gives their law."""

    def mixture(problem, rows, depth):
        probability = {}
        for subset, subset_probability in draw.items():
            log_weights = options(slow.considering(problem, subset), rows, depth)
            log_total = slow.log_sum_exp(log_weights.values())
            for option, log_weight in log_weights.items():
                share = subset_probability * math.exp(log_weight - log_total)
                probability[option] = probability.get(option, 0.0) + share
        return {option: math.log(p) for option, p in probability.items() if p > 0}

    return mixture


def law_with(case, draw):
    return slow.enumerate_law(case.problem, options_with(draw))


def grow(case, mtry, weights, rng):
    choice = column_choice(case.num_columns, mtry, weights)
    return cases.count_trees(inside.grow_trees(case, NUM_DRAWS, rng, choice))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut_prior", CUT_PRIORS.values(), ids=CUT_PRIORS)
def test_trees_follow_the_enumerated_mixture_over_columns(rng, kind, cut_prior):
    case = tiny.make(kind, "unequal h", rng, cut_prior=cut_prior)
    weights = COLUMN_WEIGHTS[: case.num_columns]
    for mtry in range(1, case.num_columns):
        expected = law_with(case, subsets(weights, mtry))
        law.assert_law(grow(case, mtry, weights, rng), expected, false_fail=1e-6)
        assert law.smallest_visible_error(expected, NUM_DRAWS) < 0.08


def test_columns_of_weight_zero_are_never_considered(rng):
    case = tiny.make("0/1", "unequal h", rng)
    weights = np.array([1.0, 0.0, 1.0])
    expected = slow.enumerate_law(slow.considering(case.problem, {0, 2}))
    law.assert_law(grow(case, 2, weights, rng), expected, false_fail=1e-6)


def with_replacement(weights, mtry):
    """Sets of columns that come of independent draws."""
    sets = {frozenset(): 1.0}
    for _ in range(mtry):
        longer = {}
        for drawn, probability in sets.items():
            for v, weight in enumerate(weights):
                key = drawn | {v}
                longer[key] = longer.get(key, 0.0) + probability * weight / sum(weights)
        sets = longer
    return sets


def without_weights(weights, mtry):
    return subsets(np.ones_like(weights), mtry)


def one_more(weights, mtry):
    return subsets(weights, mtry + 1)


@pytest.mark.parametrize("broken", [with_replacement, without_weights, one_more])
def test_that_the_check_would_catch_other_draws_of_columns(rng, broken):
    case = tiny.make("0/1", "unequal h", rng)
    weights = COLUMN_WEIGHTS[: case.num_columns]
    wrong = law_with(case, broken(weights, 2))
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(grow(case, 2, weights, rng), wrong, false_fail=1e-6)


def test_that_it_would_catch_columns_drawn_once_for_a_tree(rng):
    case = tiny.make("0/1", "unequal h", rng)
    weights = COLUMN_WEIGHTS[: case.num_columns]
    wrong = {}
    for subset, probability in subsets(weights, 1).items():
        for tree, log_prob in slow.enumerate_law(slow.considering(case.problem, subset)).items():
            wrong[tree] = wrong.get(tree, 0.0) + probability * math.exp(log_prob)
    wrong = {tree: math.log(probability) for tree, probability in wrong.items()}
    with pytest.raises(AssertionError, match=r"likelihood ratio|impossible"):
        law.assert_law(grow(case, 1, weights, rng), wrong, false_fail=1e-6)
