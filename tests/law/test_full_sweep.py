"""Whole forests are proposed with the stated density, and accepted as the posterior asks."""

import math
from itertools import product

import numpy as np
import pytest

from pymc_xbart.kernels import (
    draw_prior_forest,
    find_leaves,
    proposal_log_density,
    propose_forest,
)
from tests.helpers import cases, exact, law, slow, tiny, walks

SCANS = ["paper", "reversible"]
every_scan = pytest.mark.parametrize("scan", SCANS)
every_number = pytest.mark.parametrize("num_trees", [1, 2, 3])


def density(case, origin, destination):
    """`proposal_log_density` of the kernels; `case.g` belongs to f = 0."""
    g = walks.at(case.problem, origin).g
    return proposal_log_density(origin, destination, g, case.h, case.design, case.prior)


def propose(case, forest, rng, scan):
    """Proposed forest, and the logarithm of its ratio."""
    leaf_of_row = find_leaves(forest, case.design.codes)
    g = case.g - case.h * slow.forest_values(forest, leaf_of_row)
    proposed, _, log_ratio, _ = propose_forest(
        *(forest, leaf_of_row, g, case.h, case.design, case.prior, case.work, rng), scan=scan
    )
    return proposed, log_ratio


def random_cases(rng):
    """Small cases with anything in them, and tiny ones in which ratios are far from one."""
    yield from cases.cases(rng, 12, max_rows=14, max_columns=3)
    for kind in tiny.KINDS:
        for curvature in tiny.CURVATURES:
            case = tiny.make(kind, curvature, rng)
            yield case._replace(g=3 * case.g)


def forest_pairs(rng, num_trees):
    """Cases, and two forests from the prior for each."""
    for case in random_cases(rng):
        yield (
            case,
            *(draw_prior_forest(case.design, case.prior, num_trees, rng)[0] for _ in range(2)),
        )


def close(value):
    return pytest.approx(value, rel=1e-10, abs=1e-10)


@every_number
def test_densities_equal_brute_force(rng, num_trees):
    for case, forest, other in forest_pairs(rng, num_trees):
        problem = case.problem
        assert density(case, forest, other) == close(
            walks.proposal_log_density(problem, forest, other)
        )
        assert density(case, forest, forest) == close(
            walks.proposal_log_density(problem, forest, forest)
        )


@pytest.mark.parametrize("kind", ["tied", "0/1", "min_samples_leaf 2"])
def test_densities_equal_brute_force_at_thousands_of_rows(rng, kind):
    """Large nodes leave their sums to a child; the density is that of the few distinct rows."""
    case = tiny.make(kind, "unequal h", rng, num_cutpoints=100)
    many = tiny.repeated(case, times=500)
    for _ in range(10):
        forest, other = (draw_prior_forest(case.design, case.prior, 2, rng)[0] for _ in range(2))
        g = np.repeat(walks.at(case.problem, forest).g / 500, 500)
        found = proposal_log_density(forest, other, g, many.h, many.design, many.prior)
        assert found == close(walks.proposal_log_density(case.problem, forest, other))


@pytest.mark.parametrize("kind", ["continuous", "tied", "min_samples_leaf 2"])
@every_number
def test_densities_add_up_to_one_over_the_last_tree(rng, kind, num_trees):
    case = tiny.make_smaller(kind, rng)
    forest, other = (
        draw_prior_forest(case.design, case.prior, num_trees, rng)[0] for _ in range(2)
    )
    first = walks.split(other)[:-1]
    probability = []
    for tree in slow.enumerate_law(case.problem, slow.prior_options):
        num_leaves = exact.leaf_numbers(tree, case.problem.codes).max() + 1
        last = exact.as_forest([tree], rng.standard_normal((1, num_leaves)))
        destination = exact.join([*first, last])
        terms = walks.proposal_terms(case.problem, forest, destination)
        others = terms[:-1, 0].sum() + terms[:, 1].sum()
        probability.append(math.exp(density(case, forest, destination) - others))
    assert len(probability) > 30
    assert math.fsum(probability) == pytest.approx(1, abs=1e-10)


