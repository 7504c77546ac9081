"""`XBARTStep`: update every forest of a PyMC model by a grow-from-root sweep (floor 2).

1. Ask the model's own log-probability for its gradient and curvature in f, all else being as it is.
2. Regrow every tree of the forest in turn, given the others.
3. Go on with the next forest, whose gradient has seen the first one move.

He, Yalov & Hahn (2019), algorithm "Accelerated Bayesian Additive Regression Trees"; everything else
in the model keeps the step methods that PyMC gives it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymc.model import Model, modelcontext
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator, get_value_vars_from_user_vars
from pytensor.graph.basic import Variable
from rich.progress import TextColumn
from rich.table import Column

from pymc_xbart.forest.prior import tree_prior
from pymc_xbart.kernels import SweepInfo, encode
from pymc_xbart.plugin.ensemble import Ensemble, EnsembleState, compile_kernels
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.random_variable import XBARTForestRV, forest_inputs

CORRECTIONS = ("tree", "sweep", "none")
BURN_IN = 15  # sweeps, He, Yalov & Hahn (2019, "The Estimator")


@dataclass_state
class XBARTState(StepMethodState):
    """What a chain needs to go on: PyMC copies it, restores it between chains and stores it."""

    tune: bool
    forests: dict[str, list[EnsembleState]]  # by name of the forest, one for each row of its value


class _Target(NamedTuple):
    """A forest variable: its name, its value's name, its ensembles (one, or k for shape (k, n))."""

    name: str
    value_name: str
    ensembles: list[Ensemble]
    likelihood: Likelihood


