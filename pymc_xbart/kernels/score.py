"""Weights of everything that can happen to a node (floor 0: NumPy and Numba only).

With p_d = alpha (1 + d)^-beta, K_v candidate cuts in column v, s_v its split weight, and e the
evidence of a leaf, stopping weighs (1 - p_d) exp(e(node)), and a cut of column v weighs

    p_d * prior * exp(e(left) + e(right)),    where prior is

    columns    (s_v / sum of s over columns with cuts) / K_v
    cuts       s_v / sum of s_u K_u
    paper      s_v / sum of s over all columns considered

A node without cuts stops. "columns" gives a column its split weight, whatever the number of its
cuts. "cuts" is what the authors' released code does: all cuts weigh the same. "paper" is the text
of He, Yalov & Hahn (2019, eqs. 3 and 4), whose V null cuts let a node with K cuts split with prior
odds p_d K : (1 - p_d) V instead of p_d : (1 - p_d). The sum of all weights is the evidence of the
node looking one split ahead.
"""

import numpy as np

from pymc_xbart.kernels.column_scores import score_cuts, score_two_columns, weigh_cuts
from pymc_xbart.kernels.columns import draw_columns, is_shared
from pymc_xbart.kernels.crew import finish, is_worth_sharing, post_node, take
from pymc_xbart.kernels.cuts import is_varied
from pymc_xbart.kernels.decorator import inlined_kernel, inner_kernel
from pymc_xbart.kernels.draw import draw_from_weights, log_sum_exp
from pymc_xbart.kernels.evidence import log_evidence
from pymc_xbart.kernels.node_cuts import (
    FIRST,
    MAX_RANGE_DEPTH,
    NO,
    YES,
    find_cuts,
    look_at,
    start_code_range,
    without_places,
)
from pymc_xbart.kernels.records import COLUMNS, CUTS


@inner_kernel
def split_probability(prior, depth):
    """Prior probability that a node with cuts splits."""
    if depth >= prior.max_depth:
        return 0.0
    return prior.alpha * (1.0 + depth) ** -prior.beta


@inner_kernel
def score_node(design, prior, curvature, choice, rows, node, scratch, scores, crew, rng):
    """Write the log-weights of what can happen to a node to `scores`.

    Their sum is the node's evidence one split ahead. Nodes must come depth first, a smaller child
    before its larger sibling. `rng` is used only if `choice` leaves columns to chance here.
    """
    considered = scores.considered
    log_weight = scores.log_weight
    split = split_probability(prior, node.depth)
    num_considered = draw_columns(choice, considered, rng) if split > 0.0 else 0
    # The parent has looked at this column, too, if all nodes look at the same columns.
    is_on_record = is_shared(choice) and node.has_parent and node.depth < MAX_RANGE_DEPTH
    num_looked_at = considered.size if choice.is_per_tree and split > 0.0 else num_considered
    if num_looked_at > 0:
        look_at(design, curvature, rows, node, scratch.members)
        score_columns(
            design,
            prior,
            curvature,
            rows,
            node,
            num_looked_at,
            num_considered,
            is_on_record,
            scratch,
            scores,
            crew,
        )
    available = 0.0  # what prior weights are divided by
    left_out = 0.0  # what they would be divided by in addition, if all columns were considered
    has_any = False
    cut_weight = 1.0  # of each cut of a column in the prior, but for what all are divided by
    log_cut_weight = 0.0
    for k in range(num_looked_at):
        weight = prior.split_weights[considered[k]]
        num_cuts = scores.num_cuts[k]
        if k >= num_considered:
            if num_cuts > 0:
                left_out += weight
            continue
        log_weight[k] = -np.inf
        if num_cuts > 0:
            has_any = True
            before = cut_weight
            cut_weight = weight / num_cuts if prior.cut_prior == COLUMNS else weight
            if cut_weight != before:  # most columns have the same
                log_cut_weight = np.log(cut_weight)
            log_weight[k] = log_cut_weight + scores.log_evidence[k]
        if prior.cut_prior == CUTS:
            available += weight * num_cuts
        elif num_cuts > 0 or prior.cut_prior != COLUMNS:
            available += weight
    log_weight[num_considered] = log_evidence(node.sum_g, node.sum_h, curvature.leaf_var)
    if has_any or left_out > 0.0:
        log_weight[num_considered] += np.log1p(-split)
    if has_any:
        log_prior = np.log(split / available)
        for k in range(num_considered):
            log_weight[k] += log_prior
    scores.num_considered[0] = num_considered
    scores.log_total[0] = log_sum_exp(log_weight, num_considered + 1)
    scores.log_share[0] = -np.log1p(left_out / available) if has_any else 0.0


@inlined_kernel
def score_columns(
    design,
    prior,
    curvature,
    rows,
    node,
    num_looked_at,
    num_considered,
    is_on_record,
    scratch,
    scores,
    crew,
):
    """Write what columns offer a node to `scores`, with the help of a crew if there is one."""
    knows_even = False
    is_posted = False
    num_pairs = (num_looked_at + 1) // 2
    if crew is not None:  # without one, Numba does not even compile what follows
        is_posted = is_worth_sharing(crew, node.stop - node.start, num_looked_at)
        if is_posted:
            post_node(
                crew,
                node,
                curvature,
                num_looked_at,
                num_considered,
                is_on_record,
                scores.is_of_root,
            )
    pair = num_pairs
    num_done = 0
    while True:
        if crew is None:
            pair -= 1
        else:
            pair = take(crew) if is_posted else pair - 1
        if pair < 0:
            break
        knows_even = score_two_columns(
            design,
            prior,
            curvature,
            rows,
            node,
            pair,
            num_looked_at,
            num_considered,
            is_on_record,
            knows_even,
            scratch,
            scores,
        )
        num_done += 1
    if crew is not None and is_posted:
        finish(crew, num_done, num_pairs)


@inner_kernel
def draw_cut(design, prior, curvature, rows, node, v, scratch, rng):
    """Code of a cut of column v, drawn by weight, in a node that has been scored.

    Its own children must not have been scored since.
    """
    # Finding the cuts again costs one column of many; keeping those of all columns would cost
    # memory traffic for each.
    again = without_places(node, node.place)
    look_at(design, curvature, rows, node, scratch.members)
    num_cuts = find_cuts(design, prior, curvature, rows, again, v, FIRST, YES, scratch)
    cuts = scratch.cuts
    weigh_cuts(cuts, num_cuts, again.sum_h, curvature)
    score_cuts(cuts, num_cuts, again, curvature, rows)
    return cuts.code[draw_from_weights(cuts.term, num_cuts, rng)]


@inner_kernel
def has_cuts(design, prior, curvature, rows, node, scratch):
    """Whether a node can split, asking columns until one has cuts."""
    if prior.min_samples_leaf > 1:
        look_at(design, curvature, rows, node, scratch.members)
    for column in range(design.num_codes.size):
        v = np.int32(column)  # as everywhere else
        if prior.split_weights[v] == 0.0:
            continue
        if prior.min_samples_leaf == 1:
            if is_varied(design, v, rows, node.start, node.stop):
                return True
            continue
        start_code_range(scratch.code_range, node.depth, v, design.num_codes, NO)
        if find_cuts(design, prior, curvature, rows, node, v, FIRST, NO, scratch) > 0:
            return True
    return False
