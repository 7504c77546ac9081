"""Which columns a node considers (floor 0: NumPy and Numba only).

He, Yalov & Hahn (2019, "Sparse Proposal Distribution") draw `mtry` columns before each split, one
after the other and without replacement, with probabilities proportional to weights w.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.decorator import kernel


class ColumnChoice(NamedTuple):
    """How many of the p columns a node considers, and with which weights they are drawn."""

    mtry: int  # at most p; p considers all, whatever the weights
    weights: np.ndarray  # (p,) float64, >= 0


def all_columns(num_columns: int) -> ColumnChoice:
    """Consider every column in every node."""
    return ColumnChoice(num_columns, np.ones(num_columns))


@kernel
def draw_columns(choice, considered, rng):
    """Write the columns that a node considers to the front of `considered` (p,).

    Returns how many there are: `mtry`, or fewer if fewer have a positive weight.
    """
    mtry, weights = choice
    for v in range(considered.size):
        considered[v] = v
    if mtry >= considered.size:
        return considered.size
    for k in range(mtry):
        total = 0.0
        for j in range(k, considered.size):
            total += weights[considered[j]]
        if total <= 0.0:
            return k
        remaining = rng.random() * total
        drawn = -1
        for j in range(k, considered.size):
            weight = weights[considered[j]]
            if weight > 0.0:
                drawn = j
                remaining -= weight
                if remaining < 0.0:
                    break
        considered[k], considered[drawn] = considered[drawn], considered[k]
    return mtry
