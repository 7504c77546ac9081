"""Fit one table by one method, predict rows held out, save draws, print the times as JSON.

Not meant to be called by hand: `tables` runs it with the interpreter that has the method's library.

All methods get the same rows of a pandas table, whose categories are declared; one that no training
row has may turn up in the hold-out. (stochtree and pymc-bart bring pandas to their environments.)
What each makes of it:

* pymc_xbart and scikit-learn's gradient boosting take the table as it is, missing entries included.
  Boosting reads the categories of ordered columns as unordered ones.
* stochtree takes the table, makes 0/1 columns of unordered categories and ranks of ordered ones. It
  refuses missing categories, and is not documented to handle missing numbers. `complete` fills
  them.
* pymc-bart takes numbers alone, and its way to new rows, `pm.Data`, holds no missing ones: it is
  given the filled table with categories numbered. Those without an order get the split rule
  "OneHotSplit", one category against the rest; the only other rule that its sampler knows in the
  version measured is that for numbers, although its documentation names "SubsetSplitRule", too.

What is timed is fit and prediction, draw by draw, in a process that has fitted a few rows of the
same table before. pymc-bart's time includes what PyMC compiles anew in each call.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

NUM_FIRST = 100  # training rows of the fit before the clock starts


class Predicted(NamedTuple):
    """What a method says of the rows held out."""

    mean: np.ndarray  # (m,)
    f: np.ndarray | None = None  # (draws, m)
    noise: np.ndarray | None = None  # (draws,), standard deviation


# Rows to fit, their y, rows to predict, and settings.
Method = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, dict[str, Any]], Predicted]


def xbart(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, settings: dict[str, Any]
) -> Predicted:
    """`XBARTRegressor` with its defaults: the paper's heuristic."""
    return fit_xbart(X, y, X_new, random_state=settings["seed"])


def exact(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, settings: dict[str, Any]
) -> Predicted:
    """`XBARTRegressor` as a sampler of the posterior, else with its defaults."""
    sweeps = {"burnin": settings["burnin"], "num_sweeps": settings["burnin"] + settings["draws"]}
    options = {"correction": "tree", "num_trees": 100, **sweeps}
    return fit_xbart(X, y, X_new, random_state=settings["seed"], **options)


def fit_xbart(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, **options: Any) -> Predicted:
    from pymc_xbart import XBARTRegressor

    model = XBARTRegressor(**options).fit(X, y)
    f = model.predict(X_new, return_draws=True)
    return Predicted(f.mean(axis=0), f, model.noise_sd_[model.burnin :])


def stochtree(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, settings: dict[str, Any]
) -> Predicted:
    """MCMC of stochtree from ten forests grown from the root, else with its defaults."""
    from stochtree import BARTModel

    X, X_new = complete(X, X_new)
    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=10,
        num_burnin=0,
        num_mcmc=settings["draws"],
        general_params={"random_seed": settings["seed"], "num_threads": 1},
    )
    f = model.predict(X_new, terms="y_hat").T
    return Predicted(f.mean(axis=0), f, np.sqrt(model.global_var_samples))


def pymc_bart(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, settings: dict[str, Any]
) -> Predicted:
    """pymc-bart with its defaults, 50 trees, in a model with Normal noise.

    Its f at new rows takes for each draw the trees of any kept one, by chance, so that draws of f
    and of the noise do not belong together.
    """
    import pymc as pm
    import pymc_bart as pmb

    X, X_new = complete(X, X_new)
    nominal = [is_category(dtype) and not dtype.ordered for dtype in X.dtypes]
    numbers, new_numbers = as_numbers(X), as_numbers(X_new)
    seeds = np.random.default_rng(settings["seed"]).spawn(2)
    few = {"tune": settings["tune"], "draws": settings["bart_draws"]}
    quiet = {"cores": 1, "quiet": True, "compute_convergence_checks": False}
    with pm.Model():
        data = pm.Data("X", numbers)
        rules = ["OneHotSplit" if is_nominal else "ContinuousSplit" for is_nominal in nominal]
        f = pmb.BART("f", data, y, m=50, split_rules=rules)
        noise = pm.HalfNormal("noise", y.std())
        pm.Normal("y", f, noise, observed=y, shape=f.shape)
        idata = pm.sample(chains=1, random_seed=seeds[0], **few, **quiet)
        pm.set_data({"X": new_numbers})
        new = pm.sample_posterior_predictive(
            idata, sample_vars=["f"], predictions=True, random_seed=seeds[1], progressbar=False
        )
    draws = new["predictions"]["f"].to_numpy()[0]
    return Predicted(draws.mean(axis=0), draws, idata["posterior"]["noise"].to_numpy()[0])


