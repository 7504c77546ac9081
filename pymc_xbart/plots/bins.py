"""Rows put together by the values of one column (floor 3): each value, or tenths of many."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.diagnostics.grid import MISSING
from pymc_xbart.plots.intervals import shorten
from pymc_xbart.plots.read import Column
from pymc_xbart.plots.scales import Scale, make_scale

NUM_BINS = 10


class Bins(NamedTuple):
    """Bins along the axis of a column."""

    scale: Scale
    x: NDArray[np.float64]  # (n,), position of each row
    of_row: NDArray[np.int64]  # (n,), number of its bin
    num_rows: NDArray[np.int64]  # (bins,)
    at: NDArray[np.float64]  # (bins,), mean position of its rows

    def means(
        self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Mean of values (..., n) over the rows of each bin, (..., bins), NaN without weight."""
        share = (self.of_row[:, np.newaxis] == np.arange(self.num_rows.size)).astype(np.float64)
        if weights is not None:
            share *= weights[:, np.newaxis]
        totals = share.sum(axis=0)
        share /= np.where(totals > 0, totals, np.nan)
        means: NDArray[np.float64] = values @ share
        return means


def bin_rows(name: str, column: Column, shown: str) -> Bins:
    """Find bins: one for each category and each of a few numbers, else tenths of the rows.

    Rows without a value have one of their own, the last.

    Parameters
    ----------
    name : str
        Of the column.
    column : Column
    shown : str
        What the axis is called.
    """
    values = column.values
    missing = np.isnan(values)
    known = np.unique(values[~missing])
    labels = column.labels
    points = known if labels is None else np.array([labels[int(code)] for code in known])
    if missing.any():
        points = np.append(points, np.nan if labels is None else MISSING)
    scale = make_scale(
        name,
        shorten(shown),
        points,
        is_categorical=column.is_categorical,
        is_date=column.is_date,
    )
    ends = known
    if scale.is_continuous:
        ascending = np.sort(values[~missing])
        last = -(-ascending.size * np.arange(1, NUM_BINS + 1) // NUM_BINS) - 1  # of each tenth
        ends = np.unique(ascending[last])
    of_row = np.searchsorted(ends, values)  # missing ones behind all others
    x = np.where(missing, scale.at_missing, scale.place(points)[np.searchsorted(known, values)])
    num_rows = np.bincount(of_row)
    return Bins(scale, x, of_row, num_rows, np.bincount(of_row, x) / num_rows)
