"""Which leaf each row is in, in as few bytes as trees need (floor 0: NumPy and Numba only).

One number for each row and tree is the largest thing that a forest has: in four bytes, with 100
trees, as much as X in 50 columns. Two bytes are enough for nearly all data. (One is not: of the
first trees over a million rows, some have more than 256 nodes.) How many nodes a tree takes is
known when it has been grown, though, and a sweep overwrites the numbers that it starts from. So
where a tree has outgrown them, the sweep stops, is given wider numbers, and goes the same way again
from its start, by the same chances: draws do not depend on any of this.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.records import Forest
from pymc_xbart.kernels.route import route_codes

NARROW, WIDE = np.uint16, np.int32
BITS_PER_BYTE = 8


@inner_kernel
def has_room(leaf, num_nodes):
    """Whether the nodes of a tree have different numbers in `leaf`."""
    return num_nodes <= 1 << (BITS_PER_BYTE * leaf.itemsize)


def make_leaf_of_row(num_trees: int, num_rows: int) -> np.ndarray:
    """Leaf of each row in trees of one node, (num_trees, n)."""
    return np.zeros((num_trees, num_rows), NARROW)


def most_nodes(dtype: Any) -> int:
    """How many nodes of a tree have different numbers of that type."""
    return int(np.iinfo(dtype).max) + 1


def find_leaves(forest: Forest, codes: np.ndarray) -> np.ndarray:
    """Leaf of each row in each tree, (num_trees, n), as narrow as may be. See `route_codes`."""
    num_nodes = np.diff(forest.tree_start)
    return _find(forest, codes, NARROW if num_nodes.max() <= most_nodes(NARROW) else WIDE)


def _find(forest: Forest, codes: np.ndarray, dtype: Any) -> np.ndarray:
    leaf_of_row = np.empty((forest.tree_start.size - 1, codes.shape[1]), dtype)
    route_codes(forest, codes, leaf_of_row)
    return leaf_of_row


def put_leaf(leaf_of_row: np.ndarray, index: int, leaf: np.ndarray, num_nodes: int) -> np.ndarray:
    """Write the leaf of each row in one tree, (n,). Returns `leaf_of_row`, wider if need be."""
    if num_nodes > most_nodes(leaf_of_row.dtype):
        leaf_of_row = leaf_of_row.astype(WIDE, copy=False)
    leaf_of_row[index] = leaf
    return leaf_of_row


def run_with_room[Result](
    run: Callable[[np.ndarray], tuple[Result, bool]],
    forest: Forest,
    leaf_of_row: np.ndarray,
    codes: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Result, np.ndarray]:
    """Replace trees of a forest, in wider numbers if one of them outgrows those that there are.

    Parameters
    ----------
    run : callable
        Gets `leaf_of_row`, which it may overwrite, and returns some result, and whether there was
        room. Called a second time, it must do the same, as far as `rng` does.
    forest : Forest
        That `leaf_of_row` is of.
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
    codes : ndarray of shape (p, n), uint16
    rng : numpy.random.Generator

    Returns
    -------
    result : object
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        What `run` got.
    """
    before = rng.bit_generator.state
    result, had_room = run(leaf_of_row)
    if not had_room:
        rng.bit_generator.state = before
        leaf_of_row = _find(forest, codes, WIDE)
        result, _ = run(leaf_of_row)
    return result, leaf_of_row
