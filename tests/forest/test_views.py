"""Views of columns: what trees compare, and what it weighs."""

import numpy as np
import pytest

from pymc_xbart.forest.views import (
    CONSIDERED,
    MAX_ORDERS,
    choose_for_trees,
    evaluate_trees,
    find_views,
    num_views_of,
    place_in_order,
    see,
    share_weights,
    show,
    sum_by_column,
    to_columns,
    to_views,
)
from pymc_xbart.kernels import Prior, draw_prior_forest, encode, sum_of_trees
from pymc_xbart.kernels.codes import cut_values
from pymc_xbart.kernels.records import CUTS

NAN = np.nan
N = 60


def mixed(rng, n=N):
    """Columns of numbers, of numbers with gaps, of categories with gaps, and of two categories."""
    X = rng.normal(size=(n, 4))
    X[:, 2:] = rng.integers(0, [5, 2], (n, 2))
    X[:, 1:3][rng.random((n, 2)) < 0.3] = NAN
    return X, (2, 3)


def test_only_columns_that_need_them_have_several_views(rng):
    views = find_views(*mixed(rng))
    assert views.of_column.tolist() == [1, 2, 12, 1]  # five categories and none, two orders each
    many = find_views(np.arange(100.0)[:, None], (0,))
    assert many.of_column.tolist() == [MAX_ORDERS]
    assert views.is_categorical.tolist() == [False, False, True, True]
    plain = find_views(np.ones((3, 2)))
    assert plain.column.tolist() == [0, 1]


def test_missing_values_are_below_or_above_all_numbers():
    X = np.array([[3.0], [NAN], [-1e300]])
    below, above = show(X, find_views(X)).T
    assert np.argsort(below).tolist() == [1, 2, 0]
    assert np.argsort(above).tolist() == [2, 0, 1]


def test_orders_of_categories_are_those_of_all_data(rng):
    values = np.array([0.0, 1.0, 2.0, 7.0, NAN])
    for number in range(MAX_ORDERS):
        places = place_in_order(values, number)
        assert np.unique(places).size == values.size
        assert ((places > 0) & (places < 1)).all()
        np.testing.assert_array_equal(place_in_order(values[[3, 1]], number), places[[3, 1]])
    assert place_in_order(np.array([-0.0]), 0) == place_in_order(np.array([0.0]), 0)
    other_nan = np.array([0x7FF8000000000001]).view(np.float64)
    assert place_in_order(other_nan, 0) == place_in_order(np.array([NAN]), 0)


def test_places_are_those_that_have_been_stored():
    """A change would put the categories of stored trees into another order."""
    places = place_in_order(np.array([0.0, 1.0, NAN]), 2)
    expected = [0.0264337715925978, 0.9345736974186607, 0.8171119788025203]
    np.testing.assert_allclose(places, expected, rtol=1e-15)


def test_orders_look_random():
    """Each pair of categories is in either order about equally often; uniform places."""
    places = np.array([place_in_order(np.arange(40.0), number) for number in range(500)])
    first = (places[:, :, None] < places[:, None, :]).mean(axis=0)[np.triu_indices(40, 1)]
    assert np.abs(first - 0.5).max() < 5 * 0.5 / np.sqrt(500)
    assert np.abs(places.mean() - 0.5) < 5 / np.sqrt(12 * places.size)


def test_views_of_a_column_share_its_weight(rng):
    views = find_views(*mixed(rng))
    weights = rng.uniform(size=(3, 4))
    shared = share_weights(weights, views)
    assert shared.shape == (3, views.column.size)
    np.testing.assert_allclose(sum_by_column(shared, views), weights)
    assert np.unique(shared[0, views.column == 2]).size == 1


def test_subsets_of_columns_are_counted_in_views(rng):
    views = find_views(*mixed(rng))
    assert [num_views_of(mtry, views) for mtry in (1, 2, 4)] == [4, 8, 16]
    assert num_views_of(1, find_views(np.ones((2, 3)))) == 1


