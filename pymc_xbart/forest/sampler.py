"""The paper's algorithm, sweep by sweep, for a Normal likelihood (floor 1).

1. Take one tree out of f, and grow another from the root on what the rest leaves of y.
2. Draw column weights from Dirichlet(1 + splits on each column), and the noise variance from its
   inverse gamma conditional. Go on with the next tree.

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees". Departures: y
comes without its mean, so that the paper's first residual, y / L for each tree, becomes y with all
trees at 0; the first sweep to use `mtry` columns is the first that is kept, while the print has it
begin one sweep earlier; column weights are not drawn where they are of no use, which is where all
columns are considered.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.options import Options
from pymc_xbart.forest.prior import check_split_weights, tree_prior
from pymc_xbart.forest.training import Training
from pymc_xbart.kernels import (
    Design,
    Forest,
    Prior,
    SideDraws,
    SweepInfo,
    Workspace,
    column_choice,
    cut_values,
    forest_values,
    make_workspace,
    route_codes,
    stump_forest,
    sweep,
)


class Scale(NamedTuple):
    """What the first fit takes from the data, as far as it is not given."""

    mean: float
    leaf_var: float
    noise_rate: float


class Task(NamedTuple):
    """What does not change while sampling.

    A row of weight w counts as w observations, each y ~ N(f, noise_var).
    """

    design: Design
    y: NDArray[np.float64]  # (n,), less its mean
    weight: NDArray[np.float64]  # (n,), > 0
    prior: Prior
    num_trees: int
    mtry: int  # columns that a node considers once burn-in is over
    is_corrected: bool  # each new tree must pass a Metropolis-Hastings test
    noise_shape: float  # noise_var is a priori inverse gamma (noise_shape / 2, noise_rate / 2)
    noise_rate: float


def make_task(options: Options, training: Training, design: Design, scale: Scale) -> Task:
    """Put together what has been checked."""
    num_columns, num_rows = design.codes.shape
    prior = tree_prior(
        options.settings,
        sigma=1.0,
        split_weights=check_split_weights(None, num_columns),
        num_rows=num_rows,
    )
    return Task(
        design,
        training.y - scale.mean,
        training.weight,
        prior._replace(leaf_var=scale.leaf_var),
        options.settings.num_trees,
        options.mtry,
        options.is_corrected,
        options.noise_shape,
        scale.noise_rate,
    )


class SamplerState(NamedTuple):
    """What the next sweep starts from."""

    forest: Forest
    noise_var: float
    split_counts: NDArray[np.int64]  # (p,), splits of the forest on each column
    column_weights: NDArray[np.float64]  # (p,), with which columns are drawn


class Chain(NamedTuple):
    """What a later fit goes on from."""

    state: SamplerState
    rng: np.random.Generator
    rows: str  # fingerprint of the rows that the trees belong to


class Trace(NamedTuple):
    """What readers want to know of the sweeps so far."""

    # of kept sweeps
    forests: list[Forest]
    cut_values: list[NDArray[np.float64]]  # (nodes,), in the units of X
    split_counts: list[NDArray[np.int64]]  # (p,)
    # of all sweeps
    noise_sd: list[float]
    num_leaves: list[NDArray[np.int32]]  # (num_trees,)
    accepted: list[NDArray[np.bool_]]  # (num_trees,)


def empty_trace() -> Trace:
    """Trace before the first sweep."""
    return Trace([], [], [], [], [], [])


def record(
    trace: Trace, task: Task, state: SamplerState, info: SweepInfo, *, is_kept: bool
) -> None:
    """Append one sweep to `trace`."""
    trace.noise_sd.append(state.noise_var**0.5)
    trace.num_leaves.append(info.num_leaves)
    trace.accepted.append(info.accepted)
    if is_kept:
        forest = state.forest
        trace.forests.append(forest)
        trace.cut_values.append(cut_values(task.design, forest.column, forest.cut))
        trace.split_counts.append(state.split_counts)


def fingerprint(design: Design) -> str:
    """Name of the rows of X, as far as trees can tell them apart."""
    digest = hashlib.blake2b()
    for array in design:
        digest.update(array.tobytes())
    return digest.hexdigest()


def first_state(num_trees: int, num_columns: int, noise_var: float) -> SamplerState:
    """Trees that do not split and have value 0, and equal column weights."""
    return SamplerState(
        stump_forest(num_trees),
        noise_var,
        np.zeros(num_columns, np.int64),
        np.full(num_columns, 1.0 / num_columns),
    )


def draw_sweeps(
    task: Task,
    state: SamplerState,
    rng: np.random.Generator,
    sweep_numbers: Iterable[int],
    burnin: int,
) -> Iterator[tuple[int, SamplerState, SweepInfo]]:
    """Go on from `state`, sweep after sweep.

    Parameters
    ----------
    sweep_numbers : iterable of int
        Counted from 0 at the first sweep ever. Those below `burnin` consider all columns.

    Yields
    ------
    number : int
    state : SamplerState
    info : SweepInfo
    """
    num_columns, num_rows = task.design.codes.shape
    work = make_workspace(num_rows, num_columns, task.prior.num_cutpoints)
    leaf_of_row = np.empty((task.num_trees, num_rows), np.int32)
    route_codes(state.forest, task.design.codes, leaf_of_row)
    for number in sweep_numbers:
        mtry = num_columns if number < burnin else task.mtry
        state, info = _sweep_once(task, state, leaf_of_row, mtry, work, rng)
        yield number, state, info


def _sweep_once(
    task: Task,
    state: SamplerState,
    leaf_of_row: NDArray[np.int32],
    mtry: int,
    work: Workspace,
    rng: np.random.Generator,
) -> tuple[SamplerState, SweepInfo]:
    """Sweep once; `leaf_of_row` (num_trees, n) is overwritten."""
    # From the trees and not carried along: rounding does not add up, and a sampler that was stopped
    # goes on as if it had not been.
    f = np.empty(task.y.size)
    forest_values(state.forest, leaf_of_row, f)
    h = task.weight / state.noise_var
    g = h * (task.y - f)
    choice = column_choice(state.column_weights.size, mtry, state.column_weights)
    num_observations = float(task.weight.sum())
    side = SideDraws(
        draws_noise=True,
        noise_var=np.array([state.noise_var]),
        # The kernel counts rows, each with its own variance.
        noise_shape=task.noise_shape + (num_observations - task.y.size),
        noise_rate=task.noise_rate,
        draws_weights=task.mtry < task.design.num_codes.size,
        split_counts=state.split_counts.copy(),
    )
    forest, info = sweep(
        state.forest,
        leaf_of_row,
        g,
        h,
        task.design,
        task.prior,
        work,
        rng,
        is_corrected=task.is_corrected,
        choice=choice,
        side=side,
    )
    counts = count_splits(forest, task.design.num_codes.size)
    return SamplerState(forest, float(side.noise_var[0]), counts, choice.weights), info


def count_splits(forest: Forest, num_columns: int) -> NDArray[np.int64]:
    """Splits of a forest on each column, (p,)."""
    counts: NDArray[np.int64] = np.bincount(
        forest.column[forest.column >= 0], minlength=num_columns
    ).astype(np.int64)
    return counts
