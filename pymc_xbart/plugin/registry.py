"""Let `pm.sample` find the step method (floor 2)."""

from pymc.step_methods import STEP_METHODS

from pymc_xbart.plugin.step import XBARTStep


def register() -> None:
    """Add `XBARTStep` to the step methods that PyMC chooses from. Safe to call twice."""
    if XBARTStep not in STEP_METHODS:
        STEP_METHODS.append(XBARTStep)
