"""Gradient and curvature of a model's log-probability in one forest (floor 2).

1. Take the log-probability factors of all variables and potentials of the model, in unconstrained
   space.
2. Keep those that depend on the forest's value. Their graph decides, not the graph of random
   variables: with c ~ Uniform(-1, exp(f)), the factor of a child of c depends on f through the
   interval of c.
3. Differentiate their sum, g, and then the sum of g * v, which gives the second derivatives times
   v.
4. See from the graphs of all three whether the sum is a quadratic function of the forest's value.
   Of a jump, such as a penalty where f > 0, derivatives know nothing: PyTensor says 0.

All other variables stay plain inputs of the compiled function, so that nothing is shared and it
pickles.
"""

from collections.abc import Callable
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
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import (
    Ceil,
    Floor,
    IntDiv,
    Mod,
    RoundHalfAwayFromZero,
    RoundHalfToEven,
    Sign,
    Trunc,
)
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.plugin.point_function import Point

# What brings a graph to its simplest form, without fusing its nodes.
REWRITES = ("canonicalize", "stabilize", "specialize")
# Operations that are not continuous, beside those whose outcome is no floating-point number.
JUMPING = Ceil, Floor, IntDiv, Mod, RoundHalfAwayFromZero, RoundHalfToEven, Sign, Trunc


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

    Attributes
    ----------
    is_quadratic : bool
        Whether the graphs say that the second derivatives do not depend on the forest's value,
        whatever the values of all other variables, and that neither the first ones nor the sum
        itself have jumps.
    """

    def __init__(
        self, model: Model, value: Variable, factors: list[TensorVariable], mode: Any = None
    ) -> None:
        total = pt.add(*[_sum(factor) for factor in factors]) if factors[1:] else _sum(factors[0])
        g = _gradient(rewrite_pregrad(total), value)
        v = value.type("direction")
        # Factors linear in f have a gradient that f has dropped out of: their curvature is zero.
        hv = -_gradient((g * v).sum(), value)
        self.is_quadratic = _is_quadratic(total, g, hv, value)
        self._compiled = _Compiled(model, value, [v], [g, hv], mode)
        self.dtype = self._compiled.dtype
        self.other_dtypes = self._compiled.other_dtypes

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
        g, hv = self._compiled.at(point)(f, np.asarray(direction, dtype=self.dtype, order="C"))
        return _as_double(g), _as_double(hv)

    def diagonal_at(
        self, point: Point, row: int, shape: tuple[int, ...]
    ) -> Callable[[NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """`diagonal` as a function of f, of that shape, alone: fast where there are many."""
        function = self._compiled.at(point)
        direction = np.zeros(shape, dtype=self.dtype)
        flatten(direction)[row] = 1.0

        def diagonal(f: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            g, h = function(f, direction)
            return _as_double(flatten(g)[row]), _as_double(flatten(h)[row])

        return diagonal

    def diagonal(
        self, f: NDArray[Any], row: int, point: Point
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient g and curvature h = -(diagonal of the second derivatives) of one row of f, (n,).

        The diagonal is read off from one product with a vector of ones: right only where the rest
        is zero.
        """
        return self.diagonal_at(point, row, np.shape(f))(f)


class Total:
    """Compiled sum of factors, in double precision. Parameters are those of `SecondOrder`."""

    def __init__(
        self, model: Model, value: Variable, factors: list[TensorVariable], mode: Any = None
    ) -> None:
        total = pt.add(0.0, *[_sum(factor.astype("float64")) for factor in factors])
        self._compiled = _Compiled(model, value, [], total, mode)

    def at(self, point: Point) -> Callable[[NDArray[Any]], float]:
        """Total as a function of the forest's value, all else being as it is."""
        function = self._compiled.at(point)
        return lambda f: float(function(f))


class _Compiled:
    """Compiled function of a forest's value, of `more`, and of the other variables it depends on.

    Takes `more` as they are: of their types.
    """

    def __init__(
        self, model: Model, value: Variable, more: list[Variable], outputs: Any, mode: Any
    ) -> None:
        needed = set(ancestors(outputs if isinstance(outputs, list) else [outputs]))
        others = [x for x in model.value_vars if x is not value and x in needed]
        with model:  # compiles as the model wishes: `check_bounds`
            self._function = compile_pytensor(
                [value, *more, *others], outputs, mode=mode, on_unused_input="ignore"
            )
        self._function.trust_input = True  # `at` sees to the types
        self.dtype = np.dtype(value.type.dtype)
        self.other_dtypes = {x.name: np.dtype(x.type.dtype) for x in others}

    def at(self, point: Point) -> Callable[..., Any]:
        """Function of the forest's value and of `more` alone, all else being as it is."""
        others = [np.asarray(point[name], dtype=dtype) for name, dtype in self.other_dtypes.items()]
        return lambda f, *more: self._function(
            np.asarray(f, dtype=self.dtype, order="C"), *more, *others
        )


def flatten(f: NDArray[Any]) -> NDArray[Any]:
    """View of a forest's value as (number of forests, n)."""
    return f.reshape(-1, f.shape[-1])


def _as_double(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(x, dtype=np.float64)


def _is_quadratic(total: Variable, g: Variable, hv: Variable, value: Variable) -> bool:
    """Whether (rewritten) graphs are those of a quadratic function of `value` and its derivatives.

    Says no where rewriting fails to see it.
    """
    total, g, hv = cast(list[Variable], rewrite_graph([total, g, hv], include=REWRITES))
    return value not in _numeric_ancestors(hv) and not any(
        _may_jump(x) for graph in (total, g) for x in _on_the_way(graph, value)
    )


def _numeric_ancestors(variable: Variable) -> set[Variable]:
    """Ancestors whose values count, not their shapes alone."""
    found: set[Variable] = set()
    stack = [variable]
    while stack:
        x = stack.pop()
        if x in found:
            continue
        found.add(x)
        if x.owner is not None and not isinstance(x.owner.op, Shape | Shape_i):
            stack.extend(x.owner.inputs)
    return found


def _on_the_way(variable: Variable, value: Variable) -> set[Variable]:
    """Variables between `value` and `variable`."""
    return {x for x in _numeric_ancestors(variable) if value in _numeric_ancestors(x)} - {value}


def _may_jump(variable: Variable) -> bool:
    """Whether a variable is the outcome of an operation that is not continuous."""
    op = getattr(variable.owner.op, "scalar_op", None)
    return isinstance(op, JUMPING) or np.dtype(variable.type.dtype).kind != "f"


def _gradient(scalar: TensorVariable, value: Variable) -> TensorVariable:
    """Gradient in the shape of `value`, zeros where nothing depends on it."""
    return cast(TensorVariable, pt.grad(scalar, value, disconnected_inputs="ignore"))


def _sum(factor: TensorVariable) -> TensorVariable:
    total: TensorVariable = pt.as_tensor(factor, allow_xtensor_conversion=True).sum()
    return total
