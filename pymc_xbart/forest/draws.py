"""The draws of a forest in a result of `pm.sample` (floor 1): find them, whatever became of it.

Objects of xarray are known by what they offer, so that the regressor does without xarray.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.prior import whole_number
from pymc_xbart.forest.schema import Schema, schema_name, trees_name
from pymc_xbart.forest.stored import StoredDraw, read_draw

SUFFIX = trees_name("")
DRAW_DIMS = "chain", "draw", "sample"  # whichever of them draws have


class Draws(NamedTuple):
    """Stored draws of one forest variable."""

    name: str
    text: Any  # xarray.DataArray of text, with the dims that draws have, chain and draw as a rule
    schema: Schema
    dims: tuple[str, ...]  # of the variable, those of its rows last

    @property
    def first(self) -> StoredDraw:
        """The first draw; all have the same columns and the same number of forests."""
        return read_draw(str(self.text.values.flat[0]))


def find_draws(idata: Any, var_name: str | None = None, draws: int | None = None) -> Draws:
    """Find the draws of one forest.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returns, or its group ``sample_stats``, or a selection of either.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional
        How many draws of each chain to use, evenly spaced; all by default.

    Raises
    ------
    TypeError, KeyError, ValueError
        If there are no such draws, in a sentence that says what to do.
    """
    stats = _sample_stats(idata)
    name = _choose(stats, var_name)
    text = stats[trees_name(name)]
    # PyMC gives every statistic that is no number a dimension of its own.
    own = [dim for dim in text.dims if str(dim).endswith(f"{SUFFIX}_dim_0")]
    text = text.isel(dict.fromkeys(own, 0), drop=True)
    if draws is not None:
        text = _thin(text, whole_number(draws, "draws"))
    if text.size == 0:
        msg = f"There are no draws of the forest {name!r} left: its selection is empty."
        raise ValueError(msg)
    schema = _schema(idata, name)
    found = Draws(name, text, schema, ())
    return found._replace(dims=_dims(idata, found))


def _sample_stats(idata: Any) -> Any:
    """Dataset that should hold the trees."""
    if hasattr(idata, "children"):
        if "sample_stats" not in idata.children:
            groups = ", ".join(idata.children) or "none"
            msg = (
                "Forests are stored in the group 'sample_stats', which is not among those given "
                f"({groups}). Pass all that pm.sample returned."
            )
            raise KeyError(msg)
        return idata["sample_stats"].to_dataset()
    if hasattr(idata, "data_vars"):
        return idata
    msg = (
        f"idata is a {type(idata).__name__}, but must be what pm.sample returns (an "
        "xarray.DataTree), or its group 'sample_stats'."
    )
    raise TypeError(msg)


def stored_forests(idata: Any) -> list[str]:
    """Names of all forests whose draws are stored."""
    stats = _sample_stats(idata)
    return [str(name)[: -len(SUFFIX)] for name in stats.data_vars if str(name).endswith(SUFFIX)]


def _choose(stats: Any, var_name: str | None) -> str:
    stored = stored_forests(stats)
    if not stored:
        msg = (
            "No trees are stored. They are where XBARTStep has sampled a forest, unless it was "
            "told store_trees=False."
        )
        raise KeyError(msg)
    if var_name is None:
        if len(stored) > 1:
            msg = f"There are several forests: {', '.join(stored)}. Pass one of them as var_name."
            raise ValueError(msg)
        return stored[0]
    if var_name not in stored:
        msg = f"var_name is {var_name!r}, but trees are stored of: {', '.join(stored)}."
        raise KeyError(msg)
    return var_name


def _thin(text: Any, draws: int) -> Any:
    """Keep some draws of each chain, or of all together where there are no chains."""
    dim = "draw" if "draw" in text.dims else "sample" if "sample" in text.dims else None
    if dim is None or draws >= text.sizes[dim]:
        return text
    return text.isel({dim: evenly_spaced(text.sizes[dim], draws)})


def evenly_spaced(size: int, count: int) -> NDArray[np.int64]:
    """Places of `count` things among `size`, the first and the last among them; all if too few."""
    places: NDArray[np.int64]
    places = np.linspace(0, size - 1, min(count, size)).round().astype(np.int64)
    return places


def _schema(idata: Any, name: str) -> Schema:
    for group in ("constant_data", "predictions_constant_data"):
        if group in getattr(idata, "children", ()) and schema_name(name) in idata[group].data_vars:
            stored = idata[group][schema_name(name)].values
            # Runs put together by `xr.concat` hold it several times.
            return Schema.from_bytes(stored.reshape(-1, stored.shape[-1])[0])
    return Schema()


def _dims(idata: Any, draws: Draws) -> tuple[str, ...]:
    """Dims of the variable where it was kept, else those it was given, else PyMC's default."""
    name = draws.name
    if "posterior" in getattr(idata, "children", ()) and name in idata["posterior"].data_vars:
        kept = idata["posterior"][name].dims
        return tuple(str(dim) for dim in kept if dim not in draws.text.dims)
    if draws.schema.dims is not None:
        return tuple(draws.schema.dims)
    return tuple(f"{name}_dim_{k}" for k in range(len(draws.first.batch) + 1))
