"""What a step method knows of a forest variable before it samples (floor 2).

Everything that can be wrong with a forest in a model is found here, before sampling starts.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymc.exceptions import SamplingError
from pymc.model import Model
from pymc.util import get_value_vars_from_user_vars
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable

from pymc_xbart.forest.correction import Correction, check_fits
from pymc_xbart.forest.covariates import Labels
from pymc_xbart.forest.prior import tree_prior
from pymc_xbart.forest.stored import StoredDraw, digest_of, digest_of_rows, write_draw
from pymc_xbart.forest.tables import first_rows
from pymc_xbart.forest.views import encode_views, share_weights
from pymc_xbart.kernels import STEEPEST, Prior
from pymc_xbart.plugin.ensemble import Ensemble, EnsembleState
from pymc_xbart.plugin.hyperparameters import Hyperparameters
from pymc_xbart.plugin.inputs import check_shape
from pymc_xbart.plugin.likelihood import Likelihood
from pymc_xbart.plugin.point_function import Point
from pymc_xbart.plugin.random_variable import (
    XBARTForestRV,
    data_behind,
    digest_of_data,
    forest_inputs,
)
from pymc_xbart.plugin.report import SweepReport
from pymc_xbart.plugin.storage import find_schema

MAX_HALVINGS = 60  # after which f is the prior mean, as far as numbers tell


class Target(NamedTuple):
    """A forest variable: its name, its value's name, its ensembles (one, or k for shape (k, n))."""

    name: str
    value_name: str
    ensembles: list[Ensemble]
    likelihood: Likelihood
    hyperparameters: Hyperparameters
    batch: tuple[int, ...]  # leading dimensions of its value
    digests: tuple[int, int]  # of the names of X's columns, and of its rows
    labels: Labels | None  # of the categories in X, as far as it came with some
    data: list[tuple[SharedVariable, int]]  # that all this was read from, and its digest

    def values(self, states: list[EnsembleState]) -> NDArray[np.float64]:
        """Give f at the rows of X, (number of ensembles, n). Not to be written to."""
        return states[0].f[np.newaxis] if len(states) == 1 else np.stack([s.f for s in states])

    def priors(self, point: Point) -> list[Prior]:
        """Priors of a tree, given the values of the model's other variables."""
        if not self.hyperparameters.is_random:
            return [ensemble.prior for ensemble in self.ensembles]
        hyperparameters = zip(self.ensembles, *self.hyperparameters(point), strict=True)
        return [ensemble.prior_with(sigma, weights) for ensemble, sigma, weights in hyperparameters]

    def num_sweeps(self, correction: Correction) -> int:
        """Count the sweeps of a draw."""
        work = sum(ensemble.num_rows * ensemble.num_trees for ensemble in self.ensembles)
        return correction.num_sweeps(work, is_quadratic=self.likelihood.is_quadratic)

    def sweep(
        self,
        row: int,
        states: list[EnsembleState],
        point: Point,
        prior: Prior,
        rng: np.random.Generator,
        correction: Correction,
    ) -> SweepReport:
        """Sweep over the trees behind one row of the forest's value as often as a draw does.

        `states` are those of all rows; that row's is replaced. Reported is the last sweep, but for
        acceptance, which is a mean over sweeps.
        """
        ensemble, likelihood = self.ensembles[row], self.likelihood
        how = prior, rng, correction
        acceptance = []
        for _ in range(self.num_sweeps(correction)):
            f = self.values(states).reshape(*self.batch, -1)
            if likelihood.is_quadratic:
                g, h = likelihood.gradient_curvature(f, point, row=row)
                states[row], report = ensemble.sweep(states[row], g, h, *how)
            else:
                conditional = likelihood.at(f, point, row=row)
                states[row], report = ensemble.sweep_nonquadratic(states[row], conditional, *how)
            acceptance.append(report.acceptance)
        return report._replace(acceptance=fmean(acceptance))

    def start(
        self, wanted: NDArray[Any], priors: list[Prior], rng: np.random.Generator
    ) -> list[EnsembleState]:
        """Grow trees that follow initial values, (number of ensembles, n)."""
        self._check_start(wanted)
        return [
            ensemble.start(row.astype(np.float64), prior, rng)
            for ensemble, row, prior in zip(self.ensembles, wanted, priors, strict=True)
        ]

    def shrink(self, states: list[EnsembleState], point: Point) -> list[EnsembleState]:
        """Halve leaf values until f is where the log-likelihood is finite.

        Trees that were drawn from their prior may be where it is not, as where f is a scale, or a
        probability, with no link: somewhere among the rows, f is below 0.
        """
        for _ in range(MAX_HALVINGS):
            f = self.values(states).reshape(*self.batch, -1)
            if self.likelihood.is_possible(f, point):
                break
            states = [
                ensemble.state_of(
                    state.forest._replace(value=0.5 * state.forest.value), state.leaf_of_row
                )
                for ensemble, state in zip(self.ensembles, states, strict=True)
            ]
        return states

    def draw_prior(self, rng: np.random.Generator) -> list[EnsembleState]:
        """Trees drawn from their prior, under initial hyperparameters.

        Random ones need them to start from: next to trees without leaf values, the conditional of
        sigma would lie at zero.
        """
        return [ensemble.draw_prior(ensemble.prior, rng) for ensemble in self.ensembles]

    def check_data(self) -> None:
        """Refuse to go on with what was read from data that has been replaced since."""
        replaced = [str(data.name) for data, digest in self.data if digest_of_data(data) != digest]
        if replaced:
            msg = (
                f"Data behind the forest {self.name!r} ({', '.join(replaced)}) has been replaced "
                "since this XBARTStep was made, and its trees split the rows as they were then. "
                "Make the step anew, or leave that to pm.sample."
            )
            raise SamplingError(msg)

    def is_default_start(self, wanted: NDArray[Any]) -> bool:
        """Whether values, (number of ensembles, n), ask for no trees in particular."""
        pairs = zip(self.ensembles, wanted, strict=True)
        return all((row == np.asarray(e.mu, row.dtype)).all() for e, row in pairs)

    def publish(self, states: list[EnsembleState]) -> None:
        """Tell the model's log-probability what the trees are like, if it wants to know."""
        if not self.hyperparameters.is_random:
            return
        splits = None
        if self.hyperparameters.reads_splits:
            pairs = zip(self.ensembles, states, strict=True)
            splits = [ensemble.splits(state) for ensemble, state in pairs]
        self.hyperparameters.publish([state.forest for state in states], splits)

    def write(self, states: list[EnsembleState]) -> str:
        """Turn the trees into text that outlives the process."""
        pairs = zip(self.ensembles, states, strict=True)
        forests = [ensemble.stored(state) for ensemble, state in pairs]
        first = self.ensembles[0]
        of_columns = first.views.is_categorical, first.views.has_missing
        return write_draw(
            StoredDraw(first.num_rows, *self.digests, *of_columns, self.batch, forests)
        )

    def _check_start(self, wanted: NDArray[Any]) -> None:
        """Refuse values that no trees can follow."""
        limit = np.array([[STEEPEST * ensemble.prior.leaf_var] for ensemble in self.ensembles])
        bad = np.unique(np.nonzero(~(np.abs(wanted) <= limit))[1])  # NaN among them
        if bad.size:
            msg = (
                f"The value of the forest {self.name!r} is not finite, or too large for its scale, "
                f"in {first_rows(bad)} (counting from 0), so that no trees can follow it. Correct "
                "its initial values (`initvals`, or `initval` of the forest)."
            )
            raise SamplingError(msg)


