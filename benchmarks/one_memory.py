"""Sample a large model, and print how much memory the process took as JSON.

Not meant to be called by hand: `memory` runs it.
"""

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from friedman import friedman
from measuring import peak_bytes

BLOCK = 10_000  # rows whose f is computed at a time, so that this takes no memory


def simulate(num_rows: int, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """X and y of Friedman's function, noise 1."""
    rng = np.random.default_rng(1)
    X = rng.random((num_rows, num_columns))
    f = np.concatenate([friedman(X[k : k + BLOCK]) for k in range(0, num_rows, BLOCK)])
    return X, f + rng.standard_normal(num_rows)


def sample(settings: dict[str, Any]) -> dict[str, float]:
    """Peaks after each stage, in bytes, and seconds of sampling."""
    import pymc as pm

    import pymc_xbart as pxb

    _ = pxb.XBARTForest
    peaks = {"libraries": peak_bytes()}
    X, y = simulate(settings["rows"], settings["columns"])
    X.flags.writeable = settings["is_writeable"]
    peaks["data"] = peak_bytes()
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=settings["num_trees"])
        pm.Normal("y", f, pm.HalfNormal("noise", 1.0), observed=y)
        peaks["model"] = peak_bytes()
        step = pxb.XBARTStep()
        peaks["step"] = peak_bytes()
        began = time.perf_counter()
        idata = pm.sample(
            **{"step": step, "tune": settings["tune"], "draws": settings["draws"]},
            **{"chains": 1, "cores": 1, "random_seed": 1, "var_names": ["noise"]},
            **{"progressbar": False, "quiet": True, "compute_convergence_checks": False},
        )
    peaks["sampling"] = peak_bytes()
    noise = float(idata["posterior"]["noise"].mean())
    return {**peaks, "seconds": time.perf_counter() - began, "noise": noise, "X": X.nbytes}


def main() -> None:
    warnings.simplefilter("ignore")
    print(json.dumps(sample(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
