"""One forest of a model between the model's values and the kernels (floor 2).

An ensemble is what never changes while sampling: coded covariates, prior, scratch. What does change
is an `EnsembleState`, which the step method keeps and PyMC saves and restores.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.blocks import BlockSampler
from pymc_xbart.forest.correction import MIN_REGROWN, Correction
from pymc_xbart.forest.nonquadratic import LogLikelihood, TreeSampler
from pymc_xbart.forest.sampler import count_splits
from pymc_xbart.forest.stored import StoredForest
from pymc_xbart.forest.surrogate import (
    Surrogate,
    coarsen,
    learn_size,
    learn_values,
    linearise,
    num_blocks,
    unlearnt_surrogate,
)
from pymc_xbart.forest.views import (
    Views,
    choose_for_trees,
    encode_views,
    share_weights,
    sum_by_column,
    to_columns,
    to_views,
)
from pymc_xbart.kernels import (
    ColumnChoice,
    Design,
    Forest,
    Prior,
    column_choice,
    cut_values,
    draw_prior_forest,
    make_leaf_of_row,
    make_workspace,
    rows_of_leaves,
    split_availability,
    stump_forest,
    sum_of_trees,
    sweep,
    sweep_as_one,
    transplant_forest,
)
from pymc_xbart.plugin.report import SweepReport, report_of

START_SWEEPS = (
    10  # enough to follow given initial values about as closely as the prior lets trees do
)
# Share of the sweeps that update trees one by one although blocks pay. A forest that a block can't
# leave, since the quadratic stand-in makes too little of it there, is left by these.
ONE_BY_ONE = 0.01
# Share of the sweeps in tuning that try blocks although they do not pay, or not yet.
TRIALS = 0.25


class EnsembleState(NamedTuple):
    """Trees, and what they are at the rows of X."""

    forest: Forest
    leaf_of_row: NDArray[Any]  # (num_trees, n), uint16 or int32
    f: NDArray[np.float64]  # (n,), prior mean plus sum of the trees
    # What tuning has learnt about a log-likelihood that is not quadratic; None if it was not asked
    surrogate: Surrogate | None = None


class Splits(NamedTuple):
    """Splits of a forest, column by column of X, p in all."""

    counts: NDArray[np.int64]  # (p,)
    # (splits, p), what each column weighs in the prior of each split, apart from its split weight:
    # that of its views which have cuts there, all of them together being 1, see
    # `split_availability`
    availability: NDArray[np.float64]


class Ensemble:
    """Sum of trees over the rows of one X.

    Parameters
    ----------
    design : Design
        Of the views of X.
    views : Views
    prior : Prior
        Of one tree; hyperparameters that are random have their initial values in it.
    mu : float
        Prior mean of f, added to the sum of the trees.
    num_trees : int
    num_threads : int, default 1
        That share the work on large nodes; without effect on results.
    """

    def __init__(
        self,
        design: Design,
        views: Views,
        prior: Prior,
        mu: float,
        num_trees: int,
        num_threads: int = 1,
    ) -> None:
        self.design = design
        self.views = views
        self.prior = prior
        self.mu = mu
        self.num_trees = num_trees
        self.num_threads = num_threads
        num_views, num_rows = design.codes.shape
        self._work = make_workspace(num_rows, num_views, prior.num_cutpoints, num_threads)
        self._choices: dict[int, ColumnChoice] = {}  # under `prior`, by how many are considered

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the scratch behind when a step travels to another process."""
        what = self.design, self.views, self.prior, self.mu, self.num_trees, self.num_threads
        return type(self), what

    @property
    def num_rows(self) -> int:
        """Rows of X."""
        return int(self.design.codes.shape[1])

    def state_of(self, forest: Forest, leaf_of_row: NDArray[Any]) -> EnsembleState:
        """Put trees together with their f."""
        f = sum_of_trees(forest, leaf_of_row)
        f += self.mu
        return EnsembleState(forest, leaf_of_row, f)

    def stumps(self) -> EnsembleState:
        """Trees that do not split and have value 0: f is mu everywhere."""
        leaf_of_row = make_leaf_of_row(self.num_trees, self.num_rows)
        return self.state_of(stump_forest(self.num_trees), leaf_of_row)

    def prior_with(self, sigma: float, split_weights: NDArray[np.float64]) -> Prior:
        """Prior of a tree under other hyperparameters, with weights of columns, (p,)."""
        leaf_var = float(sigma) ** 2 / self.num_trees
        weights = share_weights(split_weights, self.views)
        return self.prior._replace(leaf_var=leaf_var, split_weights=weights)

    def draw_prior(self, prior: Prior, rng: np.random.Generator) -> EnsembleState:
        """Trees drawn from their prior."""
        return self.state_of(*draw_prior_forest(self.design, prior, self.num_trees, rng))

    def splits(self, state: EnsembleState) -> Splits:
        """What the trees say about the weights of columns."""
        counts = count_splits(state.forest, self.design.num_codes.size)
        available = split_availability(state.forest, self.design, self.prior, self._work)
        available /= self.views.of_column[self.views.column]
        return Splits(sum_by_column(counts, self.views), sum_by_column(available, self.views))

    def stored(self, state: EnsembleState) -> StoredForest:
        """Trees that no longer need the rows of X."""
        forest, leaf_of_row = state[:2]
        cuts = cut_values(self.design, forest.column, forest.cut)
        rows = rows_of_leaves(forest, leaf_of_row)
        return StoredForest(self.mu, *to_columns(forest, cuts, self.views), cuts, rows)

    def transplant(self, stored: StoredForest) -> EnsembleState:
        """Put the trees of another fit on the rows of X."""
        forest, leaf_of_row = transplant_forest(
            to_views(stored.forest, stored.view, self.views),
            *(stored.cut_value, self.design, self.prior),
        )
        # Another prior mean is none of the trees' business: every leaf takes its share of it.
        is_leaf = forest.left < 0
        forest.value[is_leaf] += (stored.mu - self.mu) / self.num_trees
        return self.state_of(forest, leaf_of_row)

    def start(
        self, f: NDArray[np.float64], prior: Prior, rng: np.random.Generator
    ) -> EnsembleState:
        """Grow trees that follow given initial values f, (n,), as a sum of trees can.

        The values stand in for a response, observed with the standard deviation of one tree's leaf
        value.
        """
        state = self.stumps()
        if (f == self.mu).all():
            return state
        h = np.full(self.num_rows, 1.0 / prior.leaf_var)
        for _ in range(START_SWEEPS):
            g = h * (f - state.f)
            state, _ = self.sweep(state, g, h, prior, rng, Correction())
        return state

    def sweep(
        self,
        state: EnsembleState,
        g: NDArray[np.float64],
        h: NDArray[np.float64],
        prior: Prior,
        rng: np.random.Generator,
        correction: Correction,
    ) -> tuple[EnsembleState, SweepReport]:
        """Replace the trees once, with `g`, `h` (n,) at the current f.

        `state.leaf_of_row` is overwritten, and so are `g` and `h` in the first sweeps.
        """
        if correction.kind == "sweep":
            forest, leaf_of_row, info = sweep_as_one(
                *state[:2], g, h, self.design, prior, self._work, rng, scan=correction.scan
            )
            return self.state_of(forest, leaf_of_row), report_of(info)
        if correction.is_first:
            soften(g, h)
        forest, leaf_of_row, info = sweep(
            state.forest,
            state.leaf_of_row,
            g,
            h,
            self.design,
            prior,
            self._work,
            rng,
            is_corrected=correction.kind == "tree",
            num_regrown=correction.num_regrown(self.num_trees),
            choice=self._choice(correction, prior),
        )
        return self.state_of(forest, leaf_of_row), report_of(info)

    def sweep_nonquadratic(
        self,
        state: EnsembleState,
        likelihood: LogLikelihood,
        prior: Prior,
        rng: np.random.Generator,
        correction: Correction,
    ) -> tuple[EnsembleState, SweepReport]:
        """Replace the trees once, whatever the log-likelihood."""
        surrogate = state.surrogate
        if correction.is_tuning and surrogate is None:
            surrogate = unlearnt_surrogate(self.num_rows, self.num_trees)
        if surrogate is not None and self._takes_blocks(surrogate, rng, correction):
            new, report, surrogate = self._sweep_blocks(
                state, surrogate, likelihood, prior, rng, correction
            )
        else:
            new, report = self._sweep_tree_by_tree(state, likelihood, prior, rng, correction)
        if correction.is_tuning and surrogate is not None:
            surrogate = learn_values(surrogate, new.f)
        return new._replace(surrogate=surrogate), report

    @staticmethod
    def _takes_blocks(
        surrogate: Surrogate, rng: np.random.Generator, correction: Correction
    ) -> bool:
        """Whether trees are updated in blocks, which no tree at hand has a say in."""
        if correction.kind != "tree" or not surrogate.is_known:
            return False
        if surrogate.pays:
            return rng.random() >= ONE_BY_ONE
        return correction.is_tuning and rng.random() < TRIALS

    def _sweep_blocks(
        self,
        state: EnsembleState,
        surrogate: Surrogate,
        likelihood: LogLikelihood,
        prior: Prior,
        rng: np.random.Generator,
        correction: Correction,
    ) -> tuple[EnsembleState, SweepReport, Surrogate]:
        """Replace blocks of trees; returns what there is to learn about their size, too."""
        prior_var = prior.leaf_var * self.num_trees
        quadratic = coarsen(linearise(surrogate, likelihood, prior_var), rng)
        choice = self._choice(correction, prior)
        sampler = BlockSampler(likelihood, quadratic, self.design, prior, choice, self._work, rng)
        forest, leaf_of_row, info, acceptance = sampler.sweep(
            *(state.forest, state.leaf_of_row, state.f),
            num_blocks=num_blocks(surrogate, self.num_trees),
            num_regrown=correction.num_regrown(self.num_trees),
        )
        if correction.is_tuning:
            surrogate = learn_size(surrogate, acceptance, self.num_trees)
        return self.state_of(forest, leaf_of_row), report_of(info), surrogate

    def _sweep_tree_by_tree(
        self,
        state: EnsembleState,
        likelihood: LogLikelihood,
        prior: Prior,
        rng: np.random.Generator,
        correction: Correction,
    ) -> tuple[EnsembleState, SweepReport]:
        choice = self._choice(correction, prior)
        sampler = TreeSampler(likelihood, self.design, prior, choice, self._work, rng)
        trees = state.forest, state.leaf_of_row, state.f
        if correction.kind == "sweep":
            forest, leaf_of_row, info = sampler.sweep_as_one(*trees, scan=correction.scan)
        else:
            forest, leaf_of_row, info = sampler.sweep(
                *trees,
                is_corrected=correction.kind == "tree",
                num_regrown=correction.num_regrown(self.num_trees),
            )
        return self.state_of(forest, leaf_of_row), report_of(info)

    def _choice(self, correction: Correction, prior: Prior) -> ColumnChoice:
        if correction.kind == "sweep":  # the way back would need the columns of the way there
            return column_choice(self.views.column.size)
        num_considered = correction.num_considered(self.views.is_categorical.size)
        if prior is not self.prior:  # its split weights may be others in each draw
            return choose_for_trees(num_considered, self.views, prior)
        if num_considered not in self._choices:
            self._choices[num_considered] = choose_for_trees(num_considered, self.views, prior)
        return self._choices[num_considered]


