"""Let `pm.sample` find the step methods (floor 2)."""

from pymc.step_methods import STEP_METHODS

from pymc_xbart.plugin.split_weights import SplitWeightsStep
from pymc_xbart.plugin.step import XBARTStep


def register() -> None:
    """Add ours to the step methods that PyMC chooses from. Safe to call twice."""
    for method in (XBARTStep, SplitWeightsStep):
        if method not in STEP_METHODS:
            STEP_METHODS.append(method)
