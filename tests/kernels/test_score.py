import math

import numpy as np
import pytest

from tests.helpers import cases, inside, slow


def weights_by_column(case, rows, depth):
    """What `score_node` should give: log-weight of splitting on each column, and of stopping."""
    options = slow.node_options(case.problem, np.asarray(rows), depth)
    columns = [
        [weight for option, weight in options.items() if option is not slow.STOP and option[0] == v]
        for v in range(case.num_columns)
    ]
    return np.array(
        [slow.log_sum_exp(weights) if weights else -math.inf for weights in columns]
        + [options[slow.STOP]]
    )


def some_rows(rng, n):
    return np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))


def assert_scores(case, rows, depth):
    case = inside.as_tallied(case)
    log_weights, log_total = inside.score(case, inside.open_node(case, rows, depth))
    expected = weights_by_column(case, rows, depth)
    np.testing.assert_allclose(log_weights, expected, rtol=1e-11, atol=1e-11)
    assert log_total == pytest.approx(np.logaddexp.reduce(expected), rel=1e-11, abs=1e-11)


def test_every_option_is_weighed_by_prior_times_integrated_likelihood(rng):
    for case in cases.cases(rng, 200):
        assert_scores(case, some_rows(rng, case.num_rows), depth=0)


def test_weights_within_a_column_are_those_of_its_cuts(rng):
    for case in cases.cases(rng, 100):
        rows = some_rows(rng, case.num_rows)
        options = slow.node_options(case.problem, rows, 0)
        for v in range(case.num_columns):
            expected = [w for o, w in options.items() if o is not slow.STOP and o[0] == v]
            if not expected:
                continue
            node = inside.open_node(case, rows)
            cuts, _ = inside.cuts_of(case, node, v)
            log_weights, log_total = inside.log_weights_of_cuts(case, node, cuts)
            np.testing.assert_allclose(
                log_weights - log_total,
                np.array(expected) - slow.log_sum_exp(expected),
                rtol=1e-11,
                atol=1e-11,
            )
            term = case.work.scratch.cuts.term[: len(cuts)]
            np.testing.assert_allclose(
                term / term.sum(), np.exp(log_weights - log_total), rtol=1e-9, atol=1e-300
            )


def test_deep_nodes_split_as_their_depth_says(rng):
    # From depth 64 on nodes keep no record of their parent's codes, so they can be scored alone.
    for depth in (64, 65, 1000):
        case = cases.random_case(rng)
        case = case._replace(prior=case.prior._replace(max_depth=2**31 - 1, alpha=0.95, beta=0.5))
        assert_scores(case, np.arange(case.num_rows), depth)


@pytest.mark.parametrize("num_cutpoints", [1, 3, 7])
def test_weights_where_codes_share_buckets(rng, num_cutpoints):
    n = 1500
    X = np.column_stack([rng.standard_normal(n), cases.random_X(rng, n, 2)])
    case = inside.make_case(
        X, rng.standard_normal(n), cases.random_h(rng, n), num_cutpoints=num_cutpoints
    )
    assert case.design.num_codes[0] > inside.num_buckets(num_cutpoints)
    assert_scores(case, np.arange(n), depth=0)


@pytest.mark.parametrize("min_samples_leaf", [1, 4])
@pytest.mark.parametrize("curvature", ["equal", "any"])
@pytest.mark.parametrize("num_rows", [1_100, 1_600, 3_000])
def test_what_a_column_offers_has_nothing_to_do_with_others(
    rng, num_rows, curvature, min_samples_leaf
):
    """With more rows than buckets, rows are added up for two columns at once."""
    n = 3_000
    ties = rng.integers(0, [2, 40, 1, 500], size=(n, 4))
    X = np.column_stack([rng.standard_normal((n, 3)), ties])
    h = np.ones(n) if curvature == "equal" else rng.gamma(1.0, 1.0, n)
    fields = {"num_cutpoints": 100, "min_samples_leaf": min_samples_leaf}
    case = inside.make_case(X, rng.standard_normal(n), h, **fields)
    # A slice of the values of column 0: sums of that column are added up anew, in finer buckets.
    rows = np.sort(np.argsort(X[:, 0])[:num_rows])
    together = inside.score(case, inside.open_node(case, rows))[0]
    scores = case.work.scores
    offers = scores.num_cuts.copy(), scores.log_evidence.copy()
    assert np.isneginf(together).tolist() == [False] * 5 + [True] + [False, False]
    for v in range(7):
        alone = case._replace(prior=case.prior._replace(split_weights=1.0 * (np.arange(7) == v)))
        inside.score(alone, inside.open_node(alone, rows))
        assert scores.num_cuts[v] == offers[0][v]
        if offers[0][v] > 0:
            assert scores.log_evidence[v] == offers[1][v]


def test_nodes_at_max_depth_stop(rng):
    X = rng.standard_normal((20, 2))
    case = inside.make_case(X, rng.standard_normal(20), np.ones(20), max_depth=64)
    log_weights, log_total = inside.score(case, inside.open_node(case, np.arange(20), depth=64))
    assert log_weights[:2].tolist() == [-math.inf, -math.inf]
    # A certain stop has the evidence of the node as its whole weight, without a factor 1 - p_d.
    assert log_total == log_weights[2]
    assert log_total == pytest.approx(slow.log_evidence(case.g, case.h, case.prior.leaf_var))


