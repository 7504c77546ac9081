"""Brute force for f with columns held at points: tables whose rows are moved there."""

from itertools import product

import numpy as np
import pandas as pd

from pymc_xbart import predict
from pymc_xbart.diagnostics.grid import MISSING


def moved(table, values):
    """Table with the same value in all rows of some columns; labels as a result has them."""
    columns = {}
    for name, value in values.items():
        entry = None if value == MISSING else value
        columns[name] = pd.Series([entry] * len(table), table.index, dtype=table[name].dtype)
    return table.assign(**columns)


def each_point(idata, table, coords, **options):
    """f at all rows moved to each combination of values, (*draws, *forests, rows, *points)."""
    points = product(*(values.tolist() for values in coords.values()))
    f = [
        predict(idata, moved(table, dict(zip(coords, point, strict=True))), **options).to_numpy()
        for point in points
    ]
    sizes = [len(values) for values in coords.values()]
    return np.stack(f, axis=-1).reshape(*f[0].shape, *sizes)
