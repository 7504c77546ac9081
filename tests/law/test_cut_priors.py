"""The three ways to share prior weight among cuts: each grows, and is drawn from, its own law."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import CUT_PRIORS, draw_prior_forest
from tests.helpers import cases, inside, law, slow, tiny

NUM_DRAWS = 20_000
# All other tests of growing and of the prior belong to "columns".
OTHERS = {name: number for name, number in CUT_PRIORS.items() if name != "columns"}
every_other = pytest.mark.parametrize("cut_prior", OTHERS.values(), ids=OTHERS)
every_kind = pytest.mark.parametrize("kind", tiny.KINDS)


def flat(case):
    return case._replace(g=np.zeros_like(case.g), h=np.zeros_like(case.h))


@every_other
@every_kind
@pytest.mark.parametrize("curvature", tiny.CURVATURES)
def test_log_probabilities_of_all_trees_equal_enumeration(rng, cut_prior, kind, curvature):
    case = tiny.make(kind, curvature, rng, cut_prior=cut_prior)
    expected = slow.enumerate_law(case.problem)
    found = inside.enumerate_law(case)
    assert found.keys() == expected.keys()
    assert max(abs(found[tree] - expected[tree]) for tree in expected) < 1e-10


def grow(case, rng):
    return cases.count_trees(inside.grow_trees(case, NUM_DRAWS, rng))


def draw_prior(case, rng):
    return cases.count_trees(draw_prior_forest(case.design, case.prior, NUM_DRAWS, rng)[0])


@every_other
@pytest.mark.parametrize("kind", ["tied", "0/1", "unequal split weights"])
def test_grown_trees_follow_the_enumerated_law(rng, cut_prior, kind):
    case = tiny.make(kind, "unequal h", rng, cut_prior=cut_prior)
    expected = slow.enumerate_law(case.problem)
    law.assert_law(grow(case, rng), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, NUM_DRAWS) < 0.07


@every_other
@pytest.mark.parametrize("kind", ["tied", "0/1", "unequal split weights", "no cut passes"])
def test_prior_draws_and_flat_growth_follow_the_enumerated_prior(rng, cut_prior, kind):
    case = flat(tiny.make(kind, "equal h", rng, cut_prior=cut_prior))
    prior = slow.enumerate_law(case.problem, slow.prior_options)
    law.assert_law(draw_prior(case, rng), prior, false_fail=1e-6)
    law.assert_law(grow(case, rng), prior, false_fail=1e-6)
    assert law.smallest_visible_error(prior, NUM_DRAWS) < 0.08


@pytest.mark.parametrize("kind", ["continuous", "few cutpoints", "max_depth 2"])
def test_columns_and_cuts_agree_where_no_column_has_ties(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    other = case._replace(prior=case.prior._replace(cut_prior=CUT_PRIORS["cuts"]))
    expected, found = inside.enumerate_law(case), inside.enumerate_law(other)
    assert max(abs(found[tree] - expected[tree]) for tree in expected) < 1e-10


def test_they_disagree_elsewhere(rng):
    """Or the laws above could all be those of "columns"."""
    case = flat(tiny.make("tied", "equal h", rng))
    laws = [
        slow.enumerate_law(
            case.problem._replace(prior=case.prior._replace(cut_prior=number)), slow.prior_options
        )
        for number in CUT_PRIORS.values()
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert law.total_variation(laws[one], laws[other]) > 0.05


@pytest.mark.parametrize("name", ["columns", "cuts"])
@every_kind
def test_a_node_with_cuts_splits_with_the_probability_of_its_depth(rng, name, kind):
    case = flat(tiny.make(kind, "equal h", rng, cut_prior=CUT_PRIORS[name]))
    log_weights, log_total = inside.score(case, inside.open_root(case))
    assert math.exp(log_weights[-1] - log_total) == pytest.approx(1 - case.prior.alpha)


@every_kind
def test_under_paper_the_odds_of_splitting_grow_with_the_number_of_cuts(rng, kind):
    """V null cuts, one for each column: K p against V (1 - p), columns counting by split weight."""
    case = flat(tiny.make(kind, "equal h", rng, cut_prior=CUT_PRIORS["paper"]))
    log_weights, log_total = inside.score(case, inside.open_root(case))
    cuts = slow.available_cuts(case.problem, case.problem.all_rows, 0)
    weights, alpha = case.prior.split_weights, case.prior.alpha
    num_cuts = sum(weights[v] * len(cuts[v]) for v in cuts)
    odds = num_cuts * alpha / (weights.sum() * (1 - alpha))
    assert math.exp(log_weights[-1] - log_total) == pytest.approx(1 / (1 + odds))


def null_cuts_for_columns_with_cuts_only(problem, rows, depth):
    """Of V null cuts, those of columns that have no cuts in the node are left out."""
    available = slow.available_cuts(problem, rows, depth)
    weights = problem.prior.split_weights
    options = slow.node_options(problem, rows, depth)
    if available:
        options[slow.STOP] += math.log(sum(weights[v] for v in available) / sum(weights))
    return options


def as_if(name):
    """Weights of another cut prior."""

    def options(problem, rows, depth):
        other = problem.prior._replace(cut_prior=CUT_PRIORS[name])
        return slow.node_options(problem._replace(prior=other), rows, depth)

    return options


def columns_weigh_equally(problem, rows, depth):
    equal = np.sign(problem.prior.split_weights)
    return slow.node_options(
        problem._replace(prior=problem.prior._replace(split_weights=equal)), rows, depth
    )


@pytest.mark.parametrize(
    ("name", "broken", "kind"),
    [
        ("cuts", as_if("columns"), "tied"),
        ("cuts", as_if("paper"), "0/1"),
        ("cuts", columns_weigh_equally, "unequal split weights"),
        ("paper", as_if("columns"), "0/1"),
        ("paper", as_if("cuts"), "continuous"),
        ("paper", columns_weigh_equally, "unequal split weights"),
        ("paper", null_cuts_for_columns_with_cuts_only, "unequal split weights"),
    ],
)
def test_that_the_check_would_catch_a_wrong_weight(rng, name, broken, kind):
    case = tiny.make(kind, "unequal h", rng, cut_prior=CUT_PRIORS[name])
    wrong = slow.enumerate_law(case.problem, broken)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(grow(case, rng), wrong, false_fail=1e-6)
    case = flat(case)
    wrong = slow.enumerate_law(case.problem, broken)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(draw_prior(case, rng), wrong, false_fail=1e-6)
