"""Forests as text (floor 1): how draws outlive the process.

A stored forest is a line of ASCII: ``xbart2:``, then in Base64 what zlib makes of the bytes below.
All numbers are little-endian. Trees stand one after another, each level by level, so that one bit a
node says all about their shapes (see `kernels.order`).

========================  ========================  ==================================
field                     type                      meaning
========================  ========================  ==================================
num_rows                  uint32                    rows of X
num_columns               uint32                    its columns
columns_digest            uint32                    CRC-32 of the columns' names; 0 without names
rows_digest               uint32                    CRC-32 of X, (n, p) float64, row by row
is_categorical            1 bit a column, padded    whether its values are categories
has_missing               1 bit a column, padded    whether some of them were missing
num_batch_dims            uint32                    0, or 1 for a variable of shape (k, n), ...
batch                     uint32 a dim              k, ...
then for each forest
mu                        float64                   what is added to the sum of the trees
num_trees                 uint32
num_splits                uint32                    there are num_trees + num_splits leaves
is_split                  1 bit a node, padded      first node in the highest bit
column                    uint8, 16 or 32 a split   the smallest type that can name every column
view                      uint8 a split             what of the column is compared, see `views`
cut                       float64 a split           rows where that is <= cut go left
value                     float64 a leaf
rows                      uint8, 16 or 32 a leaf    rows of X in it; the smallest type that holds n
========================  ========================  ==================================

That is 10 bytes a node, or 11 beyond 65 535 rows, before compression. A change of the format gets
another number behind ``xbart``, and what has been written stays readable. ``xbart1`` has neither
these bits nor `view`: all columns hold numbers, none of them missing; new ones that are go left.
"""

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.kernels import Forest
from pymc_xbart.kernels.order import children_in_level_order, level_order, tree_starts

PREFIX = "xbart2:"
OLD_PREFIX = "xbart1:"
_HEAD = struct.Struct("<IIIII")
_LENGTH = np.dtype("<u4")
_FOREST_HEAD = struct.Struct("<dII")
# Leaf values hardly shrink, whatever the effort.
_LEVEL = 1


class StoredForest(NamedTuple):
    """A forest that no longer needs the rows it was grown on."""

    mu: float
    # Its columns are those of X; its field `cut` is 0: codes have no meaning without those rows.
    forest: Forest
    view: NDArray[np.int32]  # (nodes,), number of the view that a split looks at; 0 at leaves
    cut_value: NDArray[np.float64]  # (nodes,), in the units of that view; NaN at leaves
    rows: NDArray[np.int64]  # (nodes,), how many of those rows are in each leaf; 0 at splits


class StoredDraw(NamedTuple):
    """One draw of a forest variable."""

    num_rows: int
    columns_digest: int
    rows_digest: int
    is_categorical: NDArray[np.bool_]  # (p,)
    has_missing: NDArray[np.bool_]  # (p,)
    batch: tuple[int, ...]  # () for one forest, (k,) for a variable of shape (k, n)
    forests: list[StoredForest]  # in C order

    @property
    def num_columns(self) -> int:
        """Columns of X."""
        return self.is_categorical.size

    @property
    def categorical(self) -> list[int]:
        """Those that hold categories."""
        return np.flatnonzero(self.is_categorical).tolist()


def write_draw(draw: StoredDraw) -> str:
    """Turn one draw into text."""
    digests = draw.columns_digest, draw.rows_digest
    parts = [
        _HEAD.pack(draw.num_rows, draw.num_columns, *digests, len(draw.batch)),
        np.array(draw.batch, _LENGTH).tobytes(),
        np.packbits(draw.is_categorical).tobytes(),
        np.packbits(draw.has_missing).tobytes(),
    ]
    for stored in draw.forests:
        parts += _forest_to_bytes(stored, _dtypes(draw.num_rows, draw.num_columns))
    return PREFIX + base64.b64encode(zlib.compress(b"".join(parts), _LEVEL)).decode("ascii")


