"""X is taken from whatever holds numbers, and refused with the column and rows at fault."""

import re

import numpy as np
import pandas as pd
import polars as pl
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
        pd.DataFrame(NUMBERS, columns=["a", "b"]),
        pd.DataFrame(NUMBERS, columns=["a", "a"]),
        pd.DataFrame({"a": pd.array([1, 3, 5], dtype="Int64"), "b": NUMBERS[:, 1]}),
        pl.DataFrame({"a": [1, 3, 5], "b": NUMBERS[:, 1]}),
    ],
    ids=[
        "array",
        "list",
        "fortran",
        "float32",
        "object",
        "masked",
        "pandas",
        "same-names",
        "nullable",
        "polars",
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


def test_result_is_a_copy():
    X = NUMBERS.copy()
    matrix = check_design(X)
    X[0, 0] = 99.0
    assert matrix[0, 0] == NUMBERS[0, 0]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (
            np.array([[1, 2], [3, np.nan]]),
            ValueError,
            r"missing values \(NaN\) in column 1 .*row 1 ",
        ),
        (np.array([[1, -np.inf], [3, 4]]), ValueError, "infinite values in column 1 .*row 0 "),
        (np.full((9, 2), np.nan), ValueError, r"rows 0, 1, 2 and 6 more .*1 other column"),
        (
            np.ma.masked_equal(NUMBERS, 4.0),
            ValueError,
            r"missing values \(NaN\) in column 1 .*row 1 ",
        ),
        (pd.DataFrame({"age": [1.0, None, np.nan]}), ValueError, "column 'age', in rows 1 and 2 "),
        (pl.DataFrame({"age": [1, None, 3]}), ValueError, "column 'age', in row 1 "),
        (
            pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}),
            ValueError,
            "column 'n', in row 1",
        ),
        (np.array([["1", "2"], ["3", "4"]]), TypeError, "Column 0 of X .*rows 0 and 1 .*first '1'"),
        (
            np.array([[1, "b"], [2, "c"]], dtype=object),
            TypeError,
            "Column 1 of X .*rows 0 and 1 .*'b'",
        ),
        (pd.DataFrame({"sex": ["F", "M"]}), TypeError, "Column 'sex' of X .*'F'"),
        (pl.DataFrame({"sex": ["F", "M"]}), TypeError, "Column 'sex' of X .*'F'"),
        (
            pd.DataFrame({"g": pd.Categorical([1, 2])}),
            TypeError,
            "Column 'g' of X holds categories",
        ),
        (
            pd.DataFrame({"d": pd.to_datetime(["2020-01-01"] * 2)}),
            TypeError,
            "Column 'd' of X .*datetime",
        ),
        (NUMBERS.astype(complex), ValueError, "Column 0 of X .*Complex data not supported"),
        (NUMBERS[:, 0], ValueError, r"X has shape \(3,\), but must have two"),
        (NUMBERS[None], ValueError, "but must have two dim"),
        (np.float64(3.0), ValueError, "but must have two dim"),
        (np.empty((0, 3)), ValueError, "X has no rows"),
        (np.empty((3, 0)), ValueError, "X has no columns"),
        (pd.DataFrame(index=range(3)), ValueError, "X has no columns"),
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
