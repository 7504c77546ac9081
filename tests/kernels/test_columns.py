"""Columns are drawn by weight, one after the other and without replacement; or once for a tree."""

import math
from itertools import permutations, product

import numpy as np
import pytest

from pymc_xbart.kernels import Forest, column_choice
from tests.helpers import inside, law

NUM_DRAWS = 10_000
WEIGHTS = {
    "equal": [1.0, 1.0, 1.0, 1.0],
    "unequal": [0.5, 3.0, 1.0, 0.1],
    "zeros": [2.0, 0.0, 1.0, 0.5],
}
every_weights = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)


def law_of_draws(weights, mtry):
    """Log-probability of each sequence of columns."""
    positive = [v for v, weight in enumerate(weights) if weight > 0]
    log_probs = {}
    for drawn in permutations(positive, min(mtry, len(positive))):
        log_prob, left = 0.0, math.fsum(weights)
        for v in drawn:
            log_prob += math.log(weights[v] / left)
            left -= weights[v]
        log_probs[drawn] = log_prob
    return log_probs


def draw(weights, mtry, rng):
    choice = column_choice(len(weights), mtry, weights)
    return [tuple(inside.columns_considered(choice, rng)) for _ in range(NUM_DRAWS)]


@every_weights
@pytest.mark.parametrize("mtry", [1, 2, 3])
def test_columns_are_drawn_by_weight_without_replacement(rng, weights, mtry):
    expected = law_of_draws(weights, mtry)
    law.assert_law(draw(weights, mtry, rng), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, NUM_DRAWS) < 0.08


@pytest.mark.parametrize("mtry", [1, 2])
def test_that_the_check_would_catch_equal_weights(rng, mtry):
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draw(WEIGHTS["unequal"], mtry, rng), law_of_draws([1.0] * 4, mtry))


def test_that_it_would_catch_weights_that_are_not_brought_up_to_date(rng):
    """As if a drawn column kept its weight, and the next was drawn from what lies beside it."""
    weights = WEIGHTS["unequal"]
    total = math.fsum(weights)
    wrong = {
        (u, v): weights[u] * (weights[v] + weights[u] / 3) / total**2
        for u, v in permutations(range(4), 2)
    }
    wrong = {drawn: math.log(probability) for drawn, probability in wrong.items()}
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draw(weights, 2, rng), wrong)


@every_weights
@pytest.mark.parametrize("mtry", [None, 4])
def test_all_columns_are_considered_whatever_their_weights_and_without_chance(weights, mtry):
    choice = column_choice(4, mtry, weights)
    assert inside.columns_considered(choice, np.random.default_rng(1)) == [0, 1, 2, 3]
    untouched, rng = np.random.default_rng(1), np.random.default_rng(1)
    inside.columns_considered(choice, rng)
    assert rng.random() == untouched.random()


def test_no_more_columns_are_considered_than_have_weight(rng):
    choice = column_choice(3, 2, [0.0, 0.0, 5.0])
    assert inside.columns_considered(choice, rng) == [2]
    assert inside.columns_considered(column_choice(3, 1, np.zeros(3)), rng) == []


def test_the_choice_keeps_weights_of_its_own():
    weights = np.array([1.0, 2.0])
    choice = column_choice(2, 1, weights)
    weights[0] = 9.0
    np.testing.assert_array_equal(choice.weights, [1.0, 2.0])


def split_on(*columns):
    """A forest of one tree, a chain of splits on these columns."""
    num_nodes = 2 * len(columns) + 1
    column, left = np.full((2, num_nodes), -1, np.int32)
    for k, v in enumerate(columns):
        node = 2 * k
        column[node], left[node] = v, 2 * k + 1
    start = np.array([0, num_nodes], np.int64)
    return Forest(start, column, np.zeros(num_nodes, np.int32), left, np.zeros(num_nodes))


def law_of_subsets(num_columns, mtry, used):
    """Each column that is not used is there or not, by itself."""
    log_probs = {}
    for is_there in product([False, True], repeat=num_columns):
        if all(is_there[v] for v in used):
            subset = tuple(v for v in range(num_columns) if is_there[v])
            num_drawn = len(subset) - len(used)
            num_left_out = num_columns - len(subset)
            share = mtry / num_columns
            log_probs[subset] = num_drawn * math.log(share) + num_left_out * math.log(1 - share)
    return log_probs


@pytest.mark.parametrize("used", [(), (2,), (0, 3)])
def test_a_tree_is_replaced_under_its_own_columns_and_others_by_chance(rng, used):
    choice = column_choice(5, 2, is_per_tree=True)
    forest = split_on(*used, *used)
    draws = [tuple(inside.columns_for_tree(choice, forest, 0, rng)) for _ in range(NUM_DRAWS)]
    law.assert_law(draws, law_of_subsets(5, 2, used), false_fail=1e-6)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draws, law_of_subsets(5, 2.5, used), false_fail=1e-6)


def test_all_columns_stay_considered_where_mtry_asks_for_all(rng):
    choice = column_choice(3, is_per_tree=True)
    assert inside.columns_for_tree(choice, split_on(1), 0, rng) == [0, 1, 2]