def test_densities_add_up_to_the_trees_probability_over_leaf_values(rng):
    """Trapezoids are exact to 1e-30 for a Normal density, if half as wide as its deviation."""
    case = tiny.make("tied", "unequal h", rng)
    forest = draw_prior_forest(case.design, case.prior, 1, rng)[0]
    for tree in (slow.LEAF, (0, 1, slow.LEAF, slow.LEAF)):
        mean, lower = exact.leaf_law(case.problem, (tree,))
        grid = np.arange(-8, 8.25, 0.5)
        values = np.array(list(product(grid, repeat=mean.size)))
        densities = [
            math.exp(density(case, forest, exact.as_forest([tree], row[None])))
            for row in mean + values / np.diag(lower)
        ]
        mass = math.fsum(densities) * 0.5**mean.size / np.prod(np.diag(lower))
        assert mass == pytest.approx(math.exp(slow.tree_log_prob(case.problem, tree)), rel=1e-10)


@every_number
def test_the_ratio_of_the_papers_scan_equals_brute_force(rng, num_trees):
    for case, forest, _ in forest_pairs(rng, num_trees):
        proposed, log_ratio = propose(case, forest, rng, "paper")
        assert log_ratio == close(walks.log_ratio(case.problem, forest, proposed))


def direction(case, forest, proposed, log_ratio):
    """Whether a proposal of the reversible scan went backward, as its ratio tells."""
    forward, backward = walks.orders(forest)
    ratios = [
        walks.log_ratio(case.problem, forest, proposed, there, back)
        for there, back in ((forward, backward), (backward, forward))
    ]
    is_equal = [log_ratio == close(ratio) for ratio in ratios]
    assert any(is_equal)
    return None if all(is_equal) else is_equal[1]


@every_number
def test_the_ratio_of_the_reversible_scan_equals_brute_force(rng, num_trees):
    found = []
    for case, forest, _ in forest_pairs(rng, num_trees):
        proposed, log_ratio = propose(case, forest, rng, "reversible")
        found.append(direction(case, forest, proposed, log_ratio))
    # The order of one tree is none, and neither is it told where the ratio is one both ways.
    told = [is_backward for is_backward in found if is_backward is not None]
    if num_trees == 1:
        assert not told
    else:
        assert len(set(told)) == 2  # else 16 coins or more would have fallen on one side
        assert len(told) >= 16


def uniforms(case, scan, rng, num_forests=150, told=lambda is_backward: is_backward):
    """Uniform variates behind proposals (see `slow.replay_sweep`), in the order the ratio tells."""
    choices, values = [], []
    for _ in range(num_forests):
        forest = draw_prior_forest(case.design, case.prior, 3, rng)[0]
        proposed, log_ratio = propose(case, forest, rng, scan)
        problem = walks.at(case.problem, forest)
        if scan == "reversible" and told(direction(case, forest, proposed, log_ratio)):
            forest, proposed = walks.backward(forest), walks.backward(proposed)
        leaf_of_row = slow.route(forest, case.problem.codes)
        new = slow.replay_sweep(problem, forest, leaf_of_row, proposed, rng)
        choices += new[0]
        values += new[1]
    return choices, values


@every_scan
def test_proposals_follow_their_density(rng, scan):
    choices, values = uniforms(tiny.make("0/1", "unequal h", rng), scan, rng)
    law.assert_uniform(choices, false_fail=1e-6)
    law.assert_uniform(values, false_fail=1e-6)
    # Sure to see: distribution functions that differ by 0.2 somewhere.
    assert 2 * law.cdf_limit(len(choices)) < 0.2
    assert 2 * law.cdf_limit(len(values)) < 0.2


def test_that_the_check_would_catch_the_ratio_of_the_other_direction(rng):
    _, values = uniforms(
        tiny.make("0/1", "unequal h", rng), "reversible", rng, told=lambda back: not back
    )
    with pytest.raises(AssertionError, match="distribution functions"):
        law.assert_uniform(values, false_fail=1e-6)


