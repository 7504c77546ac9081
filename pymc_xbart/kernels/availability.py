"""Which columns could have been split on where a forest splits (floor 0: NumPy and Numba only).

The prior of a split divides a column's weight by the sum over columns that have cuts in the node,
so that the density of a forest given split weights needs to know which these are.
"""

import numpy as np

from pymc_xbart.kernels.cuts import is_varied
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.evidence import read_curvature
from pymc_xbart.kernels.gradient import take_up
from pymc_xbart.kernels.grow import Workspace
from pymc_xbart.kernels.node_cuts import (
    FIRST,
    NO,
    NOWHERE,
    find_cuts,
    look_at,
    start_code_range,
    without_places,
)
from pymc_xbart.kernels.partition import open_root
from pymc_xbart.kernels.records import CUTS, NO_COLUMN, Design, Forest, Prior
from pymc_xbart.kernels.tree import add_node, split_node, waiting_node


def split_availability(forest: Forest, design: Design, prior: Prior, work: Workspace) -> np.ndarray:
    """What each column weighs in the prior of each split, apart from its split weight.

    Returns
    -------
    ndarray of shape (number of splits, p), float64
        1 for a column with cuts in the node, under `cut_prior` CUTS the number of its cuts; 0 for
        the others.
    """
    num_columns, num_rows = design.codes.shape
    num_splits = int((forest.column != NO_COLUMN).sum())
    available = np.zeros((num_splits, num_columns))
    _fill(forest, design, prior, work, np.zeros(num_rows), available)
    return available


@kernel
def _fill(forest, design, prior, work, zeros, available):
    """Follow every tree from its root and look at all columns of every split."""
    curvature = read_curvature(prior.leaf_var, zeros, work.blank)
    take_up(zeros, curvature, work.blank, work.rows, None)
    tree = work.tree
    row = 0
    for index in range(forest.tree_start.size - 1):
        start = forest.tree_start[index]
        open_root(zeros, curvature.is_whole, work.rows)
        add_node(tree, np.int64(0), np.int32(0), np.int32(zeros.size), np.int32(0), 0.0, 0.0)
        # Children stand behind their parent, so that the order of storage serves.
        for node in range(forest.tree_start[index + 1] - start):
            column = forest.column[start + node]
            if column == NO_COLUMN:
                continue
            bare = without_places(waiting_node(tree, node), NOWHERE)
            look_at(design, curvature, work.rows, bare, work.scratch.members)
            for considered in range(available.shape[1]):
                v = np.int32(considered)  # as in `score`
                if prior.cut_prior != CUTS and prior.min_samples_leaf == 1:
                    # whether there are cuts shows in the first few rows
                    available[row, v] = is_varied(design, v, work.rows, bare.start, bare.stop)
                    continue
                start_code_range(work.scratch.code_range, bare.depth, v, design.num_codes, NO)
                num_cuts = find_cuts(
                    design, prior, curvature, work.rows, bare, v, FIRST, NO, work.scratch
                )
                available[row, v] = num_cuts if prior.cut_prior == CUTS else min(num_cuts, 1)
            row += 1
            left = np.int64(forest.left[start + node])
            split_node(
                tree,
                node,
                left,
                column,
                forest.cut[start + node],
                design.codes[column],
                curvature,
                work.rows,
                None,
            )
