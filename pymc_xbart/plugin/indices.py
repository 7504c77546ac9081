"""Data that index variables must name levels that exist (floor 2).

Compiled code does not look: beyond the end of `a` it finds other numbers, and `a[school]` is one of
them.
"""

from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.plugin.inputs import evaluate
from pymc_xbart.plugin.target import is_forest


def check_indices(model: Model) -> None:
    """Refuse a model whose data name levels that a variable does not have.

    Raises
    ------
    IndexError
    """
    for variable in set(ancestors([*model.basic_RVs, *model.deterministics])):
        if variable.owner is None or not isinstance(variable.owner.op, AdvancedSubtensor):
            continue
        indexed, *inputs = variable.owner.inputs
        indices = [inputs[k] if isinstance(k, int) else None for k in variable.owner.op.idx_list]
        if any(index is not None and index.type.dtype == "bool" for index in indices):
            continue
        for axis, index in enumerate(indices):
            if index is not None and not rvs_in_graph([index]):
                _check_index(model, indexed, axis, index)


def _check_index(model: Model, indexed: TensorVariable, axis: int, index: Variable) -> None:
    rows = evaluate(index, "An index")
    if rows.size == 0:
        return
    length = int(evaluate(indexed.shape[axis], "A length"))
    if -length <= rows.min() and rows.max() < length:
        return
    bad = rows[(rows < -length) | (rows >= length)].flat[0]
    name = indexed.name or "a variable without a name"
    msg = (
        f"Data asks for level {bad} of {name} (counting from 0), which has {length} level(s): "
        f"it is indexed by {index.name or 'an expression of data'}. "
        f"{_advice(model, indexed, axis)}"
    )
    raise IndexError(msg)


def _advice(model: Model, indexed: TensorVariable, axis: int) -> str:
    if is_forest(indexed) and axis == indexed.type.ndim - 1:
        return "Its levels are the rows of its X; replace both by pm.set_data."
    dims = model.named_vars_to_dims.get(indexed.name, ())
    if not dims:
        return (
            "Give that dimension a name (dims=...) and coords, so that it can be made longer by "
            "model.set_dim."
        )
    return (
        f"model.set_dim({dims[axis]!r}, new_length, new_labels) makes room for new levels, which "
        "are then drawn from their prior."
    )
