"""One sweep: each tree updated in turn, given the others (floor 0: NumPy and Numba only).

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees". Residuals enter
through the gradient: when f moves by t under a quadratic log-likelihood, g moves by -h t.
"""

import numpy as np

from pymc_xbart.kernels.columns import ColumnChoice, column_choice
from pymc_xbart.kernels.decorator import inner_kernel, kernel, returning_kernel
from pymc_xbart.kernels.evidence import read_curvature
from pymc_xbart.kernels.gradient import put_in, take_out, take_up
from pymc_xbart.kernels.grow import Workspace
from pymc_xbart.kernels.helpers import with_helpers
from pymc_xbart.kernels.leaf_numbers import has_room, run_with_room
from pymc_xbart.kernels.leaves import (
    CHUNK_ROWS,
    MAX_LEAVES,
    TREES_PER_BLOCK,
    make_block,
    redraw_leaves,
)
from pymc_xbart.kernels.noise import SideDraws, count_splits, redraw_noise, redraw_weights
from pymc_xbart.kernels.records import Design, Forest, Prior, SweepInfo
from pymc_xbart.kernels.redraw import redraw_splits
from pymc_xbart.kernels.regrow import regrow_tree


def sweep(
    forest: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
    *,
    is_corrected: bool = False,
    num_regrown: int | None = None,
    redraws_leaves: bool = True,
    choice: ColumnChoice | None = None,
    side: SideDraws | None = None,
) -> tuple[Forest, np.ndarray, SweepInfo]:
    """Update every tree once.

    Parameters
    ----------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        Leaf of each row in each tree, see `leaf_numbers`; overwritten.
    g, h : ndarray of shape (n,)
        d log p / d f and -d^2 log p / d f^2 >= 0 at the current forest.
    design : Design
    prior : Prior
    work : Workspace
        Scratch; contents undefined after.
    rng : numpy.random.Generator
        The only source of chance.
    is_corrected : bool, default False
        Whether each new tree must pass a Metropolis-Hastings test; if not, every tree is grown
        anew. Needs a `cut_prior` that is a prior, not `PAPER`.
    num_regrown : int, optional
        How many trees, drawn at random, are grown from the root; all by default. In the others
        single splits are redrawn (see `redraw`), which has the law that a correction gives: fewer
        than all trees need `is_corrected`.
    redraws_leaves : bool, default True
        Whether leaf values are drawn jointly at the end (see `leaves`), in a corrected sweep where
        all rows have the same h. Without it, a sweep leads from one forest to another as often as
        the sweep over the trees in opposite order leads back, given the posterior of forests.
    choice : ColumnChoice, optional
        Which columns a node considers; all of them by default. A correction needs a choice that is
        the same for all nodes of a tree, and with fewer columns than there are, `cut_prior`
        COLUMNS.
    side : SideDraws, optional
        What is drawn after every tree; nothing by default. If column weights are, those of `choice`
        are overwritten.

    Returns
    -------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        The same array, unless a tree has outgrown it.
    info : SweepInfo
    """
    if choice is None:
        choice = column_choice(design.num_codes.size)
    num_trees = forest.tree_start.size - 1
    drawn = () if side is None else (side.noise_var, side.split_counts, choice.weights)
    before = [array.copy() for array in drawn]
    draws_noise = side is not None and side.draws_noise
    h = np.require(h, np.float64, ["C", "W"])  # for another layout, Numba would compile anew

    def run(leaf_of_row: np.ndarray) -> tuple[tuple[Forest, SweepInfo], bool]:
        for array, values in zip(drawn, before, strict=True):
            array[:] = values
        moved_g = g.copy()
        moved_h = h.copy() if draws_noise else h  # nothing else writes to it
        nodes, info, had_room = with_helpers(
            *(leaf_of_row, moved_g, moved_h, design, prior, work),
            lambda work: _sweep(
                forest,
                leaf_of_row,
                moved_g,
                moved_h,
                design,
                prior,
                choice,
                side,
                is_corrected,
                num_trees if num_regrown is None else num_regrown,
                redraws_leaves,
                work,
                rng,
            ),
        )
        return (nodes, info), had_room

    (nodes, info), leaf_of_row = run_with_room(run, forest, leaf_of_row, design.codes, rng)
    return trim(nodes), leaf_of_row, info


def trim(forest: Forest) -> Forest:
    """Copy the nodes that count, leaving out the room behind them."""
    size = forest.tree_start[-1]
    return Forest(forest.tree_start, *(array[:size].copy() for array in forest[1:]))


