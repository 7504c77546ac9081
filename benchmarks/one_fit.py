"""Fit one method to one data set, and print seconds, RMSE and coverage as JSON.

Not meant to be called by hand: `peers.run_one_fit` runs it with the interpreter that has the
method's library. Each method is fitted to a few rows first, untimed: compiled kernels are then
loaded and lazy imports done, for all methods alike. What is timed is fitting, from arrays in
memory, plus predicting the hold-out rows. Where a method has draws of f there, they are what it
predicts; RMSE is that of their mean, and coverage that of their central 95 % intervals.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import simulation

# Predictions at m hold-out rows, (m,), or draws of f there, (draws, m); and what else to report.
Fit = tuple[np.ndarray, dict[str, Any]]
NUM_WARM_UP_ROWS = 300


def xbart(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    from pymc_xbart import XBARTRegressor

    # All else is left at the defaults, which are the paper's values.
    model = XBARTRegressor(mtry=settings["mtry"], random_state=settings["seed"])
    model.fit(X, y)
    return model.predict(X_new, return_draws=True), {}


def stochtree(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    """Grow-from-root of stochtree with the paper's settings.

    Why the comparison is fair:

    * Same prior: number of trees, alpha, beta, leaf variance. stochtree works on y scaled to
      variance 1, where the paper's leaf variance is 0.3 / num_trees, and it stays fixed
      (`sample_sigma2_leaf=False`), as in the paper and here.
    * Same cuts: as many candidates per column and node, chosen anew in each node by both.
    * Same limits: `min_samples_leaf=1` and no maximal depth, as in the paper. With its own
      defaults, 5 and 10, stochtree takes the same time and has the same RMSE to a few per cent.
    * Same columns: all in every node, where `mtry` is None. (With a number the two differ: here
      columns are drawn once for a tree and with equal weights.)
    * Same sweeps: 40, the predictions of the last 25 averaged, no MCMC steps.
    * Same start: forest 0, noise variance var(y). Both have next to no prior on the noise variance,
      compared with n rows. Both draw it once a sweep (the paper after each tree, see
      `noise_update`).
    * Same work: stochtree keeps what it has predicted for the training rows in any case, and
      predicts the hold-out rows with all 40 forests rather than 25. That is under 1 % of its time.
    * One thread each, and both are compiled before the clock starts.
    """
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=simulation.NUM_SWEEPS,
        num_burnin=0,
        num_mcmc=0,
        general_params={
            "cutpoint_grid_size": settings["num_cutpoints"],
            "standardize": True,
            "sample_sigma2_global": True,
            "random_seed": settings["seed"],
            "num_threads": 1,
        },
        mean_forest_params={
            "num_trees": settings["num_trees"],
            "alpha": simulation.ALPHA,
            "beta": simulation.BETA,
            "min_samples_leaf": 1,
            "max_depth": -1,
            "sample_sigma2_leaf": False,
            "sigma2_leaf_init": simulation.VARIANCE_SHARE / settings["num_trees"],
            "num_features_subsample": settings["mtry"],  # None: all
        },
    )
    draws = model.predict(X_new, terms="y_hat")
    return draws[:, simulation.BURNIN :].T, {}


def xgb(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    """XGBoost's defaults, which the paper lists, and 100 rounds (it does not say how many)."""
    from xgboost import XGBRegressor

    model = XGBRegressor(
        n_estimators=100,
        learning_rate=0.3,
        max_depth=6,
        min_child_weight=1,
        colsample_bytree=1.0,
        n_jobs=1,
        random_state=settings["seed"],
    )
    return model.fit(X, y).predict(X_new), {}


