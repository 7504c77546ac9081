"""Split the rows of a node in two, in place (floor 0: NumPy and Numba only).

        start                 stop                    start      middle      stop
    rows  |  L R R L L R L R  |        becomes    rows  |  L L L L  |  R R R R  |

Both sides keep their order, so rows stay sorted by row number and later reads of columns run
forward in memory. Several threads can do it in two steps, see `chunks`.
"""

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel


@inner_kernel
def partition_rows(codes, cut, rows, start, stop, is_tabulated, spare):
    """Move the rows with code <= cut to the front of `rows[start:stop]`.

    Parameters
    ----------
    codes : (n,) uint16
        The column.
    cut : int
        A code.
    rows : NodeRows
        Reordered in place between start and stop.
    is_tabulated : bool
        Whether evidence is, so that h need not be moved, or summed.
    spare : NodeRows
        Scratch of the same size.

    Returns
    -------
    middle : int
        First row of the right side.
    last_left : int
        Largest code on the left: the same split, named by a value that occurs in the node. -1 if
        the left is empty.
    left, right : int
        Tallies of both sides.
    left_h, right_h : float
        Sums over both sides; 0 where evidence is tabulated.
    """
    row, tally, h, _ = rows
    spare_row, spare_tally, spare_h, _ = spare
    middle = POSITION_DTYPE(start)
    num_right = POSITION_DTYPE(0)
    one = POSITION_DTYPE(1)  # a plain 1 is signed and would turn the sum into a float
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        # Written to both sides: a branch that goes either way costs more than a few stores.
        is_left = POSITION_DTYPE(codes[row[i]] <= cut)
        spare_row[num_right] = row[i]
        spare_tally[num_right] = tally[i]
        row[middle] = row[i]
        tally[middle] = tally[i]
        if not is_tabulated:
            spare_h[num_right] = h[i]
            h[middle] = h[i]
        middle += is_left
        num_right += one - is_left
    last_left = -1
    left = np.int64(0)
    left_h = 0.0
    for i in range(POSITION_DTYPE(start), middle):
        last_left = max(last_left, codes[row[i]])
        left += tally[i]
        if not is_tabulated:
            left_h += h[i]
    right = np.int64(0)
    right_h = 0.0
    for i in range(num_right):
        row[middle + i] = spare_row[i]
        tally[middle + i] = spare_tally[i]
        right += spare_tally[i]
        if not is_tabulated:
            h[middle + i] = spare_h[i]
            right_h += spare_h[i]
    return np.int64(middle), last_left, left, right, left_h, right_h


@inner_kernel
def partition_chunk(codes, cut, rows, start, stop, spare):
    """Write the rows of a chunk to `spare[start:stop]`, either side from one end on.

    The left side begins at the front; the right one at the back, so that its order is reversed.
    Parameters, and what is returned, are those of `partition_rows` where evidence is tabulated.
    """
    row, tally, _, _ = rows
    spare_row, spare_tally, _, _ = spare
    middle = POSITION_DTYPE(start)
    back = POSITION_DTYPE(stop)
    one = POSITION_DTYPE(1)
    last_left = np.int64(-1)
    left = np.int64(0)
    total = np.int64(0)
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        code = np.int64(codes[row[i]])
        is_left = code <= cut
        # Written to both ends, as above to both sides; for the last row these are one place.
        spare_row[middle] = row[i]
        spare_tally[middle] = tally[i]
        spare_row[back - one] = row[i]
        spare_tally[back - one] = tally[i]
        last_left = max(last_left, code if is_left else np.int64(-1))
        left += tally[i] if is_left else 0
        total += tally[i]
        middle += POSITION_DTYPE(is_left)
        back -= POSITION_DTYPE(not is_left)
    return np.int64(middle), last_left, left, total - left


@inner_kernel
def put_chunk(spare, start, middle, stop, rows, left_start, right_start):
    """Copy a chunk that `partition_chunk` has written to where its two sides belong."""
    row, tally, _, _ = rows
    spare_row, spare_tally, _, _ = spare
    front = POSITION_DTYPE(start)
    target = POSITION_DTYPE(left_start)
    for i in range(POSITION_DTYPE(middle - start)):
        row[target + i] = spare_row[front + i]
        tally[target + i] = spare_tally[front + i]
    back = POSITION_DTYPE(stop - 1)
    target = POSITION_DTYPE(right_start)
    for i in range(POSITION_DTYPE(stop - middle)):
        row[target + i] = spare_row[back - i]
        tally[target + i] = spare_tally[back - i]


@inner_kernel
def gather_rows(tally, h, is_tabulated, rows):
    """Put all rows into one node, in order: `rows` is overwritten. Returns their tally, and sum h.

    The sum of h is 0 where evidence is tabulated.
    """
    row, row_tally, row_h, _ = rows
    total = np.int64(0)
    for i in range(tally.size):
        row[i] = i
        row_tally[i] = tally[i]
        total += tally[i]
    sum_h = 0.0
    if not is_tabulated:
        for i in range(h.size):
            row_h[i] = h[i]
            sum_h += h[i]
    return total, sum_h


@inner_kernel
def gather_leaves(tally, h, is_tabulated, leaf, first, num_leaves, rows):
    """Put the rows of the leaves first, first + 1, ... into one node, in order.

    Returns how many there are, their tally, and their sum of h, or 0 where evidence is tabulated.
    """
    row, row_tally, row_h, _ = rows
    size = POSITION_DTYPE(0)
    end = np.uint32(num_leaves)
    for i in range(POSITION_DTYPE(tally.size)):
        # Written in any case, and one comparison, below zero being very large: a branch that goes
        # either way costs more than a store.
        row[size] = i
        size += POSITION_DTYPE(np.uint32(leaf[i] - first) < end)
    total = np.int64(0)
    for k in range(size):
        row_tally[k] = tally[row[k]]
        total += row_tally[k]
    sum_h = 0.0
    if not is_tabulated:
        for k in range(size):
            row_h[k] = h[row[k]]
            sum_h += row_h[k]
    return np.int64(size), total, sum_h
