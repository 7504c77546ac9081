"""Split weights with a Dirichlet prior (floor 2): make sparse ones, mark those that can be drawn.

A step method is chosen for a variable by what the variable itself tells, so that a forest leaves a
mark on its split weights.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.basic import DirichletRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

SPARSE = "sparse"  # what stands for split weights that `sparse_split_weights` makes
MARK = "xbart_split_weights"  # tag of variables that `SplitWeightsStep` can draw
NUMBA_CACHE_VERSION = 1  # PyTensor reuses compiled code from disk until this number changes


class SparseDirichletRV(DirichletRV):
    """Dirichlet variable whose concentrations may be as small as they like.

    With Numba, PyTensor divides gamma variables by their sum. Where concentrations are small enough
    all of them are zero, and the weights NaN: of ten columns, in one of a hundred draws of the
    prior below.
    """


@numba_core_rv_funcify.register(SparseDirichletRV)
def _numba_core_of_dirichlet(op: SparseDirichletRV, node: Apply) -> tuple[Callable[..., Any], int]:
    dtype = node.outputs[1].type.numpy_dtype

    @numba_njit
    def draw(rng, concentration):  # type: ignore[no-untyped-def]
        log_weights = np.empty(concentration.size)
        for k, a in enumerate(concentration):
            # A gamma variable with shape a is one with a + 1 times a uniform one to the 1 / a.
            log_weights[k] = np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential() / a
        weights = np.exp(log_weights - log_weights.max())
        return (weights / weights.sum()).astype(dtype)

    return draw, NUMBA_CACHE_VERSION


class SparseDirichlet(pm.Dirichlet):
    """`pymc.Dirichlet`, drawn as above."""

    rv_op = SparseDirichletRV()


def sparse_split_weights(name: str, num_columns: int, columns: list[str] | None) -> TensorVariable:
    """Add split weights to the model on the context stack, most of them next to nothing.

    As Linero (2018, "Bayesian regression trees for high-dimensional prediction and variable
    selection", JASA 113), who has a / (a + p) ~ Beta(1/2, 1) for the sum a of the concentrations of
    p columns.

    Parameters
    ----------
    name : str
        Of the forest.
    num_columns : int
    columns : list of str, optional
        Their names, which become coordinates.
    """
    evenness = pm.Beta(f"{name}_evenness", 0.5, 1.0)
    concentration = pt.full(num_columns, evenness / (1.0 - evenness))
    dims = None
    if columns is not None:
        model = pm.modelcontext(None)
        dims = model.name_for(f"{name}_column")
        model.add_coord(dims, columns)
    weights: TensorVariable = SparseDirichlet(f"{name}_split_weights", concentration, dims=dims)
    return weights


def mark_split_weights(split_weights: Variable) -> None:
    """Mark random split weights, and the parameters behind them, if they can be drawn outright."""
    if not is_dirichlet(split_weights):
        return
    parents = _parents(concentration_of(split_weights))
    if all(rv.type.ndim == 0 and rv.type.dtype.startswith("float") for rv in parents):
        for rv in (split_weights, *parents):
            setattr(rv.tag, MARK, True)


def is_marked(variable: Variable) -> bool:
    """Whether `mark_split_weights` has marked it."""
    return getattr(variable.tag, MARK, False)


def is_dirichlet(variable: Variable) -> bool:
    """Whether a variable is one vector with a Dirichlet prior."""
    op = None if variable.owner is None else variable.owner.op
    return isinstance(op, DirichletRV) and variable.type.ndim == 1


def concentration_of(dirichlet: Variable) -> Variable:
    """Concentrations of a Dirichlet variable, (p,)."""
    (concentration,) = dirichlet.owner.op.dist_params(dirichlet.owner)
    return cast(Variable, concentration)


def _parents(variable: Variable) -> list[Variable]:
    """Random variables that one depends on, but not those behind them."""
    if variable.owner is None:
        return []
    if isinstance(variable.owner.op, RandomVariable | SymbolicRandomVariable):
        return [variable]
    found = [rv for x in variable.owner.inputs for rv in _parents(x)]
    return list(dict.fromkeys(found))
