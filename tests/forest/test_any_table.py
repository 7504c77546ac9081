"""Any legal table is fitted, stored, read again and predicted at; any illegal one is refused.

Tables are made up by hypothesis, the same ones in every run.
"""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_xbart.forest.covariates import read_covariates
from pymc_xbart.forest.prediction import evaluate_draws
from pymc_xbart.forest.regressor import XBARTRegressor
from pymc_xbart.forest.stored import StoredDraw, StoredForest, write_draw
from pymc_xbart.forest.views import to_columns

some = settings(max_examples=40, deadline=None, derandomize=True, database=None)

MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@st.composite
def columns(draw, n):
    """A pandas column of any kind that trees understand."""
    kind = draw(st.sampled_from(["float", "int", "bool", "Int64", "boolean", "time", "category"]))
    if kind == "category":
        labels = draw(st.lists(LABELS, min_size=1, max_size=6, unique=True))
        values = draw(st.lists(st.sampled_from([*labels, None]), min_size=n, max_size=n))
        return pd.Series(pd.Categorical(values, labels, ordered=draw(st.booleans())))
    values = {
        "float": st.floats(width=draw(st.sampled_from([32, 64]))),
        "int": st.integers(-3, 3) | st.integers(-(2**53), 2**53),
        "bool": st.booleans(),
        "Int64": st.none() | st.integers(0, 4),
        "boolean": st.none() | st.booleans(),
        "time": st.none() | MOMENTS,
    }[kind]
    column = draw(st.lists(values, min_size=n, max_size=n))
    dtype = {"time": "datetime64[us]", "float": "float64", "int": "int64"}.get(kind, kind)
    return pd.Series(column, dtype=dtype)


@st.composite
def tables(draw):
    """A table of some rows and columns."""
    n = draw(st.integers(2, 12))
    names = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
    return pd.DataFrame({name: draw(columns(n)) for name in names})


def fitted(table, **options):
    y = np.random.default_rng(0).normal(size=len(table))
    return XBARTRegressor(num_trees=3, num_sweeps=6, burnin=3, random_state=1, **options).fit(
        table, y
    )


def stored(forest, cuts, model, num_rows):
    """What a chain would store of a forest."""
    rows = np.zeros(cuts.size, np.int64)
    views = model.views_
    each = StoredForest(model.mean_, *to_columns(forest, cuts, views), cuts, rows)
    return StoredDraw(num_rows, 0, 0, views.is_categorical, views.has_missing, (), [each])


@some
@given(tables())
def test_legal_tables_go_all_the_way(table):
    model = fitted(table, correction="tree")
    draws = model.predict(table, return_draws=True)
    assert np.isfinite(draws).all()
    assert model.split_counts_.shape[1] == table.shape[1]
    texts = [
        write_draw(stored(forest, cuts, model, len(table)))
        for forest, cuts in zip(model.forests_, model.cut_values_, strict=True)
    ]
    X = read_covariates(table, labels=model.labels_ or [None] * table.shape[1]).X
    np.testing.assert_array_equal(evaluate_draws(texts, X)[:, 0], draws)


@pytest.mark.filterwarnings("ignore:Column .* of X has missing values")
@some
@given(tables(), st.randoms(use_true_random=False))
def test_new_rows_may_hold_anything_that_is_legal(table, random):
    """Rows of the table in another order, with gaps where there were none."""
    model = fitted(table)
    new = table.iloc[[random.randrange(len(table)) for _ in range(5)]]
    name = random.choice(list(table))
    nullable = {"int64": "Int64", "bool": "boolean"}.get(str(table[name].dtype))
    gaps = new[name].astype(nullable or table[name].dtype)
    gaps = gaps.mask([random.random() < 0.5 for _ in range(5)])
    assert np.isfinite(model.predict(new.assign(**{name: gaps}))).all()


@some
@given(tables())
def test_polars_says_what_pandas_says(table):
    data = {
        name: pl.Series(
            [None if pd.isna(x) else x for x in column.tolist()],
            dtype=pl.Enum(column.cat.categories.tolist())
            if isinstance(column.dtype, pd.CategoricalDtype)
            else None,
        )
        for name, column in table.items()
    }
    there, here = read_covariates(pl.DataFrame(data)), read_covariates(table)
    np.testing.assert_array_equal(there.X, here.X)
    assert (there.names, there.labels) == (here.names, here.labels)


ILLEGAL = [
    pd.Series(["a", "b"]),
    pd.Series([1, "2"], dtype=object),
    pd.Series([1 + 1j, 2]),
    pd.Series([[1], [2]]),
    pd.Series([dt.time(1), dt.time(2)]),
    pd.Series([object(), 1.0]),
    pd.Series(pd.interval_range(0, 2)),
]


@some
@given(tables(), st.sampled_from(ILLEGAL), LABELS)
def test_one_illegal_column_is_enough_to_be_refused_by_name(table, column, name):
    column = column.iloc[np.arange(len(table)) % 2].reset_index(drop=True)
    with pytest.raises((TypeError, ValueError), match=r"Column .* of X"):
        fitted(table.assign(**{name: column}))
