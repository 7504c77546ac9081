"""Leaf values of many trees, drawn jointly (floor 0: NumPy and Numba only).

A tree gets its leaf values given those of the others, so that trees hold each other in place. Given
the structure of all trees, a quadratic log-likelihood makes the leaf values of any of them jointly
Normal: with Z the (n, L) matrix of which row is in which of L leaves, h the curvature, v the
variance of a leaf value and b their values now,

    precision  Q = h Z'Z + I / v,    mean of the change  Q^-1 (Z'g - b / v)

Drawing from that law leaves the posterior as it is, and f moves further than one tree takes it. The
trees for it are drawn anew each time, as many as have `MAX_LEAVES` leaves: of some trees, given the
others, the same holds.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, returning_kernel
from pymc_xbart.kernels.evidence import sums_of_node
from pymc_xbart.kernels.gradient import take_up
from pymc_xbart.kernels.overlap import LOG_WORD, WORD_DTYPE, mark_rows, num_shared, num_words
from pymc_xbart.kernels.records import NO_CHILD
from pymc_xbart.kernels.tally import tally_of_leaf

# Of a joint draw. Counting the rows that leaves share takes time in proportion to the square, and
# factorising to the cube of their number: with 1 000 rows, 100 leaves take a twelfth of the time of
# updating `TREES_PER_BLOCK` trees, and twice as many, all that these have, a quarter.
MAX_LEAVES = 100
TREES_PER_BLOCK = 50
# Rows over which the rows that leaves share are counted at a time: sets of so many stay in a cache.
CHUNK_ROWS = 32_768
ROUNDING = 1e-10  # of the largest diagonal entry; what is left of a smaller one is not known


class Block(NamedTuple):
    """Trees whose leaf values are drawn jointly, and scratch for it."""

    tree: np.ndarray  # (num_trees,) int64, all trees in random order, those of the block first
    node: np.ndarray  # (max_leaves,) int64, leaves of the block, tree after tree
    value: np.ndarray  # (max_leaves,) float64
    stop: np.ndarray  # (num_trees,) int64, where in `node` the leaves of each tree end
    rows: np.ndarray  # (max_leaves, words) uint64, of each leaf in a chunk of the rows, as a set
    precision: np.ndarray  # (max_leaves, max_leaves) float64, upper triangle
    change: np.ndarray  # (max_leaves,) float64
    change_of_node: np.ndarray  # (2 * max_leaves,) float64, of one tree


@returning_kernel
def make_block(num_trees, chunk_rows, max_leaves):
    """Allocate room for joint draws of at most `max_leaves` leaf values."""
    return Block(
        np.arange(num_trees),
        np.empty(max_leaves, np.int64),
        np.empty(max_leaves),
        np.empty(num_trees, np.int64),
        np.empty((max_leaves, num_words(chunk_rows)), WORD_DTYPE),
        np.empty((max_leaves, max_leaves)),
        np.empty(max_leaves),
        np.empty(2 * max_leaves),
    )


@inner_kernel
def redraw_leaves(forest, leaf_of_row, g, curvature, blank, rows, crew, block, rng):
    """Draw the leaf values of some trees from their joint law given all else.

    The values in `forest` and g are overwritten; `rows` is scratch. All rows must have the same
    curvature.
    """
    num_trees = draw_block(forest, block, rng)
    if num_trees < 2:  # a single tree has been drawn given the others
        return
    num_leaves = block.stop[num_trees - 1]
    take_up(g, curvature, blank, rows, crew)
    add_up_leaves(leaf_of_row, num_trees, curvature, rows, block)
    add_up_shared(leaf_of_row, num_trees, curvature, block)
    precision = block.precision[:num_leaves, :num_leaves]
    change = block.change[:num_leaves]
    if not factorise(precision):  # which has nothing to do with the values there are
        return
    solve_transposed(precision, change)
    for k in range(num_leaves):
        change[k] += rng.standard_normal()
    solve(precision, change)
    apply_change(forest, leaf_of_row, g, num_trees, curvature.h, block)


@inner_kernel
def draw_block(forest, block, rng):
    """Draw trees until the block is full, and list their leaves. Returns how many there are.

    This looks at the trees' sizes only, which another draw of leaf values leaves as they are.
    """
    tree = block.tree
    num_leaves = np.int64(0)
    num_chosen = np.int64(0)
    for k in range(tree.size):
        other = k + np.int64(rng.random() * (tree.size - k))
        drawn = tree[other]
        start = forest.tree_start[drawn]
        num_nodes = forest.tree_start[drawn + 1] - start
        if num_leaves + (num_nodes + 1) // 2 > block.node.size:
            break
        tree[other] = tree[k]
        tree[k] = drawn
        for node in range(num_nodes):
            if forest.left[start + node] == NO_CHILD:
                block.node[num_leaves] = node
                block.value[num_leaves] = forest.value[start + node]
                num_leaves += 1
        block.stop[k] = num_leaves
        num_chosen += 1
    return num_chosen


@inner_kernel
def add_up_leaves(leaf_of_row, num_trees, curvature, rows, block):
    """Write Z'g - b / v to `block.change`, and h Z'Z + 1 / v to the diagonal."""
    first = np.int64(0)
    for k in range(num_trees):
        tree = block.tree[k]
        leaf = leaf_of_row[tree]
        for a in range(first, block.stop[k]):
            node = block.node[a]
            sum_g, sum_h = sums_of_node(tally_of_leaf(rows.tally, leaf, node), 0.0, rows, curvature)
            block.change[a] = sum_g - block.value[a] / curvature.leaf_var
            block.precision[a, a] = sum_h + 1.0 / curvature.leaf_var
        first = block.stop[k]


@inner_kernel
def add_up_shared(leaf_of_row, num_trees, curvature, block):
    """Write h Z'Z to the upper triangle, above the diagonal."""
    num_leaves = block.stop[num_trees - 1]
    for start in range(0, leaf_of_row.shape[1], block.rows.shape[1] << LOG_WORD):
        size = mark_leaves(leaf_of_row, num_trees, start, block)
        first = np.int64(0)
        for k in range(num_trees):
            stop = block.stop[k]
            for a in range(first, stop):
                for b in range(a + 1, stop):
                    block.precision[a, b] = 0.0
                rows = block.rows[a, :size]
                for b in range(stop, num_leaves):
                    so_far = block.precision[a, b] if start > 0 else 0.0
                    shared = num_shared(rows, block.rows[b, :size])
                    block.precision[a, b] = so_far + curvature.h * shared
            first = stop


