"""Draws from the tree prior (floor 0: NumPy and Numba only).

Written apart from growing, on purpose: a node decides to split by a coin, then picks a column, then
a cut, with no scores, buckets of sums or log-weights in sight. Growing under a flat likelihood must
give the same law, and that is how tests hold both to account.
"""

import numpy as np

from pymc_xbart.kernels.decorator import inner_kernel, kernel
from pymc_xbart.kernels.histogram import bucket_shift, num_told_apart
from pymc_xbart.kernels.leaf_numbers import WIDE, make_leaf_of_row, put_leaf
from pymc_xbart.kernels.records import (
    COLUMNS,
    CUTS,
    NO_CHILD,
    NO_COLUMN,
    PAPER,
    Design,
    Forest,
    Prior,
)


def draw_prior_forest(
    design: Design, prior: Prior, num_trees: int, rng: np.random.Generator
) -> tuple[Forest, np.ndarray]:
    """Draw a forest from the prior.

    Parameters
    ----------
    design : Design
    prior : Prior
    num_trees : int
    rng : numpy.random.Generator

    Returns
    -------
    forest : Forest
    leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
    """
    num_rows = design.codes.shape[1]
    leaf_of_row = make_leaf_of_row(num_trees, num_rows)
    leaf = np.empty(num_rows, WIDE)
    size = num_told_apart(num_rows, prior.num_cutpoints)
    scratch = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(design.num_codes.size)
    # A tree over n rows has at most 2 n - 1 nodes.
    room = [np.empty(2 * num_rows, np.int32) for _ in range(4)]
    value = np.empty(2 * num_rows)
    trees = []
    for index in range(num_trees):
        num_nodes = _draw_tree(design, prior, leaf, *room, value, *scratch, rng)
        leaf_of_row = put_leaf(leaf_of_row, index, leaf, num_nodes)
        trees.append([array[:num_nodes].copy() for array in (*room[:3], value)])
    tree_start = np.cumsum([0, *(tree[0].size for tree in trees)], dtype=np.int64)
    return Forest(
        tree_start, *(np.concatenate(arrays) for arrays in zip(*trees, strict=True))
    ), leaf_of_row


@kernel
def _draw_tree(
    design, prior, leaf, column, cut, left, depth, value, counts, candidates, weights, rng
):
    """Draw one tree into `column`, `cut`, `left`, `value`, and each row's leaf into `leaf`.

    Nodes are their own queue: a split appends its children, and the loop runs until it meets the
    end.
    """
    for i in range(leaf.size):
        leaf[i] = 0
    depth[0] = 0
    num_nodes = np.int64(
        1
    )  # numbers, not literals, for which Numba would compile all of this once more
    node = np.int64(0)
    while node < num_nodes:
        column[node] = NO_COLUMN
        cut[node] = 0
        left[node] = NO_CHILD
        value[node] = 0.0
        split = prior.alpha / (1.0 + depth[node]) ** prior.beta
        if depth[node] >= prior.max_depth:
            split = 0.0
        if prior.cut_prior == PAPER and split > 0.0:
            # A cut of weight 1 and one null cut for each of V columns: odds split * K : (1 - split)
            # V
            odds = _weigh_cuts(design, prior, leaf, node, counts, candidates, weights)
            odds *= split / prior.split_weights.sum()
            split = odds / (odds + 1.0 - split)
        if rng.random() < split:
            if prior.cut_prior == CUTS:
                _weigh_cuts(design, prior, leaf, node, counts, candidates, weights)
            elif prior.cut_prior == COLUMNS:
                for v in range(weights.size):
                    weights[v] = prior.split_weights[v]
            v, num_candidates = _draw_column(
                design, prior, leaf, node, counts, candidates, weights, rng
            )
            if v >= 0:
                k = int(rng.random() * num_candidates)
                column[node] = v
                cut[node] = divide(design.codes[v], candidates[k], leaf, node, num_nodes)
                left[node] = num_nodes
                depth[num_nodes] = depth[node] + 1
                depth[num_nodes + 1] = depth[node] + 1
                num_nodes += 2
        if left[node] == NO_CHILD:
            value[node] = np.sqrt(prior.leaf_var) * rng.standard_normal()
        node += 1
    return num_nodes


@inner_kernel
def _weigh_cuts(design, prior, leaf, node, counts, candidates, weights):
    """Set `weights` to split weight times number of cuts, by column. Returns their sum."""
    total = 0.0
    for v in range(weights.size):
        weights[v] = 0.0
        if prior.split_weights[v] > 0.0:
            num_cuts = list_candidates(design.codes[v], prior, leaf, node, counts, candidates)
            weights[v] = prior.split_weights[v] * num_cuts
        total += weights[v]
    return total


@inner_kernel
def _draw_column(design, prior, leaf, node, counts, candidates, weights, rng):
    """Draw a column by weight among those with cuts in the node, and list its cuts.

    Columns are drawn until one has cuts, each at most once, which is the same as looking at all of
    them first. Returns (column, number of cuts), with column -1 if none has any. `weights` (p,) are
    overwritten.
    """
    while True:
        total = 0.0
        for v in range(weights.size):
            total += weights[v]
        if total <= 0.0:
            return -1, 0
        remaining = rng.random() * total
        drawn = -1
        for v in range(weights.size):
            if weights[v] > 0.0:
                drawn = v
                remaining -= weights[v]
                if remaining < 0.0:
                    break
        num_candidates = list_candidates(design.codes[drawn], prior, leaf, node, counts, candidates)
        if num_candidates > 0:
            return drawn, num_candidates
        weights[drawn] = 0.0


@inner_kernel
def list_candidates(codes, prior, leaf, node, counts, candidates):
    """List the candidate cuts of one column in one node. Returns how many there are."""
    lo = 65_536
    hi = -1
    num_rows = 0
    for i in range(leaf.size):
        if leaf[i] == node:
            lo = min(lo, codes[i])
            hi = max(hi, codes[i])
            num_rows += 1
    shift = bucket_shift(lo, hi, counts.size)
    for b in range(counts.size):
        counts[b] = 0
    for i in range(leaf.size):
        if leaf[i] == node:
            counts[(codes[i] >> shift) - (lo >> shift)] += 1
    num_legal = 0
    at_or_below = 0
    for b in range(counts.size):
        at_or_below += counts[b]
        if counts[b] > 0 and min(at_or_below, num_rows - at_or_below) >= prior.min_samples_leaf:
            # what is listed for now: every legal cut, as its bucket, and over `counts` its number
            # of rows on the left
            candidates[num_legal] = ((lo >> shift) + b + 1 << shift) - 1
            counts[num_legal] = at_or_below
            num_legal += 1
    step = max(1, (num_rows - 2) // prior.num_cutpoints)
    if num_legal <= prior.num_cutpoints:
        return num_legal
    num_candidates = 0
    for k in range(num_legal):
        before = counts[k - 1] // step if k > 0 else 0
        if counts[k] // step > before:
            candidates[num_candidates] = candidates[k]
            num_candidates += 1
    return max(num_candidates, 1)


@inner_kernel
def divide(codes, cut, leaf, node, left):
    """Move the rows of `node` to its children, in `leaf`. Returns the largest code on the left."""
    largest = -1
    for i in range(leaf.size):
        if leaf[i] == node:
            if codes[i] <= cut:
                leaf[i] = left
                largest = max(largest, codes[i])
            else:
                leaf[i] = left + 1
    return largest