@kernel
def _sweep(
    forest,
    leaf_of_row,
    g,
    h,
    design,
    prior,
    choice,
    side,
    is_corrected,
    num_regrown,
    redraws_leaves,
    work,
    rng,
):
    """See `sweep`; g and h are overwritten, and the new forest has room behind its last node.

    The last thing to be returned is whether the trees had room in `leaf_of_row`. If not, the sweep
    has stopped at the first that did not.
    """
    num_trees = forest.tree_start.size - 1
    curvature = read_curvature(prior.leaf_var, h, work.blank)
    new = empty_forest(num_trees, 2 * forest.column.size)
    info = empty_info(num_trees)
    for index in range(num_trees):
        leaf = leaf_of_row[index]
        take_out(forest, index, leaf_of_row, g, h, work.value, work.crew)
        take_up(g, curvature, work.blank, work.rows, work.crew)
        num_nodes = np.int64(0)
        is_accepted = False
        # That many of the trees that are left: every set of `num_regrown` trees is equally likely.
        remaining = num_trees - index
        is_regrown = num_regrown >= remaining or rng.random() * remaining < num_regrown
        if is_regrown:
            num_regrown -= 1
            num_nodes, is_accepted = regrow_tree(
                forest, index, leaf, h, design, prior, curvature, choice, is_corrected, work, rng
            )
        else:
            num_nodes = redraw_splits(
                forest, index, leaf, h, design, prior, curvature, choice, work, rng
            )
        if not has_room(leaf, num_nodes):
            return new, info, False
        tree = work.current if is_regrown and not is_accepted else work.tree
        put_in(tree, num_nodes, index, leaf_of_row, g, h, work.value, work.crew)
        new = append_tree(new, index, tree, num_nodes)
        describe(tree, num_nodes, is_regrown, is_accepted, index, info)
        if side is not None:  # without it, Numba does not even compile what follows
            if side.draws_weights:
                count_splits(forest, index, np.int64(-1), side.split_counts)
                count_splits(new, index, np.int64(1), side.split_counts)
                redraw_weights(choice.weights, side.split_counts, rng)
            if side.draws_noise:
                redraw_noise(g, h, side, work.crew, rng)
                curvature = read_curvature(prior.leaf_var, h, work.blank)
    if is_corrected and redraws_leaves and curvature.is_uniform:
        block = make_block(num_trees, min(g.size, CHUNK_ROWS), MAX_LEAVES)
        for _ in range(-(-num_trees // TREES_PER_BLOCK)):
            redraw_leaves(
                new, leaf_of_row, g, curvature, work.blank, work.rows, work.crew, block, rng
            )
    return new, info, True


@kernel
def empty_info(num_trees):
    """Info of a sweep that has not begun."""
    return SweepInfo(
        np.empty(num_trees, np.int32),
        np.empty(num_trees, np.int32),
        np.empty(num_trees, np.bool_),
        np.empty(num_trees, np.bool_),
    )


@inner_kernel
def describe(tree, num_nodes, is_regrown, is_accepted, index, info):
    """Write what a reader may want to know of a tree to `info`."""
    depth = 0
    for node in range(num_nodes):
        depth = max(depth, tree[node]["depth"])
    info.num_leaves[index] = (num_nodes + 1) // 2
    info.depth[index] = depth
    info.regrown[index] = is_regrown
    info.accepted[index] = is_accepted


@returning_kernel
def empty_forest(num_trees, capacity):
    """Forest with room for `capacity` nodes and no tree yet."""
    return Forest(
        np.zeros(num_trees + 1, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity),
    )


@returning_kernel
def append_tree(forest, index, tree, num_nodes):
    """Write a tree behind tree `index - 1`. Returns the forest, in larger arrays if need be."""
    start = forest.tree_start[index]
    stop = start + num_nodes
    if stop > forest.column.size:
        larger = empty_forest(forest.tree_start.size - 1, 2 * stop)
        for i in range(index + 1):
            larger.tree_start[i] = forest.tree_start[i]
        for node in range(start):
            larger.column[node] = forest.column[node]
            larger.cut[node] = forest.cut[node]
            larger.left[node] = forest.left[node]
            larger.value[node] = forest.value[node]
        forest = larger
    for node in range(num_nodes):
        forest.column[start + node] = tree[node]["column"]
        forest.cut[start + node] = tree[node]["cut"]
        forest.left[start + node] = tree[node]["left"]
        forest.value[start + node] = tree[node]["value"]
    forest.tree_start[index + 1] = stop
    return forest