def read_draw(text: str) -> StoredDraw:
    """Read what `write_draw` has written.

    Raises
    ------
    ValueError
        If it is anything else, or has been cut short.
    """
    is_old = text.startswith(OLD_PREFIX)
    if not (is_old or text.startswith(PREFIX)):
        start = text[: len(PREFIX)]
        if start.startswith("xbart"):
            msg = (
                f"These trees are stored in the format {start.partition(':')[0]!r}, which this "
                f"version of pymc_xbart doesn't know; it reads {OLD_PREFIX[:-1]!r} and "
                f"{PREFIX[:-1]!r}. Update pymc_xbart."
            )
        elif not text:
            msg = "A draw holds no trees: it is one of the tuning, or of a run that was stopped."
        else:
            msg = f"A draw holds {start!r}... where the text of stored trees should begin."
        raise ValueError(msg)
    try:
        data = zlib.decompress(base64.b64decode(text[len(PREFIX) :], validate=True))
        num_rows, num_columns, names_digest, rows_digest, num_dims = _HEAD.unpack_from(data)
        batch = tuple(np.frombuffer(data, _LENGTH, num_dims, _HEAD.size).tolist())
        position = _HEAD.size + num_dims * _LENGTH.itemsize
        column_bits = np.zeros((2, num_columns), np.bool_)
        if not is_old:
            shape = 2, -(-num_columns // 8)
            packed = np.frombuffer(data, np.uint8, math.prod(shape), position)
            bits = np.unpackbits(packed.reshape(shape), axis=1, count=num_columns)
            column_bits = bits.astype(np.bool_)
            position += packed.size
        forests = []
        dtypes = _dtypes(num_rows, num_columns)
        for _ in range(math.prod(batch)):
            stored, position = _forest_from_bytes(data, position, dtypes, has_views=not is_old)
            forests.append(stored)
    except (ValueError, zlib.error, struct.error) as error:
        msg = "The text of stored trees is damaged: it may have been cut short."
        raise ValueError(msg) from error
    is_categorical, has_missing = column_bits
    digests = names_digest, rows_digest
    return StoredDraw(num_rows, *digests, is_categorical, has_missing, batch, forests)


def digest_of(names: Sequence[str] | None) -> int:
    """Number that tells apart lists of column names, 0 without any."""
    if names is None:
        return 0
    return max(zlib.crc32("\0".join(names).encode()), 1)


def digest_of_rows(X: NDArray[np.float64]) -> int:
    """Number that tells apart matrices (n, p)."""
    return zlib.crc32(np.ascontiguousarray(X, "<f8").data)


class _Dtypes(NamedTuple):
    """Types whose size depends on X."""

    column: np.dtype[Any]
    rows: np.dtype[Any]


def _dtypes(num_rows: int, num_columns: int) -> _Dtypes:
    largest = max(num_columns - 1, 0), num_rows
    return _Dtypes(*(np.min_scalar_type(number).newbyteorder("<") for number in largest))


def _forest_to_bytes(stored: StoredForest, dtypes: _Dtypes) -> list[bytes]:
    forest = stored.forest
    order = level_order(forest)
    is_split = forest.left[order] >= 0
    splits, leaves = order[is_split], order[~is_split]
    return [
        _FOREST_HEAD.pack(stored.mu, forest.tree_start.size - 1, splits.size),
        np.packbits(is_split).tobytes(),
        forest.column[splits].astype(dtypes.column).tobytes(),
        stored.view[splits].astype(np.uint8).tobytes(),
        stored.cut_value[splits].astype("<f8").tobytes(),
        forest.value[leaves].astype("<f8").tobytes(),
        stored.rows[leaves].astype(dtypes.rows).tobytes(),
    ]


def _forest_from_bytes(
    data: bytes, position: int, dtypes: _Dtypes, *, has_views: bool
) -> tuple[StoredForest, int]:
    """Read one forest; returns it with the position behind it."""

    def take(dtype: np.dtype[Any] | str, count: int) -> NDArray[Any]:
        nonlocal position
        array = np.frombuffer(data, dtype, count, position)
        position += array.nbytes
        return array

    mu, num_trees, num_splits = _FOREST_HEAD.unpack_from(data, position)
    position += _FOREST_HEAD.size
    num_nodes = num_trees + 2 * num_splits
    is_split = np.unpackbits(take("u1", -(-num_nodes // 8)), count=num_nodes).astype(bool)
    column = np.full(num_nodes, -1, np.int32)
    view = np.zeros(num_nodes, np.int32)
    cut_value = np.full(num_nodes, np.nan)
    value = np.zeros(num_nodes)
    rows = np.zeros(num_nodes, np.int64)
    column[is_split] = take(dtypes.column, num_splits)
    if has_views:
        view[is_split] = take("u1", num_splits)
    cut_value[is_split] = take("<f8", num_splits)
    value[~is_split] = take("<f8", num_nodes - num_splits)
    rows[~is_split] = take(dtypes.rows, num_nodes - num_splits)
    tree_start = tree_starts(is_split, num_trees)
    left = children_in_level_order(is_split, tree_start)
    forest = Forest(tree_start, column, np.zeros(num_nodes, np.int32), left, value)
    return StoredForest(mu, forest, view, cut_value, rows), position
