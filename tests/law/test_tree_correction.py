"""A corrected update of a tree leaves its exact posterior as it is, to rounding and in the run."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import CUT_PRIORS, column_choice
from tests.helpers import exact, inside, law, moves, slow, tiny

NUM_DRAWS = 15_000
every_curvature = pytest.mark.parametrize("curvature", tiny.CURVATURES)
# Kinds of columns, and how many of them are considered: one of them is constant, and one has no
# split weight, in "unequal split weights".
SUBSETS = [
    ("tied", 1),
    ("0/1", 1),
    ("0/1", 2),
    ("unequal split weights", 1),
    ("unequal split weights", 3),
    ("one cutpoint", 1),
    ("min_samples_leaf 2", 1),
]
# With total variations of at least 0.04 between the law of an update and that under a wrong rule.
TELLING_SUBSETS = [("tied", 1), ("0/1", 1), ("0/1", 2), ("unequal split weights", 1)]
every_subset = pytest.mark.parametrize(("kind", "mtry"), SUBSETS)


def kernel_chain(case, problem, posterior, mtry):
    """The chain on all trees, with every density and w as the kernels find them.

    `problem` is the case's own, or one with the same law.
    """
    chain = moves.make_chain(problem, posterior, mtry)
    proposals = []
    for proposal in chain.proposals:
        trees = [chain.trees[k] for k in proposal.trees]
        log_q, log_w = inside.follow_trees(
            case,
            exact.as_forest(trees, np.zeros((1, sum(map(num_leaves, trees))))),
            inside.choose_columns(case, mtry, proposal.columns),
        )
        assert np.abs(log_q - proposal.log_q).max() < 1e-10
        proposals.append(proposal._replace(log_q=log_q, log_w=log_w))
    return chain._replace(proposals=proposals)


def num_leaves(tree):
    return 1 if tree == slow.LEAF else num_leaves(tree[2]) + num_leaves(tree[3])


def change(chain, posterior):
    """Largest change of a tree's posterior probability by one update."""
    before = np.exp(np.array(list(posterior.values())))
    return np.abs(chain.move(before) - before).max()


def assert_keeps_posterior(case, mtry, problem=None):
    problem = case.problem if problem is None else problem
    posterior = exact.tree_posterior(problem)
    chain = kernel_chain(case, problem, posterior, mtry)
    assert change(chain, posterior) < 1e-12
    # w is the ratio of the joint density to that of growing, and means the same in every subset.
    log_prob = np.array(list(posterior.values()))
    constants = [p.log_q + p.log_w - log_prob[p.trees] for p in chain.proposals]
    assert np.ptp(np.concatenate(constants)) < 1e-10


@pytest.mark.parametrize("kind", tiny.KINDS)
@every_curvature
def test_one_update_leaves_the_posterior_as_it_is(rng, kind, curvature):
    case = tiny.make(kind, curvature, rng)
    assert_keeps_posterior(case, case.num_columns)


@every_subset
@every_curvature
def test_so_it_does_when_it_considers_a_few_columns(rng, kind, mtry, curvature):
    assert_keeps_posterior(tiny.make(kind, curvature, rng), mtry)


@pytest.mark.parametrize("kind", ["tied", "0/1", "unequal split weights", "one cutpoint"])
@every_curvature
def test_so_it_does_when_all_cuts_weigh_the_same(rng, kind, curvature):
    case = tiny.make(kind, curvature, rng, cut_prior=CUT_PRIORS["cuts"])
    assert_keeps_posterior(case, case.num_columns)


@pytest.mark.parametrize(
    ("kind", "mtry"), [("tied", 2), ("tied", 1), ("0/1", 2), ("min_samples_leaf 2", 1)]
)
@every_curvature
def test_so_it_does_at_thousands_of_rows(rng, kind, mtry, curvature):
    """Large nodes leave their sums to a child; the law is that of the few distinct rows."""
    case = tiny.make(kind, curvature, rng, num_cutpoints=100)
    # Weights leave a tally fewer bits for g than the comparison asks for: it gets no more than fit.
    case = case._replace(g=np.rint(2.0**20 * case.g) / 2.0**20)
    many = tiny.repeated(case, times=512)
    assert many.num_rows > 3 * inside.num_buckets(100)
    assert_keeps_posterior(many, mtry, case.problem)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_evidences_and_dense_densities_make_the_same_posterior(rng, kind):
    problem = tiny.with_matching_gradient(tiny.make(kind, "unequal h", rng)).problem
    posterior = exact.tree_posterior(problem)
    dense = exact.dense_tree_posterior(problem)
    assert max(abs(dense[tree] - posterior[tree]) for tree in posterior) < 1e-10


