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


def check_indices(model: Model) -> None:
    """Refuse a model whose data name levels that a variable does not have.

    Raises
    ------
    IndexError
    """
    for variable in set(ancestors([*model.basic_RVs, *model.deterministics])):
        if variable.owner is None or not isinstance(variable.owner.op, AdvancedSubtensor):
            continue
        indexed, *indices = variable.owner.inputs
        if len(indices) == 1 and indices[0].type.ndim > 0 and not rvs_in_graph(indices):
            _check_index(model, indexed, indices[0])


def _check_index(model: Model, indexed: TensorVariable, index: Variable) -> None:
    rows = evaluate(index, "An index")
    if rows.dtype.kind not in "iu" or rows.size == 0:
        return
    length = int(evaluate(indexed.shape[0], "A length"))
    if -length <= rows.min() and rows.max() < length:
        return
    bad = rows[(rows < -length) | (rows >= length)].flat[0]
    name = indexed.name or "a variable without a name"
    dims = model.named_vars_to_dims.get(indexed.name, ())
    advice = (
        f"model.set_dim({dims[0]!r}, new_length, new_labels) makes room for new levels, which are "
        "then drawn from their prior."
        if dims
        else "Give that dimension a name (dims=...) and coords, so that it can be made longer by "
        "model.set_dim."
    )
    msg = (
        f"Data asks for level {bad} of {name} (counting from 0), which has {length} level(s): "
        f"it is indexed by {index.name or 'an expression of data'}. {advice}"
    )
    raise IndexError(msg)
