"""Split weights with a Dirichlet prior (floor 2): make sparse ones, mark those that can be drawn.

A step method is chosen for a variable by what the variable itself tells, so that a forest leaves a
mark on its split weights.
"""

from typing import cast

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import DirichletRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

SPARSE = "sparse"  # what stands for split weights that `sparse_split_weights` makes
MARK = "xbart_split_weights"  # tag of variables that `SplitWeightsStep` can draw


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
        dims = f"{name}_column"
        pm.modelcontext(None).add_coord(dims, columns)
    weights: TensorVariable = pm.Dirichlet(f"{name}_split_weights", concentration, dims=dims)
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
