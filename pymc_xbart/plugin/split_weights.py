"""`SplitWeightsStep`: sample split weights that have a Dirichlet prior (floor 2).

NUTS would move along the simplex in small steps, and can't at all where the concentrations are far
below 1 and most weights next to nothing, which is what makes them sparse. Given the trees, weights
can be drawn outright, see `forest.split_weights`. A concentration that is random itself is drawn
before them, from its law with the weights integrated out: next to a thousand weights it would
hardly move.

1. Draw the columns that were refused, given weights and trees.
2. Update a parameter of the concentrations by slice sampling.
3. Draw the weights.
4. Where other terms of the model depend on the weights, take 2 and 3 by these, or go back.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.logprob.transforms import SimplexTransform
from pymc.model import Model, modelcontext
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator, get_value_vars_from_user_vars
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.forest.split_weights import (
    SplitCounts,
    draw_log_dirichlet,
    draw_refused,
    log_evidence,
    slice_sample,
)
from pymc_xbart.plugin.dirichlet import concentration_of, is_dirichlet, is_marked
from pymc_xbart.plugin.point_function import Point, PointFunction
from pymc_xbart.plugin.statistics import leaf_logp, parameter_behind, statistics_of
from pymc_xbart.plugin.target import is_forest


class Weights(NamedTuple):
    """A vector of split weights."""

    rv: Variable
    value_name: str
    # of each forest that splits by it: counts, availability, occurrences; see `statistics`
    statistics: list[list[TensorSharedVariable]]

    def splits(self, num_columns: int) -> SplitCounts:
        """What the trees at hand say about it: nothing where the forest has become data."""
        if not self.statistics:
            return SplitCounts(*(np.zeros(shape) for shape in (num_columns, (0, num_columns), 0)))
        counts, availability, occurrences = zip(
            *([np.asarray(x.get_value(), np.float64) for x in each] for each in self.statistics),
            strict=True,
        )
        return SplitCounts(
            np.sum([_over_forests(each) for each in counts], axis=0),
            np.concatenate(availability),
            np.concatenate([_over_forests(each) for each in occurrences]),
        )


def _over_forests(statistic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the k forests of a variable: (m,), of (m,) or (k, m)."""
    total: NDArray[np.float64] = statistic.reshape(-1, statistic.shape[-1]).sum(axis=0)
    return total


@dataclass_state
class SplitWeightsState(StepMethodState):
    """What a chain needs to go on: PyMC copies it, restores it between chains and stores it."""

    tune: bool
    num_waits: int  # steps in tuning that leave everything as it is