def soften(g: NDArray[np.float64], h: NDArray[np.float64]) -> None:
    """Let a log-likelihood, by its `g` and `h` (n,), expect residuals as large as they are.

    Both are overwritten.

    Before trees have found f, residuals are far larger than the noise says. A tree then follows all
    that there is of f by itself, with thousands of leaves, and leaves nothing to the others; sweeps
    take long to come back from there. In the paper's algorithm, noise starts as large as y.
    """
    is_seen = h > 0.0
    if not is_seen.any():
        return
    with np.errstate(over="ignore"):
        squares = g * g
        np.divide(squares, h, out=squares, where=is_seen)
        excess = squares.mean(where=is_seen)  # 1 where the noise is right
    if 1.0 < excess < np.inf:
        g /= excess
        h /= excess


def compile_kernels(correction: Correction, *, is_quadratic: bool, num_threads: int = 1) -> None:
    """Compile what sampling needs, on a forest of few trees over two rows.

    Worker processes that are forked later then find it compiled.
    """
    design, views = encode_views(np.array([[0.0], [1.0]]))
    prior = Prior(0.5, 1.0, 1.0, np.ones(1), 1, 1, 1)
    num_trees = MIN_REGROWN + 1  # so that one of them is not regrown
    ensemble = Ensemble(design, views, prior, 0.0, num_trees)
    # With no work too little to be shared, what helpers run is compiled, too.
    ensemble._work = make_workspace(2, 1, prior.num_cutpoints, num_threads, least_work=0)
    state = ensemble.stumps()
    rng = np.random.default_rng(0)
    for step in {Correction(), correction._replace(mtry=None)}:  # the first sweeps have none
        if is_quadratic:
            state, _ = ensemble.sweep(state, np.ones(2), np.ones(2), prior, rng, step)
        else:
            state, _ = ensemble.sweep_nonquadratic(state, _Quadratic(), prior, rng, step)


class _Quadratic:
    """Log-likelihood to compile kernels with."""

    def gradient_curvature(
        self, f: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return -f, np.ones(f.size)

    def log_p(self, f: NDArray[np.float64]) -> float:
        return -0.5 * float(f @ f)
