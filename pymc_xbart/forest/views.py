"""What trees split on: views of the columns of X (floor 1).

Trees compare numbers. A column that holds more than numbers is shown to them in several views, each
of which is a column of numbers:

- one with missing values twice, with those below all others and above all others. A cut of the
  first sends them left, one of the second right, and the outermost cut of either sets them apart;
- one of categories in several orders, fixed but arbitrary, so that a cut sends a subset left.

Views of a column share its split weight. So the prior of a split is to draw a column by the split
weights, then one of its views, then one of the candidate cuts of that view: the side of missing
values is as much a part of it as the cut, left and right being equally likely. Kernels do not know
of views, and all that is exact about them stays so.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.kernels import (
    ColumnChoice,
    Design,
    Forest,
    Prior,
    column_choice,
    encode,
    route_values,
)
from pymc_xbart.kernels.records import COLUMNS, NO_COLUMN

MISSING_LEFT, MISSING_RIGHT = 0, 1  # numbers of the views of a column of numbers
MAX_ORDERS = 32  # views of a column of categories
# of which a tree considers about so many: looking at each takes as long as at a column of numbers
CONSIDERED = 3


class Views(NamedTuple):
    """Views of p columns, in all q."""

    column: NDArray[np.int32]  # (q,), of which column each is a view, in ascending order
    number: NDArray[np.int32]  # (q,), which one of that column
    is_categorical: NDArray[np.bool_]  # (p,)
    has_missing: NDArray[np.bool_]  # (p,)

    @property
    def categorical(self) -> list[int]:
        """Columns of categories."""
        return np.flatnonzero(self.is_categorical).tolist()

    @property
    def of_column(self) -> NDArray[np.int64]:
        """How many views each column has, (p,)."""
        return np.bincount(self.column, minlength=self.is_categorical.size)


def find_views(X: NDArray[np.float64], categorical: tuple[int, ...] = ()) -> Views:
    """Views that the columns of X need.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        As `check_design` returns it.
    categorical : tuple of int
        Columns whose values are categories.
    """
    is_categorical = np.isin(np.arange(X.shape[1]), categorical)
    has_missing = np.isnan(X).any(axis=0)
    counts = 1 + has_missing
    for v in np.flatnonzero(is_categorical):
        counts[v] = _num_orders(np.unique(X[:, v]).size)
    column = np.repeat(np.arange(X.shape[1]), counts)
    number = np.concatenate([np.arange(count) for count in counts])
    return Views(column.astype(np.int32), number.astype(np.int32), is_categorical, has_missing)


def _num_orders(num_categories: int) -> int:
    """Two categories have one way to be apart; few have few."""
    return 1 if num_categories <= 2 else min(2 * num_categories, MAX_ORDERS)


def encode_views(X: NDArray[np.float64], categorical: tuple[int, ...] = ()) -> tuple[Design, Views]:
    """What kernels see of X, and which views that is made of. Parameters: see `find_views`."""
    views = find_views(X, categorical)
    return encode(show(X, views)), views


def show(X: NDArray[np.float64], views: Views) -> NDArray[np.float64]:
    """Views of X (n, p), free of NaN, (n, q)."""
    if not (views.is_categorical.any() or views.has_missing.any()):
        return X
    pairs = zip(views.column, views.number, strict=True)
    return np.column_stack(
        [
            place_in_order(X[:, v], number)
            if views.is_categorical[v]
            else place_missing(X[:, v], number)
            for v, number in pairs
        ]
    )


def place_missing(values: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Numbers, with missing ones below or above all others."""
    side = -np.inf if number == MISSING_LEFT else np.inf
    return np.where(np.isnan(values), side, values)