def largest_error(rng, scan, wrong_ratio, num_trees=2):
    """Largest difference between ratios and those of a wrong formula, over some proposals."""
    errors = []
    for case, forest, _ in forest_pairs(rng, num_trees):
        proposed, log_ratio = propose(case, forest, rng, scan)
        wrong = wrong_ratio(case.problem, forest, proposed)
        errors.append(min(abs(log_ratio - ratio) for ratio in wrong))
    return max(errors)


def tree_kept_in_residual(problem, forest, proposed):
    """What the paper prints."""
    return [walks.log_ratio(problem, forest, proposed, keeps_tree=True)]


def no_leaf_values(problem, forest, proposed):
    return [walks.log_ratio(problem, forest, proposed, leaf_values=False)]


def other_order_back(problem, forest, proposed):
    return [walks.log_ratio(problem, forest, proposed, *walks.orders(forest))]


def same_order_back(problem, forest, proposed):
    return [
        walks.log_ratio(problem, forest, proposed, order, order) for order in walks.orders(forest)
    ]


def forward_order_back(problem, forest, proposed):
    forward, backward = walks.orders(forest)
    return [
        walks.log_ratio(problem, forest, proposed, order, forward) for order in (forward, backward)
    ]


@pytest.mark.parametrize(
    ("scan", "wrong_ratio"),
    [
        ("paper", tree_kept_in_residual),
        ("paper", no_leaf_values),
        ("paper", other_order_back),
        ("reversible", same_order_back),
        ("reversible", forward_order_back),
    ],
)
def test_that_brute_force_would_show_another_ratio(rng, scan, wrong_ratio):
    assert largest_error(rng, scan, wrong_ratio) > 0.01


@pytest.mark.parametrize("variant", [{"keeps_tree": True}, {"leaf_values": False}])
@every_number
def test_that_brute_force_would_show_another_density(rng, variant, num_trees):
    errors = [
        density(case, forest, other)
        - walks.proposal_log_density(case.problem, forest, other, **variant)
        for case, forest, other in forest_pairs(rng, num_trees)
    ]
    assert max(map(abs, errors)) > 0.01


# Chains that start at the posterior must stay there.

NUM_DRAWS = 2000
every_chain = pytest.mark.parametrize(
    ("kind", "num_trees"), [("continuous", 1), ("tied", 2), ("0/1", 3)]
)


def stay(case, posterior, num_trees, scan, rng, rule):
    """Forests from the posterior after two proposals each, read by `exact.uniforms_behind`."""
    start = walks.split(exact.draw_forests(case.problem, posterior, NUM_DRAWS, rng))
    swept = []
    for first in range(0, len(start), num_trees):
        forest = exact.join(start[first : first + num_trees])
        for _ in range(2):
            proposed, log_ratio = propose(case, forest, rng, scan)
            if math.log(rng.random()) < rule(log_ratio):
                forest = proposed
        swept.append(forest)
    return exact.uniforms_behind(case.problem, exact.join(swept), num_trees)


def as_the_kernels_say(log_ratio):
    return log_ratio


@every_scan
@every_chain
def test_forests_from_the_posterior_stay_there(rng, scan, kind, num_trees):
    case = tiny.make_smaller(kind, rng)
    posterior = exact.forest_posterior(case.problem, num_trees)
    swept = stay(case, posterior, num_trees, scan, rng, as_the_kernels_say)
    exact.assert_follows(swept, posterior, false_fail=1e-6)
    assert exact.smallest_visible_error(posterior, NUM_DRAWS) < 0.16


def accept_everything(log_ratio):
    return 0.0


def confuse_the_ways(log_ratio):
    return -log_ratio


@pytest.mark.parametrize(
    ("rule", "kind", "num_trees"),
    [
        (accept_everything, "continuous", 1),
        (accept_everything, "0/1", 3),
        (confuse_the_ways, "tied", 2),
    ],
)
def test_that_they_would_leave_it_under_another_rule(rng, rule, kind, num_trees):
    case = tiny.make_smaller(kind, rng)
    posterior = exact.forest_posterior(case.problem, num_trees)
    swept = stay(case, posterior, num_trees, "paper", rng, rule)
    with pytest.raises(AssertionError, match=r"likelihood ratio|distribution functions"):
        exact.assert_follows(swept, posterior, false_fail=1e-6)
