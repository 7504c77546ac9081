"""How many rows the leaves of different trees share (floor 0: NumPy and Numba only).

The rows of a leaf are a set, kept as one bit a row, so that counting what two leaves share takes
one instruction for 64 rows.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from pymc_xbart.kernels.decorator import inner_kernel

WORD_DTYPE = np.uint64
LOG_WORD = 6  # log2 of the bits in a word


def num_bits(word: Any) -> int:
    """How many bits are set in a word."""
    return int(word).bit_count()


@intrinsic
def _count_bits(_typing_context, _word):
    def generate(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(num_bits)
def _num_bits_of_compiled(word):  # noqa: ARG001
    return lambda word: _count_bits(word)


@inner_kernel
def num_words(num_rows):
    """Length of a set of rows."""
    return ((num_rows - 1) >> LOG_WORD) + 1


@inner_kernel
def mark_rows(leaf, node, words):
    """Write the set of rows in one leaf to `words`, with `leaf` (n,) that of each row."""
    size = 1 << LOG_WORD
    for k in range(words.size):
        word = WORD_DTYPE(0)
        in_word = leaf[k * size : (k + 1) * size]
        for i in range(in_word.size):
            word |= WORD_DTYPE(in_word[i] == node) << WORD_DTYPE(i)
        words[k] = word


@inner_kernel
def num_shared(one, other):
    """Size of the intersection of two sets of rows, (words,) each."""
    total = np.int64(0)
    for k in range(one.size):
        total += num_bits(one[k] & other[k])
    return total
