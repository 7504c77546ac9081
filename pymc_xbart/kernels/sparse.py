"""Sums of a node whose rows are fewer than its buckets (floor 0: NumPy and Numba only).

Clearing and reading a thousand buckets for a hundred rows would take most of the time of growing a
tree on a small data set. Here only buckets that hold rows are touched: each row leaves a mark, a
bit for its bucket, and what is marked is gathered in increasing order and set back to zero.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.cgutils import true_bit
from numba.extending import intrinsic, overload

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel

WORD_DTYPE = np.uint64
LOG_WORD = 6  # log2 of the bits in a word


class Sparse(NamedTuple):
    """Buckets between two uses, all zero; and where the buckets that were gathered last lie."""

    tally: np.ndarray  # (num_buckets,) int64
    h: np.ndarray  # (num_buckets,) float64
    marks: np.ndarray  # (num_buckets / 64,) uint64
    position: np.ndarray  # (num_buckets,) int32, bucket of each sum, in increasing order
    everywhere: np.ndarray  # (num_buckets,) int32, 0, 1, 2, ...: the same where all are read


def make_sparse(size: int) -> Sparse:
    """Allocate for a number of buckets that 64 divides."""
    return Sparse(
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size >> LOG_WORD, WORD_DTYPE),
        np.empty(size, np.int32),
        np.arange(size, dtype=np.int32),
    )


def lowest_bit(word: Any) -> int:
    """Position of the lowest bit that is set in a word other than 0."""
    number = int(word)
    return (number & -number).bit_length() - 1


# Numba calls these two by its own signatures. A processor has an instruction for it.
@intrinsic
def _count_trailing_zeros(_typing_context, _word):
    def generate(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], true_bit)  # true: the word is never zero

    return types.int64(types.uint64), generate


@overload(lowest_bit)
def _lowest_bit_of_compiled(word):  # noqa: ARG001
    return lambda word: _count_trailing_zeros(word)


@inner_kernel
def add_marked(codes, rows, start, stop, base, shift, is_whole, sparse):
    """Add tally and h of each row to the bucket of its code, and mark the bucket."""
    row, tally, h, _ = rows
    sum_tally, sum_h, marks, _, _ = sparse
    base = POSITION_DTYPE(base)
    shift = POSITION_DTYPE(shift)
    log_word = POSITION_DTYPE(LOG_WORD)
    in_word = POSITION_DTYPE((1 << LOG_WORD) - 1)
    one = WORD_DTYPE(1)
    if is_whole:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            b = (POSITION_DTYPE(codes[row[i]]) >> shift) - base
            sum_tally[b] += tally[i]
            marks[b >> log_word] |= one << (b & in_word)
    else:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            b = (POSITION_DTYPE(codes[row[i]]) >> shift) - base
            sum_tally[b] += tally[i]
            sum_h[b] += h[i]
            marks[b >> log_word] |= one << (b & in_word)


@inner_kernel
def gather_marked(sparse, last, is_whole, own):
    """Move the sums of marked buckets up to `last` to the front of `own`. Returns their number."""
    tally, sum_h, marks, position, _ = sparse
    own_tally, own_h = own
    one = WORD_DTYPE(1)
    none = WORD_DTYPE(0)
    size = np.int64(0)
    for k in range((last >> LOG_WORD) + 1):
        word = marks[k]
        marks[k] = none
        while word != none:
            b = (k << LOG_WORD) + lowest_bit(word)
            word &= word - one  # without its lowest bit
            position[size] = b
            own_tally[size] = tally[b]
            tally[b] = 0
            if not is_whole:
                own_h[size] = sum_h[b]
                sum_h[b] = 0.0
            size += 1
    return size
