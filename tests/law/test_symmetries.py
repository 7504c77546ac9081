"""What must not matter does not, and trees of one split come from their exact posterior."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import (
    cut_values,
    draw_prior_forest,
    find_leaves,
    forest_values,
    make_leaf_of_row,
    route_values,
    stump_forest,
    sweep,
)
from tests.helpers import cases, exact, inside, law, slow, tiny

every_kind = pytest.mark.parametrize("kind", tiny.KINDS)


@every_kind
@pytest.mark.parametrize("curvature", tiny.CURVATURES)
def test_trees_of_one_split_are_drawn_from_their_exact_posterior(rng, kind, curvature):
    case = tiny.with_matching_gradient(tiny.make(kind, curvature, rng, max_depth=1))
    posterior = exact.dense_tree_posterior(case.problem)
    found = inside.enumerate_law(case)
    assert found.keys() == posterior.keys()
    assert max(abs(found[tree] - posterior[tree]) for tree in posterior) < 1e-10
    drawn = cases.count_trees(inside.grow_trees(case, 50_000, rng))
    law.assert_law(drawn, posterior, false_fail=1e-6)
    assert law.smallest_visible_error(posterior, 50_000) < 0.04


def test_trees_of_two_levels_are_not(rng):
    """Which is what a Metropolis-Hastings correction is for; and the test above can fail."""
    case = tiny.with_matching_gradient(tiny.make("continuous", "equal h", rng, max_depth=2))
    assert (
        law.total_variation(
            exact.dense_tree_posterior(case.problem), slow.enumerate_law(case.problem)
        )
        > 0.02
    )


@pytest.mark.parametrize("kind", ["continuous", "tied", "min_samples_leaf 2"])
def test_f_follows_its_exact_posterior_under_trees_of_one_split(rng, kind):
    """A mixture of Normals at every row: its distribution function, to within 0.01."""
    num_draws = 80_000
    case = tiny.with_matching_gradient(tiny.make(kind, "unequal h", rng, max_depth=1))
    forest = inside.grow_trees(case, num_draws, rng)
    leaf_of_row = find_leaves(forest, case.design.codes)
    assert law.cdf_limit(num_draws) < 0.01
    for i in (0, case.num_rows - 1):
        parts = []
        for tree, log_prob in exact.dense_tree_posterior(case.problem).items():
            leaf = exact.leaf_numbers(tree, case.problem.codes)
            rows = leaf == leaf[i]
            mean, var = slow.leaf_posterior(case.g[rows], case.h[rows], case.prior.leaf_var)
            parts.append((math.exp(log_prob), mean, math.sqrt(var)))

        def cdf(t, parts=parts):
            return sum(weight * slow.normal_cdf((t - mean) / sd) for weight, mean, sd in parts)

        draws = forest.value[forest.tree_start[:-1] + leaf_of_row[:, i]]
        # Two thousand of the draws' own quantiles stand for all of them; distribution functions are
        # monotone, so that between two of these nothing can hide that exceeds 1 / 2000.
        law.assert_cdf(draws, interpolated(cdf, draws), false_fail=1e-6)


def interpolated(cdf, draws):
    knots = np.quantile(draws, np.linspace(0, 1, 2001))
    values = np.array([cdf(t) for t in knots])
    return lambda t: float(np.interp(t, knots, values))


def signal_case(rng, n=60, **prior_fields):
    X = np.column_stack([rng.standard_normal((n, 2)), rng.integers(0, 2, n)])
    y = X[:, 0] ** 2 + X[:, 2] + 0.5 * rng.standard_normal(n)
    h = rng.gamma(2.0, 2.0, n)
    return inside.make_case(X, h * y, h, **({"leaf_var": 0.25} | prior_fields))


def sweep_many(case, seed, num_trees=5, num_sweeps=4):
    """Forest after some sweeps, and f at the rows."""
    rng = np.random.default_rng(seed)
    forest = stump_forest(num_trees)
    leaf_of_row = make_leaf_of_row(num_trees, case.num_rows)
    f = np.zeros(case.num_rows)
    for _ in range(num_sweeps):
        g = case.g - case.h * f
        forest, leaf_of_row, _ = sweep(
            *(forest, leaf_of_row, g, case.h, case.design, case.prior, case.work, rng)
        )
        forest_values(forest, leaf_of_row, f)
    return forest, f


def in_other_unit(case, scale):
    """The same data with y, its noise and leaf values in units of 1 / scale."""
    prior = case.prior._replace(leaf_var=case.prior.leaf_var * scale**2)
    return case._replace(g=case.g / scale, h=case.h / scale**2, prior=prior)


@pytest.mark.parametrize("scale", [2.0**-30, 0.5, 4.0, 2.0**40])
def test_the_unit_of_y_only_scales_leaf_values(rng, scale):
    case = signal_case(rng)
    other = in_other_unit(case, scale)
    seed = int(rng.integers(2**32))
    (forest, f), (scaled_forest, scaled_f) = sweep_many(case, seed), sweep_many(other, seed)
    # Powers of two do not round, so all is equal to the last bit.
    assert cases.same_forest(scaled_forest, forest._replace(value=scale * forest.value))
    assert np.array_equal(scaled_f, scale * f)


@every_kind
def test_the_unit_of_y_does_not_change_the_law(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    other = in_other_unit(case, 3.7)
    assert_equal_laws(inside.enumerate_law(case), inside.enumerate_law(other))


def test_the_origin_of_y_does_not_change_the_law(rng):
    """y and the constant around which f moves, shifted together."""
    X, y, h = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.gamma(1.0, 1.0, 6)
    laws = []
    for shift in (0.0, 1e5):
        center = np.mean(y + shift)
        laws.append(inside.enumerate_law(inside.make_case(X, h * ((y + shift) - center), h)))
    assert_equal_laws(*laws)


def assert_equal_laws(found, expected):
    assert found.keys() == expected.keys()
    assert max(abs(found[tree] - expected[tree]) for tree in expected) < 1e-9


def draw(case, rng):
    return cases.count_trees(inside.grow_trees(case, 30_000, rng))


@every_kind
def test_the_order_of_rows_does_not_change_the_law(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    order = rng.permutation(case.num_rows)
    other = inside.make_case(case.X[order], case.g[order], case.h[order], **case.prior._asdict())
    assert_equal_laws(inside.enumerate_law(other), inside.enumerate_law(case))
    draws, other_draws = (draw(c, rng) for c in (case, other))
    law.assert_same_law(draws, other_draws, false_fail=1e-6)


def test_that_the_comparison_would_catch_rows_without_their_data(rng):
    case = tiny.make("continuous", "unequal h", rng)
    order = np.roll(np.arange(case.num_rows), 1)
    other = inside.make_case(case.X[order], case.g, case.h, **case.prior._asdict())
    draws, other_draws = (draw(c, rng) for c in (case, other))
    with pytest.raises(AssertionError, match="likelihood ratio"):
        law.assert_same_law(draws, other_draws, false_fail=1e-6)


def rename(tree, new_column):
    """The tree with column v called new_column[v]."""
    if tree == slow.LEAF:
        return tree
    column, cut, left, right = tree
    return (int(new_column[column]), cut, rename(left, new_column), rename(right, new_column))


@every_kind
def test_the_order_of_columns_does_not_change_the_law(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    order = rng.permutation(case.num_columns)
    fields = case.prior._asdict() | {"split_weights": case.prior.split_weights[order]}
    other = inside.make_case(case.X[:, order], case.g, case.h, **fields)
    renamed = {rename(tree, order): p for tree, p in inside.enumerate_law(other).items()}
    assert_equal_laws(renamed, inside.enumerate_law(case))


TRANSFORMS = {
    "arctan": np.arctan,
    "cube root": np.cbrt,
    "exponential": np.exp,
    "a far larger unit": lambda x: 2.0**1000 * x,
    "a far smaller unit": lambda x: 2.0**-1000 * x,
    "ranks": lambda x: np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(float),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_strictly_increasing_transforms_of_X_do_not_change_a_bit(rng, transform):
    case = signal_case(rng, num_cutpoints=7)
    other = inside.make_case(transform(case.X), case.g, case.h, **case.prior._asdict())
    seed = int(rng.integers(2**32))
    (forest, f), (other_forest, other_f) = sweep_many(case, seed), sweep_many(other, seed)
    assert cases.same_forest(forest, other_forest)
    assert np.array_equal(f, other_f)
    routed = np.empty(case.num_rows)
    cut_value = cut_values(other.design, other_forest.column, other_forest.cut)
    route_values(other_forest, cut_value, np.ascontiguousarray(other.X.T), routed)
    assert np.array_equal(f, routed)
    prior_forest, other_prior_forest = (
        draw_prior_forest(c.design, c.prior, 5, np.random.default_rng(seed))[0]
        for c in (case, other)
    )
    assert cases.same_forest(prior_forest, other_prior_forest)


def mirror(tree, num_codes, codes, rows):
    """The same partition of rows when every column has changed its sign."""
    if tree == slow.LEAF:
        return tree
    v, cut, left, right = tree
    left_rows, right_rows = slow.partition(codes[v], cut, rows)
    mirrored_cut = int(num_codes[v] - 1 - codes[v][right_rows].min())
    return (
        v,
        mirrored_cut,
        mirror(right, num_codes, codes, right_rows),
        mirror(left, num_codes, codes, left_rows),
    )


@pytest.mark.parametrize("kind", ["continuous", "tied", "0/1", "max_depth 2"])
def test_changing_signs_mirrors_trees_where_every_cut_is_a_candidate(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    other = inside.make_case(-case.X, case.g, case.h, **case.prior._asdict())
    problem = case.problem
    mirrored = {
        mirror(tree, case.design.num_codes, problem.codes, problem.all_rows): log_prob
        for tree, log_prob in inside.enumerate_law(case).items()
    }
    assert_equal_laws(inside.enumerate_law(other), mirrored)


@pytest.mark.parametrize("kind", ["continuous", "tied", "one cutpoint"])
def test_a_column_and_its_copy_are_equally_likely(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    twice = inside.make_case(
        case.X[:, [0, 0]], case.g, case.h, **case.prior._asdict() | {"split_weights": np.ones(2)}
    )
    found = inside.enumerate_law(twice)
    assert_equal_laws({rename(tree, [1, 0]): p for tree, p in found.items()}, found)
    forest = inside.grow_trees(twice, 60_000, rng)
    roots = forest.column[forest.tree_start[:-1]]
    drawn = roots[roots >= 0].tolist()
    fair = {0: math.log(0.5), 1: math.log(0.5)}
    law.assert_law(drawn, fair, false_fail=1e-6)
    assert law.smallest_visible_error(fair, len(drawn)) < 0.03


@pytest.mark.parametrize("kind", ["continuous", "tied", "one cutpoint"])
def test_a_column_and_its_copy_weigh_as_one_column_of_twice_the_weight(rng, kind):
    case = tiny.make(kind, "unequal h", rng)
    fields = case.prior._asdict() | {"max_depth": 2}
    copied, single = (
        inside.make_case(X, case.g, case.h, **fields | {"split_weights": weights})
        for X, weights in ((case.X[:, [0, 1, 0]], [1.0, 3.0, 1.0]), (case.X, [2.0, 3.0]))
    )
    merged = {}
    for tree, log_prob in inside.enumerate_law(copied).items():
        name = rename(tree, [0, 1, 0])
        merged[name] = np.logaddexp(merged.get(name, -np.inf), log_prob)
    assert_equal_laws(merged, inside.enumerate_law(single))