class SplitWeightsStep(BlockedStep):
    """Step method for split weights of forests with a Dirichlet prior, and their concentration.

    `pm.sample` assigns it by itself.

    Parameters
    ----------
    vars : list of TensorVariable
        Dirichlet variables that are split weights of forests, and scalar random variables that
        their concentrations depend on; as random or as value variables.
    model : pymc.Model, optional
        Taken from the context by default.
    initial_point, blocked : optional
        PyMC passes them.
    compile_kwargs : dict, optional
        ``mode`` for PyTensor functions. `pm.sample` passes it.
    rng : optional
        Seed or generator to use until `pm.sample` sets the chain's.

    Raises
    ------
    TypeError
        If a variable is none of these.
    NotImplementedError
        If split weights were given a transform of their own.
    """

    name = "split_weights"
    default_blocked = True
    stats_dtypes_shapes: dict[str, Any] = {"tune": (bool, [])}  # noqa: RUF012
    _state_class = SplitWeightsState

    def __init__(
        self,
        vars: Sequence[Variable] | Variable,
        *,
        model: Model | None = None,
        initial_point: Point | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        model = modelcontext(model)
        vars = [vars] if isinstance(vars, Variable) else vars
        self.vars = get_value_vars_from_user_vars(vars, model)
        self.rng = get_random_generator(rng)
        self.tune = True
        self.num_waits = 0  # `setup_chain` knows how many
        rvs = [model.values_to_rvs[value] for value in self.vars]
        _check(rvs, model)
        self._weights = [
            Weights(rv, str(model.rvs_to_values[rv].name), _statistics(rv, model))
            for rv in filter(is_dirichlet, rvs)
        ]
        self._parameters = [str(model.rvs_to_values[rv].name) for rv in rvs if not is_dirichlet(rv)]
        self._compile(model, (compile_kwargs or {}).get("mode"))

    def _compile(self, model: Model, mode: Any) -> None:
        """Compile concentrations, and what else depends on their parameters or on the weights."""
        rvs = [each.rv for each in self._weights]
        weights = [model.rvs_to_values[rv] for rv in rvs]
        parameters = [value for value in self.vars if value not in weights]
        beside, prior = [], []
        for term in _other_terms(rvs, model):
            behind = set(ancestors([term]))
            if not behind.isdisjoint(weights):
                beside.append(term)
            elif not behind.isdisjoint(parameters):
                prior.append(term)
        concentrations = model.replace_rvs_by_values(list(map(concentration_of, rvs)))
        self._prior = PointFunction([_total(prior), *concentrations], model, mode)
        self._beside = PointFunction([_total(beside)], model, mode) if beside else None

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the chain's generator."""
        self.rng = get_random_generator(rng, copy=False)
        self.tune = tune > 0
        # Trees have to find the columns that matter while all are still worth looking at.
        self.num_waits = tune // 2

    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        """Draw concentration and weights, given everything else."""
        stats = [{"tune": self.tune}]
        if self.num_waits > 0:
            self.num_waits -= 1
            return dict(point), stats
        counts = []
        for each in self._weights:
            weights = from_value(point[each.value_name])
            splits = each.splits(weights.size)
            refused = draw_refused(splits, weights, self.rng)
            counts.append(splits.counts + refused)
        new = self._update_parameter(point, counts)
        _, *concentrations = self._prior(new)
        for each, n, concentration in zip(self._weights, counts, concentrations, strict=True):
            log_weights = draw_log_dirichlet(concentration + n, self.rng)
            new[each.value_name] = to_value(log_weights, point[each.value_name].dtype)
        return (new if self._is_taken(point, new) else dict(point)), stats

    def _update_parameter(self, point: Point, counts: list[NDArray[np.float64]]) -> Point:
        """Point with another value of one of the parameters, any one if there are several."""
        new = dict(point)
        if not self._parameters:
            return new
        name = self._parameters[self.rng.integers(len(self._parameters))]

        def log_density(value: float) -> float:
            new[name] = np.asarray(value, point[name].dtype)
            log_p, *concentrations = self._prior(new)
            return float(log_p) + sum(map(log_evidence, counts, concentrations))

        value = slice_sample(log_density, float(point[name]), self.rng)
        new[name] = np.asarray(value, point[name].dtype)
        return new

    def _is_taken(self, old: Point, new: Point) -> bool:
        if self._beside is None:
            return True
        (log_p_new,), (log_p_old,) = self._beside(new), self._beside(old)
        return bool(-self.rng.standard_exponential() < log_p_new - log_p_old)

    @staticmethod
    def competence(var: Variable, has_grad: bool) -> Competence:  # noqa: ARG004
        """Ideal for what a forest has marked, useless for everything else."""
        return Competence.IDEAL if is_marked(var) else Competence.INCOMPATIBLE


def _check(rvs: list[Variable], model: Model) -> None:
    """Refuse variables that this step is not for."""
    for rv in rvs:
        # A mark without statistics is left by a forest that `pm.do` or `pm.observe` has replaced.
        is_ours = is_marked(rv) or bool(_statistics(rv, model))
        if not (is_ours if is_dirichlet(rv) else rv.type.ndim == 0):
            msg = (
                f"SplitWeightsStep can't sample {rv.name!r}, which is neither the split weights of "
                "a forest with a Dirichlet prior nor a scalar that their concentration depends on. "
                "Leave it to pm.sample, which finds a step method for each variable."
            )
            raise TypeError(msg)
        if is_dirichlet(rv) and not isinstance(model.rvs_to_transforms[rv], SimplexTransform):
            msg = (
                f"The split weights {rv.name!r} have a transform of their own, but their step "
                "method sets them as PyMC's simplex transform does. Leave `transform` and "
                "`default_transform` out."
            )
            raise NotImplementedError(msg)


def _statistics(weights: Variable, model: Model) -> list[list[TensorSharedVariable]]:
    """Split statistics of the forests whose split weights these are."""
    parameters = [_parameters_of(forest)[1] for forest in filter(is_forest, model.free_RVs)]
    return [statistics_of(p) for p in parameters if parameter_behind(p) is weights]


def _parameters_of(forest: Variable) -> tuple[TensorVariable, TensorVariable]:
    """Its sigma and split weights, as the forest has them."""
    _, _, sigma, split_weights = forest.owner.op.dist_params(forest.owner)
    return sigma, split_weights


def _other_terms(weights: list[Variable], model: Model) -> list[Variable]:
    """Log-probability of the model but that of the weights, and of the trees given them."""
    rvs: list[Variable] = []
    terms: list[Variable] = []
    for rv in [*model.basic_RVs, *model.potentials]:
        if is_forest(rv) and parameter_behind(_parameters_of(rv)[1]) in weights:
            leaves = leaf_logp(_parameters_of(rv)[0])
            terms += [] if leaves is None else model.replace_rvs_by_values([leaves])
        elif rv not in weights:
            rvs.append(rv)
    terms += model.logp(vars=rvs, sum=False)
    return terms


def _total(terms: list[Variable]) -> Variable:
    return pt.as_tensor(sum((pt.sum(term) for term in terms), start=pt.constant(0.0)))


def from_value(value: NDArray[Any]) -> NDArray[np.float64]:
    """Weights, (p,), of what PyMC's simplex transform makes of them, (p - 1,)."""
    log_weights = np.append(value, -value.sum()).astype(np.float64)
    relative = np.exp(log_weights - log_weights.max())
    weights: NDArray[np.float64] = relative / relative.sum()
    return weights


def to_value(log_weights: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The reverse, of their logarithms.

    Weights far below what makes a difference are raised until they are numbers of that type: PyMC's
    density of a weight of zero is infinite.
    """
    least = log_weights.max() + 0.5 * np.log(np.finfo(dtype).tiny)
    log_weights = np.maximum(log_weights, least)
    value: NDArray[Any] = (log_weights[:-1] - log_weights.mean()).astype(dtype)
    return value
