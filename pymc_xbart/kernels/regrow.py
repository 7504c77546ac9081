"""Regrow one tree of a forest, given the others (floor 0: NumPy and Numba only).

Uncorrected, the tree is grown from the root, as in He, Yalov & Hahn (2019). Corrected, the grown
tree T' is a Metropolis-Hastings proposal: with w of `grow`, it replaces the current tree T with
probability min(1, w(T') / w(T)), which leaves the posterior given the other trees as it is. Leaf
values are integrated out of this step, and drawn from their conditional after it, whichever tree
was kept; that is right as long as the log-likelihood is quadratic.
"""

import numpy as np

from pymc_xbart.kernels.columns import draw_subset
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.grow import Built, build_tree
from pymc_xbart.kernels.leaf_numbers import has_room
from pymc_xbart.kernels.records import NO_COLUMN
from pymc_xbart.kernels.tree import draw_leaf_values


@inner_kernel
def regrow_tree(forest, index, leaf, h, design, prior, curvature, choice, is_corrected, work, rng):
    """Draw a successor of tree `index` of the forest, with leaf values.

    `work` must have taken up g of the forest without the tree.

    Parameters
    ----------
    leaf : (n,) uint16 or int32
        Leaf of each row in the tree; overwritten.
    h : (n,) float64
    is_corrected : bool
        Whether the new tree must pass a Metropolis-Hastings test. Needs a `choice` that is the same
        for all nodes.

    Returns
    -------
    num_nodes : int
        Of the successor, which is `work.tree` if it is new, else `work.current`. Where they are too
        many for `leaf`, it stays as it was.
    is_accepted : bool
    """
    start = forest.tree_start[index]
    stop = forest.tree_start[index + 1]
    if choice.is_per_tree:
        draw_subset(forest.column[start:stop], choice, rng)
    built = Built(np.int64(0), 0.0, 0.0)
    current = built
    # The current tree goes first, along its own path; then one is grown. A loop, so that building
    # is compiled once.
    for is_given in (True, False):
        if is_given and not is_corrected:
            continue
        current = built
        built = build_tree(
            forest,
            start,
            is_given,
            is_corrected and not is_given,
            work.current if is_given else work.tree,
            h,
            design,
            prior,
            curvature,
            choice,
            work,
            rng,
        )
    is_accepted = True
    if is_corrected:
        log_ratio = built.log_w - current.log_w
        if choice.is_per_tree:
            # The subset holds the columns of T for certain, and others by chance.
            log_ratio += log_share_used(work.current, current.num_nodes, choice.share, work.used)
            log_ratio -= log_share_used(work.tree, built.num_nodes, choice.share, work.used)
        is_accepted = np.log(rng.random()) < log_ratio
    tree = work.tree if is_accepted else work.current
    num_nodes = built.num_nodes if is_accepted else stop - start
    if is_accepted and has_room(leaf, num_nodes):
        record_leaves(tree, num_nodes, work.rows, leaf)
    draw_leaf_values(tree, num_nodes, prior.leaf_var, rng)
    return num_nodes, is_accepted


@inner_kernel
def log_share_used(tree, num_nodes, share, used):
    """Sum of log `share` over the columns that a tree splits on. `used` (p,) bool is scratch."""
    for v in range(used.size):
        used[v] = False
    total = 0.0
    for node in range(num_nodes):
        v = tree[node]["column"]
        if v != NO_COLUMN and not used[v]:
            used[v] = True
            total += np.log(share[v])
    return total


@inner_kernel
def record_leaves(tree, num_nodes, rows, leaf):
    """Write each row's leaf to `leaf` (n,)."""
    row = rows.row
    for node in range(num_nodes):
        if tree[node]["column"] == NO_COLUMN:
            for i in range(POSITION_DTYPE(tree[node]["start"]), POSITION_DTYPE(tree[node]["stop"])):
                leaf[row[i]] = node
