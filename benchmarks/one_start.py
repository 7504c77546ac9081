"""Start from nothing, and print how long each stage took as JSON.

Not meant to be called by hand: `startup` runs it, in processes whose caches it chooses. The stages
are timed from inside; `startup` adds what the interpreter takes to begin and end.
"""

import json
import pkgutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

NUM_ROWS, NUM_COLUMNS = 1_000, 10
FEW = {"tune": 20, "draws": 20}  # so that sampling is next to nothing

STAGES: dict[str, float] = {}


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Time what is done within."""
    began = time.perf_counter()
    yield
    STAGES[name] = time.perf_counter() - began


def data() -> tuple[Any, Any]:
    """X and y of Friedman's function, noise 1."""
    import numpy as np
    from friedman import friedman

    rng = np.random.default_rng(1)
    X = rng.uniform(size=(NUM_ROWS, NUM_COLUMNS))
    return X, friedman(X) + rng.normal(size=NUM_ROWS)


def pymc_alone() -> None:
    """Import PyMC, and evaluate the log-probability of a small model."""
    with stage("import"):
        import numpy as np
        import pymc as pm
    with stage("log-probability"), pm.Model() as model:
        pm.Normal("y", pm.Normal("mean"), 1.0, observed=np.zeros(NUM_ROWS))
        model.compile_logp()(model.initial_point())


def load() -> None:
    """Import everything that a model needs."""
    with stage("import"):
        with stage("that of PyMC"):
            import pymc  # noqa: F401

        import pymc_xbart as pxb

        _ = pxb.XBARTForest, pxb.XBARTStep


def first_sweep() -> None:
    """Import, and take the first exact sweep of a model, one step of `XBARTStep`."""
    load()
    import pymc as pm

    import pymc_xbart as pxb

    X, y = data()
    with stage("model and step"), pm.Model() as model:
        pm.Normal("y", pxb.XBARTForest("f", X, y=y), 1.0, observed=y)
        step = pxb.XBARTStep()
    point = model.initial_point()
    step.tune = False
    with stage("first sweep"):
        step.step(point)


def first_fit() -> None:
    """Import, and fit a forest and its noise."""
    load()
    import pymc as pm

    import pymc_xbart as pxb

    X, y = data()
    with stage("first fit"), pm.Model():
        f = pxb.XBARTForest("f", X, y=y)
        pm.Normal("y", f, pm.HalfNormal("noise", 1.0), observed=y)
        pm.sample(**FEW, chains=1, cores=1, random_seed=1, progressbar=False, quiet=True)


def kernels_of_sampling() -> None:
    """Import, and compile what the step compiles when it is made."""
    load()
    from pymc_xbart.forest.correction import Correction
    from pymc_xbart.plugin.ensemble import compile_kernels

    with stage("kernels of sampling"):
        compile_kernels(Correction("tree"), is_quadratic=True)


def every_kernel() -> None:
    """Import, and use whatever needs a kernel, on a few rows.

    Only the seconds in which Numba compiles kernels of this project count, not those of the models
    around them.
    """
    load()
    from numba.core import event

    listener = kernel_listener()
    with event.install_listener("numba:compile", listener):
        use_everything()
    STAGES["every kernel"] = listener.seconds
    STAGES["kernels not compiled"] = len(not_compiled())
    print(f"Not compiled: {', '.join(not_compiled()) or 'none'}", file=sys.stderr)


def kernel_listener() -> Any:
    """Listener that adds up the seconds of compiling kernels of this project."""
    from numba.core import event

    from pymc_xbart import kernels

    class Listener(event.Listener):
        """Kernels are compiled while others are: the outermost ones count."""

        seconds = 0.0
        depth = 0
        began = 0.0

        def on_start(self, compilation: Any) -> None:
            if self.is_ours(compilation):
                self.depth += 1
                if self.depth == 1:
                    self.began = time.perf_counter()

        def on_end(self, compilation: Any) -> None:
            if self.is_ours(compilation):
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.perf_counter() - self.began

        def is_ours(self, compilation: Any) -> bool:
            function = compilation.data["dispatcher"].py_func
            return (function.__module__ or "").startswith(kernels.__name__)

    return Listener()


def use_everything() -> None:
    """Sample in each way, predict, explain, judge."""
    import pymc as pm

    import pymc_xbart as pxb
    from pymc_xbart.forest.correction import Correction
    from pymc_xbart.plugin.ensemble import compile_kernels

    X, y = (array[:20] for array in data())
    for kind in ("tree", "sweep"):
        for is_quadratic in (True, False):
            compile_kernels(Correction(kind), is_quadratic=is_quadratic)
    few = {"num_trees": 6, "num_sweeps": 4, "burnin": 1, "random_state": 1}
    for correction in ("none", "tree", "sweep"):
        regressor = pxb.XBARTRegressor(**few, mtry=2 if correction == "none" else None)
        regressor.set_params(correction=correction).fit(X, y).predict(X)
    shape = {"tune": 4, "draws": 8, "chains": 2, "cores": 1, "random_seed": 1}
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=6, split_weights="sparse")
        pm.Normal("y", f, 1.0, observed=y)
        pm.sample_prior_predictive(2)
        idata = pm.sample(**shape, progressbar=False, quiet=True)
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=6)
        pm.Normal("y", f, 1.0, observed=y)
        pm.sample(**shape, step=pxb.XBARTStep(start=idata), progressbar=False, quiet=True)
    pxb.convergence_summary(idata)
    pxb.predict(idata, X)
    explain(idata, X)


def explain(idata: Any, X: Any) -> None:
    """Ask for what averages columns out, or looks along the paths of trees."""
    import pymc_xbart as pxb

    pxb.partial_dependence(idata, X)
    pxb.individual_conditional_expectation(idata, X)
    pxb.partial_dependence(idata, X, transform=abs)
    pxb.friedman_h(idata, X)
    pxb.variable_importance(idata, X)
    pxb.interaction_inclusion(idata)


def not_compiled() -> list[str]:
    """Kernels that no signature has been compiled of."""
    from pymc_xbart import kernels

    names = (module.name for module in pkgutil.iter_modules(kernels.__path__))
    modules = [import_module(f"{kernels.__name__}.{name}") for name in names]
    return [
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
        and hasattr(value, "targetoptions")
        and "no_cpython_wrapper" not in value.targetoptions  # inner kernels: others contain them
        and not value.signatures
    ]


METHODS: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (pymc_alone, first_sweep, first_fit, kernels_of_sampling, every_kernel)
}


def main() -> None:
    method, _ = sys.argv[1:]
    json.load(sys.stdin)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    METHODS[method]()
    stages = STAGES | {"in all": time.perf_counter() - began}
    import pymc_xbart

    print(json.dumps({"package": pymc_xbart.__file__, "stages": stages}))


if __name__ == "__main__":
    main()
