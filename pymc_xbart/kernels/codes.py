"""X to rank codes (floor 0: NumPy and Numba only).

Trees see X only through comparisons, so a column may be replaced by ranks: sampling is then
unchanged by any strictly increasing transformation of a column, extreme ranges cannot overflow, and
two bytes a value halve or quarter what must be read for every tree.
"""

import numpy as np

from pymc_xbart.kernels.ordered import order_rows
from pymc_xbart.kernels.records import Design

CODE_DTYPE = np.uint16
MAX_CODES = 65_535  # what CODE_DTYPE can tell apart, less one


def encode(X: np.ndarray) -> Design:
    """Replace each value of X by its rank among the distinct values of its column.

    A column with more than `MAX_CODES` distinct values has neighbours merged so that codes hold
    about equally many rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Finite numbers; n >= 1.

    Returns
    -------
    Design
    """
    n, p = X.shape
    codes = np.empty((p, n), CODE_DTYPE)
    distinct_values = []
    for v in range(p):
        distinct, code, count = np.unique(X[:, v], return_inverse=True, return_counts=True)
        if distinct.size > MAX_CODES:
            merged = _merge(count)
            code = merged[code]
            # The largest value of each code: a cut there sends exactly the rows with code <= cut to
            # the left.
            distinct = distinct[np.append(merged[1:] > merged[:-1], True)]
        codes[v] = code
        distinct_values.append(distinct.astype(np.float64))
    num_codes = np.array([distinct.size for distinct in distinct_values], dtype=np.int64)
    value_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(num_codes)])
    values = np.concatenate([np.empty(0), *distinct_values])
    return Design(codes, num_codes, values, value_start, order_rows(codes))


def _merge(count: np.ndarray) -> np.ndarray:
    """Code of each distinct value, held by `count` rows, where there are too many of them."""
    rows_before = np.cumsum(count) - count
    group = rows_before * MAX_CODES // count.sum()
    return np.cumsum(np.append(0, group[1:] > group[:-1]))


def cut_values(design: Design, column: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Cuts in the units of X: rows with x <= value go left. NaN at leaves.

    Parameters
    ----------
    column, cut : ndarray of shape (nodes,)
        As in `Forest`.
    """
    is_split = column >= 0
    value = np.full(column.shape, np.nan)
    value[is_split] = design.values[design.value_start[column[is_split]] + cut[is_split]]
    return value