def is_forest(variable: Variable) -> bool:
    """Whether a random variable is a forest."""
    return variable.owner is not None and isinstance(variable.owner.op, XBARTForestRV)


def find_forests(variables: Sequence[Variable] | Variable | None, model: Model) -> list[Variable]:
    """Forest variables (not their values) among `variables`, or all of the model for None."""
    forests = [rv for rv in model.free_RVs if is_forest(rv)]
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


def make_target(
    model: Model,
    rv: Variable,
    correction: Correction,
    mode: Any,
    point: dict[str, NDArray[Any]],
    num_threads: int,
) -> Target:
    """Read a forest variable's settings and build everything a sweep over it needs."""
    settings = rv.owner.op.settings
    inputs = forest_inputs(rv, min_rows=2)
    X = inputs.X
    check_fits(correction, settings.cut_prior, X.shape[1])
    design, views = encode_views(X, settings.categorical)
    value = model.rvs_to_values[rv]
    check_shape(point[value.name].shape, X.shape[0])
    batch = point[value.name].shape[:-1]
    mu = np.broadcast_to(inputs.mu, batch).ravel()
    hyperparameters = Hyperparameters(model, rv, batch, mode)
    sigma, split_weights = hyperparameters(point)
    ensembles = [
        Ensemble(
            design,
            views,
            tree_prior(
                settings,
                sigma=sigma[k],
                split_weights=share_weights(split_weights[k], views),
                num_rows=X.shape[0],
            ),
            float(mu[k]),
            settings.num_trees,
            num_threads,
        )
        for k in range(mu.size)
    ]
    likelihood = Likelihood(model, rv, mode=mode)
    # A generator of its own: examining the model must not shift anyone's draws.
    likelihood.check(point, np.random.default_rng(0))
    schema = find_schema(model, str(rv.name))
    digests = digest_of(schema.columns), digest_of_rows(X)
    names = str(rv.name), str(value.name)
    data = [(each, digest_of_data(each)) for each in data_behind(rv)]
    return Target(
        *names, ensembles, likelihood, hyperparameters, batch, digests, schema.labels, data
    )


def no_likelihood(name: str) -> str:
    """Say what it means that nothing depends on a forest."""
    return (
        f"Nothing in the model depends on the forest {name!r}, so that its draws will be draws "
        "from its prior. To learn about it from data, use it in a likelihood, for instance "
        f"pm.Normal('y', {name}, noise, observed=y)."
    )
