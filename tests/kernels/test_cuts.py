import numpy as np
import pytest

from pymc_xbart.kernels.ordered import MAX_ORDERED
from tests.helpers import cases, entrances, inside, slow


def named_cuts(case, row_numbers, column, code_range=None):
    """Cuts of a column among some rows: [(largest code on the left, rows on the left), ...]."""
    node = inside.open_node(case, row_numbers)
    cuts, _ = inside.cuts_of(case, node, column, code_range)
    codes = case.design.codes[column][row_numbers]
    return [(int(codes[codes <= cut.code].max()), cut.count) for cut in cuts]


def expected_cuts(case, row_numbers, column):
    problem = case.problem
    prior = case.prior
    return slow.candidate_cuts(
        problem.codes[column][row_numbers],
        prior.num_cutpoints,
        prior.min_samples_leaf,
        problem.num_buckets,
    )


def some_rows(rng, n):
    return np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))


def test_cuts_are_those_of_the_rule(rng):
    num_cuts = set()
    for case in cases.cases(rng, 300):
        rows = some_rows(rng, case.num_rows)
        for v in range(case.num_columns):
            expected = expected_cuts(case, rows, v)
            assert named_cuts(case, rows, v) == expected
            num_cuts.add(len(expected))
    assert {0, 1, 2, 3, 4, 8} <= num_cuts, "the cases are too easy"


@pytest.mark.parametrize("n", [600, MAX_ORDERED, MAX_ORDERED + 1, 2_000])
@pytest.mark.parametrize("num_cutpoints", [7, 100, 400])
def test_cuts_are_those_of_the_rule_whatever_lists_them(rng, n, num_cutpoints):
    case = inside.make_case(rng.standard_normal((n, 2)), num_cutpoints=num_cutpoints)
    for rows in (np.arange(n), some_rows(rng, n)):
        for v in range(2):
            assert named_cuts(case, rows, v) == expected_cuts(case, rows, v)