class XBARTStep(BlockedStep):
    """Step method for `XBARTForest` variables.

    `pm.sample` assigns it by itself. Create one only to choose its options:
    ``pm.sample(step=XBARTStep([f], correction="none"))``, or ``pm.sample(xbart={"correction":
    "none"})``.

    Parameters
    ----------
    vars : list of TensorVariable, optional
        Forests to update, as random or as value variables; all forests of the model by default.
    correction : {"none"}
        "none" is the sweep of He, Yalov & Hahn (2019) as it stands: fast, but no exact posterior
        sampler; its intervals are too narrow. "tree" and "sweep", which correct it by
        Metropolis-Hastings, are not available yet.
    model : pymc.Model, optional
        Taken from the context by default.
    initial_point : dict, optional
        Values at which the likelihood is examined; the model's initial point by default.
        `pm.sample` passes it.
    compile_kwargs : dict, optional
        ``mode`` for PyTensor functions. `pm.sample` passes it.
    rng : optional
        Seed or generator to use until `pm.sample` sets the chain's.

    Raises
    ------
    TypeError
        If a variable is no forest.
    NotImplementedError
        If the log-probability couples rows of one forest, or is not quadratic in it.

    Notes ----- Per draw and forest, `sample_stats` has ``<name>_leaves`` and ``<name>_depth``:
    leaves per tree and depth of a tree's deepest leaf, averaged over trees.
    """

    name = "xbart"
    default_blocked = True
    default_tune_steps = BURN_IN
    _state_class = XBARTState

    def __init__(
        self,
        vars: Sequence[Variable] | Variable | None = None,
        *,
        correction: str = "none",
        model: Model | None = None,
        initial_point: dict[str, NDArray[Any]] | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        _check_correction(correction)
        model = modelcontext(model)
        rvs = _forests(vars, model)
        self.vars = [model.rvs_to_values[rv] for rv in rvs]
        self.rng = get_random_generator(rng)
        self.tune = True
        point = model.initial_point() if initial_point is None else initial_point
        mode = (compile_kwargs or {}).get("mode")
        self._targets = [_make_target(model, rv, mode, point) for rv in rvs]
        # No trees yet: the first step of a chain makes them from that chain's initial values.
        self.forests: dict[str, list[EnsembleState]] = {}
        self.stats_dtypes_shapes: dict[str, Any] = {"tune": (bool, [])} | {
            stat: (np.float64, []) for target in self._targets for stat in _stat_names(target.name)
        }
        self.stats_dtypes = [{stat: dtype for stat, (dtype, _) in self.stats_dtypes_shapes.items()}]
        compile_kernels()

    def step(
        self, point: dict[str, NDArray[Any]]
    ) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
        """Sweep over all trees of all forests, each given the current values of everything else."""
        point = dict(point)
        stats: dict[str, Any] = {"tune": self.tune}
        for target in self._targets:
            point[target.value_name], infos = self._update(target, point)
            stats |= _summary(target.name, infos)
        return point, [stats]

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the chain's generator. Trees stay: PyMC restores the state a chain starts from."""
        self.rng = get_random_generator(rng, copy=False)
        self.tune = tune > 0

    @staticmethod
    def competence(var: Variable, has_grad: bool) -> Competence:  # noqa: ARG004
        """Ideal for forests, useless for everything else."""
        is_forest = var.owner is not None and isinstance(var.owner.op, XBARTForestRV)
        return Competence.IDEAL if is_forest else Competence.INCOMPATIBLE

    def _update(
        self, target: _Target, point: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[Any], list[SweepInfo]]:
        """Sweep over one forest variable. Returns its new value and what the sweeps did."""
        value = point[target.value_name]
        states, rows = self._trees_behind(target, value)
        infos = []
        for k, ensemble in enumerate(target.ensembles):
            f = rows.reshape(value.shape)
            g, h = target.likelihood.gradient_curvature(f, point, row=k)
            states[k], info = ensemble.sweep(states[k], g, h, self.rng)
            rows[k] = ensemble.values(states[k])
            infos.append(info)
        self.forests[target.name] = states
        return rows.reshape(value.shape).astype(value.dtype), infos

    def _trees_behind(
        self, target: _Target, value: NDArray[Any]
    ) -> tuple[list[EnsembleState], NDArray[np.float64]]:
        """Trees whose sum is the forest's current value, and that sum, (number of ensembles, n).

        The value is authoritative. Where the trees at hand do not add up to it, as in a new chain
        or after new initial values, others are grown to follow it.
        """
        wanted = value.reshape(len(target.ensembles), -1)
        states = self.forests.get(target.name)
        if states is not None:
            rows = _sums(target.ensembles, states)
            if np.array_equal(rows.astype(value.dtype), wanted):
                return states, rows
        states = [
            ensemble.start(row.astype(np.float64), self.rng)
            for ensemble, row in zip(target.ensembles, wanted, strict=True)
        ]
        return states, _sums(target.ensembles, states)

    def _progressbar_config(
        self, n_chains: int = 1
    ) -> tuple[list[TextColumn], dict[str, list[str]]]:
        """One column for each forest: leaves per tree."""
        fields = [_stat_names(target.name)[0] for target in self._targets]
        columns = [
            TextColumn(
                f"{{task.fields[{field}]}}", table_column=Column(f"{target.name} leaves", ratio=1)
            )
            for field, target in zip(fields, self._targets, strict=True)
        ]
        return columns, {field: ["-"] * n_chains for field in fields}

    def _make_progressbar_update_functions(
        self,
    ) -> tuple[Callable[[dict[str, Any]], dict[str, str]]]:
        fields = [_stat_names(target.name)[0] for target in self._targets]

        def update(stats: dict[str, Any]) -> dict[str, str]:
            return {field: f"{stats[field]:.1f}" for field in fields if field in stats}

        return (update,)


def _check_correction(correction: str) -> None:
    if correction not in CORRECTIONS:
        msg = (
            f"correction is {correction!r}, but must be one of {', '.join(map(repr, CORRECTIONS))}."
        )
        raise ValueError(msg)
    if correction != "none":
        msg = (
            f"correction={correction!r} is not available yet in this version. "
            "Use correction='none', the XBART sweep without Metropolis-Hastings correction."
        )
        raise NotImplementedError(msg)


def _forests(variables: Sequence[Variable] | Variable | None, model: Model) -> list[Variable]:
    """Forest variables (not their values) among `variables`, or all of the model."""
    forests = [rv for rv in model.free_RVs if XBARTStep.competence(rv, False) is Competence.IDEAL]
    if variables is None:
        if not forests:
            msg = "The model has no XBARTForest, so there is nothing for an XBARTStep to do."
            raise ValueError(msg)
        return forests
    if isinstance(variables, Variable):
        variables = [variables]
    values = get_value_vars_from_user_vars(variables, model)
    rvs = [model.values_to_rvs[value] for value in values]
    strangers = [rv.name for rv in rvs if rv not in forests]
    if strangers:
        msg = (
            f"XBARTStep can only update XBARTForest variables, but got {', '.join(strangers)}. "
            "Leave other variables to pm.sample, which finds a step method for each."
        )
        raise TypeError(msg)
    return rvs


def _make_target(model: Model, rv: Variable, mode: Any, point: dict[str, NDArray[Any]]) -> _Target:
    """Read a forest variable's settings and build everything a sweep over it needs."""
    settings = rv.owner.op.settings
    inputs = forest_inputs(rv)
    design = encode(inputs.X)
    value = model.rvs_to_values[rv]
    num_ensembles = int(np.prod(point[value.name].shape[:-1], dtype=int))
    mu = np.broadcast_to(inputs.mu, num_ensembles)
    sigma = np.broadcast_to(inputs.sigma, num_ensembles)
    split_weights = np.broadcast_to(inputs.split_weights, (num_ensembles, design.num_codes.size))
    ensembles = [
        Ensemble(
            design,
            tree_prior(
                settings, sigma=sigma[k], split_weights=split_weights[k], num_rows=inputs.X.shape[0]
            ),
            float(mu[k]),
            settings.num_trees,
        )
        for k in range(num_ensembles)
    ]
    likelihood = Likelihood(model, rv, mode=mode)
    # A generator of its own: examining the model must not shift anyone's draws.
    likelihood.check(point, np.random.default_rng(0))
    return _Target(str(rv.name), str(value.name), ensembles, likelihood)


def _sums(ensembles: list[Ensemble], states: list[EnsembleState]) -> NDArray[np.float64]:
    return np.stack(
        [ensemble.values(state) for ensemble, state in zip(ensembles, states, strict=True)]
    )


def _stat_names(name: str) -> tuple[str, str]:
    return f"{name}_leaves", f"{name}_depth"


def _summary(name: str, infos: list[SweepInfo]) -> dict[str, float]:
    """Statistics of one forest variable in one draw."""
    leaves, depth = _stat_names(name)
    return {
        leaves: float(np.mean([info.num_leaves for info in infos])),
        depth: float(np.mean([info.depth for info in infos])),
    }