def xgb_cv(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    """XGBoost with the best of the paper's grid by 5-fold cross-validation.

    The paper does not say how many rounds. Here each grid point stops once its cross-validated RMSE
    has not improved for 20 rounds, at most at `max_rounds`, and the best number is kept: that is
    how XGBoost is commonly tuned.
    """
    import xgboost

    is_small = len(y) <= 10_000
    grid = [
        {"eta": eta, "max_depth": depth, "colsample_bytree": share, "min_child_weight": weight}
        for eta in (0.1, 0.3)
        for depth in ((4, 8, 12) if is_small else (4, 12))
        for share in (0.7, 1.0)
        for weight in ((1, 10, 15) if is_small else (10,))
    ]
    fixed = {"subsample": 0.8, "gamma": 0.1, "nthread": 1, "seed": settings["seed"]}
    train = xgboost.DMatrix(X, y, nthread=1)
    best_rmse, best, rounds = np.inf, grid[0], 0
    for point in grid:
        scores = xgboost.cv(
            point | fixed,
            train,
            num_boost_round=settings.get("max_rounds", 500),
            nfold=5,
            early_stopping_rounds=20,
            as_pandas=False,
            seed=settings["seed"],
        )["test-rmse-mean"]
        if min(scores) < best_rmse:
            best_rmse, best, rounds = min(scores), point, int(np.argmin(scores)) + 1
    model = xgboost.train(best | fixed, train, num_boost_round=rounds)
    return model.predict(xgboost.DMatrix(X_new, nthread=1)), {"chosen": best | {"rounds": rounds}}


def random_forest(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    """The paper's ranger: 500 trees, 5 columns a split; ranger does not split nodes of up to 5."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(
        n_estimators=500,
        max_features=5,
        min_samples_split=6,
        n_jobs=1,
        random_state=settings["seed"],
    )
    return model.fit(X, y).predict(X_new), {}


def network(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, settings: dict[str, Any]) -> Fit:
    """The paper's Keras network: two layers of 15 ReLU units, 50 epochs, 20 where noise is high.

    Departures: scikit-learn has no l1 penalty, so 0.01 is its l2 penalty; and y is scaled to
    variance 1, without which neither the penalty nor 20 epochs mean the same for all functions.
    The batches are Keras' default of 32 rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the paper's
    model = MLPRegressor(
        hidden_layer_sizes=(15, 15),
        activation="relu",
        alpha=0.01,
        batch_size=32,
        max_iter=20 if settings["kappa"] > 1 else 50,
        random_state=settings["seed"],
    )
    mean, sd = y.mean(), y.std()
    return mean + sd * model.fit(X, (y - mean) / sd).predict(X_new), {}


METHODS: dict[str, Callable[..., Fit]] = {
    "xbart": xbart,
    "stochtree": stochtree,
    "xgb": xgb,
    "xgb_cv": xgb_cv,
    "random_forest": random_forest,
    "network": network,
}


def save_problem(problem: simulation.Problem, folder: Path) -> None:
    """Write the arrays of a problem where `load_problem` finds them."""
    for name, value in problem._asdict().items():
        np.save(folder / f"{name}.npy", value)


def load_problem(folder: Path) -> simulation.Problem:
    """Read a problem that `save_problem` has written."""
    arrays = (np.load(folder / f"{name}.npy") for name in simulation.Problem._fields)
    *data, noise_sd = arrays
    return simulation.Problem(*data, float(noise_sd))


def judge(predicted: np.ndarray, f_true: np.ndarray) -> dict[str, float]:
    """RMSE, and, of draws, how many of their intervals hold the truth."""
    draws = np.atleast_2d(predicted)
    judged = {"rmse": float(np.sqrt(np.mean((draws.mean(axis=0) - f_true) ** 2)))}
    if len(draws) > 1:
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        judged["coverage"] = float(np.mean((low < f_true) & (f_true < high)))
    return judged


def main() -> None:
    method, folder = METHODS[sys.argv[1]], Path(sys.argv[2])
    settings = json.load(sys.stdin)
    X, y, X_new, f_new, _ = load_problem(folder)
    few = slice(min(NUM_WARM_UP_ROWS, len(y)))
    method(X[few], y[few], X_new[few], settings | {"max_rounds": 2})
    wall, cpu = time.perf_counter(), time.process_time()
    predicted, extra = method(X, y, X_new, settings)
    times = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps(times | judge(predicted, f_new) | extra))


if __name__ == "__main__":
    main()
