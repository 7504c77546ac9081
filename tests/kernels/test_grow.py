import numpy as np
import pytest

from pymc_xbart.kernels.partition import make_node_rows
from tests.helpers import cases, check, inside, slow


def leaves_of(case, forest):
    """Leaf of each row in each tree, (num_trees, n) int32, by the slow way."""
    return slow.route(forest, case.design.codes).astype(np.int32)


def check_trees(case, forest):
    leaf_of_row = leaves_of(case, forest)
    check.check_forest(forest, leaf_of_row, case.design, case.prior, case.X)
    check.check_same_rows_stay_together(case.X, leaf_of_row)


def sizes(forest):
    return np.diff(forest.tree_start)


def test_grown_trees_are_sound(rng):
    for case in cases.cases(rng, 100):
        check_trees(case, inside.grow_trees(case, 3, rng))


def test_log_probabilities_of_grown_trees_agree_with_the_twin(rng):
    """Down a tree the kernels pass code ranges on; the twin starts anew at each node."""
    for case in cases.cases(rng, 60):
        forest = inside.grow_trees(case, 2, rng)
        for tree in range(2):
            drawn = slow.as_tree(forest, tree)
            assert inside.tree_log_prob(case, drawn) == pytest.approx(
                slow.tree_log_prob(case.problem, drawn), rel=1e-10, abs=1e-10
            )


def wide_case(rng, n=2500, **prior_fields):
    """More codes than buckets in two columns, and a signal in three."""
    others = cases.random_X(rng, n, 1), rng.integers(0, 2, n)
    X = np.column_stack([rng.standard_normal((n, 2)), *others])
    f = np.sin(2 * X[:, 0]) + X[:, 3] * X[:, 1]
    g = 4 * (f + 0.5 * rng.standard_normal(n))
    return X, inside.make_case(X, g, 4 * np.ones(n), **({"num_cutpoints": 7} | prior_fields))


@pytest.mark.parametrize("num_cutpoints", [1, 3, 7, 100])
def test_log_probabilities_where_codes_share_buckets(rng, num_cutpoints):
    _, case = wide_case(rng, 1500, num_cutpoints=num_cutpoints)
    drawn = slow.as_tree(inside.grow_trees(case, 1, rng), 0)
    assert drawn != slow.LEAF
    assert inside.tree_log_prob(case, drawn) == pytest.approx(
        slow.tree_log_prob(case.problem, drawn), rel=1e-9
    )


def test_large_trees_are_sound(rng):
    _, case = wide_case(rng, alpha=0.99, beta=0.1, min_samples_leaf=3)
    check_trees(case, inside.grow_trees(case, 2, rng))


def assert_stored_sums_change_nothing(case, seed):
    """Same seed, same trees, whether larger children inherit sums or add up their own rows."""
    forest = inside.grow_trees(case, 3, np.random.default_rng(seed))
    assert sizes(forest).min() > 10
    plain = inside.grow_trees(inside.without_stored_sums(case), 3, np.random.default_rng(seed))
    assert cases.same_forest(forest, plain)


@pytest.mark.parametrize("kind", ["equal", "unequal", "with zeros"])
def test_sums_left_over_by_a_sibling_are_as_good_as_sums_of_rows(rng, kind):
    n = 4500
    X, case = wide_case(rng, n, alpha=0.98, beta=0.4)
    h = {
        "equal": np.full(n, 4.0),
        "unequal": rng.gamma(1.0, 4.0, n),
        "with zeros": rng.gamma(1.0, 4.0, n) * (X[:, 0] > 0),
    }[kind]
    case = case._replace(h=h, g=np.where(h > 0, case.g, 0.0))
    assert_stored_sums_change_nothing(case, int(rng.integers(2**32)))


def test_sums_are_left_over_within_the_codes_of_the_parent(rng):
    """Levels of a column run out, from below and from above, while nodes are large."""
    n = 4500
    levels = rng.integers(0, 12, (n, 2))
    X = np.column_stack([levels, rng.standard_normal(n)])
    y = np.where(levels[:, 0] < 2, 9.0, 0.0) + np.where(levels[:, 1] > 9, 9.0, X[:, 2])
    case = inside.make_case(X, y, np.ones(n), alpha=0.98, beta=0.2)
    assert_stored_sums_change_nothing(case, int(rng.integers(2**32)))


