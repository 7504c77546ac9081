"""Trees on their way into the trace (floor 2), and the schema that goes with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.model import Model
from pytensor.graph.basic import Constant, Variable

from pymc_xbart.forest.covariates import describe_columns
from pymc_xbart.forest.schema import Schema, distinct, schema_name


class Text:
    """Text of one draw, as a statistic of a step.

    PyMC stacks statistics that are no numbers into an array, and plain text would be padded there
    to the longest, at four bytes a character.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.text, dtype=np.dtypes.StringDType())

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (self.text,)


NO_TREES = Text("")


def add_schema(name: str, X: Any, dims: str | Sequence[str] | None) -> None:
    """Add what is known of a forest's X to the constant data of the model on the context stack."""
    names = [dims] if isinstance(dims, str) else None if dims is None else list(dims)
    schema = describe_covariates(X)._replace(dims=names)
    if schema != Schema():
        pm.Data(schema_name(name), schema.to_bytes())


def describe_covariates(X: Any) -> Schema:
    """What is known of the columns of X."""
    if isinstance(X, Variable):
        return Schema(names_of_data(X, pm.modelcontext(None)))
    return describe_columns(X)


def find_schema(model: Model, name: str) -> Schema:
    """What `add_schema` has added for a forest of this name."""
    data = model.named_vars.get(schema_name(name))
    if data is None:
        return Schema()
    # PyMC may have frozen it.
    is_constant = isinstance(data, Constant)
    return Schema.from_bytes(data.data if is_constant else data.get_value())


def names_of_data(X: Variable, model: Model) -> list[str] | None:
    """Labels of the last dimension of data."""
    dims = model.named_vars_to_dims.get(X.name, ())
    labels = model.coords.get(dims[1]) if len(dims) == 2 else None
    return None if labels is None else distinct([str(label) for label in labels])
