"""`XBARTStep`: update every forest of a PyMC model by a sweep over its trees (floor 2).

1. Ask the model's own log-probability for its gradient and curvature in f, all else being as it is.
2. Replace every tree of the forest in turn, given the others: grow one from the root, and accept it
   or keep the old one.
3. Go on with the next forest, whose gradient has seen the first one move.

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees" and section
"Metropolis-Hastings Proposal Distribution"; everything else in the model keeps the step methods
that PyMC gives it.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pymc.model import Model, modelcontext
from pymc.stats.convergence import SamplerWarning
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable
from rich.progress import TextColumn

from pymc_xbart.forest.correction import (
    BURN_IN,
    REGROW,
    Correction,
    check_correction,
    num_uncorrected,
)
from pymc_xbart.forest.schema import trees_name
from pymc_xbart.forest.threads import check_num_threads
from pymc_xbart.kernels import Prior, describe_forest
from pymc_xbart.plugin.ensemble import EnsembleState, compile_kernels
from pymc_xbart.plugin.report import (
    SweepReport,
    low_acceptance,
    mean_of,
    progress_columns,
    progress_update,
    report_of,
    stat_names,
)
from pymc_xbart.plugin.start import number_of_chain, read_start, start_chain
from pymc_xbart.plugin.storage import NO_TREES, Text
from pymc_xbart.plugin.target import Target, find_forests, is_forest, make_target, no_likelihood


@dataclass_state
class XBARTState(StepMethodState):
    """What a chain needs to go on: PyMC copies it, restores it between chains and stores it."""

    tune: bool
    num_sweeps: int  # in tuning, so far
    num_first: int  # sweeps in tuning that are not corrected
    forests: dict[str, list[EnsembleState]]  # by name of the forest, one for each row of its value
    fresh: dict[str, list[EnsembleState]]  # trees to start from, until the first step has used them


class XBARTStep(BlockedStep):
    """Step method for `XBARTForest` variables.

    `pm.sample` assigns it by itself. Create one only to choose its options:
    ``pm.sample(step=XBARTStep([f], correction="none"))``, or ``pm.sample(xbart={"correction":
    "none"})``.

    Parameters
    ----------
    vars : list of TensorVariable, optional
        Forests to update, as random or as value variables; all forests of the model by default.
    correction : {"tree", "sweep", "none"}, default "tree"
        "tree" samples the exact posterior: a tree grown from the root is a Metropolis-Hastings
        proposal, and in trees that are not, single splits are redrawn. "sweep" does so, too, with
        all trees as one proposal [1]_; in the paper's order, that is rarely accepted with more than
        a few trees. "none" is the sweep of [1]_ as it stands: fast, but a search and no posterior
        sampler.
    scan : {"paper", "reversible"}, default "paper"
        Of "sweep": whether the way back visits trees in the same order, or in the opposite one of
        an order that is drawn.
    mtry : int, optional
        Of "tree" and "none": at most about how many columns are considered for a tree, beside those
        that it splits on already; by default a third of the columns, at least 5 and at most 30.
        Half of them are drawn by the split weights, half evenly. Exactness is not touched by it.
    regrow : float, default 0.2
        Of "tree": share of the trees, drawn anew for each sweep and at least five, that are grown
        from the root, in (0, 1]. In each of the others two splits are redrawn, which takes a
        fraction of the time; with 1, all trees are grown from the root.
    sweeps_per_draw : int, optional
        How often a draw goes over all trees of each forest. By default once, or, with "tree" and a
        log-likelihood that is quadratic in f, up to four times where the trees are done sooner than
        the rest of a draw: 25 000 / (rows times trees), rounded.
    store_trees : bool, default True
        Whether the trees of each kept draw go into `sample_stats`, as ``<name>_trees``: about 9
        bytes a node, compressed. `predict` and `sample_posterior_predictive` read them.
    num_threads : int, default 1
        Threads of each chain that share the work on large nodes of a tree, >= 1. Draws are the same
        to the last bit. Chains in processes of their own (``cores``) come first: each takes a core
        for itself, where threads share a part of the work. So it is for the cores that are left,
        and for some ten thousand rows or more; a log-probability that is not quadratic starts
        threads anew for each block of trees, or each tree, and takes more to gain by it.
    start : xarray.DataTree, xarray.Dataset or XBARTRegressor, optional
        Trees to start from, instead of from none. Of what `pm.sample` returned, each chain takes
        the last draw of the chain with its number; the rows of X, and the hyperparameters, may be
        others. Of a regressor with as many trees, it takes the last sweep but c, c being its
        number [1]_. They are the first draw of the chain, so that the rest of the model, which
        starts at its own initial values, sees them before they are replaced. Initial values of a
        forest, where given, come first.
    model : pymc.Model, optional
        Taken from the context by default.
    initial_point : dict, optional
        Values at which the likelihood is examined; the model's initial point by default.
        `pm.sample` passes it.
    compile_kwargs : dict, optional
        ``mode`` for PyTensor functions. `pm.sample` passes it.
    rng : optional
        Seed or generator to use until `pm.sample` sets the chain's.
    blocked : bool, optional
        PyMC passes it. One step updates all its forests.

    Raises
    ------
    TypeError
        If a variable is no forest.
    NotImplementedError
        If the log-probability couples rows of one forest, or grows without bound with f.
    ValueError
        If an option is out of range, or data has another number of rows than X.
    pymc.exceptions.SamplingError
        If initial values leave no finite gradient or curvature.

    Warns
    -----
    UserWarning
        If nothing in the model depends on a forest: its draws are draws from its prior then. If
        there are more threads than cores that this process may use.

    Notes
    -----
    The log-probability may be any that is a sum over the rows of f, given all else. The step finds
    out by itself whether it is quadratic in f, as Normal ones are. If so, one gradient serves a
    whole sweep. If not, blocks of trees are updated under a quadratic function that tuning has
    fitted to it, or trees one by one where blocks would hardly be accepted, as with quantile
    regression, and where there is no tuning; the log-probability itself decides on trees and leaf
    values. All of this is exact.

    The first sweeps of tuning, 15 [1]_ or half of it if that is less, are uncorrected, to arrive
    fast; later ones, and all of a run with ``tune=0``, are corrected. Under a quadratic
    log-likelihood, these first sweeps take noise to be as large as what trees have left of the
    data, if it is smaller: else one tree would follow all that there is of f by itself.

    Per draw and forest, `sample_stats` has ``<name>_leaves``, ``<name>_depth`` and
    ``<name>_acceptance``: leaves per tree, depth of a tree's deepest leaf, and the share of trees
    grown from the root that were taken (0 or 1 for "sweep"); and ``<name>_trees``, the trees
    themselves as text.

    References
    ----------
    .. [1] He, J., Yalov, S. & Hahn, P. R. (2019). XBART: Accelerated Bayesian additive regression
       trees. AISTATS, PMLR 89.
    """

    name = "xbart"
    default_blocked = True
    _state_class = XBARTState

    def __init__(
        self,
        vars: Sequence[Variable] | Variable | None = None,
        *,
        correction: str = "tree",
        scan: str = "paper",
        mtry: int | None = None,
        regrow: float = REGROW,
        sweeps_per_draw: int | None = None,
        store_trees: bool = True,
        num_threads: int = 1,
        start: Any = None,
        model: Model | None = None,
        initial_point: dict[str, NDArray[Any]] | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        self.correction = check_correction(correction, scan, mtry, regrow, sweeps_per_draw)
        self.store_trees = store_trees
        num_threads = check_num_threads(num_threads)
        model = modelcontext(model)
        rvs = find_forests(vars, model)
        self.vars = [model.rvs_to_values[rv] for rv in rvs]
        self.rng = get_random_generator(rng)
        if self.correction.kind == "none":
            self.default_tune_steps = BURN_IN
        self.tune = True
        self.num_sweeps = 0
        self.num_first = 0  # `setup_chain` knows how many
        self._draws_left = -1  # until the chain ends, as far as `setup_chain` has told
        self._acceptance: dict[str, list[float]] = {}
        self.fresh: dict[str, list[EnsembleState]] = {}  # `setup_chain` makes them
        point = model.initial_point() if initial_point is None else initial_point
        mode = (compile_kwargs or {}).get("mode")
        self._targets = [
            make_target(model, rv, self.correction, mode, point, num_threads) for rv in rvs
        ]
        self._is_alone = set(self.vars) == set(model.value_vars)
        num_forests = len(find_forests(None, model))
        if start is not None and not blocked and 1 < num_forests < len(model.free_RVs):
            # Steps within steps: none of them can tell the number of its chain.
            msg = (
                "With blocked=False, chains can't tell which of the given trees are theirs. Leave "
                "`blocked` out, or make an XBARTStep for each forest."
            )
            raise ValueError(msg)
        self._starts = (
            {}
            if start is None
            else {target.name: read_start(start, target) for target in self._targets}
        )
        # PyMC keeps the arguments for unpickling: `start` would travel to every worker process.
        self.__dict__.get("_BlockedStep__newargs", ((), {}))[1].pop("start", None)
        for target in self._targets:
            if not target.likelihood.depends:
                warnings.warn(no_likelihood(target.name), UserWarning, stacklevel=2)
        # No trees yet: the first step of a chain makes them from that chain's initial values.
        self.forests: dict[str, list[EnsembleState]] = {}
        names = [name for target in self._targets for name in stat_names(target.name)]
        self.stats_dtypes_shapes: dict[str, Any] = {
            "tune": (bool, []),
            "warning": (SamplerWarning, None),
        } | {name: (np.float64, []) for name in names}
        if store_trees:
            self.stats_dtypes_shapes |= {
                trees_name(target.name): (object, []) for target in self._targets
            }
        self.stats_dtypes = [{stat: dtype for stat, (dtype, _) in self.stats_dtypes_shapes.items()}]
        for is_quadratic in {target.likelihood.is_quadratic for target in self._targets}:
            compile_kernels(self.correction, is_quadratic=is_quadratic, num_threads=num_threads)

    def step(
        self, point: dict[str, NDArray[Any]]
    ) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
        """Sweep over all trees of all forests, each given the current values of everything else."""
        point = dict(point)
        stats: dict[str, Any] = {"tune": self.tune, "warning": None}
        correction = self.correction._replace(is_tuning=self.tune)
        if self.tune:
            self.num_sweeps += 1
            if self.num_sweeps <= self.num_first:
                correction = correction._replace(kind="none", is_first=True)
        for target in self._targets:
            point[target.value_name], report = self._update(target, point, correction)
            stats |= dict(zip(stat_names(target.name), report, strict=True))
            if self.store_trees:
                stats[trees_name(target.name)] = self._trees(target)
            if not self.tune:
                self._acceptance.setdefault(target.name, []).append(report.acceptance)
        self._draws_left -= 1
        if self._draws_left == 0:
            stats["warning"] = low_acceptance(self._acceptance, self.correction.kind)
        return point, [stats]

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the chain's generator. Trees stay: PyMC restores the state a chain starts from."""
        self.rng = get_random_generator(rng, copy=False)
        self.tune = tune > 0
        self.num_sweeps = 0  # a step that has been used before begins anew, too
        # To arrive fast: of no use to a chain that starts where another has arrived.
        self.num_first = 0 if self._starts else num_uncorrected(tune)
        self._draws_left = tune + draws
        self._acceptance = {}
        self.fresh = {}
        for target in self._targets:
            target.check_data()
            self._make_trees(target)
        self._publish()

    def _make_trees(self, target: Target) -> None:
        """Make the trees that a chain starts from, where it can't do without or is given some."""
        has_trees = target.name in self.forests
        if target.name in self._starts:
            chain = number_of_chain(self.rng, self._is_alone)
            self.fresh[target.name] = start_chain(self._starts[target.name], chain, target)
        elif target.hyperparameters.is_random and not has_trees:
            self.fresh[target.name] = target.draw_prior(self.rng)
        if target.name in self.fresh and not has_trees:
            self.forests[target.name] = self.fresh[target.name]

    @property
    def sampling_state(self) -> XBARTState:
        """Trees and generator, as PyMC copies, stores and restores them."""
        return cast(XBARTState, super().sampling_state)

    @sampling_state.setter
    def sampling_state(self, state: XBARTState) -> None:
        BlockedStep.sampling_state.fset(self, state)
        self._publish()

    def _publish(self) -> None:
        """Let other steps see the trees at hand. They may run before this one does."""
        for target in self._targets:
            if target.name in self.forests:
                target.publish(self.forests[target.name])

    @staticmethod
    def competence(var: Variable, has_grad: bool) -> Competence:  # noqa: ARG004
        """Ideal for forests, useless for everything else."""
        return Competence.IDEAL if is_forest(var) else Competence.INCOMPATIBLE

    def _update(
        self, target: Target, point: dict[str, NDArray[Any]], correction: Correction
    ) -> tuple[NDArray[Any], SweepReport]:
        """Sweep over one forest variable. Returns its new value and what the sweeps did."""
        value = point[target.value_name]
        priors = target.priors(point)
        fresh = self.fresh.get(target.name)
        known = self.forests.get(target.name)
        states = self._trees_behind(target, value, priors)
        if states is fresh or states is not known:
            states = target.shrink(states, point)
        if target.name in self._starts and states is fresh:
            # The rest of the model has not seen these trees yet: redrawn next to a noise of
            # initial size, say, they would be lost at once.
            reports = [report_of(describe_forest(state.forest)) for state in states]
        else:
            try:
                reports = [
                    target.sweep(k, states, point, prior, self.rng, correction)
                    for k, prior in enumerate(priors)
                ]
            except BaseException:  # an interrupt, as a rule
                # A kernel may have written leaves of new trees to what the old ones have.
                self.forests.pop(target.name, None)
                raise
        self.forests[target.name] = states
        target.publish(states)
        # A copy: whoever writes to the value must not write to what the trees add up to.
        return target.values(states).reshape(value.shape).astype(value.dtype), mean_of(reports)

    def _trees(self, target: Target) -> Text:
        """Trees as they are stored. Those of tuning draws, which nobody reads, are not."""
        return NO_TREES if self.tune else Text(target.write(self.forests[target.name]))

    def _trees_behind(
        self, target: Target, value: NDArray[Any], priors: list[Prior]
    ) -> list[EnsembleState]:
        """Trees whose sum is the forest's current value.

        The value is authoritative. Where the trees at hand do not add up to it, as in a new chain
        or after new initial values, others are grown to follow it. A value that is the prior mean
        everywhere is where PyMC starts, and asks for no trees in particular: those that the chain
        was given to start from may follow it, or, where hyperparameters are random, trees drawn
        from the prior. Those that a step has kept from an earlier run may not: the next run would
        depend on it.
        """
        wanted = value.reshape(len(target.ensembles), -1)
        fresh = self.fresh.pop(target.name, None)
        states = self.forests.get(target.name)
        if states is not None:
            values = target.values(states).astype(value.dtype, copy=False)
            if np.array_equal(values, wanted):
                return states
        if target.is_default_start(wanted):
            if fresh is not None:
                return fresh
            if target.hyperparameters.is_random:
                return target.draw_prior(self.rng)
        return target.start(wanted, priors, self.rng)

    def _progressbar_config(
        self, n_chains: int = 1
    ) -> tuple[list[TextColumn], dict[str, list[str]]]:
        return progress_columns([target.name for target in self._targets], n_chains)

    def _make_progressbar_update_functions(
        self,
    ) -> tuple[Callable[[dict[str, Any]], dict[str, str]]]:
        return (progress_update([target.name for target in self._targets]),)