def boosting(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, settings: dict[str, Any]
) -> Predicted:
    """scikit-learn's histogram gradient boosting with its defaults."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype", random_state=settings["seed"]
    )
    return Predicted(model.fit(X, y).predict(X_new))


def complete(X: pd.DataFrame, X_new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables without missing entries.

    Missing numbers become the median of the training rows, and a 0/1 column beside theirs says
    where; missing categories become one more category, the last.
    """
    train, new = {}, {}
    for name in X:
        is_missing, is_missing_new = X[name].isna(), X_new[name].isna()
        column, new_column = X[name], X_new[name]
        if is_missing.any() or is_missing_new.any():
            if is_category(column.dtype):
                column, new_column = (
                    part.cat.add_categories("missing").fillna("missing")
                    for part in (column, new_column)
                )
            else:
                median = column.median()
                column, new_column = column.fillna(median), new_column.fillna(median)
                train[f"{name} is missing"] = is_missing.astype(float)
                new[f"{name} is missing"] = is_missing_new.astype(float)
        train[name], new[name] = column, new_column
    return pd.DataFrame(train), pd.DataFrame(new)


def as_numbers(X: pd.DataFrame) -> np.ndarray:
    """Columns of X, categories by their numbers."""
    columns = (X[name].cat.codes if is_category(X[name].dtype) else X[name] for name in X)
    return np.column_stack([column.to_numpy(float) for column in columns])


def is_category(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype)


METHODS: dict[str, Method] = {
    "XBARTRegressor": xbart,
    "exact": exact,
    "stochtree": stochtree,
    "pymc-bart": pymc_bart,
    "boosting": boosting,
}
SETTINGS = {"burnin": 300, "tune": 200, "bart_draws": 200, "draws": 300}
FEW = dict.fromkeys(SETTINGS, 5)


def save_table(X: pd.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Write the table as numbers that need no library to be read, and return what they mean."""
    codes = [X[name].cat.codes if is_category(X[name].dtype) else X[name] for name in X]
    np.save(folder / "X.npy", np.column_stack([column.to_numpy(float) for column in codes]))
    return [
        {"name": name, "labels": list(dtype.categories), "ordered": dtype.ordered}
        if is_category(dtype)
        else {"name": name}
        for name, dtype in X.dtypes.items()
    ]


def read_table(folder: Path, columns: list[dict[str, Any]]) -> pd.DataFrame:
    """Inverse of `save_table`."""
    X = np.load(folder / "X.npy")
    return pd.DataFrame(
        {
            column["name"]: pd.Categorical.from_codes(
                values.astype(int), column["labels"], ordered=column["ordered"]
            )
            if "labels" in column
            else values
            for column, values in zip(columns, X.T, strict=True)
        }
    )


def main() -> None:
    name, folder, settings = sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)
    X, y = read_table(folder, settings["columns"]), np.load(folder / "y.npy")
    held_out = np.load(folder / "held_out.npy")
    X_train, y_train, X_new = X[~held_out], y[~held_out], X[held_out]
    method = METHODS[name]
    method(X_train[:NUM_FIRST], y_train[:NUM_FIRST], X_new[:NUM_FIRST], settings | FEW)
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = method(X_train, y_train, X_new, settings | SETTINGS)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for field, values in predicted._asdict().items():
        if values is not None:
            np.save(folder / f"{field}.npy", values)
    print(json.dumps({"seconds": wall, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main()
