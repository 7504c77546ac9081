"""Whole PyMC models, simulated jointly: parameters, trees and data.

Draw parameters and trees from the prior. Then, in turn, draw data given the parameters, and let the
tuned steps of `pm.sample` update the parameters given the data. Each of the two leaves the joint
law of parameters and data as it is, so what comes out is a draw from the prior again, after any
number of rounds, and every replication is independent of the others. An error of a step adds up
over the rounds, as in the successive-conditional simulator of Geweke (2004, "Getting it right",
JASA 99).

What replications can't show is a step that stays near where it started. A forest that told the
other steps of its trees at the start of a chain only would be one: its sigma would be drawn beside
the trees of the start for ever, which are a draw from the prior, too.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from pymc.pytensorf import compile as compile_pytensor
from pymc.pytensorf import find_rng_nodes, reseed_rngs
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pymc.step_methods import NUTS, CompoundStep
from scipy import stats

from pymc_xbart.kernels import Forest
from pymc_xbart.plugin.step import XBARTStep
from pymc_xbart.plugin.target import is_forest
from tests.helpers import law

TUNE = 300


class Replica(NamedTuple):
    """What one replication has arrived at."""

    values: dict[str, np.ndarray]  # of all free variables, as a trace would hold them
    forests: dict[str, Forest]
    errors: np.ndarray  # of the data that the last step has seen, in standard deviations, (n,)


class Simulator:
    """A model with a Normal response, and the steps of `pm.sample` in their state after tuning.

    Parameters
    ----------
    model : pymc.Model
        Its observed variable is `y`, with the data `y_data`.
    rng : numpy.random.Generator
        For tuning, on one data set drawn from the prior.
    **options
        Of `XBARTStep`.
    """

    def __init__(self, model, rng, **options):
        self.model = model
        with model:
            _, selected = assign_step_methods(model)
            self.steps = instantiate_steppers(
                model, [], selected, step_kwargs={"xbart": {"store_trees": False} | options}
            )
        [self.nuts] = [step for step in self.steps if isinstance(step, NUTS)]
        [self.xbart] = [step for step in self.steps if isinstance(step, XBARTStep)]
        self.targets = {target.name: target for target in self.xbart._targets}
        self._compile()
        self._tune(rng)

    def _compile(self):
        model = self.model
        free = model.free_RVs
        parameters = [rv for rv in free if not is_forest(rv)]
        self._names = [rv.name for rv in free]
        self._parameter_names = [model.rvs_to_values[rv].name for rv in parameters]
        self._drawn = [in_value_space(model, rv) for rv in parameters]
        self._draw = compile_pytensor([], self._drawn)
        location_and_scale = model["y"].owner.op.dist_params(model["y"].owner)
        self._read = compile_pytensor(
            model.value_vars, model.replace_rvs_by_values([*location_and_scale, *free])
        )

    def _tune(self, rng):
        self._use(rng)
        compound = CompoundStep(self.steps)
        compound.setup_chain(rng, tune=TUNE, draws=1)
        point = self._draw_prior(rng)
        self._draw_data(point, rng)
        for _ in range(TUNE):
            point = move(compound, point)
        compound.stop_tuning()

    def replicate(self, count, rounds, rng):
        """Independent replications."""
        self._use(rng)
        compound = CompoundStep(self.steps)
        compound.setup_chain(rng, tune=0, draws=count * rounds)
        return [self._replica(compound, rounds, rng) for _ in range(count)]

    def _use(self, rng):
        """Make parameters depend on this generator, and on none of before."""
        reseed_rngs(find_rng_nodes(self._drawn), int(rng.integers(2**63)))

    def _replica(self, compound, rounds, rng):
        point = self._draw_prior(rng)
        for _ in range(rounds):
            y = self._draw_data(point, rng)
            point = move(compound, point)
        location, scale, *values = self._evaluate(point)
        forests = {name: ensembles[0].forest for name, ensembles in self.xbart.forests.items()}
        return Replica(dict(zip(self._names, values, strict=True)), forests, (y - location) / scale)

    def _draw_prior(self, rng):
        """Draw a point of the model, and hand its trees to the step."""
        point = dict(zip(self._parameter_names, self._draw(), strict=True))
        state = self.xbart.sampling_state
        for name, target in self.targets.items():
            pairs = zip(target.ensembles, target.priors(point), strict=True)
            state.forests[name] = [ensemble.draw_prior(prior, rng) for ensemble, prior in pairs]
            (point[target.value_name],) = target.values(state.forests[name])
        self.xbart.sampling_state = state
        return point

    def _draw_data(self, point, rng):
        location, scale, *_ = self._evaluate(point)
        y = rng.normal(location, scale)
        self.model["y_data"].set_value(y)
        return y

    def _evaluate(self, point):
        return self._read(*(point[value.name] for value in self.model.value_vars))


def move(compound, point):
    """The point after one step of each method."""
    with np.errstate(over="ignore"):  # where a trajectory of NUTS diverges
        return compound.step(point)[0]


def in_value_space(model, rv):
    """Where a random variable is on the unconstrained scale that steps move on."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