def test_columns_of_weight_zero_are_never_split_on(rng):
    X = rng.standard_normal((20, 3))
    g, h = rng.standard_normal(20), np.ones(20)
    case = inside.make_case(X, g, h, split_weights=[0.0, 2.0, 0.0])
    log_weights, _ = inside.score(case, inside.open_root(case))
    assert np.isneginf(log_weights).tolist() == [True, False, True, False]
    none = inside.make_case(X, g, h, split_weights=[0.0, 0.0, 0.0])
    log_weights, _ = inside.score(none, inside.open_root(none))
    assert np.isneginf(log_weights).tolist() == [True, True, True, False]


def test_only_ratios_of_split_weights_matter(rng):
    X = rng.standard_normal((20, 3))
    g, h = rng.standard_normal(20), rng.gamma(1.0, 1.0, 20)
    scores = []
    for scale in (1.0, 1e-200, 1e200):
        case = inside.make_case(X, g, h, split_weights=scale * np.array([1.0, 3.0, 0.5]))
        scores.append(inside.score(case, inside.open_root(case))[0])
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-12)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-12)


def test_a_cut_of_a_column_with_few_cuts_weighs_as_much_as_all_of_one_with_many():
    X = np.column_stack([np.arange(20.0), np.arange(20) % 2])
    case = inside.make_case(X, alpha=0.5)
    log_weights, _ = inside.score(case, inside.open_root(case))
    np.testing.assert_allclose(np.exp(log_weights), [0.25, 0.25, 0.5], rtol=1e-13)


def test_equal_and_almost_equal_curvatures_give_the_same_weights(rng):
    X = cases.random_X(rng, 30, 3)
    g, h = rng.standard_normal(30), np.full(30, 0.7)
    almost = h * (1 + 1e-15 * np.arange(30))
    assert np.ptp(almost) > 0
    whole, summed = (inside.make_case(X, g, curvature) for curvature in (h, almost))
    np.testing.assert_allclose(
        inside.score(whole, inside.open_root(whole))[0],
        inside.score(summed, inside.open_root(summed))[0],
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("n", [30, 1500])
def test_whole_and_almost_whole_multiples_give_the_same_weights(rng, n):
    X = np.column_stack([rng.standard_normal((n, 2)), cases.random_X(rng, n, 3)])
    g, h = rng.standard_normal(n), 0.3 * rng.permutation(np.arange(n) % 8)
    almost = h * (1 + 1e-12 * rng.standard_normal(n))
    whole = inside.as_tallied(inside.make_case(X, g, h))
    summed = inside.make_case(X, whole.g, almost)
    assert inside.weights_of(h) is not None
    assert inside.weights_of(almost) is None
    for rows in (np.arange(n), some_rows(rng, n)):
        np.testing.assert_allclose(
            inside.score(whole, inside.open_node(whole, rows))[0],
            inside.score(summed, inside.open_node(summed, rows))[0],
            rtol=1e-9,
            atol=1e-9,
        )


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e60])
def test_weights_stay_finite_at_extreme_scales(rng, scale):
    X = cases.random_X(rng, 30, 3)
    X[:, 0] = rng.standard_normal(30)
    g = scale * rng.standard_normal(30)
    for h in (np.full(30, scale), scale * rng.gamma(1.0, 1.0, 30)):
        case = inside.make_case(X, g, h)
        log_weights, log_total = inside.score(case, inside.open_root(case))
        assert np.isfinite(log_weights[[0, -1]]).all()
        assert np.isfinite(log_total)
        np.testing.assert_allclose(
            log_weights, weights_by_column(case, range(30), 0), rtol=1e-9, atol=1e-9
        )


def test_sides_without_curvature_are_weighed_without_rounding_below_zero(rng):
    n = 40
    h = np.where(np.arange(n) < n // 2, 1e9 * rng.random(n), 0.0)
    g = np.where(h > 0, h, 1.0)
    case = inside.make_case(np.arange(n, dtype=float)[:, None], g, h, leaf_var=1e12)
    node = inside.open_root(case)
    cuts, _ = inside.cuts_of(case, node, 0)
    log_weights, log_total = inside.log_weights_of_cuts(case, node, cuts)
    assert np.isfinite(log_weights).all()
    assert np.isfinite(log_total)


@pytest.mark.parametrize("h", ["equal", "any"])
def test_what_stood_behind_the_last_cut_does_not_matter(rng, h):
    for num_rows in range(2, 20):  # whatever is left over where several cuts are taken at a time
        X = rng.standard_normal((num_rows, 1))
        curvature = np.ones(num_rows) if h == "equal" else rng.gamma(1.0, 1.0, num_rows)
        case = inside.make_case(X, rng.standard_normal(num_rows), curvature, num_cutpoints=100)
        node = inside.open_root(case)
        totals = []
        for before in (0, 77):
            for array in case.work.scratch.cuts:
                array[:] = before
            cuts, _ = inside.cuts_of(case, node, 0)
            totals.append(inside.log_weights_of_cuts(case, node, cuts)[1])
        assert totals[0] == totals[1]
