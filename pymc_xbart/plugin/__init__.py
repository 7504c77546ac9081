"""The plug-in for PyMC (floor 2: + PyMC, PyTensor, xarray). Importing it registers the step."""

from pymc_xbart.plugin.registry import register

register()
