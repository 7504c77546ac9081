"""Expressions of a model at a point (floor 2)."""

from typing import Any

from numpy.typing import NDArray
from pymc.model import Model
from pymc.pytensorf import compile as compile_pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

Point = dict[str, NDArray[Any]]


class PointFunction:
    """Expressions of a model's value variables, compiled.

    Parameters
    ----------
    outputs : list of Variable
        Of value variables, not of random ones, see `pymc.Model.replace_rvs_by_values`.
    model : pymc.Model
    mode : optional
        PyTensor mode to compile in.
    """

    def __init__(self, outputs: list[Variable], model: Model, mode: Any = None) -> None:
        needed = set(ancestors(outputs))
        values = [value for value in model.value_vars if value in needed]
        self._names = [str(value.name) for value in values]
        self._function = compile_pytensor(values, outputs, mode=mode)

    def __call__(self, point: Point) -> list[NDArray[Any]]:
        """Evaluate them at values of the model's variables."""
        values: list[NDArray[Any]] = self._function(*(point[name] for name in self._names))
        return values
