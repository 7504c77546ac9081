"""What a run has drawn, as much of it at a time as memory holds (floor 2).

f at many rows comes in blocks of rows, from the posterior or from stored trees, so that whoever
goes through them may take numbers of each row, and of all rows in each draw, in one go.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from pymc_xbart.forest.predict import predict_rows

DRAW_DIMS = ("chain", "draw")
STATISTICS = ("leaves", "depth", "acceptance")  # that a forest leaves behind for each draw
BLOCK_BYTES = 8e6  # of draws: more would leave the cache, and double the time
# Of draws to have in memory: files may be packed in larger pieces than a block, and to evaluate
# trees all of them are unpacked, whatever the number of rows.
READ_BYTES, EVALUATED_BYTES = 2.5e8, 1e9


def read_group(idata: Any, group: str) -> xr.Dataset:
    """Read the numbers of a group, with dims chain and draw; none if there is no such group.

    Raises
    ------
    TypeError
        If `idata` is not what `pm.sample` returns.
    ValueError
        If its draws are not told apart by number.
    """
    if not hasattr(idata, "children"):
        msg = (
            f"idata is a {type(idata).__name__}, but must be what pm.sample returned (an "
            "xarray.DataTree with the groups 'posterior' and 'sample_stats')."
        )
        raise TypeError(msg)
    if group not in idata.children:
        return xr.Dataset()
    data: xr.Dataset = idata[group].to_dataset()
    if "draw" not in data.dims:
        msg = (
            f"The group {group!r} has the dims {tuple(data.dims)}, but convergence is a matter of "
            "chains and draws. Pass all draws, with the dims 'chain' and 'draw'."
        )
        raise ValueError(msg)
    if "chain" not in data.dims:
        data = data.expand_dims("chain")
    return data.drop_vars([name for name, each in data.items() if each.dtype.kind not in "biuf"])


def sampled_forests(statistics: xr.Dataset) -> list[str]:
    """Names of the forests that `XBARTStep` has sampled, whether it stored their trees or not."""
    ending = f"_{STATISTICS[0]}"
    names = [str(name).removesuffix(ending) for name in statistics if str(name).endswith(ending)]
    # In an order of their own: that of statistics differs from run to run.
    return sorted(
        name for name in names if all(f"{name}_{what}" in statistics for what in STATISTICS)
    )


def select_blocks(values: xr.DataArray) -> Iterator[xr.DataArray]:
    """Cut draws of the posterior along their last dimension."""
    for read in _cut(values, READ_BYTES):
        yield from _cut(read.compute(), BLOCK_BYTES)


def evaluate_blocks(idata: Any, X: Any, name: str, num_threads: int) -> Iterator[xr.DataArray]:
    """Evaluate f at the rows of X, some at a time."""
    found = find_draws(idata, name)
    rows = read_new_rows(X, found)
    at_once = max(1, int(EVALUATED_BYTES // (8 * found.text.size * len(found.first.forests))))
    for start in range(0, rows.X.shape[0], at_once):
        f = predict_rows(found, rows, slice(start, start + at_once), num_threads)
        yield from _cut(f if "chain" in f.dims else f.expand_dims("chain"), BLOCK_BYTES)


def _cut(values: xr.DataArray, num_bytes: float) -> Iterator[xr.DataArray]:
    dims = [dim for dim in values.dims if dim not in DRAW_DIMS]
    if not dims or values.size == 0:
        yield values
        return
    size = values.sizes[dims[-1]]
    at_once = max(1, int(num_bytes // (8 * values.size / size)))
    for start in range(0, size, at_once):
        yield values.isel({dims[-1]: slice(start, start + at_once)})


class RowMoments:
    """Mean and variance of f over rows in each draw, from blocks of rows.

    Chan, Golub & LeVeque (1983). Algorithms for computing the sample variance. American
    Statistician 37, 242-247.
    """

    def __init__(self) -> None:
        self.num_rows = 0
        self.mean: Any = 0.0  # DataArray by draw, and by forest if there are several
        self.squares: Any = 0.0  # sum of squared distances from the mean

    def add(self, f: xr.DataArray) -> None:
        """Add a block of rows, which are the last dimension beside those of the draws."""
        dim = str([dim for dim in f.dims if dim not in DRAW_DIMS][-1])
        more = f.sizes[dim]
        total = self.num_rows + more
        mean = f.mean(dim, skipna=False)
        shift = mean - self.mean
        within = ((f - mean) ** 2).sum(dim, skipna=False)
        self.squares = self.squares + within + shift**2 * self.num_rows * more / total
        self.mean = self.mean + shift * more / total
        self.num_rows = total

    @property
    def variance(self) -> xr.DataArray:
        """Population variance over the rows, since these are all there are."""
        variance: xr.DataArray = self.squares / self.num_rows
        return variance


def labels_of(values: xr.DataArray) -> list[str]:
    """Label of each element in the order of its values, as ArviZ writes them: "12" or "b, 12"."""
    indices = [
        values[dim].values if dim in values.coords else np.arange(values.sizes[dim])
        for dim in values.dims
    ]
    return [
        ", ".join(str(index[place]) for index, place in zip(indices, places, strict=True))
        for places in np.ndindex(*values.shape)
    ]