def ignore_share(problem, chain):
    """w without what the considered columns are of all that have cuts."""
    proposals = []
    for proposal in chain.proposals:
        trees = [chain.trees[k] for k in proposal.trees]
        share = [moves.log_share(problem, tree, proposal.columns) for tree in trees]
        proposals.append(proposal._replace(log_w=proposal.log_w - np.array(share)))
    return chain._replace(proposals=proposals)


BROKEN = {
    "no correction": lambda _, chain: chain._replace(is_corrected=False),
    "A_S / A left out": ignore_share,
    "log r left out": lambda _, chain: chain._replace(counts_columns=False),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@every_subset
def test_that_the_check_would_catch_another_rule(rng, broken, kind, mtry):
    problem = tiny.make(kind, "unequal h", rng).problem
    posterior = exact.tree_posterior(problem)
    chain = broken(problem, moves.make_chain(problem, posterior, mtry))
    assert change(chain, posterior) > 1e-3


@pytest.mark.parametrize("kind", ["continuous", "tied", "0/1", "min_samples_leaf 2"])
def test_that_it_would_catch_no_correction_where_all_columns_are_considered(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    posterior = exact.tree_posterior(case.problem)
    chain = moves.make_chain(case.problem, posterior, case.num_columns, is_corrected=False)
    assert change(chain, posterior) > 1e-3


# One update from a given tree: its law is exact, rejections and all.


def strong(kind, rng, **prior_fields):
    """A case in which many proposals are rejected."""
    case = tiny.make(kind, "unequal h", rng, **prior_fields)
    return case._replace(g=2 * case.g)


def start_values(tree):
    return 0.5 * np.arange(1, num_leaves(tree) + 1)


def update_many(case, tree, mtry, rng, num_draws=NUM_DRAWS):
    """Forests of one tree each, after one corrected update from `tree` and given leaf values."""
    start = exact.as_forest([tree], np.tile(start_values(tree), (num_draws, 1)))
    return sweep_each(case, start, 1, 1, mtry, rng)


def sweep_each(case, forests, num_trees, num_sweeps, mtry, rng):
    choice = column_choice(case.num_columns, mtry, is_per_tree=True)
    return inside.sweep_each(case, forests, num_trees, num_sweeps, rng, choice=choice)


def strong_chain(kind, mtry, rng, **prior_fields):
    """A case with many rejections, the chain on its trees, and a tree from which errors show.

    From that tree, the wrong rule that is hardest to see is seen best; and it is left often.
    """
    case = strong(kind, rng, **prior_fields)
    posterior = exact.tree_posterior(case.problem)
    chain = moves.make_chain(case.problem, posterior, mtry)
    rules = BROKEN.values() if mtry < case.num_columns else [BROKEN["no correction"]]
    others = [rule(case.problem, chain) for rule in rules]

    def error(tree):
        right = chain.law_from(tree)
        errors = [law.total_variation(right, other.law_from(tree)) for other in others]
        return min(*errors, 1 - math.exp(right[tree]))

    likely = sorted(posterior, key=posterior.get)[-100:]
    return case, chain, max(likely, key=error)


def single(tree_law):
    """The law of forests of one tree."""
    return {(tree,): log_prob for tree, log_prob in tree_law.items()}


STARTS = [("tied", 2), ("0/1", 3), ("max_depth 2", 2), ("few cutpoints", 1), *SUBSETS]


def assert_follows_law_from(tree, case, chain, mtry, rng):
    updated = exact.uniforms_behind(case.problem, update_many(case, tree, mtry, rng), 1)
    expected = single(chain.law_from(tree))
    exact.assert_follows(updated, expected, false_fail=1e-6)
    assert exact.smallest_visible_error(expected, NUM_DRAWS) < 0.08


@pytest.mark.parametrize(("kind", "mtry"), STARTS)
def test_updates_from_a_given_tree_follow_the_exact_law(rng, kind, mtry):
    case, chain, tree = strong_chain(kind, mtry, rng)
    assert_follows_law_from(tree, case, chain, mtry, rng)


@pytest.mark.parametrize("mtry", [1, 2, 3])
def test_so_do_updates_from_a_tree_without_splits(rng, mtry):
    case, chain, _ = strong_chain("0/1", mtry, rng)
    assert_follows_law_from(slow.LEAF, case, chain, mtry, rng)


@pytest.mark.parametrize("mtry", [1, 2])
def test_so_they_do_at_thousands_of_rows(rng, mtry):
    case, chain, tree = strong_chain("tied", mtry, rng, num_cutpoints=100)
    num_draws = 3000
    forests = update_many(tiny.repeated(case, times=500), tree, mtry, rng, num_draws)
    updated = exact.uniforms_behind(case.problem, forests, 1)
    expected = single(chain.law_from(tree))
    exact.assert_follows(updated, expected, false_fail=1e-6)
    assert exact.smallest_visible_error(expected, num_draws) < 0.16


@pytest.mark.parametrize(("kind", "mtry"), TELLING_SUBSETS)
def test_that_the_law_would_show_another_rule(rng, kind, mtry):
    case, chain, tree = strong_chain(kind, mtry, rng)
    updated = exact.uniforms_behind(case.problem, update_many(case, tree, mtry, rng), 1)
    for broken in BROKEN.values():
        wrong = single(broken(case.problem, chain).law_from(tree))
        assert law.total_variation(single(chain.law_from(tree)), wrong) > 0.04
        with pytest.raises(AssertionError, match="likelihood ratio"):
            exact.assert_follows(updated, wrong, false_fail=1e-6)


def keep_values_of_rejected(case, tree, forests):
    """As if only a new tree got new leaf values."""
    updated = exact.uniforms_behind(case.problem, forests, 1)
    start = exact.as_forest([tree], start_values(tree)[None])
    updated[tree,][:] = exact.uniforms_behind(case.problem, start, 1)[tree,]
    return updated


def leave_tree_in_residual(case, tree, forests):
    """As if leaf values were drawn before the old tree is taken out."""
    values = start_values(tree)[exact.leaf_numbers(tree, case.problem.codes)]
    problem = case.problem._replace(g=case.g - case.h * values)
    return exact.uniforms_behind(problem, forests, 1)


@pytest.mark.parametrize("broken", [keep_values_of_rejected, leave_tree_in_residual])
def test_that_it_would_show_wrong_leaf_values(rng, broken):
    """Old values of a tree that stays would do no harm to the posterior, but slow the chain."""
    case, chain, tree = strong_chain("0/1", 3, rng)
    assert math.exp(chain.law_from(tree)[tree]) > 0.2  # it is kept often enough
    updated = broken(case, tree, update_many(case, tree, 3, rng))
    with pytest.raises(AssertionError, match=r"likelihood ratio|distribution functions"):
        exact.assert_follows(updated, single(chain.law_from(tree)), false_fail=1e-6)


# Chains that start at the posterior must stay there.


def sweep_from_posterior(case, posterior, num_trees, mtry, rng):
    """Forests after two corrected sweeps."""
    start = exact.draw_forests(case.problem, posterior, NUM_DRAWS, rng)
    forests = sweep_each(case, start, num_trees, 2, mtry, rng)
    return exact.uniforms_behind(case.problem, forests, num_trees)


@pytest.mark.parametrize(
    ("kind", "mtry"), [("tied", 2), ("0/1", 2), ("unequal split weights", 1), ("one cutpoint", 1)]
)
def test_a_tree_from_the_posterior_stays_there(rng, kind, mtry):
    case = tiny.with_matching_gradient(strong(kind, rng))
    posterior = exact.forest_posterior(case.problem, 1)
    swept = sweep_from_posterior(case, posterior, 1, mtry, rng)
    exact.assert_follows(swept, posterior, false_fail=1e-6)
    assert exact.smallest_visible_error(posterior, NUM_DRAWS) < 0.08


@pytest.mark.parametrize(
    ("kind", "mtry"),
    [("continuous", 1), ("tied", 2), ("0/1", 3), ("0/1", 1), ("min_samples_leaf 2", 1)],
)
def test_two_trees_from_the_posterior_stay_there(rng, kind, mtry):
    case = tiny.make_smaller(kind, rng)
    posterior = exact.forest_posterior(case.problem, 2)
    swept = sweep_from_posterior(case, posterior, 2, mtry, rng)
    exact.assert_follows(swept, posterior, false_fail=1e-6)
    assert exact.smallest_visible_error(posterior, NUM_DRAWS) < 0.07


@pytest.mark.parametrize("num_trees", [1, 2])
@pytest.mark.parametrize("kind", tiny.SMALLER_KINDS)
def test_that_trees_would_leave_it_without_correction(rng, kind, num_trees):
    case, num_draws = tiny.make_smaller(kind, rng), 5000
    posterior = exact.forest_posterior(case.problem, num_trees)
    start = exact.draw_forests(case.problem, posterior, num_draws, rng)
    forests = inside.sweep_each(case, start, num_trees, 1, rng, is_corrected=False)
    swept = exact.uniforms_behind(case.problem, forests, num_trees)
    with pytest.raises(AssertionError, match="likelihood ratio"):
        exact.assert_follows(swept, posterior, false_fail=1e-6)
