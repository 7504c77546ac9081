"""Fit once, predict several times, and print seconds and memory as JSON.

Not meant to be called by hand: `prediction` runs it with the interpreter that has the method's
library.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import peak_bytes

Predict = Callable[[np.ndarray], np.ndarray]  # X (m, p) to draws of f (draws, m) or (m, draws)


def pymc_xbart(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Predict:
    """`predict` from what `pm.sample` returns: read the stored text, evaluate, label."""
    import pymc as pm

    import pymc_xbart as pxb

    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=settings["num_trees"])
        pm.Normal("y", f, 1.0, observed=y)
        idata = pm.sample(
            chains=1,
            tune=100,
            draws=settings["draws"],
            cores=1,
            random_seed=1,
            quiet=True,
            compute_convergence_checks=False,
        )
    return lambda X_new: pxb.predict(idata, X_new).to_numpy()


def stochtree(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> Predict:
    """`predict` of a sampled BARTModel, for the same number of forests."""
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=0,
        num_burnin=1000,  # its trees take longer to grow, and small ones would be quick to predict
        num_mcmc=settings["draws"],
        general_params={"random_seed": 1, "num_threads": 1},
        mean_forest_params={
            "num_trees": settings["num_trees"],
            "alpha": 0.95,
            "beta": 1.25,
            "min_samples_leaf": 1,
            "max_depth": -1,
        },
    )
    return lambda X_new: model.predict(X_new, terms="y_hat")


METHODS = {"pymc_xbart": pymc_xbart, "stochtree": stochtree}


def main() -> None:
    name, folder, settings = sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)
    X, y, X_new = (np.load(folder / f"{array}.npy") for array in ("X", "y", "X_new"))
    predict = METHODS[name](X, y, settings)
    predict(X_new[:10])  # compiled, and imported
    before = peak_bytes()
    seconds = []
    for _ in range(settings["repeats"]):
        start = time.perf_counter()
        draws = predict(X_new)
        seconds.append(time.perf_counter() - start)
    result = {
        "seconds": seconds,
        "bytes_beyond_result": peak_bytes() - before - draws.nbytes,
        "num_values": draws.size,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
