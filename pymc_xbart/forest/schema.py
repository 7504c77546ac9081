"""What is to be known of X to read a forest later (floor 1): names, labels, dates, dims.

It travels beside the draws as JSON in an array of bytes, since a model's constant data are numbers.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Schema(NamedTuple):
    """Names, as far as there are any."""

    columns: list[str] | None = None  # of X, in order
    dims: list[str] | None = None  # of the forest, those of its rows last
    # of the categories of each column by their numbers, None for a column of numbers; None if all
    # hold numbers
    labels: list[list[str] | None] | None = None
    dates: list[int] | None = None  # numbers of the columns that hold dates, as seconds since 1970

    def to_bytes(self) -> NDArray[np.uint8]:
        """UTF-8 JSON, (bytes,)."""
        return np.frombuffer(json.dumps(self._asdict(), ensure_ascii=False).encode(), np.uint8)

    @classmethod
    def from_bytes(cls, data: Any) -> "Schema":
        """Read what `to_bytes` has written, whatever numbers the bytes have become."""
        known = json.loads(np.asarray(data).astype(np.uint8).tobytes())
        return cls(**{field: known.get(field) for field in cls._fields})


def schema_name(name: str) -> str:
    """Name of a forest's schema among the constant data."""
    return f"{name}_schema"


def trees_name(name: str) -> str:
    """Name of a forest's trees among the statistics of the draws."""
    return f"{name}_trees"


def distinct(names: Sequence[str] | None) -> list[str] | None:
    """The names, unless two are the same: they then name nothing."""
    return None if names is None or len(set(names)) < len(names) else list(names)
