"""Replace one tree of a forest, given the others (floor 0: NumPy and Numba only).

Uncorrected, the tree is grown from the root, as in He, Yalov & Hahn (2019). Corrected, the grown
tree T' is a Metropolis-Hastings proposal: with w of `grow`, it replaces the current tree T with
probability min(1, w(T') / w(T)), which leaves the posterior given the other trees as it is. Leaf
values are integrated out of this step, and drawn from their conditional after it, whichever tree
was kept; that is right as long as the log-likelihood is quadratic.
"""

import numpy as np

from pymc_xbart.kernels.decorator import POSITION_DTYPE, kernel
from pymc_xbart.kernels.grow import build_tree
from pymc_xbart.kernels.records import NO_COLUMN
from pymc_xbart.kernels.tree import draw_leaf_values


@kernel
def update_tree(forest, index, leaf, g, h, design, prior, table, choice, is_corrected, work, rng):
    """Draw a successor of tree `index` of the forest, with leaf values.

    Parameters
    ----------
    leaf : (n,) int32
        Leaf of each row in the tree; overwritten.
    g, h : (n,) float64
        Of the forest without the tree.
    is_corrected : bool
        Whether the new tree must pass a Metropolis-Hastings test. Needs `choice` to be all columns.

    Returns
    -------
    tree : (2 n,) NODE_DTYPE
        Part of `work`.
    num_nodes : int
    is_accepted : bool
    """
    start = forest.tree_start[index]
    num_nodes = np.int64(0)
    log_w = 0.0
    log_w_current = 0.0
    # The current tree goes first, along its own path; then one is grown. A loop, so that building
    # is compiled once.
    for is_given in (True, False):
        if is_given and not is_corrected:
            continue
        log_w_current = log_w
        tree = work.current if is_given else work.tree
        num_nodes, log_w = build_tree(
            forest,
            start,
            is_given,
            is_corrected and not is_given,
            tree,
            g,
            h,
            design,
            prior,
            table,
            choice,
            work,
            rng,
        )
    is_accepted = not is_corrected or np.log(rng.random()) < log_w - log_w_current
    tree = work.tree
    if is_accepted:
        record_leaves(tree, num_nodes, work.rows, leaf)
    else:
        tree = work.current
        num_nodes = forest.tree_start[index + 1] - start
    draw_leaf_values(tree, num_nodes, prior.leaf_var, rng)
    return tree, num_nodes, is_accepted


@kernel
def record_leaves(tree, num_nodes, rows, leaf):
    """Write each row's leaf to `leaf` (n,)."""
    row = rows.row
    for node in range(num_nodes):
        if tree[node]["column"] == NO_COLUMN:
            for i in range(POSITION_DTYPE(tree[node]["start"]), POSITION_DTYPE(tree[node]["stop"])):
                leaf[row[i]] = node