@inner_kernel
def mark_leaves(leaf_of_row, num_trees, start, block):
    """Write the sets of rows of the chunk that begins at row `start`. Returns their words."""
    stop = min(start + (block.rows.shape[1] << LOG_WORD), leaf_of_row.shape[1])
    size = num_words(stop - start)
    first = np.int64(0)
    for k in range(num_trees):
        leaf = leaf_of_row[block.tree[k], start:stop]
        for a in range(first, block.stop[k]):
            mark_rows(leaf, block.node[a], block.rows[a, :size])
        first = block.stop[k]
    return size


@inner_kernel
def factorise(a):
    """Overwrite the upper triangle of a matrix by R, with R'R the matrix (Cholesky).

    Returns whether the matrix is positive definite, by more than rounding.
    """
    largest = 0.0
    for k in range(a.shape[0]):
        largest = max(largest, a[k, k])
    for k in range(a.shape[0]):
        if not a[k, k] > ROUNDING * largest:
            return False
        a[k, k] = np.sqrt(a[k, k])
        scale(a[k, k + 1 :], 1.0 / a[k, k])
        for i in range(k + 1, a.shape[0]):
            subtract(a[i, i:], a[k, i], a[k, i:])
    return True


@inner_kernel
def scale(x, factor):
    """Multiply a vector by a number."""
    for i in range(x.size):
        x[i] *= factor


@inner_kernel
def subtract(x, factor, y):
    """Take a multiple of one vector out of another."""
    for i in range(x.size):
        x[i] -= factor * y[i]


@inner_kernel
def solve_transposed(r, x):
    """Overwrite x by the solution of R'y = x, with R the upper triangle of `r`."""
    for k in range(x.size):
        x[k] /= r[k, k]
        subtract(x[k + 1 :], x[k], r[k, k + 1 :])


@inner_kernel
def solve(r, x):
    """Overwrite x by the solution of R y = x, with R the upper triangle of `r`."""
    for k in range(x.size - 1, -1, -1):
        total = x[k]
        for i in range(k + 1, x.size):
            total -= r[k, i] * x[i]
        x[k] = total / r[k, k]


@inner_kernel
def apply_change(forest, leaf_of_row, g, num_trees, h, block):
    """Add the changes to the leaf values, and move g with them."""
    first = np.int64(0)
    for k in range(num_trees):
        tree = block.tree[k]
        start = forest.tree_start[tree]
        for a in range(first, block.stop[k]):
            node = block.node[a]
            forest.value[start + node] += block.change[a]
            block.change_of_node[node] = h * block.change[a]
        leaf = leaf_of_row[tree]
        for i in range(g.size):
            g[i] -= block.change_of_node[leaf[i]]
        first = block.stop[k]
