"""The paper's algorithm, sweep by sweep, for a Normal likelihood (floor 1).

1. Take one tree out of f, and grow another from the root on what the rest leaves of y.
2. Draw column weights from Dirichlet(1 + splits on each column). Go on with the next tree.
3. After the last one, draw the noise variance from its inverse gamma conditional.

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees". Departures: the
noise variance is drawn once a sweep, unless it is asked for after every tree, as in the paper; y
comes without its mean, so that the paper's first residual, y / L for each tree, becomes y with all
trees at 0; the first sweep to use `mtry` columns is the first that is kept, while the print has it
begin one sweep earlier; column weights are not drawn where they are of no use, which is where all
columns are considered.

Why once a sweep: in the first one the noise would fall with every tree, so that a few large trees
follow all that there is of f, and the others find nothing to do. Forests stay like that.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.calibration import default_noise_rate
from pymc_xbart.forest.correction import Correction, num_uncorrected
from pymc_xbart.forest.options import Options
from pymc_xbart.forest.prior import check_split_weights, tree_prior
from pymc_xbart.forest.training import Training, calibrate_training
from pymc_xbart.forest.views import (
    Views,
    choose_for_trees,
    num_views_of,
    share_weights,
    sum_by_column,
)
from pymc_xbart.kernels import (
    Design,
    Forest,
    Prior,
    SideDraws,
    SweepInfo,
    Workspace,
    column_choice,
    cut_values,
    find_leaves,
    make_workspace,
    stump_forest,
    sum_of_trees,
    sweep,
    sweep_as_one,
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

    design: Design  # of the views of X
    views: Views
    y: NDArray[np.float64]  # (n,), less its mean
    weight: NDArray[np.float64]  # (n,), > 0
    prior: Prior
    num_trees: int
    correction: Correction
    noise_shape: float  # noise_var is a priori inverse gamma (noise_shape / 2, noise_rate / 2)
    noise_rate: float
    noise_update: str
    num_threads: int


def make_task(
    options: Options, training: Training, design: Design, views: Views, scale: Scale
) -> Task:
    """Put together what has been checked."""
    weights = check_split_weights(None, views.is_categorical.size)
    prior = tree_prior(
        options.settings,
        sigma=1.0,
        split_weights=share_weights(weights, views),
        num_rows=design.codes.shape[1],
    )
    return Task(
        design,
        views,
        training.y - scale.mean,
        training.weight,
        prior._replace(leaf_var=scale.leaf_var),
        options.settings.num_trees,
        options.correction,
        options.noise_shape,
        scale.noise_rate,
        options.noise_update,
        options.num_threads,
    )


class SamplerState(NamedTuple):
    """What the next sweep starts from."""

    forest: Forest
    noise_var: float
    split_counts: NDArray[np.int64]  # (q,), splits of the forest on each view
    column_weights: NDArray[np.float64]  # (q,), with which views are drawn


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
    regrown: list[NDArray[np.bool_]]  # (num_trees,)
    accepted: list[NDArray[np.bool_]]  # (num_trees,)


def empty_trace() -> Trace:
    """Trace before the first sweep."""
    return Trace([], [], [], [], [], [], [])


def record(
    trace: Trace, task: Task, state: SamplerState, info: SweepInfo, *, is_kept: bool
) -> None:
    """Append one sweep to `trace`."""
    trace.noise_sd.append(state.noise_var**0.5)
    trace.num_leaves.append(info.num_leaves)
    trace.regrown.append(info.regrown)
    trace.accepted.append(info.accepted)
    if is_kept:
        forest = state.forest
        trace.forests.append(forest)
        trace.cut_values.append(cut_values(task.design, forest.column, forest.cut))
        trace.split_counts.append(sum_by_column(state.split_counts, task.views))


def fingerprint(design: Design) -> str:
    """Name of the rows of X, as far as trees can tell them apart."""
    digest = hashlib.blake2b()
    for array in design:
        digest.update(array.tobytes())
    return digest.hexdigest()


def first_state(num_trees: int, num_views: int, noise_var: float) -> SamplerState:
    """Trees that do not split and have value 0, and equal column weights."""
    return SamplerState(
        stump_forest(num_trees),
        noise_var,
        np.zeros(num_views, np.int64),
        np.full(num_views, 1.0 / num_views),
    )


def start_sampling(
    options: Options, training: Training, design: Design, rng: np.random.Generator
) -> tuple[Scale, Chain, Trace]:
    """Take the scale from the data, as far as it is not given, and begin with trees of one leaf."""
    num_trees = options.settings.num_trees
    calibration, variance = calibrate_training(training)
    scale = Scale(
        calibration.mu,
        options.leaf_var or calibration.sigma**2 / num_trees,
        options.noise_rate or default_noise_rate(options.noise_shape, variance),
    )
    state = first_state(num_trees, design.num_codes.size, variance)
    return scale, Chain(state, rng, fingerprint(design)), empty_trace()


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
        Counted from 0 at the first sweep ever. Below `burnin`, uncorrected ones consider all
        columns.

    Yields
    ------
    number : int
    state : SamplerState
    info : SweepInfo
    """
    num_views, num_rows = task.design.codes.shape
    work = make_workspace(num_rows, num_views, task.prior.num_cutpoints, task.num_threads)
    leaf_of_row = find_leaves(state.forest, task.design.codes)
    f = sum_of_trees(state.forest, leaf_of_row)
    for number in sweep_numbers:
        correction = task.correction
        if number < num_uncorrected(burnin):
            correction = correction._replace(kind="none")
        if number < burnin and correction.kind == "none":
            correction = correction._replace(mtry=None)
        state, leaf_of_row, f, info = _sweep_once(
            task, state, leaf_of_row, f, correction, work, rng
        )
        yield number, state, info


