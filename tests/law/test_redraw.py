"""Redrawing one split leaves the exact posterior as it is, to rounding and in the run."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import CUT_PRIORS, column_choice
from pymc_xbart.kernels.redraw import SPLITS_PER_TREE
from tests.helpers import exact, inside, law, slow, tiny
from tests.helpers.site_moves import RIGHT, Rule, change, log_law_from

NUM_DRAWS = 15_000
every_curvature = pytest.mark.parametrize("curvature", tiny.CURVATURES)
SUBSETS = [("tied", 1), ("0/1", 1), ("0/1", 2), ("unequal split weights", 1), ("one cutpoint", 1)]
# Each wrong rule changes some tree's probability by at least 1e-3 here.
BROKEN = {
    "sites not counted": Rule(counts_sites=False),
    "children taken for ones that can split": Rule(minds_stuck_children=False),
}
BROKEN_WITH_SUBSETS = BROKEN | {
    "P(S) left out": Rule(counts_columns=False),
    "A_S / A left out": Rule(minds_share=False),
}


@pytest.mark.parametrize("kind", tiny.KINDS)
@every_curvature
def test_one_redraw_leaves_the_posterior_as_it_is(rng, kind, curvature):
    case = tiny.make(kind, curvature, rng)
    assert change(case.problem, exact.tree_posterior(case.problem), case.num_columns) < 1e-12


@pytest.mark.parametrize(("kind", "mtry"), SUBSETS)
def test_so_it_does_when_it_considers_a_few_columns(rng, kind, mtry):
    problem = tiny.make(kind, "unequal h", rng).problem
    assert change(problem, exact.tree_posterior(problem), mtry) < 1e-12


@pytest.mark.parametrize("kind", ["tied", "0/1", "one cutpoint"])
def test_so_it_does_when_all_cuts_weigh_the_same(rng, kind):
    case = tiny.make(kind, "unequal h", rng, cut_prior=CUT_PRIORS["cuts"])
    assert change(case.problem, exact.tree_posterior(case.problem), case.num_columns) < 1e-12


@pytest.mark.parametrize("broken", BROKEN_WITH_SUBSETS.values(), ids=BROKEN_WITH_SUBSETS)
@pytest.mark.parametrize(("kind", "mtry"), SUBSETS)
def test_that_the_check_would_catch_another_rule(rng, broken, kind, mtry):
    problem = tiny.make(kind, "unequal h", rng).problem
    assert change(problem, exact.tree_posterior(problem), mtry, broken) > 1e-3


# Redraws from a given tree: their law is exact.


def make_strong(kind, rng, **prior_fields):
    """A case in which the outcomes of a site are far from equally likely."""
    case = tiny.make(kind, "unequal h", rng, **prior_fields)
    return case._replace(g=1.5 * case.g)


def start_values(tree):
    return 0.5 * np.arange(1, count_leaves(tree) + 1)


def count_leaves(tree):
    return 1 if tree == slow.LEAF else count_leaves(tree[2]) + count_leaves(tree[3])


def redraw_many(case, tree, mtry, rng, num_draws=NUM_DRAWS):
    """Forests of one tree each, after redraws from `tree` and given leaf values."""
    start = exact.as_forest([tree], np.tile(start_values(tree), (num_draws, 1)))
    choice = column_choice(case.num_columns, mtry, is_per_tree=True)
    return inside.sweep_each(case, start, 1, 1, rng, num_regrown=0, choice=choice)


def single(tree_law):
    """The law of forests of one tree."""
    return {(tree,): log_prob for tree, log_prob in tree_law.items() if log_prob > -math.inf}


def law_from(case, posterior, tree, mtry, rule=RIGHT):
    return single(log_law_from(case.problem, posterior, mtry, tree, SPLITS_PER_TREE, rule))


def telling_tree(posterior):
    """The likeliest tree with three leaves: it has a site that is a split, and one that is not."""
    candidates = [tree for tree in posterior if count_leaves(tree) == 3]
    return max(candidates, key=posterior.get)


STARTS = [
    *[(kind, None) for kind in tiny.KINDS if kind != "no cut passes"],
    *SUBSETS,
    ("min_samples_leaf 2", 1),
]


@pytest.mark.parametrize(("kind", "mtry"), STARTS)
def test_redraws_from_a_given_tree_follow_the_exact_law(rng, kind, mtry):
    case = make_strong(kind, rng)
    mtry = case.num_columns if mtry is None else mtry
    posterior = exact.tree_posterior(case.problem)
    tree = telling_tree(posterior)
    redrawn = exact.uniforms_behind(case.problem, redraw_many(case, tree, mtry, rng), 1)
    expected = law_from(case, posterior, tree, mtry)
    exact.assert_follows(redrawn, expected, false_fail=1e-6)
    assert exact.smallest_visible_error(expected, NUM_DRAWS) < 0.08


@pytest.mark.parametrize("mtry", [1, 3])
def test_so_do_redraws_from_a_tree_without_splits(rng, mtry):
    case = make_strong("0/1", rng)
    posterior = exact.tree_posterior(case.problem)
    redrawn = exact.uniforms_behind(case.problem, redraw_many(case, slow.LEAF, mtry, rng), 1)
    exact.assert_follows(redrawn, law_from(case, posterior, slow.LEAF, mtry), false_fail=1e-6)


@pytest.mark.parametrize("mtry", [1, 2])
def test_so_they_do_at_thousands_of_rows(rng, mtry):
    """Buckets instead of rows in order; the law is that of the few distinct rows."""
    case = make_strong("tied", rng, num_cutpoints=100)
    posterior = exact.tree_posterior(case.problem)
    tree = telling_tree(posterior)
    many = tiny.repeated(case, times=500)
    num_draws = 3000
    redrawn = exact.uniforms_behind(case.problem, redraw_many(many, tree, mtry, rng, num_draws), 1)
    expected = law_from(case, posterior, tree, mtry)
    exact.assert_follows(redrawn, expected, false_fail=1e-6)
    assert exact.smallest_visible_error(expected, num_draws) < 0.16


@pytest.mark.parametrize("broken", BROKEN_WITH_SUBSETS.values(), ids=BROKEN_WITH_SUBSETS)
def test_that_the_law_would_show_another_rule(rng, broken):
    kind, mtry = "unequal split weights", 1
    case = make_strong(kind, rng)
    posterior = exact.tree_posterior(case.problem)

    def error(tree):
        right = law_from(case, posterior, tree, mtry)
        return law.total_variation(right, law_from(case, posterior, tree, mtry, broken))

    tree = max(sorted(posterior, key=posterior.get)[-30:], key=error)
    assert error(tree) > 0.04
    redrawn = exact.uniforms_behind(case.problem, redraw_many(case, tree, mtry, rng), 1)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        exact.assert_follows(redrawn, law_from(case, posterior, tree, mtry, broken), 1e-6)


# Chains that start at the posterior must stay there, whatever share of their trees is regrown.


@pytest.mark.parametrize("num_regrown", [0, 1])
@pytest.mark.parametrize(("kind", "mtry"), [("continuous", 1), ("tied", 2), ("0/1", 3), ("0/1", 1)])
def test_two_trees_from_the_posterior_stay_there(rng, kind, mtry, num_regrown):
    case = tiny.make_smaller(kind, rng)
    posterior = exact.forest_posterior(case.problem, 2)
    start = exact.draw_forests(case.problem, posterior, NUM_DRAWS, rng)
    choice = column_choice(case.num_columns, mtry, is_per_tree=True)
    forests = inside.sweep_each(case, start, 2, 2, rng, num_regrown=num_regrown, choice=choice)
    swept = exact.uniforms_behind(case.problem, forests, 2)
    exact.assert_follows(swept, posterior, false_fail=1e-6)
    assert exact.smallest_visible_error(posterior, NUM_DRAWS) < 0.07
