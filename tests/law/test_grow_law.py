"""Growing from the root draws trees from the law that the model states."""

import math

import numpy as np
import pytest

from tests.helpers import cases, inside, law, slow, tiny

NUM_DRAWS = 100_000
every_kind = pytest.mark.parametrize("kind", tiny.KINDS)
every_curvature = pytest.mark.parametrize("curvature", tiny.CURVATURES)


@every_kind
@every_curvature
def test_log_probabilities_of_all_trees_equal_enumeration(rng, kind, curvature):
    case = tiny.make(kind, curvature, rng)
    expected = slow.enumerate_law(case.problem)
    assert math.fsum(map(math.exp, expected.values())) == pytest.approx(1, abs=1e-12)
    found = inside.enumerate_law(case)
    assert found.keys() == expected.keys()
    assert max(abs(found[tree] - expected[tree]) for tree in expected) < 1e-10


@every_kind
@every_curvature
def test_drawn_trees_follow_the_enumerated_law(rng, kind, curvature):
    case = tiny.make(kind, curvature, rng)
    expected = slow.enumerate_law(case.problem)
    law.assert_law(draw(case, rng), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, NUM_DRAWS) < 0.035


def draw(case, rng, num_draws=NUM_DRAWS):
    return cases.count_trees(inside.grow_trees(case, num_draws, rng))


@pytest.mark.parametrize("kind", ["tied", "0/1", "min_samples_leaf 2"])
@every_curvature
def test_drawn_trees_follow_the_enumerated_law_at_thousands_of_rows(rng, kind, curvature):
    """Large nodes, which leave their sums to a child, but few distinct rows, so few trees."""
    case = tiny.repeated(tiny.make(kind, curvature, rng, num_cutpoints=100), times=500)
    assert case.num_rows > 3 * inside.num_buckets(100)
    expected = slow.enumerate_law(case.problem)
    num_draws = 10_000
    law.assert_law(draw(case, rng, num_draws), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, num_draws) < 0.08


def stop_weighs_more(problem, rows, depth):
    options = slow.node_options(problem, rows, depth)
    options[slow.STOP] += math.log(1.1)
    return options


def cuts_weigh_equally(problem, rows, depth):
    prior = slow.prior_options(problem, rows, depth)
    cuts = [option for option in prior if option is not slow.STOP]
    log_split = slow.log_sum_exp([prior[cut] for cut in cuts]) if cuts else 0.0
    options = slow.node_options(problem, rows, depth)
    log_share = log_split - math.log(max(1, len(cuts)))
    return options | {cut: options[cut] - prior[cut] + log_share for cut in cuts}


def columns_do_not_share_their_weight_among_cuts(problem, rows, depth):
    options = slow.node_options(problem, rows, depth)
    number = {}
    for option in options:
        if option is not slow.STOP:
            number[option[0]] = number.get(option[0], 0) + 1
    return {
        option: weight + (0.0 if option is slow.STOP else math.log(number[option[0]]))
        for option, weight in options.items()
    }


def depth_counts_from_one(problem, rows, depth):
    deeper = problem.prior._replace(max_depth=problem.prior.max_depth + 1)
    return slow.node_options(problem._replace(prior=deeper), rows, depth + 1)


def every_row_has_the_same_curvature(problem, rows, depth):
    flat = np.full_like(problem.h, problem.h.mean())
    return slow.node_options(problem._replace(h=flat), rows, depth)


def columns_weigh_equally(problem, rows, depth):
    equal = np.sign(problem.prior.split_weights)
    return slow.node_options(
        problem._replace(prior=problem.prior._replace(split_weights=equal)), rows, depth
    )


def leaf_variance_is_a_standard_deviation(problem, rows, depth):
    other = problem.prior._replace(leaf_var=math.sqrt(problem.prior.leaf_var))
    return slow.node_options(problem._replace(prior=other), rows, depth)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (stop_weighs_more, "continuous"),
        (stop_weighs_more, "0/1"),
        (cuts_weigh_equally, "tied"),
        (cuts_weigh_equally, "unequal split weights"),
        (columns_do_not_share_their_weight_among_cuts, "one cutpoint"),
        (depth_counts_from_one, "max_depth 2"),
        (every_row_has_the_same_curvature, "tied"),
        (columns_weigh_equally, "unequal split weights"),
        (leaf_variance_is_a_standard_deviation, "few cutpoints"),
    ],
)
def test_that_the_check_would_catch_a_wrong_weight(rng, broken, kind):
    case = tiny.make(kind, "unequal h", rng)
    wrong = slow.enumerate_law(case.problem, broken)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draw(case, rng), wrong, false_fail=1e-6)
