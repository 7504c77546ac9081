"""Write a specimen of stored forests in today's format.

    uv run tests/specimens/make.py NAME

A specimen is written once, when a format is new, and kept for ever: `tests/test_specimens.py` reads
all of them, so that files of users stay readable. Never write one anew.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

import pymc_xbart as pxb

FOLDER = Path(__file__).parent
COLUMNS = ["age", "größe", "weight"]


def main() -> None:
    path = FOLDER / f"{sys.argv[1]}.nc"
    if path.exists():
        sys.exit(f"{path.name} exists, and specimens are never written anew.")
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((40, 3)), columns=COLUMNS)
    y = np.sin(X["age"]) + X["weight"] ** 2 + rng.normal(0, 0.1, 40)
    with pm.Model(coords={"row": range(40), "class": ["a", "b"]}):
        f = pxb.XBARTForest("f", X, y=y, num_trees=8, dims="row")
        k = pxb.XBARTForest("k", X.to_numpy(), sigma=1.0, num_trees=3, dims=("class", "row"))
        pm.Normal("y", f, 0.1, observed=y.to_numpy(), dims="row")
        pm.Normal("z", k[0] + k[1], 0.1, observed=y.to_numpy(), dims="row")
        idata = pm.sample(
            draws=5,
            tune=20,
            chains=2,
            cores=1,
            random_seed=1,
            quiet=True,
            compute_convergence_checks=False,
        )
    kept = {
        "posterior": idata["posterior"].to_dataset()[["f", "k"]],
        "sample_stats": idata["sample_stats"].to_dataset()[["f_trees", "k_trees"]],
        "constant_data": idata["constant_data"].to_dataset(),
    }
    rows = xr.Dataset({"X": (("row", "column"), X.to_numpy())}, {"column": COLUMNS})
    xr.DataTree.from_dict(kept | {"rows": rows}).to_netcdf(path)


if __name__ == "__main__":
    main()
