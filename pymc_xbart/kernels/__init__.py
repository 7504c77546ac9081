"""Kernels of XBART, without PyMC (floor 0: NumPy and Numba only).

State comes in and `(state, info)` goes out; what is overwritten says so. The caller's
`numpy.random.Generator` is the only source of chance. Kernels trust their callers: user input is
checked one floor up.
"""

from pymc_xbart.kernels.availability import split_availability
from pymc_xbart.kernels.chains import effective_draws, rank_scores
from pymc_xbart.kernels.codes import cut_values, encode
from pymc_xbart.kernels.columns import ColumnChoice, column_choice
from pymc_xbart.kernels.expectation import (
    WeightedForest,
    expected_changes,
    expected_values,
    shares_left,
)
from pymc_xbart.kernels.full_sweep import (
    describe_forest,
    proposal_log_density,
    propose_forest,
    sweep_as_one,
)
from pymc_xbart.kernels.grow import Workspace, make_workspace
from pymc_xbart.kernels.leaf_numbers import find_leaves, make_leaf_of_row
from pymc_xbart.kernels.marginal import marginal_values, profile_values
from pymc_xbart.kernels.newton import cautious, log_prior_ratio, newton_step
from pymc_xbart.kernels.noise import SideDraws
from pymc_xbart.kernels.one_tree import grow_successor, redraw_successor, tree_log_w
from pymc_xbart.kernels.paths import count_meetings
from pymc_xbart.kernels.prior import draw_prior_forest
from pymc_xbart.kernels.records import (
    CUT_PRIORS,
    STEEPEST,
    Design,
    Forest,
    Prior,
    SweepInfo,
    join_forests,
    split_forest,
    stump_forest,
    take_trees,
)
from pymc_xbart.kernels.route import (
    forest_values,
    route_codes,
    route_values,
    rows_of_leaves,
    sum_of_trees,
)
from pymc_xbart.kernels.sweep import sweep
from pymc_xbart.kernels.transplant import transplant_forest
from pymc_xbart.kernels.weights import whole_multiples

__all__ = [
    "CUT_PRIORS",
    "STEEPEST",
    "ColumnChoice",
    "Design",
    "Forest",
    "Prior",
    "SideDraws",
    "SweepInfo",
    "WeightedForest",
    "Workspace",
    "cautious",
    "column_choice",
    "count_meetings",
    "cut_values",
    "describe_forest",
    "draw_prior_forest",
    "effective_draws",
    "encode",
    "expected_changes",
    "expected_values",
    "find_leaves",
    "forest_values",
    "grow_successor",
    "join_forests",
    "log_prior_ratio",
    "make_leaf_of_row",
    "make_workspace",
    "marginal_values",
    "newton_step",
    "profile_values",
    "proposal_log_density",
    "propose_forest",
    "rank_scores",
    "redraw_successor",
    "route_codes",
    "route_values",
    "rows_of_leaves",
    "shares_left",
    "split_availability",
    "split_forest",
    "stump_forest",
    "sum_of_trees",
    "sweep",
    "sweep_as_one",
    "take_trees",
    "transplant_forest",
    "tree_log_w",
    "whole_multiples",
]
