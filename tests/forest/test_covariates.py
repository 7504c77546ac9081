"""Tables of all kinds come through with what their values mean, or are refused by name."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

from pymc_xbart.forest.covariates import column_names, describe_columns, read_covariates
from pymc_xbart.forest.schema import Schema

NUMBERS = np.array([[1.0, 2.5], [3.0, 4.0], [5.0, 0.0]])


@pytest.mark.parametrize(
    ("X", "names"),
    [
        (NUMBERS, None),
        (pd.DataFrame(NUMBERS, columns=["a", "b"]), ["a", "b"]),
        (pd.DataFrame(NUMBERS, columns=["a", "a"]), ["0", "1"]),
        (pd.DataFrame(NUMBERS), ["0", "1"]),
        (pd.DataFrame({"a": pd.array([1, 3, 5], "Int64"), "b": NUMBERS[:, 1]}), ["a", "b"]),
        (pl.DataFrame({"a": [1, 3, 5], "b": NUMBERS[:, 1]}), ["a", "b"]),
        (pa.table({"a": [1, 3, 5], "b": NUMBERS[:, 1]}), ["a", "b"]),
        (xr.DataArray(NUMBERS, {"column": ["a", "b"]}, ("row", "column")), ["a", "b"]),
        (xr.DataArray(NUMBERS), None),
        (xr.Dataset({"a": ("row", NUMBERS[:, 0]), "b": ("row", NUMBERS[:, 1])}), ["a", "b"]),
    ],
)
def test_numbers_come_through_from_every_table(X, names):
    read = read_covariates(X)
    np.testing.assert_array_equal(read.X, NUMBERS)
    assert read.X.dtype == np.float64
    assert (read.names, read.labels, read.categorical) == (names, None, ())


WHEN = [dt.datetime(1970, 1, 1), None, dt.datetime(1970, 1, 2, 0, 0, 1)]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([True, False, True]), [1, 0, 1]),
        (pd.array([True, None, False], "boolean"), [1, np.nan, 0]),
        (pd.array([7, None, 2], "Int64"), [7, np.nan, 2]),
        (pd.Series([1.5, None, np.nan]), [1.5, np.nan, np.nan]),
        (pd.Series([1, None, 2], dtype=object), [1, np.nan, 2]),
        (pd.to_datetime(pd.Series(WHEN)), [0, np.nan, 86_401]),
        (pd.to_timedelta(pd.Series([1, 2, None]), unit="min"), [60, 120, np.nan]),
        (pl.Series([1, None, 2]), [1, np.nan, 2]),
        (pl.Series([True, None, False]), [1, np.nan, 0]),
        (pl.Series(WHEN), [0, np.nan, 86_401]),
        (pl.Series(WHEN).cast(pl.Date), [0, np.nan, 86_400]),
        (pl.Series([dt.timedelta(minutes=1), None, dt.timedelta(0)]), [60, np.nan, 0]),
    ],
)
def test_whatever_has_an_order_is_a_number(column, expected):
    table = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    read = read_covariates(table({"x": column}))
    np.testing.assert_array_equal(read.X[:, 0], expected)
    assert (read.labels, read.categorical) == (None, ())


@pytest.mark.parametrize(
    ("column", "codes", "labels"),
    [
        (pd.Categorical(["b", "a", "b"]), [1, 0, 1], ["a", "b"]),
        (pd.Categorical(["b", None, "a"], ["a", "z", "b"]), [2, np.nan, 0], ["a", "z", "b"]),
        (pd.Categorical([20, 10, 20]), [1, 0, 1], ["10", "20"]),
        (pl.Series(["b", None, "a"], dtype=pl.Enum(["a", "z", "b"])), [2, np.nan, 0], list("azb")),
    ],
)
def test_categories_are_numbered_as_declared(column, codes, labels):
    table = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    read = read_covariates(table({"n": [1.0, 2.0, 3.0], "x": column}))
    np.testing.assert_array_equal(read.X[:, 1], codes)
    assert read.labels == [None, labels]
    assert read.categorical == (1,)


def test_arrow_says_what_pandas_says():
    table = pd.DataFrame(
        {
            "a": pd.array([7, None, 2], "Int64"),
            "b": pd.Categorical(["v", None, "u"]),
            "c": pd.to_datetime(pd.Series(WHEN)),
            "d": pd.array([True, None, False], "boolean"),
            "e": [1.5, np.nan, 2.5],
        }
    )
    there, here = read_covariates(pa.Table.from_pandas(table)), read_covariates(table)
    np.testing.assert_array_equal(there.X, here.X)
    assert there[1:] == here[1:]


ARROW_WHEN = pd.Series(["2024-01-01", None, "2024-01-02"])
ARROW_BACKED = {
    "timestamps": (pd.to_datetime(ARROW_WHEN), "timestamp[us][pyarrow]"),
    "durations": (pd.to_datetime(ARROW_WHEN) - pd.Timestamp("2024-01-01"), "duration[us][pyarrow]"),
    "categories": (pd.Series(["v", None, "u"], dtype="string"), "category"),
    "dictionaries": (
        pd.Series(["v", None, "u"]),
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())),
    ),
}


@pytest.mark.parametrize("kind", ARROW_BACKED)
def test_gaps_of_columns_that_pandas_keeps_in_arrow(kind):
    column, dtype = ARROW_BACKED[kind]
    read = read_covariates(pd.DataFrame({"x": column.astype(dtype)})).X[:, 0]
    np.testing.assert_array_equal(np.isnan(read), [False, True, False])
    assert abs(read[2] - read[0]) == (86_400 if kind in ("timestamps", "durations") else 1)


def test_arrow_knows_which_categories_have_an_order():
    sizes = pd.DataFrame({"size": pd.Categorical(["L", "S"], ["S", "M", "L"], ordered=True)})
    read = read_covariates(pa.Table.from_pandas(sizes))
    assert read.X[:, 0].tolist() == [2, 0]
    assert (read.labels, read.categorical) == ([["S", "M", "L"]], ())


def test_coordinates_of_a_dataset_are_no_columns():
    data = xr.Dataset(
        {"a": ("row", [1.0, 2.0]), "b": ("row", [3.0, 4.0])},
        {"truth": ("row", [5.0, 6.0]), "time": 7.0, "row": ["p", "q"]},
    )
    read = read_covariates(data)
    assert read.names == ["a", "b"]
    np.testing.assert_array_equal(read.X, [[1.0, 3.0], [2.0, 4.0]])
    assert describe_columns(data).columns == ["a", "b"]


def test_polars_categories_have_labels():
    read = read_covariates(pl.DataFrame({"x": pl.Series(["v", None, "u"], dtype=pl.Categorical)}))
    labels = read.labels[0]
    assert [labels[int(k)] for k in read.X[[0, 2], 0]] == ["v", "u"]
    assert np.isnan(read.X[1, 0])


def test_categories_with_an_order_are_their_ranks():
    sizes = pd.Categorical(["L", "S", "M"], ["S", "M", "L"], ordered=True)
    read = read_covariates(pd.DataFrame({"size": sizes}))
    assert read.X[:, 0].tolist() == [2, 0, 1]
    assert (read.labels, read.categorical) == ([["S", "M", "L"]], ())


def test_columns_of_categories_can_be_chosen():
    table = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": pd.Categorical(["x", "y"])})
    assert read_covariates(table, ["b", 0]).categorical == (0, 1, 2)
    assert read_covariates(table, "b").categorical == (1, 2)
    assert read_covariates(table, 1).categorical == (1, 2)
    assert read_covariates(table[["a", "b"]].to_numpy(), np.array([1])).categorical == (1,)
    assert read_covariates(table, []).categorical == (2,)


@pytest.mark.parametrize(
    ("categorical", "error", "message"),
    [
        (["x"], ValueError, "names the column 'x', but the columns of X are 'a', 'b'"),
        ([2], ValueError, "holds 2, but the 2 columns of X are numbered from 0"),
        ([-1], ValueError, "holds -1"),
        ([1.0], TypeError, "holds 1.0, but must hold names or numbers"),
        ([True], TypeError, "holds True"),
    ],
)
def test_columns_that_are_not_there_can_not_be_chosen(categorical, error, message):
    with pytest.raises(error, match=message):
        read_covariates(pd.DataFrame(NUMBERS, columns=["a", "b"]), categorical)


def test_known_categories_keep_their_numbers():
    known = [["a", "b"], None]
    for new in (pd.Categorical(["b", "a"]), ["b", "a"], pd.Categorical(["b", "a"], ["b", "a"])):
        table = pd.DataFrame({"x": new, "n": [1, 2]})
        np.testing.assert_array_equal(read_covariates(table, labels=known).X[:, 0], [1, 0])


@pytest.mark.parametrize(
    ("x", "labels"), [(10.0, ["10", "20"]), (1.0, ["0", "1"]), (2.0, ["u", "v"]), (0.5, ["u", "v"])]
)
def test_numbers_of_an_array_may_be_those_of_known_categories_only(x, labels):
    for X in (np.full((3, 2), x), xr.DataArray(np.full((3, 2), x))):
        with pytest.raises(TypeError, match=r"X is an array of numbers.*column 1 .*Pass a table"):
            read_covariates(X, [1], labels=[None, labels])
    X = np.array([[2.0, 1.0], [3.0, np.nan]])
    np.testing.assert_array_equal(read_covariates(X, [1], labels=[None, ["u", "v"]]).X, X)


def test_new_categories_get_numbers_of_their_own_with_a_warning():
    table = pd.DataFrame({"x": ["c", "a", None, "d", "c"]})
    with pytest.warns(UserWarning, match=r"'x' of X has .*: 'c', 'd', in rows 0, 3 and 4 \(count"):
        read = read_covariates(table, [0], labels=[["a", "b"]])
    np.testing.assert_array_equal(read.X[:, 0], [2, 0, np.nan, 3, 2])


def test_new_categories_have_no_place_in_an_order():
    table = pd.DataFrame({"size": ["S", "XL", "M"]})
    message = r"'size' of X has .*: 'XL', in row 1 .* no place in the order"
    with pytest.raises(ValueError, match=message):
        read_covariates(table, labels=[["S", "M", "L"]])


def test_names_labels_and_dates_are_known_without_reading():
    days = pd.date_range("2020-01-01", periods=2)
    table = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": days})
    for X in (table, pa.Table.from_pandas(table), NUMBERS, xr.DataArray(NUMBERS)):
        read = read_covariates(X)
        dates = [2] if read.names else None
        assert describe_columns(X) == Schema(read.names, labels=read.labels, dates=dates)


def test_categories_where_trees_know_numbers_are_refused():
    table = pd.DataFrame({"x": pd.Categorical(["a", "b"])})
    with pytest.raises(TypeError, match="Column 'x' of X holds categories, but the forest knows"):
        read_covariates(table, labels=[None])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"sex": ["F", "M"]}), TypeError, "Column 'sex' of X .*rows 0 and 1 .*'F'"),
        (pl.DataFrame({"sex": ["F", "M"]}), TypeError, "Column 'sex' of X .*'F'"),
        (pd.DataFrame({"x": [1, "b"]}), TypeError, "Column 'x' of X .*row 1 .*'b'"),
        (pd.DataFrame({"x": [1j, 2]}), ValueError, "Column 'x' of X .*Complex"),
        (pl.DataFrame({"x": [[1], [2]]}), TypeError, "Column 'x' of X"),
        (pl.DataFrame({"x": [dt.time(1), dt.time(2)]}), TypeError, "Column 'x' of X"),
        (pd.DataFrame(index=range(3)), ValueError, "X has no columns"),
        (pd.DataFrame({"x": [1.0]}), ValueError, "X has 1 row, but a tree needs at least 2"),
    ],
)
def test_what_has_no_meaning_for_trees_is_refused_by_name(X, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        read_covariates(X)


def test_names_are_those_of_tables():
    assert column_names(pl.DataFrame({"a": [1], "b": [2]})) == ["a", "b"]
    assert column_names(NUMBERS) is None
