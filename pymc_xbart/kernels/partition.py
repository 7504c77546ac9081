"""Split the rows of a node in two, in place (floor 0: NumPy and Numba only).

        start                 stop                    start      middle      stop
    rows  |  L R R L L R L R  |        becomes    rows  |  L L L L  |  R R R R  |

Both sides keep their order, so rows stay sorted by row number and later reads of columns run
forward in memory.
"""

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel


@inner_kernel
def partition_rows(codes, cut, rows, start, stop, spare):
    """Move the rows with code <= cut to the front of `rows[start:stop]`.

    Parameters
    ----------
    codes : (n,) uint16
        The column.
    cut : int
        A code.
    rows : NodeRows
        Reordered in place between start and stop.
    spare : NodeRows
        Scratch of the same size.

    Returns
    -------
    middle : int
        First row of the right side.
    last_left : int
        Largest code on the left: the same split, named by a value that occurs in the node. -1 if
        the left is empty.
    left_g, left_h, right_g, right_h : float
        Sums over each side.
    """
    row, g, h = rows
    spare_row, spare_g, spare_h = spare
    middle = POSITION_DTYPE(start)
    num_right = POSITION_DTYPE(0)
    one = POSITION_DTYPE(1)  # a plain 1 is signed and would turn the sum into a float
    last_left = -1
    left_g = 0.0
    left_h = 0.0
    right_g = 0.0
    right_h = 0.0
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        code = codes[row[i]]
        if code <= cut:
            last_left = max(last_left, code)
            left_g += g[i]
            left_h += h[i]
            row[middle] = row[i]
            g[middle] = g[i]
            h[middle] = h[i]
            middle += one
        else:
            right_g += g[i]
            right_h += h[i]
            spare_row[num_right] = row[i]
            spare_g[num_right] = g[i]
            spare_h[num_right] = h[i]
            num_right += one
    for i in range(num_right):
        row[middle + i] = spare_row[i]
        g[middle + i] = spare_g[i]
        h[middle + i] = spare_h[i]
    return np.int64(middle), last_left, left_g, left_h, right_g, right_h


@inner_kernel
def gather_rows(g, h, rows):
    """Put all rows into one node, in order: `rows` is overwritten. Returns the sums of g and h."""
    sum_g = 0.0
    sum_h = 0.0
    row, row_g, row_h = rows
    for i in range(g.size):
        row[i] = i
        row_g[i] = g[i]
        row_h[i] = h[i]
        sum_g += g[i]
        sum_h += h[i]
    return sum_g, sum_h


@inner_kernel
def gather_leaves(g, h, leaf, first, num_leaves, rows):
    """Put the rows of the leaves first, first + 1, ... into one node, in order.

    Returns how many there are, and their sums of g and h.
    """
    sum_g = 0.0
    sum_h = 0.0
    row, row_g, row_h = rows
    size = POSITION_DTYPE(0)
    for i in range(g.size):
        # Written in any case: a branch that goes either way costs more than three stores.
        row[size] = i
        row_g[size] = g[i]
        row_h[size] = h[i]
        is_in = first <= leaf[i] < first + num_leaves
        size += POSITION_DTYPE(is_in)
        sum_g += g[i] if is_in else 0.0
        sum_h += h[i] if is_in else 0.0
    return np.int64(size), sum_g, sum_h
