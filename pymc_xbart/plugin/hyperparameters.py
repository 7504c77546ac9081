"""sigma and split weights of a forest, constant or random (floor 2).

If they are random, their values come from the model's current point, and the statistics of the
trees go back to the model, see `statistics`.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.exceptions import SamplingError
from pymc.model import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.sharedvar import TensorSharedVariable

from pymc_xbart.forest.prior import check_sigma, check_split_weights
from pymc_xbart.kernels import Forest
from pymc_xbart.kernels.records import NO_COLUMN
from pymc_xbart.plugin.ensemble import Splits
from pymc_xbart.plugin.point_function import Point, PointFunction
from pymc_xbart.plugin.random_variable import check_columns, forest_inputs
from pymc_xbart.plugin.statistics import statistics_of


class Hyperparameters:
    """Prior scale and split weights of the k forests of one variable.

    Parameters
    ----------
    model : pymc.Model
    rv : TensorVariable
        One of its forests.
    batch : tuple of int
        Leading dimensions of its value, with k elements in all; () for one forest.
    mode : optional
        PyTensor mode to compile in.

    Attributes
    ----------
    is_random : bool
        Whether one of them depends on a random variable.
    reads_splits : bool
        Whether the split weights do.
    """

    def __init__(
        self, model: Model, rv: Variable, batch: tuple[int, ...] = (), mode: Any = None
    ) -> None:
        _, _, sigma, split_weights = rv.owner.op.dist_params(rv.owner)
        inputs = forest_inputs(rv)
        self._rv = rv
        self._batch = batch
        self._num_columns = inputs.X.shape[1]
        self._leaves = statistics_of(sigma)
        self._splits = statistics_of(split_weights)
        self.is_random = bool(self._leaves or self._splits)
        self.reads_splits = bool(self._splits)
        self._function: Any = None
        self._constant = inputs.sigma, inputs.split_weights
        if not self.is_random:
            return
        outputs = model.replace_rvs_by_values([sigma, split_weights])
        self._function = PointFunction(outputs, model, mode)

    def __call__(self, point: Point) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate sigma, (k,), and split weights, (k, p), at values of the model's variables."""
        values = self._constant
        if self._function is not None:
            values = self._function(point)
            check_columns(self._rv, self._num_columns, np.shape(values[1])[-1])
        try:
            sigma = check_sigma(values[0])
            split_weights = check_split_weights(values[1], self._num_columns)
        except ValueError as error:
            msg = f"Hyperparameters of the forest {self._rv.name!r} are out of range. {error}"
            raise SamplingError(msg) from error
        shape = (*self._batch, self._num_columns)
        return (
            np.broadcast_to(sigma, self._batch).ravel(),
            np.broadcast_to(split_weights, shape).reshape(-1, self._num_columns),
        )

    def publish(self, forests: list[Forest], splits: list[Splits] | None) -> None:
        """Tell the model what the trees are like.

        Parameters
        ----------
        forests : list of k Forest
        splits : list of k Splits, or None
            Needed if split weights are random.
        """
        if self._leaves:
            self._set(self._leaves[0], self._by_forest([_leaf_statistics(f) for f in forests]))
        if self._splits and splits is not None:
            counts, distinct, occurrences = _split_statistics(splits, self._num_columns)
            self._set(self._splits[0], self._by_forest(counts))
            self._set(self._splits[1], distinct)
            self._set(self._splits[2], self._by_forest(occurrences))

    def _by_forest(self, values: Any) -> NDArray[Any]:
        """Shape (k, m) as the model has it, (*batch, m)."""
        array = np.asarray(values)
        return array.reshape(*self._batch, array.shape[-1])

    @staticmethod
    def _set(shared: TensorSharedVariable, value: NDArray[Any]) -> None:
        shared.set_value(value.astype(shared.dtype))


def _leaf_statistics(forest: Forest) -> tuple[float, float]:
    """Number of leaves, and number of trees times the sum of squared leaf values."""
    num_trees = forest.tree_start.size - 1
    is_leaf = forest.column == NO_COLUMN
    return float(is_leaf.sum()), float(num_trees * np.sum(forest.value[is_leaf] ** 2))


def _split_statistics(splits: list[Splits], num_columns: int) -> list[NDArray[Any]]:
    """Counts (k, p), distinct availabilities (m, p), and their occurrences (k, m)."""
    counts, availability = zip(*splits, strict=True)
    # One more row, so that there always is one; it occurs in no forest.
    rows = np.concatenate([*availability, np.ones((1, num_columns))])
    number: dict[bytes, int] = {}  # sorting rows, as np.unique does, takes a hundred times longer
    which = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows])
    first = np.unique(which, return_index=True)[1]
    ends = np.cumsum([0, *map(len, availability)])
    occurrences = [
        np.bincount(which[start:stop], minlength=first.size) for start, stop in pairwise(ends)
    ]
    return [np.array(counts), rows[first], np.array(occurrences)]