def test_same_seed_same_trees(rng):
    case = cases.random_case(rng, max_rows=60)
    seed = int(rng.integers(2**32))
    first = inside.grow_trees(case, 20, np.random.default_rng(seed))
    assert cases.same_forest(first, inside.grow_trees(case, 20, np.random.default_rng(seed)))
    other = inside.grow_trees(case, 20, np.random.default_rng(seed + 1))
    assert not cases.same_forest(first, other)


def test_one_row_and_equal_rows_are_never_split(rng):
    for X in (np.zeros((1, 2)), np.ones((9, 3))):
        case = inside.make_case(X, 100 * rng.standard_normal(len(X)), np.ones(len(X)), alpha=0.999)
        assert (sizes(inside.grow_trees(case, 20, rng)) == 1).all()


def test_min_samples_leaf_above_half_of_the_rows_leaves_a_single_leaf(rng):
    X, g = rng.standard_normal((11, 2)), 100 * rng.standard_normal(11)
    for min_samples_leaf, may_split in ((5, True), (6, False), (10**6, False)):
        case = inside.make_case(X, g, np.ones(11), alpha=0.999, min_samples_leaf=min_samples_leaf)
        assert (sizes(inside.grow_trees(case, 30, rng)).max() > 1) == may_split


@pytest.mark.parametrize(("max_depth", "most_nodes"), [(0, 1), (1, 3), (2, 7), (3, 15)])
def test_no_node_lies_below_max_depth(rng, max_depth, most_nodes):
    X = rng.standard_normal((40, 2))
    case = inside.make_case(X, alpha=0.999, beta=0.0, max_depth=max_depth)
    forest = inside.grow_trees(case, 50, rng)
    assert sizes(forest).max() == most_nodes
    check_trees(case, forest)


def test_columns_of_weight_zero_are_left_out(rng):
    X = rng.standard_normal((40, 3))
    case = inside.make_case(X, 9 * X[:, 0], np.ones(40), split_weights=[0.0, 1.0, 0.0])
    forest = inside.grow_trees(case, 50, rng)
    assert set(forest.column.tolist()) == {-1, 1}
    none = case._replace(prior=case.prior._replace(split_weights=np.zeros(3)))
    assert (sizes(inside.grow_trees(none, 10, rng)) == 1).all()


def test_an_obvious_cut_is_found(rng):
    n = 200
    X = np.column_stack([cases.random_X(rng, n, 2), rng.standard_normal(n)])
    case = inside.make_case(X, 50 * np.sign(X[:, 2] - 0.3), np.ones(n), max_depth=1, leaf_var=10.0)
    forest = inside.grow_trees(case, 20, rng)
    assert (sizes(forest) == 3).all()
    largest_below = np.max(case.design.codes[2][X[:, 2] < 0.3])
    assert (forest.column.reshape(20, 3)[:, 0] == 2).all()
    assert (forest.cut.reshape(20, 3)[:, 0] == largest_below).all()


# One candidate cut a node, which leaves the last two rows on the right, and no reason to stop.
PEELING_PRIOR = {"alpha": 1.0 - 1e-9, "beta": 0.0, "num_cutpoints": 1}


@pytest.mark.parametrize("num_rows", [175, 260])
def test_very_deep_trees_are_drawn_from_the_same_law(rng, num_rows):
    """Deeper than 64 levels, below which nodes find their range of codes by themselves."""
    X = np.arange(num_rows, dtype=float)[:, None]
    case = inside.make_case(X, rng.standard_normal(num_rows), np.ones(num_rows), **PEELING_PRIOR)
    forest = inside.grow_trees(case, 1, rng)
    drawn = slow.as_tree(forest, 0)
    assert depth_of(drawn) > 80
    check_trees(case, forest)
    assert inside.tree_log_prob(case, drawn) == pytest.approx(
        slow.tree_log_prob(case.problem, drawn), rel=1e-9, abs=1e-9
    )