def test_sums_on_the_left_of_each_cut_add_up(rng):
    for case in cases.cases(rng, 100):
        rows = some_rows(rng, case.num_rows)
        for v in range(case.num_columns):
            node = inside.open_node(case, rows)
            for cut in inside.cuts_of(case, node, v)[0]:
                left = rows[case.design.codes[v][rows] <= cut.code]
                assert cut.count == left.size
                assert cut.g == pytest.approx(case.g[left].sum(), rel=1e-12, abs=1e-12)
                assert cut.h == pytest.approx(case.h[left].sum(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("column", "num_cutpoints", "min_samples_leaf", "left_counts"),
    [
        pytest.param(range(12), 11, 1, range(1, 12), id="few enough: all"),
        pytest.param(range(12), 2, 1, [5, 10], id="multiples of j = 5"),
        pytest.param(range(12), 3, 1, [3, 6, 9], id="multiples of j = 3"),
        pytest.param(range(12), 1, 1, [10], id="multiples of j = 10"),
        pytest.param(range(12), 2, 3, [5], id="10 is not legal when both sides need 3"),
        pytest.param(range(12), 1, 3, [3], id="no multiple is legal: the first legal cut"),
        pytest.param(range(12), 1, 6, [6], id="one legal cut"),
        pytest.param(range(12), 5, 7, [], id="no legal cut"),
        pytest.param([0] * 49 + [1], 1, 1, [49], id="a rare level is not lost"),
        pytest.param([0] + [1] * 49, 1, 1, [1], id="nor one at the other end"),
        pytest.param([0] * 25 + [1] * 25, 10, 1, [25], id="a 0/1 column has its cut"),
        pytest.param([7] * 12, 10, 1, [], id="a constant column has none"),
        pytest.param([1] * 6 + [2, 3, 4, 5, 6, 7], 2, 1, [6, 10], id="a tie passes j = 5"),
        pytest.param([1] * 12 + [2, 3, 4, 5], 3, 1, [12], id="a tie passes 4, 8 and 12 at once"),
        pytest.param([1] * 4 + [2] * 4 + [3] * 4, 1, 1, [4], id="8 of 12 do not reach j = 10"),
        pytest.param([3], 5, 1, [], id="one row"),
        pytest.param([3, 4, 5], 1, 5, [], id="fewer rows than a leaf needs"),
        pytest.param([3, 4], 1, 1, [1], id="two rows"),
    ],
)
def test_worked_examples(column, num_cutpoints, min_samples_leaf, left_counts):
    case = inside.make_case(
        np.array(list(column), float)[:, None],
        num_cutpoints=num_cutpoints,
        min_samples_leaf=min_samples_leaf,
    )
    for entrance in (case, inside.without_order(case)):
        cuts, _ = inside.cuts_of(entrance, inside.open_root(entrance), 0)
        assert [cut.count for cut in cuts] == list(left_counts)
    # The twin gets no easier a test than the kernel.
    twin = slow.candidate_cuts(case.problem.codes[0], num_cutpoints, min_samples_leaf)
    assert [count for _, count in twin] == list(left_counts)


def test_cuts_do_not_depend_on_the_response(rng):
    for case in cases.cases(rng, 50):
        g, h = rng.standard_normal(case.num_rows), cases.random_h(rng, case.num_rows)
        other = inside.make_case(case.X, g, h, **case.prior._asdict())
        for v in range(case.num_columns):
            rows = some_rows(rng, case.num_rows)
            assert named_cuts(case, rows, v) == named_cuts(other, rows, v)


@pytest.fixture(scope="module")
def wide():
    """More codes than buckets in two of three columns; the first two increase together."""
    rng = np.random.default_rng(5)
    z = rng.standard_normal(2500)
    X = np.column_stack([z, np.exp(z) + 1e-9 * rng.random(2500), rng.standard_normal(2500)])
    X[:, 2] = np.round(X[:, 2], 2)
    g, h = rng.standard_normal(2500), rng.gamma(1.0, 1.0, 2500)
    return inside.make_case(X, g, h, num_cutpoints=7)


def test_the_wide_case_has_more_codes_than_buckets(wide):
    num_buckets = inside.num_buckets(wide.prior.num_cutpoints)
    assert wide.design.num_codes[0] > 2 * num_buckets
    assert wide.design.num_codes[2] < num_buckets


@pytest.mark.parametrize("num_cutpoints", [1, 2, 3, 7])
@pytest.mark.parametrize("min_samples_leaf", [1, 40])
def test_cuts_where_codes_share_buckets(wide, num_cutpoints, min_samples_leaf):
    fields = {"num_cutpoints": num_cutpoints, "min_samples_leaf": min_samples_leaf}
    case = wide._replace(prior=wide.prior._replace(**fields))
    rows = np.arange(case.num_rows)
    for v in range(case.num_columns):
        assert named_cuts(case, rows, v) == expected_cuts(case, rows, v)


@pytest.mark.parametrize("fraction", [0.9, 0.6, 0.5, 0.45, 0.41, 0.3, 0.2, 0.05, 0.002])
def test_narrow_nodes_get_finer_cuts(rng, wide, fraction):
    """Nodes that hold a stretch of column 0, looked at with a parent's range of codes."""
    size = max(2, int(fraction * wide.num_rows))
    first = int(rng.integers(0, wide.num_rows - size + 1))
    codes = wide.design.codes[0].astype(int)
    rows = np.flatnonzero((codes >= first) & (codes < first + size))
    expected = expected_cuts(wide, rows, 0)
    parent_range = max(0, first - size // 2), min(wide.num_rows - 1, first + 2 * size)
    for code_range in (None, parent_range, (first, first + size - 1)):
        assert named_cuts(wide, rows, 0, code_range) == expected


def test_a_node_that_just_fits_the_buckets_has_one_for_each_code(wide):
    size = inside.num_buckets(wide.prior.num_cutpoints)
    # Under the parent's range, buckets are two codes wide, and half of them and one hold a row.
    rows = np.flatnonzero((wide.design.codes[0] >= 1) & (wide.design.codes[0] <= size))
    assert named_cuts(wide, rows, 0, (0, 2 * size - 1)) == expected_cuts(wide, rows, 0)
    assert slow.merge(np.arange(1, size + 1), size).tolist() == list(range(1, size + 1))


def test_scattered_nodes_find_the_same_cuts_from_any_range(rng, wide):
    """Nodes whose few rows lie all over column 0, as after splits on other columns."""
    for _ in range(30):
        rows = np.sort(rng.choice(wide.num_rows, size=int(rng.integers(2, 300)), replace=False))
        assert named_cuts(wide, rows, 0) == expected_cuts(wide, rows, 0)


def test_the_range_of_codes_only_narrows_and_never_loses_a_row(rng, wide):
    codes = wide.design.codes[0].astype(int)
    for _ in range(30):
        size = int(rng.integers(2, 2000))
        first = int(rng.integers(0, wide.num_rows - size + 1))
        rows = np.flatnonzero((codes >= first) & (codes < first + size))
        node = inside.open_node(wide, rows)
        before = max(0, first - int(rng.integers(500))), wide.num_rows - 1
        _, after = inside.cuts_of(wide, node, 0, before)
        assert before[0] <= after[0] <= codes[rows].min()
        assert codes[rows].max() <= after[1] <= before[1]


def test_bucket_widths_are_the_smallest_that_fit(rng):
    for _ in range(300):
        lo, hi = np.sort(rng.integers(0, 65_535, 2))
        size = int(rng.choice([1, 2, 16, 1024]))
        shift = entrances.bucket_shift(lo, hi, size)
        assert (hi >> shift) - (lo >> shift) < size
        assert shift == 0 or (hi >> (shift - 1)) - (lo >> (shift - 1)) >= size