def place_in_order(values: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Place of categories in one of the orders, in (0, 1).

    It depends on the category and the order alone, so that all data sets agree on it, and one that
    no tree has seen has a place like any other. Missing values are a category.
    """
    category = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    return (_scramble(category, number).astype(np.float64) + 0.5) * 2.0**-53


def _scramble(values: NDArray[np.float64], number: Any) -> NDArray[np.uint64]:
    """Whole numbers below 2^53 that look random, but follow from values and `number`.

    By SplitMix64 (Steele, Lea & Flood 2014).
    """
    bits = np.ascontiguousarray(values).view(np.uint64)
    with np.errstate(over="ignore"):
        z = bits + (np.asarray(number, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    scrambled: NDArray[np.uint64] = z >> np.uint64(11)
    return scrambled


def share_weights(split_weights: NDArray[np.float64], views: Views) -> NDArray[np.float64]:
    """Split weights of the views, (..., q), of those of the columns, (..., p)."""
    shared: NDArray[np.float64] = (split_weights / views.of_column)[..., views.column]
    return shared


def sum_by_column(of_views: NDArray[Any], views: Views) -> NDArray[Any]:
    """Sum over the views of each column: (..., p), of (..., q)."""
    of_column = views.of_column
    if of_column.size == views.column.size:
        return of_views
    return np.add.reduceat(of_views, np.cumsum(of_column) - of_column, axis=-1)


def choose_for_trees(mtry: int, views: Views, prior: Prior) -> ColumnChoice:
    """Which views are considered where these are drawn once for each tree.

    Those of at most about `mtry` columns; of the orders of categories, some by chance. Half of the
    columns are drawn by their split weights, so that heavy ones are seldom left out, and half
    evenly, so that every one is met in time.
    """
    num_views = views.column.size
    if prior.cut_prior != COLUMNS:  # the cuts of all views are to be counted
        return column_choice(num_views)
    of_column = views.of_column[views.column]
    is_order = views.is_categorical[views.column]
    share = np.where(is_order, np.minimum(1.0, CONSIDERED / of_column), 1.0)
    if mtry < views.is_categorical.size:
        weights = sum_by_column(prior.split_weights, views)
        shares = 0.5 * mtry * (1.0 / weights.size + weights / weights.sum())
        share *= np.minimum(1.0, shares)[views.column]
    return column_choice(num_views, is_per_tree=bool(share.min() < 1.0), share=share)


def num_views_of(num_columns: int, views: Views) -> int:
    """How many views to consider where so many columns are asked for."""
    return max(1, round(num_columns * views.column.size / views.is_categorical.size))


def to_columns(
    forest: Forest, cut_value: NDArray[np.float64], views: Views
) -> tuple[Forest, NDArray[np.int32]]:
    """Forest whose splits name columns of X, and the number of the view at each; (nodes,).

    A column without missing values is split on by either view alike, so that it takes one by
    chance: that decides where missing values of other data go.
    """
    is_split = forest.column != NO_COLUMN
    is_open = (views.of_column == 1) & ~views.is_categorical
    # Leaves look up the last entry, which is thrown away.
    column = np.where(is_split, views.column[forest.column], NO_COLUMN).astype(np.int32)
    number = np.where(
        is_open[column], _toss(forest, cut_value), views.number[forest.column]
    ).astype(np.int32)
    return forest._replace(column=column), np.where(is_split, number, 0)


def _toss(forest: Forest, cut_value: NDArray[np.float64]) -> NDArray[np.uint64]:
    """0 or 1 for each node, which follows from its cut and the leaf values of its tree.

    Not drawn: a chain would then take another course for being stored, and a tree change when it is
    read and written again.
    """
    bits = np.bitwise_xor.reduceat(forest.value.view(np.uint64), forest.tree_start[:-1])
    of_node = np.repeat(bits, np.diff(forest.tree_start))
    return _scramble(cut_value, of_node) & np.uint64(1)


def to_views(forest: Forest, number: NDArray[np.int32], views: Views) -> Forest:
    """The reverse: splits name the views of other data, as far as it has them."""
    of_column = views.of_column
    first = np.cumsum(of_column) - of_column
    seen = first[forest.column] + np.minimum(number, of_column[forest.column] - 1)
    column = np.where(forest.column == NO_COLUMN, NO_COLUMN, seen).astype(np.int32)
    return forest._replace(column=column)


class Seen(NamedTuple):
    """Rows as trees of any data set may ask to see them."""

    rows: NDArray[np.float64]  # (views, n)
    place: NDArray[np.int32]  # (p, MAX_ORDERS), where in `rows` each view of a column is


def see(X: NDArray[np.float64], is_categorical: NDArray[np.bool_]) -> Seen:
    """All views of X (n, p) that differ."""
    rows: list[NDArray[np.float64]] = []
    place = np.zeros((X.shape[1], MAX_ORDERS), np.int32)
    for v, values in enumerate(X.T):
        if is_categorical[v]:
            views = [place_in_order(values, number) for number in range(MAX_ORDERS)]
        elif np.isnan(values).any():
            views = [place_missing(values, number) for number in (MISSING_LEFT, MISSING_RIGHT)]
        else:
            views = [values]
        place[v] = len(rows) + np.minimum(np.arange(MAX_ORDERS), len(views) - 1)
        rows += views
    return Seen(np.ascontiguousarray(rows), place)


def places_of(forest: Forest, number: NDArray[np.int32], seen: Seen) -> NDArray[np.int32]:
    """Which row of `seen.rows` each split compares, (nodes,); NO_COLUMN at leaves."""
    place = np.where(forest.column == NO_COLUMN, NO_COLUMN, seen.place[forest.column, number])
    return place.astype(np.int32)


def evaluate_trees(
    forest: Forest,
    number: NDArray[np.int32],
    cut_value: NDArray[np.float64],
    seen: Seen,
    f: NDArray[np.float64],
) -> None:
    """Sum of the trees at rows, with columns and views as `to_columns` gives them; f is written."""
    shown = forest._replace(column=places_of(forest, number, seen))
    route_values(shown, cut_value, seen.rows, f)
