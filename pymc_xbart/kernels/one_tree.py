"""Successors of one tree that somebody else is to accept (floor 0: NumPy and Numba only).

Under a log-likelihood that is not quadratic, (g, h) describe it near one f only. They then serve to
propose a tree, and whoever knows the log-likelihood decides on it. What that takes is how likely
the trees are to be proposed: with e the evidences of a tree's leaves under (g, h),

    growing from the root    proposes T with probability  prior(T) exp(sum of e) / w(T)
    redrawing splits         leads from T to T' as often as back, in a forest with the posterior
                             prior(T) exp(sum of e)

so that log w(T) - sum of e is prior over proposal, up to a constant, with log w = 0 for the latter.
"""

from typing import Any

import numpy as np

from pymc_xbart.kernels.columns import ColumnChoice, column_choice
from pymc_xbart.kernels.full_sweep import walk
from pymc_xbart.kernels.grow import Workspace
from pymc_xbart.kernels.leaf_numbers import run_with_room
from pymc_xbart.kernels.records import NO_COLUMN, Design, Forest, Prior
from pymc_xbart.kernels.sweep import sweep, trim


def grow_successor(
    tree: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
    *,
    choice: ColumnChoice | None = None,
    evaluates: bool = True,
) -> tuple[Forest, np.ndarray, float, float]:
    """Grow a tree from the root.

    Parameters
    ----------
    tree : Forest
        Of the one tree that may be replaced.
    leaf_of_row : ndarray of shape (1, n), uint16 or int32
    g, h : ndarray of shape (n,)
        d log p / d f and -d^2 log p / d f^2 >= 0, or what stands in for it, without the tree.
    design, prior, work, rng
        As for `sweep`.
    choice : ColumnChoice, optional
        The same for all nodes of a tree; all columns by default.
    evaluates : bool, default True
        Whether w of the tree that may be replaced is asked for.

    Returns
    -------
    successor : Forest
    leaf_of_row : ndarray of shape (1, n), uint16 or int32
    log_w : float
        Of the successor.
    current_log_w : float
        Of the tree that it may replace; 0 if not asked for.
    """
    if choice is None:
        choice = column_choice(design.num_codes.size)

    def run(leaf_of_row: np.ndarray) -> tuple[tuple[Any, ...], bool]:
        new_leaf = np.empty_like(leaf_of_row)
        density, successor, _, had_room = walk(
            *(_without_values(tree), leaf_of_row, tree, new_leaf, False, evaluates),
            *(g.copy(), h, design, prior, choice, work, rng),
        )
        return (density, successor, new_leaf), had_room

    (density, successor, new_leaf), _ = run_with_room(run, tree, leaf_of_row, design.codes, rng)
    log_w, current_log_w = density.log_w, density.origin_log_w
    if choice.is_per_tree:
        # The columns that a tree splits on are considered for certain.
        log_w -= _log_share_used(successor, choice)
        current_log_w -= _log_share_used(tree, choice)
    return trim(successor), new_leaf, log_w, current_log_w


def tree_log_w(
    tree: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
) -> float:
    """Evaluate log w of a tree that might have been grown, see `grow_successor`."""
    tree = _without_values(tree)
    density, _, _, _ = walk(
        *(tree, leaf_of_row, tree, leaf_of_row, True, False),
        *(g.copy(), h, design, prior, column_choice(design.num_codes.size), work),
        np.random.default_rng(0),  # nothing is left to chance on a given way
    )
    return float(density.log_w)


def redraw_successor(
    tree: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
    *,
    choice: ColumnChoice | None = None,
) -> tuple[Forest, np.ndarray]:
    """Redraw some splits of a tree. Parameters and first results are those of `grow_successor`."""
    successor, new_leaf, _ = sweep(
        *(_without_values(tree), leaf_of_row.copy(), g, h, design, prior, work, rng),
        is_corrected=True,
        num_regrown=0,
        choice=choice,
    )
    return successor, new_leaf


def _without_values(tree: Forest) -> Forest:
    """The same tree with leaf values of 0, so that (g, h) without the tree are those with it."""
    return tree._replace(value=np.zeros(tree.value.size))


def _log_share_used(tree: Forest, choice: ColumnChoice) -> float:
    """Log-probability that the columns which a tree splits on are considered."""
    used = tree.column[: tree.tree_start[-1]]
    return float(np.log(choice.share[np.unique(used[used != NO_COLUMN])]).sum())