def test_deep_nodes_that_share_buckets_are_drawn_from_the_same_law(rng):
    """More than 64 levels down, a node with more codes than buckets."""
    n = 1400
    X = np.column_stack([np.arange(n, dtype=float), np.maximum(np.arange(n) - (n - 80), 0)])
    case = inside.make_case(X, np.sin(X[:, 0]), np.ones(n), max_depth=70, **PEELING_PRIOR)
    forest = inside.grow_trees(case, 1, rng)
    drawn = slow.as_tree(forest, 0)
    nodes = nodes_of(drawn, case.design.codes)
    sizes_below = [has_row.sum() for depth, has_row in nodes if depth > 64]
    assert max(sizes_below) > inside.num_buckets(1)
    assert inside.tree_log_prob(case, drawn) == pytest.approx(
        slow.tree_log_prob(case.problem, drawn), rel=1e-9, abs=1e-9
    )


def test_deep_nodes_do_not_inherit_sums_of_other_codes(rng):
    """More than 64 levels down, large nodes that hold only part of a column's codes."""
    low, n = 1072, 2400
    row = np.arange(n, dtype=float)
    X = np.column_stack([row, row < low])
    y = np.where(row < low, -100.0, np.sin(row / 30))
    case = inside.make_case(X, y, np.ones(n), max_depth=70, **PEELING_PRIOR)
    forest = inside.grow_trees(case, 1, rng)
    nodes = nodes_of(slow.as_tree(forest, 0), case.design.codes)
    assert forest.column[0] == 1
    assert max(has_row.sum() for depth, has_row in nodes if depth > 64) > inside.num_buckets(1)
    assert_stored_sums_change_nothing(case, int(rng.integers(2**32)))


def nodes_of(tree, codes):
    """(depth, which rows) of every node."""
    waiting = [(0, tree, np.ones(codes.shape[1], bool))]
    while waiting:
        depth, subtree, has_row = waiting.pop()
        yield depth, has_row
        if subtree != slow.LEAF:
            goes_left = codes[subtree[0]] <= subtree[1]
            waiting.append((depth + 1, subtree[2], has_row & goes_left))
            waiting.append((depth + 1, subtree[3], has_row & ~goes_left))


def depth_of(tree):
    return 0 if tree == slow.LEAF else 1 + max(map(depth_of, tree[2:]))


def test_growing_reads_its_inputs_only(rng):
    case = cases.random_case(rng, max_rows=60)
    before = [array.copy() for array in (case.g, case.h, *case.design)]
    inside.grow_trees(case, 5, rng)
    for array, copy in zip((case.g, case.h, *case.design), before, strict=True):
        assert np.array_equal(array, copy)


def test_extreme_curvatures_give_sound_trees(rng):
    for scale in (1e-300, 1e-12, 1e12):
        for _ in range(5):
            X = cases.random_X(rng, 60, 3)
            h = scale * 10.0 ** rng.uniform(-12, 12, 60) * (rng.random(60) < 0.7)
            case = inside.make_case(X, np.sqrt(h) * rng.standard_normal(60), h, leaf_var=1e6)
            check_trees(case, inside.grow_trees(case, 5, rng))


@pytest.mark.parametrize(
    ("g", "h"),
    [(np.nan, 1.0), (np.inf, 1.0), (1e200, 1.0), (1.0, np.nan), (1.0, np.inf), (1.0, -5.0)],
)
@pytest.mark.parametrize("how_many", ["one row", "all rows"])
def test_numbers_that_are_none_leave_memory_alone(rng, g, h, how_many):
    """Not a promise of sensible values: a likelihood that overflows must not end the process."""
    case = inside.make_case(rng.standard_normal((60, 3)), rng.standard_normal(60), np.ones(60))
    rows = slice(7, 8) if how_many == "one row" else slice(None)
    case.g[rows], case.h[rows] = g, h
    with np.errstate(all="ignore"):
        forest = inside.grow_trees(case, 20, rng)
    assert sizes(forest).max() <= 2 * 60 - 1
    leaf_of_row = leaves_of(case, forest)
    check.check_forest(
        forest._replace(value=np.zeros(forest.value.size)), leaf_of_row, case.design, case.prior
    )


def test_more_rows_than_nodes_can_name_are_refused():
    with pytest.raises(ValueError, match="X has 1073741824 rows, but no more than 715827882 are"):
        make_node_rows(2**30)