def _sweep_once(
    task: Task,
    state: SamplerState,
    leaf_of_row: NDArray[Any],
    f: NDArray[np.float64],
    correction: Correction,
    work: Workspace,
    rng: np.random.Generator,
) -> tuple[SamplerState, NDArray[Any], NDArray[np.float64], SweepInfo]:
    """Sweep once; `leaf_of_row` (num_trees, n) is overwritten, f (n,) is that of the trees."""
    h = task.weight / state.noise_var
    g = h * (task.y - f)
    noise_var, weights = state.noise_var, state.column_weights
    if correction.kind == "sweep":
        forest, leaf_of_row, info = sweep_as_one(
            state.forest, leaf_of_row, g, h, task.design, task.prior, work, rng
        )
    else:
        forest, leaf_of_row, info, noise_var, weights = _sweep_trees(
            task, state, leaf_of_row, g, h, correction, work, rng
        )
    # From the trees and not carried along: rounding does not add up, and a sampler that was stopped
    # goes on as if it had not been.
    f = sum_of_trees(forest, leaf_of_row)
    if task.noise_update == "sweep":
        noise_var = _draw_noise(task, f, rng)
    counts = count_splits(forest, task.design.num_codes.size)
    return SamplerState(forest, noise_var, counts, weights), leaf_of_row, f, info


def _sweep_trees(
    task: Task,
    state: SamplerState,
    leaf_of_row: NDArray[Any],
    g: NDArray[np.float64],
    h: NDArray[np.float64],
    correction: Correction,
    work: Workspace,
    rng: np.random.Generator,
) -> tuple[Forest, NDArray[Any], SweepInfo, float, NDArray[np.float64]]:
    """Replace tree after tree. `leaf_of_row` is overwritten.

    Returns noise variance and column weights, too, as far as they are drawn after trees.
    """
    num_views, num_columns = task.views.column.size, task.views.is_categorical.size
    is_corrected = correction.kind == "tree"
    # Weights that follow the splits of the tree to be replaced are no part of its prior, and would
    # change its proposal on the way back: a correction considers all columns equally often.
    if is_corrected or correction.mtry is None:
        num_considered = correction.num_considered(num_columns) if is_corrected else num_columns
        choice = choose_for_trees(num_considered, task.views, task.prior)
    else:
        mtry = num_views_of(correction.mtry, task.views)
        choice = column_choice(num_views, mtry, state.column_weights)
    side = _side_draws(task, state)
    forest, leaf_of_row, info = sweep(
        state.forest,
        leaf_of_row,
        g,
        h,
        task.design,
        task.prior,
        work,
        rng,
        is_corrected=is_corrected,
        num_regrown=correction.num_regrown(task.num_trees),
        choice=choice,
        side=side,
    )
    noise_var = state.noise_var if side is None else float(side.noise_var[0])
    return forest, leaf_of_row, info, noise_var, choice.weights


def _side_draws(task: Task, state: SamplerState) -> SideDraws | None:
    """What is drawn after every tree, if anything is."""
    num_columns = task.views.is_categorical.size
    draws_noise = task.noise_update == "tree"
    draws_weights = (
        task.correction.kind == "none" and (task.correction.mtry or num_columns) < num_columns
    )
    if not (draws_noise or draws_weights):
        return None
    return SideDraws(
        draws_noise,
        noise_var=np.array([state.noise_var]),
        # The kernel counts rows, each with its own variance.
        noise_shape=task.noise_shape + (float(task.weight.sum()) - task.y.size),
        noise_rate=task.noise_rate,
        draws_weights=draws_weights,
        split_counts=state.split_counts.copy(),
    )


def _draw_noise(task: Task, f: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Draw the noise variance given f at the training rows, (n,)."""
    # Not a product of BLAS: its rounding would depend on how many threads that uses.
    rate = task.noise_rate + float(np.sum(task.weight * (task.y - f) ** 2))
    return 0.5 * rate / rng.standard_gamma(0.5 * (task.noise_shape + float(task.weight.sum())))


def count_splits(forest: Forest, num_columns: int) -> NDArray[np.int64]:
    """Splits of a forest on each column, (p,)."""
    counts: NDArray[np.int64] = np.bincount(
        forest.column[forest.column >= 0], minlength=num_columns
    ).astype(np.int64)
    return counts
