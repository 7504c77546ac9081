"""Inner kernels for Python: they can't be called from there, and these can, doing nothing else."""

import numpy as np

from pymc_xbart.kernels import (
    chunks,
    column_scores,
    columns,
    draw,
    evidence,
    gradient,
    histogram,
    leaves,
    node_cuts,
    noise,
    overlap,
    partition,
    score,
    tally,
)
from pymc_xbart.kernels.decorator import kernel


@kernel
def draw_columns(choice, considered, rng):
    return columns.draw_columns(choice, considered, rng)


@kernel
def draw_subset(of, choice, rng):
    columns.draw_subset(of, choice, rng)


@kernel
def log_sum_exp(log_weight, size):
    return draw.log_sum_exp(log_weight, size)


@kernel
def log_sum_exp_of_many(log_weight, factor, size):
    return draw.log_sum_exp_of_many(log_weight, factor, size)


@kernel
def draw_from_log_weights(log_weight, size, log_total, rng):
    return draw.draw_from_log_weights(log_weight, size, log_total, rng)


@kernel
def draw_from_weights(weight, size, rng):
    return draw.draw_from_weights(weight, size, rng)


@kernel
def log_evidence(sum_g, sum_h, leaf_var):
    return evidence.log_evidence(sum_g, sum_h, leaf_var)


@kernel
def draw_leaf_value(sum_g, sum_h, leaf_var, rng):
    return evidence.draw_leaf_value(sum_g, sum_h, leaf_var, rng)


@kernel
def read_curvature(leaf_var, h, blank):
    return evidence.read_curvature(leaf_var, h, blank)


@kernel
def bucket_shift(lo, hi, size):
    return histogram.bucket_shift(lo, hi, size)


@kernel
def num_shared(one, other, node):
    rows = np.empty((2, overlap.num_words(one.size)), np.uint64)
    overlap.mark_rows(one, node, rows[0])
    overlap.mark_rows(other, node, rows[1])
    return overlap.num_shared(rows[0], rows[1])


@kernel
def factorise(a):
    return leaves.factorise(a)


@kernel
def solve_transposed(r, x):
    leaves.solve_transposed(r, x)


@kernel
def solve(r, x):
    leaves.solve(r, x)


@kernel
def redraw_leaves(forest, leaf_of_row, g, curvature, work, max_leaves, chunk_rows, rng):
    block = leaves.make_block(leaf_of_row.shape[0], chunk_rows, max_leaves)
    leaves.redraw_leaves(
        forest, leaf_of_row, g, curvature, work.blank, work.rows, work.crew, block, rng
    )
    return block.tree


@kernel
def draw_block(forest, num_trees, max_leaves, rng):
    block = leaves.make_block(num_trees, 1, max_leaves)
    return leaves.draw_block(forest, block, rng)


@kernel
def redraw_noise(g, h, side, rng):
    noise.redraw_noise(g, h, side, None, rng)


@kernel
def redraw_weights(weights, split_counts, rng):
    noise.redraw_weights(weights, split_counts, rng)


@kernel
def lay_out(num_rows, total_weight):
    return tally.lay_out(num_rows, total_weight)


@kernel
def tally_rows(g, blank, layout, tallies):
    unit, inverse_unit = tally.unit_of(g, layout)
    tally.tally_rows(g, inverse_unit, blank, layout, tallies, 0, g.size)
    return unit


@kernel
def open_root(g, h, curvature, work):
    gradient.take_up(g, curvature, work.blank, work.rows, None)
    sums, sum_h = partition.open_root(h, curvature.is_whole, work.rows)
    return evidence.sums_of_node(sums, sum_h, work.rows, curvature)


@kernel
def split_rows(codes, cut, rows, start, stop, curvature, crew):
    front, middle, back, last_left, left, right, left_h, right_h = chunks.split_rows(
        codes, np.int32(0), cut, rows, start, stop, curvature.is_whole, crew
    )
    return (
        front,
        middle,
        back,
        last_left,
        evidence.sums_of_node(left, left_h, rows, curvature),
        evidence.sums_of_node(right, right_h, rows, curvature),
    )


@kernel
def find_cuts(design, prior, curvature, rows, node, v, wants_codes, scratch):
    node_cuts.look_at(design, curvature, rows, node, scratch.members)
    return node_cuts.find_cuts(
        design, prior, curvature, rows, node, v, node_cuts.FIRST, wants_codes, scratch
    )


@kernel
def score_cuts(cuts, num_cuts, node, curvature, rows):
    column_scores.weigh_cuts(cuts, num_cuts, node.sum_h, curvature)
    return column_scores.score_cuts(cuts, num_cuts, node, curvature, rows)


@kernel
def score_node(design, prior, curvature, choice, rows, node, scratch, scores, rng):
    score.score_node(design, prior, curvature, choice, rows, node, scratch, scores, None, rng)
