"""One model fitted to many data sets that it has drawn itself, compiled once.

`pm.sample` builds steps and functions anew in every call. Here the steps that it would choose are
built once. Before each fit they are put back into the state in which they were built, as
`pm.sample` does between chains, so that no fit knows of another.
"""

import numpy as np
import pymc as pm
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pymc.step_methods import CompoundStep


class ManyFits:
    """A model and the steps of `pm.sample`.

    Parameters
    ----------
    model : pymc.Model
        Its observed variable is `y`, with the data `y_data`. Two or more steps share its variables.
    **options
        Of `XBARTStep`.
    """

    def __init__(self, model, **options):
        self.model = model
        _, selected = assign_step_methods(model)
        options = {"store_trees": False} | options
        self._step = CompoundStep(
            instantiate_steppers(model, [], selected, step_kwargs={"xbart": options})
        )
        self._built = self._step.sampling_state
        self._start = model.initial_point()
        self._names = [rv.name for rv in model.free_RVs]
        self._values = model.compile_fn(
            model.replace_rvs_by_values(model.free_RVs), inputs=model.value_vars
        )

    def simulate(self, num_sets, rng):
        """Parameters and data drawn from the prior: one dict of values, `y` included, for each."""
        seed = int(rng.integers(2**31))
        drawn = pm.sample_prior_predictive(num_sets, model=self.model, random_seed=seed)
        values = {name: drawn["prior"][name].values[0] for name in self._names}
        values["y"] = drawn["prior_predictive"]["y"].values[0]
        return [{name: value[i] for name, value in values.items()} for i in range(num_sets)]

    def fit(self, y, rng, *, tune, draws, thin=1):
        """Draw from the posterior given `y`: values by name, (draws, ...), each `thin`-th kept."""
        kept = list(self.chain(y, rng, tune=tune, draws=draws, thin=thin))
        return {name: np.array([values[name] for values in kept]) for name in self._names}

    def chain(self, y, rng, *, tune, draws, thin=1):
        """Yield what `fit` keeps, draw by draw: values by name."""
        self.model["y_data"].set_value(y)
        step = self._step
        step.sampling_state = self._built
        step.setup_chain(rng, tune, draws * thin)
        step.tune = True
        step.reset_tuning()
        point = self._start
        for _ in range(tune):
            point = move(step, point)
        step.stop_tuning()
        for _ in range(draws):
            for _ in range(thin):
                point = move(step, point)
            yield dict(zip(self._names, self._values(point), strict=True))


def move(step, point):
    with np.errstate(over="ignore"):  # where a trajectory of NUTS diverges
        return step.step(point)[0]
