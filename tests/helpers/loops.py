"""Compiled loops over many trees or forests of one case. Tests find them in `inside`."""

import numpy as np

from pymc_xbart.kernels import Forest, column_choice, forest_values, route_codes, stump_forest
from pymc_xbart.kernels.columns import draw_subset
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.evidence import read_curvature
from pymc_xbart.kernels.gradient import take_up
from pymc_xbart.kernels.grow import build_tree
from pymc_xbart.kernels.leaf_numbers import NARROW
from pymc_xbart.kernels.sweep import _sweep, append_tree, empty_forest, trim
from pymc_xbart.kernels.tree import draw_leaf_values


def grow_trees(case, num_trees, rng, choice=None):
    """Trees grown from the root, all for the same g and h, with leaf values, as one `Forest`."""
    choice = column_choice(case.num_columns) if choice is None else choice
    stump = stump_forest(1)
    return trim(
        _grow_trees(
            stump, case.g, case.h, case.design, case.prior, choice, case.work, num_trees, rng
        )
    )


@kernel
def _grow_trees(stump, g, h, design, prior, choice, work, num_trees, rng):
    curvature = read_curvature(prior.leaf_var, h, work.blank)
    forest = empty_forest(num_trees, 16 * num_trees)
    take_up(g, curvature, work.blank, work.rows, None)
    for index in range(num_trees):
        built = build_tree(
            stump, 0, False, False, work.tree, h, design, prior, curvature, choice, work, rng
        )
        num_nodes = built.num_nodes
        draw_leaf_values(work.tree, num_nodes, prior.leaf_var, rng)
        forest = append_tree(forest, index, work.tree, num_nodes)
    return forest


def choose_columns(case, mtry, columns):
    """Choice of columns for one tree, as if a correction had drawn these; all, if `mtry` is p."""
    choice = column_choice(case.num_columns, mtry, is_per_tree=True)
    if mtry < case.num_columns:
        column = np.array(sorted(columns), np.int32)
        # Of 0 columns that come by chance, only those that the tree splits on are left.
        _draw_subset(
            column,
            choice._replace(share=np.zeros(case.num_columns), is_complete=False),
            np.random.default_rng(0),
        )
    return choice


@kernel
def _draw_subset(column, choice, rng):
    draw_subset(column, choice, rng)


def follow_trees(case, forest, choice=None):
    """Log-density of growing each tree of a forest, and log of w, the posterior over it.

    Each tree is evaluated along its own path twice: as a current tree, and as one that is grown
    after the root has been scored. Both ways must agree to the last bit.
    """
    choice = column_choice(case.num_columns) if choice is None else choice
    rng = np.random.default_rng(0)  # nothing is left to chance on a given way
    first, second = (
        _follow_trees(
            *(forest, root_is_scored, case.g, case.h, case.design, case.prior, choice),
            *(case.work, rng, np.empty((3, forest.tree_start.size - 1))),
        )
        for root_is_scored in (False, True)
    )
    assert np.array_equal(first, second)
    num_nodes, log_density, log_w = first
    assert np.array_equal(num_nodes, np.diff(forest.tree_start))
    return log_density, log_w


@kernel
def _follow_trees(forest, root_is_scored, g, h, design, prior, choice, work, rng, found):
    curvature = read_curvature(prior.leaf_var, h, work.blank)
    take_up(g, curvature, work.blank, work.rows, None)
    for index in range(forest.tree_start.size - 1):
        start = forest.tree_start[index]
        built = build_tree(
            forest,
            start,
            True,
            root_is_scored,
            work.tree,
            h,
            design,
            prior,
            curvature,
            choice,
            work,
            rng,
        )
        found[0, index] = built.num_nodes
        found[1, index] = built.log_density
        found[2, index] = built.log_w
    return found


def sweep_each(
    case,
    forests,
    num_trees,
    num_sweeps,
    rng,
    *,
    is_corrected=True,
    num_regrown=None,
    choice=None,
):
    """Sweep many forests of `num_trees` trees some times over, each by itself.

    Forests come, and are returned, one after another as one `Forest`. `case.g` belongs to f = 0.
    """
    choice = column_choice(case.num_columns) if choice is None else choice
    total = forests.tree_start.size - 1
    room = total * (2 * case.num_rows - 1)  # no leaf is empty
    swept = Forest(
        np.zeros(total + 1, np.int64), *(np.empty(room, np.int32) for _ in range(3)), np.empty(room)
    )
    _sweep_each(
        *(forests, swept, num_trees, num_sweeps, case.g, case.h, case.design, case.prior),
        *(choice, None, is_corrected),
        *(num_trees if num_regrown is None else num_regrown, case.work, rng),
    )
    return trim(swept)


@kernel
def _sweep_each(
    forests,
    swept,
    num_trees,
    num_sweeps,
    g,
    h,
    design,
    prior,
    choice,
    side,
    is_corrected,
    num_regrown,
    work,
    rng,
):
    leaf_of_row = np.empty((num_trees, g.size), NARROW)
    f = np.empty(g.size)
    g_now = np.empty(g.size)
    h_now = np.empty(g.size)
    for first in range(0, forests.tree_start.size - 1, num_trees):
        forest = _copy_trees(forests, first, num_trees)
        route_codes(forest, design.codes, leaf_of_row)
        for _ in range(num_sweeps):
            forest_values(forest, leaf_of_row, f)
            for i in range(g.size):
                g_now[i] = g[i] - h[i] * f[i]
                h_now[i] = h[i]
            forest, _info, _had_room = _sweep(
                forest,
                leaf_of_row,
                g_now,
                h_now,
                design,
                prior,
                choice,
                side,
                is_corrected,
                num_regrown,
                True,
                work,
                rng,
            )
        _put_trees(forest, swept, first)


@kernel
def _copy_trees(forests, first, num_trees):
    """Some neighbouring trees as a forest of their own."""
    start = forests.tree_start[first]
    stop = forests.tree_start[first + num_trees]
    forest = empty_forest(num_trees, stop - start)
    for index in range(num_trees + 1):
        forest.tree_start[index] = forests.tree_start[first + index] - start
    for node in range(stop - start):
        forest.column[node] = forests.column[start + node]
        forest.cut[node] = forests.cut[start + node]
        forest.left[node] = forests.left[start + node]
        forest.value[node] = forests.value[start + node]
    return forest


@kernel
def _put_trees(forest, forests, first):
    """Write a forest behind tree `first - 1`, where there is room for it."""
    start = forests.tree_start[first]
    for index in range(forest.tree_start.size):
        forests.tree_start[first + index] = start + forest.tree_start[index]
    for node in range(forest.tree_start[-1]):
        forests.column[start + node] = forest.column[node]
        forests.cut[start + node] = forest.cut[node]
        forests.left[start + node] = forest.left[node]
        forests.value[start + node] = forest.value[node]
