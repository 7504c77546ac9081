"""Numbers of columns under the columns' names (floor 2)."""

from typing import Any

import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.forest.draws import Draws
from pymc_xbart.forest.stored import StoredDraw, read_draw

COLUMN = "column"
OTHER_COLUMN = "column2"


def names_of(draws: Draws) -> list[Any]:
    """Names of the columns of X, or their numbers from 0 where they have none."""
    return draws.schema.columns or list(range(draws.first.num_columns))


def read_all(draws: Draws) -> list[StoredDraw]:
    """Every draw, chain by chain."""
    return [read_draw(str(text)) for text in draws.text.values.flat]


def label(
    draws: Draws,
    values: NDArray[Any],
    coords: dict[str, Any] | None = None,
    *,
    of_each_forest: bool = False,
) -> xr.DataArray:
    """Label numbers of draws.

    Parameters
    ----------
    draws : Draws
    values : ndarray
        By draw, in the order of `read_all`; then by forest, if there is a number `of_each_forest`;
        then by what `coords` names.
    coords : dict, optional
        Further dims with their labels.
    of_each_forest : bool, default False
    """
    batch = draws.first.batch if of_each_forest else ()
    forests = draws.dims[:-1] if of_each_forest else ()
    coords = coords or {}
    inner = values.shape[values.ndim - len(coords) :]
    return xr.DataArray(
        values.reshape((*draws.text.shape, *batch, *inner)),
        dict(draws.text.coords) | coords,
        (*draws.text.dims, *forests, *coords),
    )
