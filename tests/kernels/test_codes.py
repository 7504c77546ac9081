import numpy as np
import pytest

from pymc_xbart.kernels import cut_values, encode
from pymc_xbart.kernels.codes import MAX_CODES
from tests.helpers import cases, slow


def column_values(design, v):
    return design.values[design.value_start[v] : design.value_start[v + 1]]


def test_codes_are_ranks_among_distinct_values(rng):
    for _ in range(50):
        X = cases.random_X(rng, n=int(rng.integers(1, 30)), p=int(rng.integers(1, 5)))
        design = encode(X)
        assert design.codes.dtype == np.uint16
        assert np.array_equal(design.codes, slow.ranks(X))
        for v in range(X.shape[1]):
            distinct = sorted(set(X[:, v].tolist()))
            assert design.num_codes[v] == len(distinct)
            assert column_values(design, v).tolist() == distinct


def test_codes_survive_the_extremes_of_floating_point():
    column = np.array([1.7e308, -1.7e308, 5e-324, 0.0, -0.0, -5e-324, 1.0, np.nextafter(1.0, 2.0)])
    design = encode(column[:, None])
    assert design.codes[0].tolist() == [6, 0, 3, 2, 2, 1, 4, 5]
    assert np.isfinite(design.values).all()


def test_encode_leaves_its_input_alone_and_takes_any_memory_layout(rng):
    X = rng.standard_normal((20, 3))
    for layout in (np.asfortranarray(X), X[::-1][::-1], np.repeat(X, 2, axis=1)[:, ::2]):
        before = layout.copy()
        design = encode(layout)
        assert np.array_equal(layout, before)
        assert design.codes.flags.c_contiguous
        assert np.array_equal(design.codes, encode(X).codes)


def test_strictly_increasing_transforms_keep_codes(rng):
    X = cases.random_X(rng, n=40, p=5)
    for transform in (np.arctan, np.cbrt, lambda x: 2.0**-40 * x):
        assert np.array_equal(encode(transform(X)).codes, encode(X).codes)


@pytest.mark.parametrize("num_distinct", [MAX_CODES, MAX_CODES + 1, 100_000, 200_000])
def test_neighbours_are_merged_where_there_are_more_values_than_codes(rng, num_distinct):
    column = rng.permutation(num_distinct).astype(float)
    design = encode(column[:, None])
    codes = design.codes[0].astype(int)
    num_codes = int(design.num_codes[0])
    assert num_codes == min(num_distinct, MAX_CODES)
    assert sorted(set(codes.tolist())) == list(range(num_codes))
    in_order = codes[np.argsort(column)]
    assert (np.diff(in_order) >= 0).all(), "codes follow the order of X"
    largest = np.full(num_codes, -np.inf)
    np.maximum.at(largest, codes, column)
    assert np.array_equal(design.values, largest)
    per_code = np.bincount(codes)
    assert per_code.max() <= -(-num_distinct // MAX_CODES), "codes hold about equally many rows"


def test_merging_counts_rows_and_never_separates_equal_values(rng):
    common = np.repeat([-1.0, 0.5, 2.0], 40_000)
    column = rng.permutation(np.concatenate([common, rng.standard_normal(90_000)]))
    design = encode(column[:, None])
    codes = design.codes[0]
    assert design.num_codes[0] <= MAX_CODES
    rows_per_code = column.size / MAX_CODES
    for value in (-1.0, 0.5, 2.0):
        assert np.unique(codes[column == value]).size == 1
    of_common = np.isin(codes, [codes[column == value][0] for value in (-1.0, 0.5, 2.0)])
    assert np.bincount(codes[~of_common]).max() <= np.ceil(rows_per_code) + 1


def test_merging_makes_room_where_rows_are_few(rng):
    """Rows, not values, are spread evenly: here 40 000 values hold one row each, as many five."""
    column = rng.permutation(np.append(np.arange(40_000), np.repeat(np.arange(40_000, 80_000), 5)))
    design = encode(column[:, None].astype(float))
    per_code = np.bincount(design.codes[0])
    # 240 000 rows over 65 535 codes: not two values of five rows in one code.
    assert per_code.max() < 10
    assert np.bincount(design.codes[0][column < 40_000]).max() <= 4


def test_cuts_in_units_of_X_separate_the_same_rows_as_codes(rng):
    X = np.column_stack([cases.random_X(rng, 30, 4), rng.standard_normal(30)])
    design = encode(X)
    for v in range(X.shape[1]):
        for cut in range(design.num_codes[v]):
            value = cut_values(design, np.array([v]), np.array([cut]))[0]
            assert np.array_equal(X[:, v] <= value, design.codes[v] <= cut)


def test_leaves_have_no_cut_value(rng):
    design = encode(cases.random_X(rng, 10, 2))
    value = cut_values(design, np.array([-1, 1, -1], np.int32), np.zeros(3, np.int32))
    assert np.isnan(value).tolist() == [True, False, True]
