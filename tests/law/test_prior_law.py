"""Prior draws follow the prior, and so does growing where the data say nothing."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import draw_prior_forest
from tests.helpers import cases, inside, law, slow, tiny

NUM_DRAWS = 30_000
every_kind = pytest.mark.parametrize("kind", tiny.KINDS)


def flat_case(kind, rng):
    case = tiny.make(kind, "equal h", rng)
    return case._replace(g=np.zeros_like(case.g), h=np.zeros_like(case.h))


def draw_prior(case, num_draws, rng):
    return draw_prior_forest(case.design, case.prior, num_draws, rng)[0]


@every_kind
def test_prior_draws_follow_the_enumerated_prior(rng, kind):
    case = flat_case(kind, rng)
    prior = slow.enumerate_law(case.problem, slow.prior_options)
    counts = cases.count_trees(draw_prior(case, NUM_DRAWS, rng))
    law.assert_law(counts, prior, false_fail=1e-6)
    law.assert_close_in_total_variation(law.Counter(counts), prior, false_fail=1e-6)
    assert law.smallest_visible_error(prior, NUM_DRAWS) < 0.055


@every_kind
def test_growing_under_a_flat_likelihood_follows_the_enumerated_prior(rng, kind):
    case = flat_case(kind, rng)
    prior = slow.enumerate_law(case.problem, slow.prior_options)
    law.assert_law(cases.count_trees(inside.grow_trees(case, 50_000, rng)), prior, false_fail=1e-6)
    assert law.smallest_visible_error(prior, 50_000) < 0.045
    trees = list(prior)
    for tree in (trees[k] for k in rng.choice(len(trees), 50)):
        assert inside.tree_log_prob(case, tree) == pytest.approx(prior[tree], abs=1e-12)


def a_column_without_cuts_means_stopping(problem, rows, depth):
    """A column is drawn before looking whether it has cuts."""
    options = slow.prior_options(problem, rows, depth)
    weights = problem.prior.split_weights
    available = sum(weights[v] for v in slow.available_cuts(problem, rows, depth))
    if available == 0:
        return options
    share = available / sum(weights)
    for option in options:
        if option is not slow.STOP:
            options[option] += math.log(share)
    split = math.fsum(math.exp(w) for option, w in options.items() if option is not slow.STOP)
    options[slow.STOP] = math.log(1 - split)
    return options


def cuts_weigh_equally(problem, rows, depth):
    options = slow.prior_options(problem, rows, depth)
    cuts = [option for option in options if option is not slow.STOP]
    log_split = slow.log_sum_exp([options[cut] for cut in cuts]) if cuts else 0.0
    return options | {cut: log_split - math.log(len(cuts)) for cut in cuts}


def stop_weighs_more(problem, rows, depth):
    options = slow.prior_options(problem, rows, depth)
    options[slow.STOP] += math.log(1.1)
    return options


def one_row_fewer_in_a_leaf(problem, rows, depth):
    fewer = problem.prior._replace(min_samples_leaf=problem.prior.min_samples_leaf - 1)
    return slow.prior_options(problem._replace(prior=fewer), rows, depth)


def every_cut_is_a_candidate(problem, rows, depth):
    many = problem.prior._replace(num_cutpoints=100)
    return slow.prior_options(problem._replace(prior=many), rows, depth)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (a_column_without_cuts_means_stopping, "unequal split weights"),
        (a_column_without_cuts_means_stopping, "0/1"),
        (cuts_weigh_equally, "tied"),
        (stop_weighs_more, "continuous"),
        (one_row_fewer_in_a_leaf, "min_samples_leaf 2"),
        (every_cut_is_a_candidate, "few cutpoints"),
        (every_cut_is_a_candidate, "one cutpoint"),
    ],
)
def test_that_the_check_would_catch_a_wrong_prior(rng, broken, kind):
    case = flat_case(kind, rng)
    wrong = slow.enumerate_law(case.problem, broken)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_law(cases.count_trees(draw_prior(case, NUM_DRAWS, rng)), wrong, false_fail=1e-6)


def describe(forest):
    """Trees from afar: root column, leaves (to a factor of 1.5), depth, whether the left splits."""
    descriptions = []
    for tree in range(forest.tree_start.size - 1):
        nodes = slice(*forest.tree_start[tree : tree + 2])
        column, left = forest.column[nodes], forest.left[nodes]
        depth = np.zeros(column.size, int)
        # Children come after their parents.
        for node in np.flatnonzero(column >= 0):
            depth[left[node] : left[node] + 2] = depth[node] + 1
        num_leaves = (column.size + 1) // 2
        descriptions.append(
            (
                int(column[0]),
                round(math.log(num_leaves, 1.5)),
                int(depth.max()),
                bool(column.size > 1 and column[1] >= 0),
            )
        )
    return descriptions


def root_cuts(case, forest):
    """Root column, and rows on its left to a tenth of all."""
    columns, cuts = (array[forest.tree_start[:-1]] for array in (forest.column, forest.cut))
    share = [
        -1.0 if v < 0 else round(float(np.mean(case.design.codes[v] <= cut)), 1)
        for v, cut in zip(columns, cuts, strict=True)
    ]
    return list(zip(columns.tolist(), share, strict=True))


@pytest.mark.parametrize(
    ("num_rows", "num_draws", "fields"),
    [
        pytest.param(60, 20_000, {}, id="60 rows"),
        pytest.param(60, 20_000, {"min_samples_leaf": 4, "num_cutpoints": 3}, id="few cuts"),
        pytest.param(60, 20_000, {"split_weights": [1, 0, 4, 2], "max_depth": 3}, id="weights"),
        pytest.param(2100, 3000, {"num_cutpoints": 3, "beta": 0.3}, id="shared buckets"),
        pytest.param(2100, 3000, {"num_cutpoints": 100, "max_depth": 4}, id="2100 rows"),
    ],
)
def test_prior_and_flat_growth_agree_where_trees_cannot_be_listed(rng, num_rows, num_draws, fields):
    levels = rng.integers(0, 2, num_rows), rng.integers(0, 6, num_rows)
    X = np.column_stack([rng.standard_normal((num_rows, 2)), *levels])
    X[:, 1] += X[:, 3]
    case = inside.make_case(X, **({"alpha": 0.95, "beta": 0.8} | fields))
    drawn, grown = draw_prior(case, num_draws, rng), inside.grow_trees(case, num_draws, rng)
    law.assert_same_law(describe(drawn), describe(grown), false_fail=1e-6)
    law.assert_same_law(root_cuts(case, drawn), root_cuts(case, grown), false_fail=1e-6)


def test_that_the_comparison_would_catch_another_prior(rng):
    case = inside.make_case(rng.standard_normal((60, 3)), alpha=0.95, beta=0.8)
    other = case._replace(prior=case.prior._replace(beta=0.7))
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_same_law(
            describe(draw_prior(case, 20_000, rng)), describe(inside.grow_trees(other, 20_000, rng))
        )


def test_leaf_values_of_flat_growth_follow_the_prior(rng):
    case = inside.make_case(rng.standard_normal((30, 2)), leaf_var=0.3)
    forest = inside.grow_trees(case, 2000, rng)
    values = forest.value[forest.column == -1]
    law.assert_cdf(values, lambda t: slow.normal_cdf(t / math.sqrt(0.3)), false_fail=1e-6)
