"""XBART for PyMC: `XBARTForest` is a random variable, `XBARTStep` the step method that samples it.

`XBARTRegressor` is the paper's own estimator, without PyMC.

Public names are looked up when first used, so that `pymc_xbart.kernels` needs NumPy and Numba only,
and `XBARTRegressor` no PyMC. Looking up one of the other two imports `pymc_xbart.plugin`, which
lets `pm.sample` find the step method.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymc_xbart.diagnostics.accumulated_local_effects import accumulated_local_effects
    from pymc_xbart.diagnostics.convergence import convergence_summary
    from pymc_xbart.diagnostics.effects import treatment_effects
    from pymc_xbart.diagnostics.friedman_h import friedman_h
    from pymc_xbart.diagnostics.importance import variable_importance
    from pymc_xbart.diagnostics.inclusion import interaction_inclusion, variable_inclusion
    from pymc_xbart.diagnostics.individual import individual_conditional_expectation
    from pymc_xbart.diagnostics.partial_dependence import partial_dependence
    from pymc_xbart.diagnostics.permutation import permutation_importance
    from pymc_xbart.forest.inspection import trees
    from pymc_xbart.forest.predict import predict
    from pymc_xbart.forest.regressor import XBARTRegressor
    from pymc_xbart.plots.convergence import plot_convergence
    from pymc_xbart.plots.dependence import plot_ale, plot_partial_dependence
    from pymc_xbart.plots.effects import plot_effects
    from pymc_xbart.plots.importance import plot_importance
    from pymc_xbart.plots.inclusion import plot_inclusion
    from pymc_xbart.plots.individual import plot_ice
    from pymc_xbart.plots.residuals import plot_residuals
    from pymc_xbart.plots.tree import plot_tree
    from pymc_xbart.plugin.distribution import XBARTForest
    from pymc_xbart.plugin.predictive import compute_log_likelihood, sample_posterior_predictive
    from pymc_xbart.plugin.step import XBARTStep

    __version__: str

MODULE_OF = {
    "XBARTForest": "pymc_xbart.plugin.distribution",
    "XBARTRegressor": "pymc_xbart.forest.regressor",
    "XBARTStep": "pymc_xbart.plugin.step",
    "accumulated_local_effects": "pymc_xbart.diagnostics.accumulated_local_effects",
    "compute_log_likelihood": "pymc_xbart.plugin.predictive",
    "convergence_summary": "pymc_xbart.diagnostics.convergence",
    "friedman_h": "pymc_xbart.diagnostics.friedman_h",
    "individual_conditional_expectation": "pymc_xbart.diagnostics.individual",
    "interaction_inclusion": "pymc_xbart.diagnostics.inclusion",
    "partial_dependence": "pymc_xbart.diagnostics.partial_dependence",
    "permutation_importance": "pymc_xbart.diagnostics.permutation",
    "plot_ale": "pymc_xbart.plots.dependence",
    "plot_convergence": "pymc_xbart.plots.convergence",
    "plot_effects": "pymc_xbart.plots.effects",
    "plot_ice": "pymc_xbart.plots.individual",
    "plot_importance": "pymc_xbart.plots.importance",
    "plot_inclusion": "pymc_xbart.plots.inclusion",
    "plot_partial_dependence": "pymc_xbart.plots.dependence",
    "plot_residuals": "pymc_xbart.plots.residuals",
    "plot_tree": "pymc_xbart.plots.tree",
    "predict": "pymc_xbart.forest.predict",
    "sample_posterior_predictive": "pymc_xbart.plugin.predictive",
    "treatment_effects": "pymc_xbart.diagnostics.effects",
    "trees": "pymc_xbart.forest.inspection",
    "variable_importance": "pymc_xbart.diagnostics.importance",
    "variable_inclusion": "pymc_xbart.diagnostics.inclusion",
}

__all__ = [
    "XBARTForest",
    "XBARTRegressor",
    "XBARTStep",
    "__version__",
    "accumulated_local_effects",
    "compute_log_likelihood",
    "convergence_summary",
    "friedman_h",
    "individual_conditional_expectation",
    "interaction_inclusion",
    "partial_dependence",
    "permutation_importance",
    "plot_ale",
    "plot_convergence",
    "plot_effects",
    "plot_ice",
    "plot_importance",
    "plot_inclusion",
    "plot_partial_dependence",
    "plot_residuals",
    "plot_tree",
    "predict",
    "sample_posterior_predictive",
    "treatment_effects",
    "trees",
    "variable_importance",
    "variable_inclusion",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = version("pymc-xbart")
    elif name in MODULE_OF:
        value = getattr(import_module(MODULE_OF[name]), name)
    else:
        msg = f"pymc_xbart has no attribute {name!r}. Its public names are {', '.join(__all__)}."
        raise AttributeError(msg, name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
