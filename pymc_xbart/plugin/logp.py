"""Log-probability of a forest in the joint log-probability of a model (floor 2).

The trees are no variables of the model, so given f there is nothing to evaluate at: what the other
variables need to know of a forest depends on its hyperparameters only, and on the trees that the
step method holds. Returning that expression alone would make f look as if its prior were flat, and
gradient samplers, variational inference or optimisers would take it at its word. So the expression
passes through an Op that depends on f and has no gradient with respect to it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.gradient import grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import _vectorize_node
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.variable import TensorVariable

NO_GRADIENT = (
    "The log-probability of an XBARTForest has no gradient with respect to f, because f is a sum "
    "of trees and not a free vector. Sample the model with pm.sample(), which gives the forest an "
    "XBARTStep and everything else the step methods of PyMC; variational inference, optimisers "
    "and NUTS over f are wrong for it."
)


class ForestLogp(Op):
    """Return `expr` as the log-probability of `value`; refuse gradients in `value`."""

    __props__ = ()
    # Without it the memory of `expr` is freed under the output, which is the same memory.
    view_map = {0: [1]}  # noqa: RUF012

    def make_node(self, value: Variable, expr: Variable) -> Apply:
        """Take the value of a forest and the expression, whose type is that of the output."""
        value, expr = pt.as_tensor_variable(value), pt.as_tensor_variable(expr)
        return Apply(self, [value, expr], [expr.type()])

    def perform(
        self, node: Apply, inputs: list[NDArray[Any]], output_storage: list[list[Any]]
    ) -> None:
        """Hand `expr` through."""
        output_storage[0][0] = np.asarray(inputs[1])

    def infer_shape(self, node: Apply, shapes: list[Any]) -> list[Any]:
        """Shape of `expr`."""
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Both inputs count: otherwise f would look irrelevant instead of being refused."""
        return [[True], [True]]

    def pullback(
        self, inputs: list[Variable], outputs: list[Variable], output_grads: list[Variable]
    ) -> list[Variable]:
        """Gradients: none for the value, the identity for the expression."""
        return [grad_not_implemented(self, 0, inputs[0], NO_GRADIENT), output_grads[0]]


forest_logp = ForestLogp()


@_vectorize_node.register(ForestLogp)
def _vectorize_forest_logp(
    op: ForestLogp, node: Apply, value: TensorVariable, expr: TensorVariable
) -> Apply:
    """Give the expression the batch dimensions of the value, where it lacks them."""
    num_batch_dims = value.type.ndim - node.inputs[0].type.ndim
    if expr.type.ndim - node.inputs[1].type.ndim < num_batch_dims:
        batch_shape = tuple(value.shape[:num_batch_dims])
        expr = pt.broadcast_to(expr, (*batch_shape, *expr.shape))
    return op.make_node(value, expr)


@register_funcify_default_op_cache_key(ForestLogp)
def _numba_of_forest_logp(op: ForestLogp, **kwargs: Any) -> tuple[Callable[..., Any], int]:
    @numba_njit
    def forest_logp(value, expr):  # type: ignore[no-untyped-def]
        return expr

    return forest_logp, 1
