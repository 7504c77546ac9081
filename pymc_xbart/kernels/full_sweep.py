"""Propose a whole forest, accept or reject it as one (floor 0: NumPy and Numba only).

He, Yalov & Hahn (2019, "Metropolis-Hastings Proposal Distribution"): a sweep regrows all trees in
order, each given the residual that the trees before it (new) and after it (old) leave, and draws
their leaf values. The density of that proposal is a product over trees, and over the nodes of each
(algorithms "Grow Probability" and "Evaluate Proposal Density"); that of the way back starts from
the proposed forest. As meant, not as printed: the print keeps tree l + 1 in the residual of tree l,
overwrites psi where it multiplies, and leaves open that leaf values in q(F', F) are those of F'.

scan "paper"       the way back visits the trees in the same order. Its residuals are others, so
                   that it needs a second sweep, and the ratio falls fast with the number of trees.
scan "reversible"  the order is drawn, forward or backward, and the way back takes the opposite one.
                   It then meets the residuals of the way there: the ratio is the product over trees
                   of w(T') / w(T), with w of `grow`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pymc_xbart.kernels.columns import column_choice, draw_subset
from pymc_xbart.kernels.decorator import inner_kernel, kernel
from pymc_xbart.kernels.evidence import log_evidence, read_curvature
from pymc_xbart.kernels.gradient import put_in, take_out, take_up
from pymc_xbart.kernels.grow import Workspace, build_tree, make_workspace
from pymc_xbart.kernels.helpers import with_helpers
from pymc_xbart.kernels.leaf_numbers import find_leaves, has_room, run_with_room
from pymc_xbart.kernels.records import (
    NO_COLUMN,
    Design,
    Forest,
    Prior,
    SweepInfo,
    take_trees,
)
from pymc_xbart.kernels.regrow import record_leaves
from pymc_xbart.kernels.route import sum_of_trees
from pymc_xbart.kernels.sweep import (
    append_tree,
    describe,
    empty_forest,
    empty_info,
    trim,
)
from pymc_xbart.kernels.tree import draw_leaf_values

LOG_2PI = math.log(2.0 * math.pi)
SCANS = ("paper", "reversible")


class WalkDensity(NamedTuple):
    """Log-densities met on the way from one forest to another, added up over trees."""

    proposal: float  # of growing the other forest, leaf values included
    prior: float  # of the other forest, leaf values included
    log_w: float  # of the other forest's trees, as `grow` defines it
    origin_log_w: float  # of the first forest's trees, met with the same residuals; 0 if not asked


def sweep_as_one(
    forest: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
    *,
    scan: str = "paper",
) -> tuple[Forest, np.ndarray, SweepInfo]:
    """Propose a whole new forest, accept it or keep the old one, leaf values and all.

    Parameters
    ----------
    forest, leaf_of_row, g, h, design, prior, work, rng, scan
        As for `propose_forest`.

    Returns
    -------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
    info : SweepInfo
    """
    proposed, new_leaf, log_ratio, info = propose_forest(
        forest, leaf_of_row, g, h, design, prior, work, rng, scan=scan
    )
    if math.log1p(-rng.random()) < log_ratio:
        return proposed, new_leaf, info
    return forest, leaf_of_row, describe_forest(forest)


def propose_forest(
    forest: Forest,
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
    rng: np.random.Generator,
    *,
    scan: str = "paper",
) -> tuple[Forest, np.ndarray, float, SweepInfo]:
    """Grow a whole new forest, and compute the logarithm of its Metropolis-Hastings ratio.

    Parameters
    ----------
    forest, leaf_of_row, g, h, design, prior, work, rng
        As for `sweep`, except that nothing but `work` is overwritten.
    scan : {"paper", "reversible"}

    Returns
    -------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
    log_ratio : float
        The proposal is to be accepted with probability min(1, exp(log_ratio)), as long as the
        log-likelihood is quadratic.
    info : SweepInfo
        Of the proposed forest.
    """
    is_reversible = scan == "reversible"
    is_backward = is_reversible and rng.random() < 0.5
    if is_backward:
        forest, leaf_of_row = _backward(forest), leaf_of_row[::-1]

    def run(leaf_of_row: np.ndarray) -> tuple[tuple[Any, ...], bool]:
        new_leaf = np.array(leaf_of_row)
        *results, had_room = walk(
            *(forest, np.ascontiguousarray(leaf_of_row), forest, new_leaf, False, is_reversible),
            *(g.copy(), h, design, prior, column_choice(design.num_codes.size), work, rng),
        )
        return (new_leaf, *results), had_room

    (new_leaf, there, new, info), leaf_of_row = run_with_room(
        run, forest, leaf_of_row, design.codes, rng
    )
    new = trim(new)
    if is_reversible:
        log_ratio = there.log_w - there.origin_log_w
    else:
        step = sum_of_trees(new, new_leaf) - sum_of_trees(forest, leaf_of_row)
        back = walk_density(
            new, new_leaf, forest, leaf_of_row, g - h * step, h, design, prior, work
        )
        log_ratio = (there.prior - back.prior) + (back.proposal - there.proposal)
        log_ratio += float(step @ (g - 0.5 * h * step))
    if is_backward:
        new, new_leaf = _backward(new), np.ascontiguousarray(new_leaf[::-1])
        info = SweepInfo(*(array[::-1] for array in info))
    return new, new_leaf, log_ratio, info


def proposal_log_density(
    forest_from: Forest,
    forest_to: Forest,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
) -> float:
    """Log-density with which a sweep from one forest proposes another, q(to, from).

    He, Yalov & Hahn (2019), algorithms "Grow Probability" and "Evaluate Proposal Density".

    Parameters
    ----------
    forest_from, forest_to : Forest
        Of equally many trees, grown on `design` under `prior`.
    g, h : ndarray of shape (n,)
        d log p / d f and -d^2 log p / d f^2 >= 0 at `forest_from`. With a Normal likelihood these
        are residual / noise variance, and 1 / noise variance.
    design : Design
    prior : Prior

    Returns
    -------
    float
        Log-probability of the trees plus log-density of their leaf values. All cuts of `forest_to`
        are taken to be candidates in their nodes, as those of any forest grown here are.
    """
    num_columns, num_rows = design.codes.shape
    work = make_workspace(num_rows, num_columns, prior.num_cutpoints)
    leaves = [find_leaves(forest, design.codes) for forest in (forest_from, forest_to)]
    return walk_density(
        forest_from, leaves[0], forest_to, leaves[1], g, h, design, prior, work
    ).proposal


def walk_density(
    origin: Forest,
    origin_leaf: np.ndarray,
    destination: Forest,
    destination_leaf: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Workspace,
) -> WalkDensity:
    """Evaluate the proposal of one forest from another, with g and h (n,) at the first."""
    density, _, _, _ = walk(
        *(origin, np.ascontiguousarray(origin_leaf)),
        *(destination, np.ascontiguousarray(destination_leaf), True, False),
        *(g.copy(), h, design, prior, column_choice(design.num_codes.size), work),
        np.random.default_rng(0),  # nothing is left to chance on a given way
    )
    return density


def describe_forest(forest: Forest) -> SweepInfo:
    """Leaves and depth of each tree, as of a sweep that accepted none."""
    tree_start, _, _, left, _ = forest
    num_trees, sizes = tree_start.size - 1, np.diff(tree_start)
    first_child = np.repeat(tree_start[:-1], sizes) + left
    depth = np.zeros(left.size, np.int32)
    level = tree_start[:-1]
    while level.size:
        first = first_child[level[left[level] >= 0]]
        level = np.concatenate([first, first + 1])
        depth[level] = depth.max() + 1
    info = empty_info(num_trees)
    info.num_leaves[:] = (sizes + 1) // 2
    info.depth[:] = np.maximum.reduceat(depth, tree_start[:-1])
    info.regrown[:] = True
    info.accepted[:] = False
    return info


def _backward(forest: Forest) -> Forest:
    """The same trees, the last one first."""
    return take_trees(forest, np.arange(forest.tree_start.size - 1)[::-1])


def walk(*arguments: Any) -> tuple[WalkDensity, Forest, SweepInfo, bool]:
    """Call `_walk`, with helpers if the workspace has a crew."""
    *others, g, h, design, prior, choice, work, rng = arguments
    destination_leaf = others[3]
    return with_helpers(
        *(destination_leaf, g, h, design, prior, work),
        lambda work: _walk(*others, g, h, design, prior, choice, work, rng),
    )


@kernel
def _walk(
    origin,
    origin_leaf,
    destination,
    destination_leaf,
    is_given,
    evaluates_origin,
    g,
    h,
    design,
    prior,
    choice,
    work,
    rng,
):
    """Replace the trees of `origin` in order, by new ones or by those of a given `destination`.

    g is overwritten, and so is `destination_leaf` unless the destination is given. Returns the
    densities, the forest that was grown (empty if none was) with its info, and whether its trees
    had room in `destination_leaf`. If not, the walk has ended at the first that did not.
    """
    num_trees = origin.tree_start.size - 1
    curvature = read_curvature(prior.leaf_var, h, work.blank)
    new = empty_forest(num_trees, 2 * origin.column.size)
    info = empty_info(num_trees)
    proposal = 0.0
    log_prior = 0.0
    log_w = 0.0
    origin_log_w = 0.0
    for index in range(num_trees):
        start = origin.tree_start[index]
        take_out(origin, index, origin_leaf, g, h, work.value, None)
        take_up(g, curvature, work.blank, work.rows, None)
        if choice.is_per_tree:
            draw_subset(origin.column[start : origin.tree_start[index + 1]], choice, rng)
        num_nodes = np.int64(0)
        # A loop, so that building is compiled once. A given tree comes first, see `build_tree`.
        for is_origin in (True, False):
            if is_origin and not evaluates_origin:
                continue
            source = origin if is_origin else destination
            built = build_tree(
                source,
                source.tree_start[index],
                is_origin or is_given,
                evaluates_origin and not is_origin,
                work.current if is_origin else work.tree,
                h,
                design,
                prior,
                curvature,
                choice,
                work,
                rng,
            )
            if is_origin:
                origin_log_w += built.log_w
            else:
                num_nodes = built.num_nodes
                log_w += built.log_w
                proposal += built.log_density
                log_prior += built.log_density + built.log_w
        tree = work.tree
        if is_given:
            for node in range(num_nodes):
                tree[node]["value"] = destination.value[destination.tree_start[index] + node]
        else:
            if not has_room(destination_leaf, num_nodes):
                return WalkDensity(proposal, log_prior, log_w, origin_log_w), new, info, False
            draw_leaf_values(tree, num_nodes, prior.leaf_var, rng)
            record_leaves(tree, num_nodes, work.rows, destination_leaf[index])
            new = append_tree(new, index, tree, num_nodes)
            describe(tree, num_nodes, True, True, index, info)
        posterior, leaf_prior = leaf_log_densities(tree, num_nodes, prior.leaf_var)
        proposal += posterior
        # The density of the structure is prior * exp(sum of evidences) / w, and the evidence of a
        # leaf is what its likelihood integrates to.
        log_prior += leaf_prior - sum_of_evidences(tree, num_nodes, prior.leaf_var)
        put_in(tree, num_nodes, index, destination_leaf, g, h, work.value, None)
    return WalkDensity(proposal, log_prior, log_w, origin_log_w), new, info, True


@inner_kernel
def leaf_log_densities(tree, num_nodes, leaf_var):
    """Log-density of the leaf values under their posterior and under their prior."""
    posterior = 0.0
    prior = 0.0
    for node in range(num_nodes):
        if tree[node]["column"] == NO_COLUMN:
            value = tree[node]["value"]
            posterior_var = leaf_var / (1.0 + leaf_var * tree[node]["sum_h"])
            error = value - posterior_var * tree[node]["sum_g"]
            posterior -= 0.5 * (error * error / posterior_var + np.log(posterior_var) + LOG_2PI)
            prior -= 0.5 * (value * value / leaf_var + np.log(leaf_var) + LOG_2PI)
    return posterior, prior


@inner_kernel
def sum_of_evidences(tree, num_nodes, leaf_var):
    """Sum of the evidences of a tree's leaves."""
    total = 0.0
    for node in range(num_nodes):
        if tree[node]["column"] == NO_COLUMN:
            total += log_evidence(tree[node]["sum_g"], tree[node]["sum_h"], leaf_var)
    return total