def test_a_tree_considers_some_of_the_orders(rng):
    views = find_views(*mixed(rng))
    prior = Prior(0.95, 0.5, 1.0, np.full(16, 1 / 16), 100, 1, 2**31 - 1)
    choice = choose_for_trees(4, views, prior)
    assert choice.is_per_tree
    np.testing.assert_allclose(choice.share, [1, 1, 1, *[CONSIDERED / 12] * 12, 1])
    assert choose_for_trees(4, views, prior._replace(cut_prior=CUTS)).is_complete
    plain = find_views(np.ones((2, 16)))
    assert not choose_for_trees(16, plain, prior).is_per_tree


def test_a_tree_considers_half_of_its_columns_by_weight(rng):
    views = find_views(*mixed(rng))
    weights = np.array([0.0, 0.1, 0.9, 0.0])
    prior = Prior(0.95, 0.5, 1.0, share_weights(weights, views), 100, 1, 2**31 - 1)
    everything = choose_for_trees(4, views, prior).share
    by_column = np.array([0.25, 0.35, 1.0, 0.25])
    share = choose_for_trees(2, views, prior).share
    np.testing.assert_allclose(share, everything * by_column[views.column])


@pytest.fixture
def drawn(rng):
    """Draw a forest from its prior: (X, views, forest, cuts, f)."""
    X, categorical = mixed(rng)
    views = find_views(X, categorical)
    design = encode(show(X, views))
    weights = share_weights(np.full(4, 0.25), views)
    prior = Prior(0.95, 0.5, 1.0, weights, 100, 1, 2**31 - 1)
    forest, leaf_of_row = draw_prior_forest(design, prior, 200, rng)
    cuts = cut_values(design, forest.column, forest.cut)
    return X, views, forest, cuts, sum_of_trees(forest, leaf_of_row)


def evaluated(X, views, forest, cuts):
    f = np.empty(len(X))
    evaluate_trees(*to_columns(forest, cuts, views), cuts, see(X, views.is_categorical), f)
    return f


def test_trees_find_their_rows_again(drawn):
    X, views, forest, cuts, f = drawn
    np.testing.assert_array_equal(evaluated(X, views, forest, cuts), f)


def test_there_and_back_is_the_same_forest(drawn):
    _, views, forest, cuts, _ = drawn
    again = to_views(*to_columns(forest, cuts, views), views)
    np.testing.assert_array_equal(again.column, forest.column)


def test_views_that_other_data_lack_are_replaced_by_what_they_have(drawn):
    X, views, forest, cuts, _ = drawn
    full = find_views(np.nan_to_num(X), ())
    column, _ = to_columns(forest, cuts, views)
    np.testing.assert_array_equal(
        to_views(*to_columns(forest, cuts, views), full).column, column.column
    )


def test_missing_values_go_either_way_where_trees_have_seen_none(drawn):
    _, views, forest, cuts, _ = drawn
    column, number = to_columns(forest, cuts, views)
    is_plain = column.column == 0
    right = number[is_plain].mean()
    assert abs(right - 0.5) < 5 * 0.5 / np.sqrt(is_plain.sum())
    np.testing.assert_array_equal(to_columns(forest, cuts, views)[1], number)  # for good
    assert (number[column.column == 3] == 0).all()  # categories have orders, and no sides


def test_unseen_categories_go_either_way(drawn):
    X, views, forest, cuts, _ = drawn
    column, number = to_columns(forest, cuts, views)
    splits = np.flatnonzero(column.column == 2)
    left = [place_in_order(np.array([99.0]), number[k])[0] <= cuts[k] for k in splits]
    assert 0.1 < np.mean(left) < 0.9
    new = X.copy()
    new[:, 2] = 99.0
    assert np.isfinite(evaluated(new, views, forest, cuts)).all()
