"""X is taken from whatever holds numbers, and refused with the column and rows at fault."""

import re

import numpy as np
import pytest

from pymc_xbart.forest.design import check_design

NUMBERS = np.array([[1.0, 2.5], [3.0, 4.0], [5.0, 0.0]])


@pytest.mark.parametrize(
    "X",
    [
        NUMBERS,
        NUMBERS.tolist(),
        np.asfortranarray(NUMBERS),
        NUMBERS.astype(np.float32),
        NUMBERS.astype(object),
        np.ma.masked_array(NUMBERS, mask=False),
    ],
    ids=[
        "array",
        "list",
        "fortran",
        "float32",
        "object",
        "masked",
    ],
)
def test_numbers_come_through_from_every_container(X):
    matrix = check_design(X)
    np.testing.assert_array_equal(matrix, NUMBERS)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous


def test_booleans_count_as_zero_and_one():
    np.testing.assert_array_equal(check_design([[True], [False]]), [[1.0], [0.0]])


def test_constant_columns_are_allowed():
    np.testing.assert_array_equal(check_design(np.ones((4, 2))), np.ones((4, 2)))


def test_missing_values_are_nan():
    X = np.array([[1.0, None], [np.nan, 3.0]], dtype=object)
    np.testing.assert_array_equal(check_design(X), [[1.0, np.nan], [np.nan, 3.0]])
    masked = np.ma.masked_equal(NUMBERS, 4.0)
    assert np.isnan(check_design(masked)).tolist() == masked.mask.tolist()


def test_infinities_are_ordered_like_numbers():
    X = np.array([[-np.inf], [-1e300], [np.inf], [1e300], [0.0]])
    matrix = check_design(X)
    assert np.isfinite(matrix).all()
    assert np.argsort(matrix[:, 0]).tolist() == [0, 1, 4, 3, 2]


def test_result_is_a_copy():
    X = NUMBERS.copy()
    matrix = check_design(X)
    X[0, 0] = 99.0
    assert matrix[0, 0] == NUMBERS[0, 0]


def frozen(X):
    X.flags.writeable = False
    return X


@pytest.mark.parametrize(
    "X",
    [
        frozen(NUMBERS.copy()),
        frozen(NUMBERS.copy())[1:],
        np.frombuffer(NUMBERS.tobytes()).reshape(NUMBERS.shape),
    ],
    ids=["array", "view", "bytes"],
)
def test_what_nobody_can_write_to_is_not_copied(X):
    assert np.shares_memory(check_design(X), X)


@pytest.mark.parametrize(
    "X",
    [
        frozen(NUMBERS.copy()[:]),
        frozen(np.frombuffer(bytearray(NUMBERS.tobytes())).reshape(NUMBERS.shape)),
        np.broadcast_to(np.arange(2.0), (3, 2)),
        frozen(NUMBERS.copy()).tolist(),
    ],
    ids=["view of what can be written to", "buffer", "broadcast", "list"],
)
def test_what_somebody_else_can_write_to_is_copied(X):
    assert not np.shares_memory(check_design(X), X)


@pytest.mark.parametrize("X", [frozen(np.full((3, 2), np.inf)), frozen(np.eye(3, dtype=int))])
def test_nor_is_what_is_converted_written_to(X):
    before = X.copy()
    assert np.isfinite(check_design(X)).all()
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("X", [NUMBERS, np.where(NUMBERS > 2, np.nan, NUMBERS)])
def test_numbers_that_need_no_conversion_are_not_copied_where_none_is_asked_for(X):
    assert check_design(X, copy=False) is X


@pytest.mark.parametrize(
    "X",
    [
        NUMBERS.astype(np.float32),
        np.asfortranarray(NUMBERS),
        np.where(NUMBERS > 2, np.inf, NUMBERS),
        np.ma.masked_greater(NUMBERS, 2),
        NUMBERS.astype(object),
    ],
    ids=["float32", "column by column", "infinite", "masked", "objects"],
)
def test_what_is_converted_leaves_its_source_alone(X):
    before = X.copy()
    matrix = check_design(X, copy=False)
    np.testing.assert_array_equal(matrix, check_design(X))
    assert matrix.flags.c_contiguous
    assert not np.shares_memory(matrix, X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([["1", "2"], ["3", "4"]]), TypeError, "Column 0 of X .*rows 0 and 1 .*first '1'"),
        (
            np.array([[1, "b"], [2, "c"]], dtype=object),
            TypeError,
            "Column 1 of X .*rows 0 and 1 .*'b'",
        ),
        (NUMBERS.astype(complex), ValueError, "Column 0 of X .*Complex data not supported"),
        (NUMBERS[:, 0], ValueError, r"X has shape \(3,\), but must have two"),
        (NUMBERS[None], ValueError, "but must have two dim"),
        (np.float64(3.0), ValueError, "but must have two dim"),
        (np.empty((0, 3)), ValueError, "X has no rows"),
        (np.empty((3, 0)), ValueError, "X has no columns"),
        (np.ones((1, 3)), ValueError, "X has 1 row, but a tree needs at least 2"),
    ],
)
def test_bad_covariates_are_refused_by_name(X, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        check_design(X)


def test_sparse_matrices_are_refused_with_the_way_out():
    class Sparse:
        def toarray(self):
            return NUMBERS

    with pytest.raises(TypeError, match=re.escape("X.toarray()")):
        check_design(Sparse())


def test_one_row_is_accepted_where_prediction_is_meant():
    assert check_design(np.ones((1, 3)), min_rows=1).shape == (1, 3)
