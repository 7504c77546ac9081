"""What the trees of a forest say about its hyperparameters (floor 2).

Given its trees, a forest's density is a function of sigma and of the split weights s through few
numbers. With L trees, B leaves and S the sum of squared leaf values, up to constants,

    log p(leaf values | sigma)  =  -B log sigma - L S / (2 sigma^2)
    log p(trees | s)            =  sum_v count_v log s_v - sum over splits of log A(split)

where count_v is the number of splits on column v, and A(split) = sum of a_v s_v, with a_v = 1 for
the columns that have cuts there and 0 for the others (under `cut_prior="cuts"`, their numbers of
cuts).

The step method writes these numbers to shared variables after every sweep, and the model's
log-probability reads them, so that NUTS samples random hyperparameters from their conditional. The
shared variables enter the model through `WithTrees`: an identity on the hyperparameter that carries
them along, and lets copies of a model, functions and processes share what belongs together.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import _vectorize_node
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.variable import TensorVariable

LEAVES, SQUARES = 0, 1  # positions in leaf statistics


class WithTrees(Op):
    """Return a hyperparameter as it is, with the statistics of trees in tow."""

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012

    def make_node(self, parameter: Variable, *statistics: Variable) -> Apply:
        """Take the parameter, whose type is that of the output, and the shared statistics."""
        parameter = pt.as_tensor_variable(parameter)
        return Apply(self, [parameter, *statistics], [parameter.type()])

    def perform(
        self, node: Apply, inputs: list[NDArray[Any]], output_storage: list[list[Any]]
    ) -> None:
        """Hand the parameter through."""
        output_storage[0][0] = np.asarray(inputs[0])

    def infer_shape(self, node: Apply, shapes: list[Any]) -> list[Any]:
        """Shape of the parameter."""
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The parameter counts; statistics are read elsewhere."""
        return [[True], *([False] for _ in node.inputs[1:])]

    def pullback(
        self, inputs: list[Variable], outputs: list[Variable], output_grads: list[Variable]
    ) -> list[Variable]:
        """Gradient: the identity."""
        return [output_grads[0], *(DisconnectedType()() for _ in inputs[1:])]


_with_trees = WithTrees()


@_vectorize_node.register(WithTrees)
def _vectorize_with_trees(
    op: WithTrees, node: Apply, parameter: Variable, *rest: Variable
) -> Apply:
    return op.make_node(parameter, *node.inputs[1:])


@register_funcify_default_op_cache_key(WithTrees)
def _numba_of_with_trees(op: WithTrees, **kwargs: Any) -> tuple[Callable[..., Any], int]:
    @numba_njit
    def with_trees(parameter, *statistics):  # type: ignore[no-untyped-def]
        return parameter

    return with_trees, 1


def with_leaves(sigma: TensorVariable, batch: tuple[int, ...]) -> TensorVariable:
    """Let a random sigma carry leaf statistics, (*batch, 2), of zero until sampling."""
    return cast(TensorVariable, _with_trees(sigma, _shared("leaf_statistics", *batch, 2)))


def with_splits(
    split_weights: TensorVariable, batch: tuple[int, ...], num_columns: int
) -> TensorVariable:
    """Let random split weights carry split statistics, of no splits until sampling.

    These are counts (*batch, p), availabilities (distinct splits, p), and how often each of those
    occurs, (*batch, distinct splits).
    """
    availability = _shared("split_availability", 1, num_columns)
    availability.set_value(np.ones_like(availability.get_value()))
    return cast(
        TensorVariable,
        _with_trees(
            split_weights,
            _shared("split_counts", *batch, num_columns),
            availability,
            _shared("split_occurrences", *batch, 1),
        ),
    )


def _shared(name: str, *shape: int) -> TensorSharedVariable:
    zeros = np.zeros(shape, pytensor.config.floatX)
    return cast(TensorSharedVariable, pytensor.shared(zeros, name=name))


def statistics_of(parameter: Variable) -> list[TensorSharedVariable]:
    """Shared statistics that a hyperparameter carries; none if it is not random."""
    carrier = _carrier(parameter)
    return [] if carrier is None else cast(list[TensorSharedVariable], carrier.inputs[1:])


def parameter_behind(parameter: Variable) -> Variable | None:
    """A hyperparameter as the user gave it to a forest; None if it is not random."""
    carrier = _carrier(parameter)
    return None if carrier is None else carrier.inputs[0]


def _carrier(parameter: Variable) -> Apply | None:
    for variable in ancestors([parameter]):
        if variable.owner is not None and isinstance(variable.owner.op, WithTrees):
            return cast(Apply, variable.owner)
    return None


def leaf_logp(sigma: TensorVariable) -> TensorVariable | None:
    """Log-density of the leaf values given sigma, for each forest; None if sigma is constant."""
    statistics = statistics_of(sigma)
    if not statistics:
        return None
    (leaves,) = statistics
    logp: TensorVariable = -leaves[..., LEAVES] * pt.log(sigma) - leaves[..., SQUARES] / (
        2 * sigma**2
    )
    return logp


def split_logp(split_weights: TensorVariable) -> TensorVariable | None:
    """Log-probability of the trees given split weights, one for each forest; None if constant."""
    statistics = statistics_of(split_weights)
    if not statistics:
        return None
    counts, availability, occurrences = statistics
    # A column that no tree splits on counts for nothing, even where its weight is zero.
    used = pt.switch(pt.eq(counts, 0), 0.0, counts * pt.log(split_weights))
    available = pt.log(split_weights @ availability.T)
    logp: TensorVariable = used.sum(axis=-1) - (occurrences * available).sum(axis=-1)
    return logp
