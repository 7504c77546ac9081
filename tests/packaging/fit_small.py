"""Fit a small model as a user of the installed package would, save it and read it back.

Run by the nox sessions `wheel` and `oldest`, in environments without anything else.
"""

import tempfile
from importlib.resources import files
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_xbart as pxb

DRAWS = 25


def main() -> None:
    """Raise unless the installed package samples, saves and loads."""
    assert files("pymc_xbart").joinpath("py.typed").is_file(), "the wheel lacks py.typed"

    rng = np.random.default_rng(20190416)
    X = rng.normal(size=(60, 3))
    truth = 2.0 * (X[:, 0] > 0) + X[:, 1]
    y = truth + rng.normal(scale=0.3, size=60)
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=5)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f, noise, observed=y)
        # With its progress bar, which needs libraries that nothing else here does.
        idata = pm.sample(tune=15, draws=DRAWS, chains=1, random_seed=1)

    stored = idata.posterior["f"].values
    assert stored.shape == (1, DRAWS, 60), f"f has the shape {stored.shape}"
    # Five trees fitted to this signal reach about 0.98; a forest that ignores y stays near 0.
    correlation = np.corrcoef(stored.mean(axis=(0, 1)), truth)[0, 1]
    assert correlation > 0.9, f"the posterior mean has a correlation of {correlation:.2f} to truth"

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        idata.to_netcdf(path)
        loaded = az.from_netcdf(path)
        np.testing.assert_array_equal(loaded.posterior["f"].values, stored)
        assert set(loaded.sample_stats) == set(idata.sample_stats)
        loaded.close()


# Not at import: worker processes started by "spawn" import this file.
if __name__ == "__main__":
    main()
