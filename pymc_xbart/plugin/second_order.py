"""Gradient and curvature of a model's log-probability in one forest (floor 2).

1. Take the log-probability factors of all variables and potentials of the model, in unconstrained
   space.
2. Keep those that depend on the forest's value. Their graph decides, not the graph of random
   variables: with c ~ Uniform(-1, exp(f)), the factor of a child of c depends on f through the
   interval of c.
3. Differentiate their sum, g, and then the sum of g * v, which gives the second derivatives times
   v.

All other variables stay plain inputs of the compiled function, so that nothing is shared and it
pickles.
"""

from contextlib import suppress
from typing import Any, cast

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.logprob.utils import ParameterValueError
from pymc.model import Model
from pymc.pytensorf import compile as compile_pytensor
from pymc.pytensorf import rewrite_pregrad, rvs_in_graph
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

Point = dict[str, NDArray[Any]]


def dependent_factors(model: Model, rv: Variable) -> dict[str, TensorVariable]:
    """Log-probability factors that depend on the value of a forest, by the name of their variable.

    Raises
    ------
    NotImplementedError
        If one of them sees a minibatch of its data.
    """
    value = model.rvs_to_values[rv]
    # Not `model.datalogp`: it lacks latent children of the forest, which are free variables.
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    factors = model.logp(vars=variables, jacobian=True, sum=False)
    dependent = {}
    for variable, factor in zip(variables, factors, strict=True):
        if variable is rv or value not in set(ancestors([factor])):
            continue
        _refuse_minibatch(variable, factor, rv)
        dependent[variable.name] = factor
    return dependent


def check_shapes(model: Model, factors: dict[str, TensorVariable], point: Point) -> None:
    """Let PyTensor raise where what enters a log-probability has shapes that do not fit.

    The factors themselves are evaluated for that, since derivatives no longer tell: the gradient of
    a response of shape (n, 1) in f, (n,), is that of n * n terms, each observation against each
    row.
    """
    inputs = model.value_vars
    # Not optimised, since it runs once.
    function = compile_pytensor(
        inputs, list(factors.values()), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    with np.errstate(all="ignore"), suppress(ParameterValueError):  # values are judged elsewhere
        function(*(np.asarray(point[x.name], dtype=x.type.dtype) for x in inputs))


def _refuse_minibatch(variable: TensorVariable, factor: TensorVariable, rv: Variable) -> None:
    is_rescaled = variable.owner is not None and isinstance(
        variable.owner.op, MinibatchRandomVariable
    )
    if is_rescaled or rvs_in_graph([factor]):
        msg = (
            f"{variable.name!r} sees its data in batches (total_size or pm.Minibatch), but the "
            f"trees of the forest {rv.name!r} are grown on all rows at once. Pass all of the data, "
            "without total_size."
        )
        raise NotImplementedError(msg)


class SecondOrder:
    """Compiled gradient and curvature of a sum of factors in the value of a forest.

    Parameters
    ----------
    model : pymc.Model
    value : TensorVariable
        Value variable of the forest, (n,) or (..., n).
    factors : list of TensorVariable
        At least one, each depending on `value`.
    mode : optional
        PyTensor mode to compile in.
    """

    def __init__(
        self, model: Model, value: Variable, factors: list[TensorVariable], mode: Any = None
    ) -> None:
        total = pt.add(*[_sum(factor) for factor in factors]) if factors[1:] else _sum(factors[0])
        g = _gradient(rewrite_pregrad(total), value)
        v = value.type("direction")
        # Factors linear in f have a gradient that f has dropped out of: their curvature is zero.
        hv = -_gradient((g * v).sum(), value)
        needed = set(ancestors([g, hv]))
        others = [x for x in model.value_vars if x is not value and x in needed]
        with model:  # compiles as the model wishes: `check_bounds`
            self._function = compile_pytensor(
                [value, v, *others], [g, hv], mode=mode, on_unused_input="ignore"
            )
        self._function.trust_input = True  # __call__ sees to the types
        self.dtype = np.dtype(value.type.dtype)
        self.other_dtypes = {x.name: np.dtype(x.type.dtype) for x in others}

    def __call__(
        self, f: NDArray[Any], direction: NDArray[Any], point: Point
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate g and -(second derivatives) @ direction, both of the shape of f.

        Parameters
        ----------
        f, direction : ndarray of the shape of the forest's value
        point : dict
            Values of all other variables of the model, by name; further entries are ignored.
        """
        g, hv = self._function(
            np.asarray(f, dtype=self.dtype, order="C"),
            np.asarray(direction, dtype=self.dtype, order="C"),
            *(np.asarray(point[name], dtype=dtype) for name, dtype in self.other_dtypes.items()),
        )
        return np.asarray(g, dtype=np.float64), np.asarray(hv, dtype=np.float64)

    def diagonal(
        self, f: NDArray[Any], row: int, point: Point
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient g and curvature h = -(diagonal of the second derivatives) of one row of f, (n,).

        The diagonal is read off from one product with a vector of ones: right only where the rest
        is zero.
        """
        direction = np.zeros(np.shape(f))
        flatten(direction)[row] = 1.0
        g, h = self(f, direction, point)
        return flatten(g)[row], flatten(h)[row]


def flatten(f: NDArray[Any]) -> NDArray[Any]:
    """View of a forest's value as (number of forests, n)."""
    return f.reshape(-1, f.shape[-1])


def _gradient(scalar: TensorVariable, value: Variable) -> TensorVariable:
    """Gradient in the shape of `value`, zeros where nothing depends on it."""
    return cast(TensorVariable, pt.grad(scalar, value, disconnected_inputs="ignore"))


def _sum(factor: TensorVariable) -> TensorVariable:
    total: TensorVariable = pt.as_tensor(factor, allow_xtensor_conversion=True).sum()
    return total
