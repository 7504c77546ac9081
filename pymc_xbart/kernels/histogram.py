"""Tallies over neighbouring codes, by column and node (floor 0: NumPy and Numba only).

Bucket b holds the rows with (code >> shift) == base + b. The shift is the smallest that spreads the
node's own range of codes over the buckets at hand, so that resolution follows the rows down the
tree and does not depend on the way there. A node whose codes range over no more than there are
buckets has one for each.

Four shortcuts. A node's range of codes is first taken to be its parent's, and rows are looked at a
second time only if the node fills no more than half of its buckets; the outermost that hold rows
then tell the range well enough, almost always. Where a large node splits, only its smaller child is
added up row by row: what that child takes out of the parent's sums leaves those of the larger
child. In a node with fewer rows than buckets, only those that hold rows are read (see `sparse`).
And rows are read once for two columns, whose buckets do not wait for each other.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel, separate_kernel
from pymc_xbart.kernels.ordered import MAX_ORDERED
from pymc_xbart.kernels.sparse import add_marked, gather_marked

# How finely candidate cuts can be placed between two neighbours. To list the cuts, all buckets of
# all columns are read: with twice as many, trees take a fifth more time and predict as well; with
# half as many they predict worse.
BUCKETS_PER_CUT = 4
MIN_BUCKETS = 512
MAX_STORE_BYTES = 2**28  # for sums kept for larger children; beyond it they are added up anew


class Buckets(NamedTuple):
    """Sums of one column in one node, or of all columns in several nodes."""

    tally: np.ndarray  # (..., num_buckets) int64
    h: np.ndarray  # (..., num_buckets) float64, undefined where tallies tell it


def num_buckets(num_cutpoints: int) -> int:
    """Power of two that holds `BUCKETS_PER_CUT` buckets for each candidate cut."""
    return max(MIN_BUCKETS, 1 << (BUCKETS_PER_CUT * num_cutpoints - 1).bit_length())


def num_told_apart(num_rows: int, num_cutpoints: int) -> int:
    """How many codes of a column a node tells apart: where there are more, neighbours are one.

    Rows that are few enough to be taken in order (see `ordered`) are told apart in any case.
    """
    size = num_buckets(num_cutpoints)
    return max(size, MAX_ORDERED) if num_rows <= MAX_ORDERED else size


def make_buckets(*shape: int) -> Buckets:
    """Allocate buckets; their contents are undefined."""
    return Buckets(np.empty(shape, np.int64), np.empty(shape))


def num_stored(num_rows: int, num_columns: int, size: int) -> int:
    """How many nodes may keep their sums at a time, as far as memory allows.

    The root keeps its sums for as long as they are valid. Any other node leaves its place to its
    larger child, and meanwhile the smaller one, which has at most half as many rows, may need
    another; nodes with fewer rows than buckets need none.
    """
    if num_rows <= MAX_ORDERED:
        return 0
    bytes_per_node = num_columns * size * 16
    return min((num_rows // size).bit_length() + 1, MAX_STORE_BYTES // bytes_per_node)


@inner_kernel
def bucket_shift(lo, hi, size):
    """Smallest shift that maps the codes lo..hi to at most `size` buckets."""
    shift = 0
    while (hi >> shift) - (lo >> shift) >= size:
        shift += 1
    return shift


@inner_kernel
def lay_buckets(code_range, size):
    """Spread a range of codes over at most `size` buckets. Returns (base, shift, last bucket)."""
    shift = bucket_shift(code_range[0], code_range[1], size)
    base = code_range[0] >> shift
    return base, shift, (code_range[1] >> shift) - base


@separate_kernel
def add_two_columns(
    codes, other_codes, rows, start, stop, code_range, other_range, is_whole, may_be_sparse, own
):
    """Begin `sum_column` for two columns in the node `rows[start:stop]`, as far as rows are added.

    Parameters
    ----------
    codes, other_codes : (n,) uint16
    code_range, other_range : (2,) int32
    is_whole, may_be_sparse : bool
        As for `sum_column`.
    own : pair of Buckets of shape (num_buckets,)
        Overwritten, and then ready.

    Returns
    -------
    bool
        False if there is nothing to begin with, since one of them is to be summed sparsely.
    """
    first, second = own
    size = first.tally.size
    base, shift, last = lay_buckets(code_range, size)
    other_base, other_shift, other_last = lay_buckets(other_range, size)
    if may_be_sparse and max(last, other_last) > stop - start:
        return False
    _clear(first, last, is_whole)
    _clear(second, other_last, is_whole)
    # No other node than the root starts there (see `partition`).
    if is_whole and start == 0 and base == 0 and other_base == 0:
        _add_all_rows_twice(codes, other_codes, rows.tally, shift, other_shift, own)
        return True
    _add_rows_twice(
        codes,
        other_codes,
        rows,
        start,
        stop,
        base,
        shift,
        other_base,
        other_shift,
        is_whole,
        own,
    )
    return True


@inner_kernel
def sum_column(
    codes,
    rows,
    start,
    stop,
    code_range,
    is_whole,
    is_ready,
    own,
    has_sibling,
    parent,
    sibling,
    may_be_sparse,
    sparse,
):
    """Bring the sums of one column in the node `rows[start:stop]` into `own`.

    Parameters
    ----------
    codes : (n,) uint16
        The column.
    code_range : (2,) int32
        Codes between which the node lies, as known; narrowed in place if buckets were too wide.
        If `is_ready` or `has_sibling`, the parent's as it is.
    is_ready : bool
        `own` already holds the sums.
    own : Buckets of shape (num_buckets,)
        Overwritten, unless ready.
    has_sibling : bool
        The sums of the larger sibling are to be written, too.
    parent : Buckets of shape (num_buckets,)
        The parent's sums, if so.
    sibling : Buckets of shape (num_buckets,)
        Overwritten, if so; may be the same as `parent`.
    may_be_sparse : bool
        Nobody else needs the sums in their buckets.
    sparse : Sparse

    Returns
    -------
    base, shift : int
    first, last : int
        Of the sums in `own`, the outermost that hold rows.
    is_sparse : bool
        Sum k is of bucket `sparse.position[k]`, and not of bucket k.
    """
    size = own.tally.size
    # Once or twice more at most, with a narrower range of codes. A loop, so that adding up is
    # compiled once.
    is_narrowed = False
    while True:
        base, shift, last = lay_buckets(code_range, size)
        is_sparse = may_be_sparse and last > stop - start
        if is_sparse:
            add_marked(codes, rows, start, stop, base, shift, is_whole, sparse)
            first = np.int64(0)
            last = gather_marked(sparse, last, is_whole, own) - 1
            leftmost, rightmost = np.int64(sparse.position[0]), np.int64(sparse.position[last])
        else:
            if is_narrowed or not is_ready:
                _clear(own, last, is_whole)
                _add_rows(codes, rows, start, stop, base, shift, is_whole, own)
            if has_sibling and not is_narrowed:
                _subtract(parent, own, sibling, last, is_whole)
            first, last = _occupied(own.tally, last)
            leftmost, rightmost = first, last
        # A node that fills more than half of its buckets would need more than there are under the
        # next smaller shift.
        if shift == 0 or rightmost - leftmost > size // 2:
            break
        lo = max(np.int64(code_range[0]), (base + leftmost) << shift)
        hi = min(np.int64(code_range[1]), ((base + rightmost + 1) << shift) - 1)
        if bucket_shift(lo, hi, size) == shift:  # only the rows can tell
            lo, hi = _extremes(codes, rows, start, stop)
            if bucket_shift(lo, hi, size) == shift:
                break
        code_range[0] = lo
        code_range[1] = hi
        is_narrowed = True
    return base, shift, first, last, is_sparse


@inner_kernel
def _clear(buckets, last, is_whole):
    """Set the buckets up to `last` to zero."""
    tally, sum_h = buckets
    for b in range(last + 1):
        tally[b] = 0
    if not is_whole:
        for b in range(last + 1):
            sum_h[b] = 0.0


@inner_kernel
def _subtract(parent, own, sibling, last, is_whole):
    """Write what is left of the parent's sums without the node's to `sibling`."""
    parent_tally, parent_h = parent
    own_tally, own_h = own
    tally, sum_h = sibling
    for b in range(last + 1):
        tally[b] = parent_tally[b] - own_tally[b]
    if not is_whole:
        for b in range(last + 1):
            sum_h[b] = parent_h[b] - own_h[b]


@inner_kernel
def _add_rows(codes, rows, start, stop, base, shift, is_whole, buckets):
    """Add tally and h of each row to the bucket of its code."""
    row, tally, h, _ = rows
    sum_tally, sum_h = buckets
    base = POSITION_DTYPE(base)
    shift = POSITION_DTYPE(shift)
    if is_whole:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            b = (POSITION_DTYPE(codes[row[i]]) >> shift) - base
            sum_tally[b] += tally[i]
    else:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            b = (POSITION_DTYPE(codes[row[i]]) >> shift) - base
            sum_tally[b] += tally[i]
            sum_h[b] += h[i]


@inner_kernel
def _add_rows_twice(
    codes, other_codes, rows, start, stop, base, shift, other_base, other_shift, is_whole, own
):
    """`_add_rows` for two columns."""
    row, tally, h, _ = rows
    (sum_tally, sum_h), (other_tally, other_h) = own
    base = POSITION_DTYPE(base)
    shift = POSITION_DTYPE(shift)
    other_base = POSITION_DTYPE(other_base)
    other_shift = POSITION_DTYPE(other_shift)
    if is_whole:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            own_row, own_tally = row[i], tally[i]
            b = (POSITION_DTYPE(codes[own_row]) >> shift) - base
            c = (POSITION_DTYPE(other_codes[own_row]) >> other_shift) - other_base
            sum_tally[b] += own_tally
            other_tally[c] += own_tally
    else:
        for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
            own_row, own_tally, own_h = row[i], tally[i], h[i]
            b = (POSITION_DTYPE(codes[own_row]) >> shift) - base
            c = (POSITION_DTYPE(other_codes[own_row]) >> other_shift) - other_base
            sum_tally[b] += own_tally
            sum_h[b] += own_h
            other_tally[c] += own_tally
            other_h[c] += own_h


@inner_kernel
def _add_all_rows_twice(codes, other_codes, tally, shift, other_shift, own):
    """`_add_rows_twice` for all rows, in order: their numbers need not be read."""
    (sum_tally, _), (other_tally, _) = own
    shift = POSITION_DTYPE(shift)
    other_shift = POSITION_DTYPE(other_shift)
    for i in range(POSITION_DTYPE(codes.size)):
        own_tally = tally[i]
        sum_tally[POSITION_DTYPE(codes[i]) >> shift] += own_tally
        other_tally[POSITION_DTYPE(other_codes[i]) >> other_shift] += own_tally


@inner_kernel
def _occupied(tally, last):
    """First and last bucket up to `last` that hold rows."""
    first = np.int64(0)
    while tally[first] == 0:  # a tally of no rows
        first += 1
    while tally[last] == 0:
        last -= 1
    return first, last


@inner_kernel
def _extremes(codes, rows, start, stop):
    """Smallest and largest code in the node."""
    row = rows.row
    lo = np.int64(codes[row[start]])
    hi = lo
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        code = np.int64(codes[row[i]])
        lo = min(lo, code)
        hi = max(hi, code)
    return lo, hi
