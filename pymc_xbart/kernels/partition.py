"""Split the rows of a node in two (floor 0: NumPy and Numba only).

             start         stop               front     middle      back
    rows   |  L R R L L R L R  |   goes to   |  L L L L  |  R R R R  |   the right side backwards

Children stand elsewhere in `rows` than their parent, so that each row is written once. `rows` has
three parts for that: all rows in order, which are the root's and stay, and two that take turns from
level to level. So rows stay sorted by row number, up or down, and columns are read one way.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel

NUM_PARTS = 3  # of `NodeRows`


class NodeRows(NamedTuple):
    """The rows of a tree, ordered so that every node owns a slice, with what is added up beside."""

    row: np.ndarray  # (3 n,) uint32; the first n are 0, 1, 2, ... throughout
    tally: np.ndarray  # (3 n,) int64
    h: np.ndarray  # (3 n,) float64; undefined where tallies tell it
    unit: np.ndarray  # (1,) float64, of a tally's sum of g


def make_node_rows(num_rows: int) -> NodeRows:
    """Allocate for n rows."""
    size = NUM_PARTS * num_rows
    if size > np.iinfo(np.int32).max:  # of which type nodes know where their rows stand
        most = np.iinfo(np.int32).max // NUM_PARTS
        msg = f"X has {num_rows} rows, but no more than {most} are possible."
        raise ValueError(msg)
    row = np.empty(size, np.uint32)
    row[:num_rows] = np.arange(num_rows)
    return NodeRows(row, np.empty(size, np.int64), np.empty(size), np.ones(1))


@inner_kernel
def place_of_children(rows, start):
    """Where in `rows` the children of a node belong that starts there."""
    num_rows = rows.row.size // NUM_PARTS
    return start + num_rows if start < 2 * num_rows else start - num_rows


@inner_kernel
def count_left(codes, cut, rows, start, stop):
    """How many of `rows[start:stop]` have code <= cut."""
    row = rows.row
    count = POSITION_DTYPE(0)
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        count += POSITION_DTYPE(codes[row[i]] <= cut)
    return np.int64(count)


@inner_kernel
def partition_rows(codes, cut, rows, start, stop, is_whole, front, back):
    """Copy the rows with code <= cut to `front` and behind it, the others to before `back`.

    Parameters
    ----------
    codes : (n,) uint16
        The column.
    cut : int
        A code.
    rows : NodeRows
    start, stop : int
        The rows to be copied.
    is_whole : bool
        Whether tallies tell h, so that it need not be moved, or summed.
    front, back : int
        Outside of those.

    Returns
    -------
    middle : int
        End of the left side.
    last_left : int
        Largest code on the left: the same split, named by a value that occurs in the node. -1 if
        the left is empty.
    left, right : int
        Tallies of both sides.
    left_h, right_h : float
        Sums over both sides; 0 if `is_whole`.
    """
    row, tally, h, _ = rows
    one = POSITION_DTYPE(1)  # a plain 1 is signed and would turn the sum into a float
    middle = POSITION_DTYPE(front)
    last_right = POSITION_DTYPE(back) - one  # where the next row on the right belongs
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        is_left = POSITION_DTYPE(codes[row[i]] <= cut)
        # `middle` or `last_right`: a branch that goes either way costs more than all else here.
        place = last_right ^ ((last_right ^ middle) * is_left)
        row[place] = row[i]
        tally[place] = tally[i]
        if not is_whole:
            h[place] = h[i]
        middle += is_left
        last_right -= one - is_left
    last_left = -1
    left = np.int64(0)
    left_h = 0.0
    for i in range(POSITION_DTYPE(front), middle):
        last_left = max(last_left, codes[row[i]])
        left += tally[i]
        if not is_whole:
            left_h += h[i]
    right = np.int64(0)
    right_h = 0.0
    for i in range(last_right + one, POSITION_DTYPE(back)):
        right += tally[i]
        if not is_whole:
            right_h += h[i]
    return np.int64(middle), last_left, left, right, left_h, right_h


@inner_kernel
def open_root(h, is_whole, rows):
    """Complete the root. Returns its tally, and sum of h, or 0 if `is_whole`.

    Its row numbers are always there, its tallies since `gradient.take_up`.
    """
    _, row_tally, row_h, _ = rows
    total = np.int64(0)
    for i in range(h.size):
        total += row_tally[i]
    sum_h = 0.0
    if not is_whole:
        for i in range(h.size):
            row_h[i] = h[i]
            sum_h += h[i]
    return total, sum_h


@inner_kernel
def gather_leaves(h, is_whole, leaf, first, num_leaves, rows):
    """Put the rows of the leaves first, first + 1, ... into one node behind the root, in order.

    Returns the node's start and stop, its tally, and its sum of h, or 0 if `is_whole`.
    """
    row, row_tally, row_h, _ = rows
    start = POSITION_DTYPE(leaf.size)
    stop = start
    end = np.uint32(num_leaves)
    for i in range(POSITION_DTYPE(leaf.size)):
        # Written in any case, and one comparison, below zero being very large: a branch that goes
        # either way costs more than a store.
        row[stop] = i
        stop += POSITION_DTYPE(np.uint32(leaf[i] - first) < end)
    total = np.int64(0)
    for k in range(start, stop):
        row_tally[k] = row_tally[row[k]]
        total += row_tally[k]
    sum_h = 0.0
    if not is_whole:
        for k in range(start, stop):
            row_h[k] = h[row[k]]
            sum_h += row_h[k]
    return np.int64(start), np.int64(stop), total, sum_h
