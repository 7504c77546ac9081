"""One sweep: each tree regrown in turn, given the others (floor 0: NumPy and Numba only).

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees", without its
draws of the noise variance and of the split weights, which belong to the model around the forest.
Residuals enter through the gradient: when f moves by t under a quadratic log-likelihood, g moves by
-h t.
"""

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, kernel
from pymc_xbart.kernels.evidence import tabulate_evidence
from pymc_xbart.kernels.grow import Workspace, draw_leaf_values, grow_from_root
from pymc_xbart.kernels.records import NO_COLUMN, Design, Forest, Prior, SweepInfo


def sweep(
    forest: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
) -> tuple[Forest, SweepInfo]:
    """Regrow every tree once, without Metropolis-Hastings correction.

    Parameters
    ----------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), int32
        Leaf of each row in each tree; overwritten with that of the new forest.
    g, h : ndarray of shape (n,)
        d log p / d f and -d^2 log p / d f^2 >= 0 at the current forest.
    design : Design
    prior : Prior
    work : Workspace
        Scratch; contents undefined after.
    rng : numpy.random.Generator
        The only source of chance.

    Returns
    -------
    forest : Forest
    info : SweepInfo
    """
    nodes, num_nodes, info = _sweep(forest, leaf_of_row, g.copy(), h, design, prior, work, rng)
    return Forest(nodes.tree_start, *(array[:num_nodes].copy() for array in nodes[1:])), info


@kernel
def _sweep(forest, leaf_of_row, g, h, design, prior, work, rng):
    """See `sweep`; g is overwritten, and only the first `num_nodes` nodes of the forest count."""
    num_trees = forest.tree_start.size - 1
    table = tabulate_evidence(prior.leaf_var, h, work.half_log, work.gain)
    new = empty_forest(num_trees, 2 * forest.column.size)
    info = SweepInfo(np.empty(num_trees, np.int32), np.empty(num_trees, np.int32))
    for tree in range(num_trees):
        leaf = leaf_of_row[tree]
        take_out(forest.value, forest.tree_start[tree], leaf, g, h)
        num_nodes = grow_from_root(g, h, design, prior, table, work, rng)
        draw_leaf_values(work.tree, num_nodes, prior.leaf_var, rng)
        record_leaves(work.tree, num_nodes, work.rows, leaf)
        put_in(work.tree.value, leaf, g, h)
        new = append_tree(new, tree, work.tree, num_nodes)
        describe(work.tree, num_nodes, tree, info)
    return new, new.tree_start[num_trees], info


@kernel
def take_out(value, tree_start, leaf, g, h):
    """Move g from the forest to the forest without one tree."""
    for i in range(g.size):
        g[i] += h[i] * value[tree_start + leaf[i]]


@kernel
def put_in(value, leaf, g, h):
    """Move g from the forest without one tree to the forest with its successor."""
    for i in range(g.size):
        g[i] -= h[i] * value[leaf[i]]


@kernel
def record_leaves(tree, num_nodes, rows, leaf):
    """Write each row's leaf to `leaf` (n,)."""
    row = rows.row
    for node in range(num_nodes):
        if tree.column[node] == NO_COLUMN:
            for i in range(POSITION_DTYPE(tree.start[node]), POSITION_DTYPE(tree.stop[node])):
                leaf[row[i]] = node


@kernel
def describe(tree, num_nodes, index, info):
    """Write what a reader may want to know of a tree to `info`."""
    depth = 0
    for node in range(num_nodes):
        depth = max(depth, tree.depth[node])
    info.num_leaves[index] = (num_nodes + 1) // 2
    info.depth[index] = depth


@kernel
def empty_forest(num_trees, capacity):
    """Forest with room for `capacity` nodes and no tree yet."""
    return Forest(
        np.zeros(num_trees + 1, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity),
    )


@kernel
def append_tree(forest, index, tree, num_nodes):
    """Write a tree behind tree `index - 1`. Returns the forest, in larger arrays if need be."""
    start = forest.tree_start[index]
    stop = start + num_nodes
    if stop > forest.column.size:
        larger = empty_forest(forest.tree_start.size - 1, 2 * stop)
        for i in range(index + 1):
            larger.tree_start[i] = forest.tree_start[i]
        copy_nodes(forest, larger, np.int64(0), start)
        forest = larger
    copy_nodes(tree, forest, start, num_nodes)
    forest.tree_start[index + 1] = stop
    return forest


@kernel
def copy_nodes(source, target, target_start, num_nodes):
    """Copy the first nodes of a tree or forest to a place in another forest."""
    for node in range(num_nodes):
        target.column[target_start + node] = source.column[node]
        target.cut[target_start + node] = source.cut[node]
        target.left[target_start + node] = source.left[node]
        target.value[target_start + node] = source.value[node]