# Uniform variates, if replications follow the prior.


def column_of(replicas, name):
    return np.array([replica.values[name] for replica in replicas])


def of_errors(replicas):
    """Errors of the response, and their sums of squares."""
    errors = np.array([replica.errors for replica in replicas])
    squares = stats.chi2.cdf((errors**2).sum(axis=1), errors.shape[1])
    return {"errors": stats.norm.cdf(errors).ravel(), "squares of errors": squares}


def of_forest(replicas, name, sigma):
    """f in the first row, all leaf values, and their sums of squares, given sigma (replicas,)."""
    forests = [replica.forests[name] for replica in replicas]
    num_trees = forests[0].tree_start.size - 1
    leaves = [
        forest.value[forest.column < 0] / (scale / math.sqrt(num_trees))
        for forest, scale in zip(forests, sigma, strict=True)
    ]
    squares = [stats.chi2.cdf(np.sum(values**2), values.size) for values in leaves]
    return {
        name: stats.norm.cdf(column_of(replicas, name)[:, 0] / sigma),
        f"leaves of {name}": stats.norm.cdf(np.concatenate(leaves)),
        f"squares of {name}": np.array(squares),
    }


def of_roots(replicas, name, alpha, split_weights, rng):
    """Columns that roots split on, given split weights (replicas, p) that sum to one."""
    starts = [replica.forests[name].tree_start[:-1] for replica in replicas]
    column = [replica.forests[name].column[s] for replica, s in zip(replicas, starts, strict=True)]
    not_split = np.full((len(replicas), 1), 1 - alpha)
    # Cumulated probabilities of no split and of each column, beginning with zero.
    steps = np.hstack([np.zeros_like(not_split), not_split, alpha * split_weights]).cumsum(axis=1)
    before, after = (np.take_along_axis(steps, np.array(column) + k, axis=1) for k in (1, 2))
    return {f"roots of {name}": rng.uniform(before, after).ravel()}


def numbers_of_leaves(replicas, name):
    """Number of leaves of each tree."""
    bounds = [replica.forests[name].tree_start for replica in replicas]
    return ((np.diff(bounds, axis=1) + 1) // 2).ravel().tolist()


def law_of_leaves(num_rows, alpha, beta):
    """Log-probability of each number of leaves of a tree, where no column has ties.

    Every cut of a node is then equally likely, whichever the column, and only the number of rows on
    its left matters.
    """

    @cache
    def below(size, depth):
        probability = np.zeros(num_rows + 1)
        split = alpha * (1 + depth) ** -beta if size > 1 else 0.0
        probability[1] = 1 - split
        for left in range(1, size):
            both = np.convolve(below(left, depth + 1), below(size - left, depth + 1))
            probability += split / (size - 1) * both[: num_rows + 1]
        return probability

    return {k: math.log(p) for k, p in enumerate(below(num_rows, 0)) if p > 0}


def failures(uniforms, false_fail=law.FALSE_FAIL):
    """Names of the samples that are not uniform, by a test with that level for each."""
    return {name for name, sample in uniforms.items() if not is_uniform(sample, false_fail)}


def is_uniform(sample, false_fail):
    try:
        law.assert_uniform(sample, false_fail)
    except AssertionError:
        return False
    return True
