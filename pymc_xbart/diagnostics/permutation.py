"""`permutation_importance`: what a score loses if a column is shuffled (floor 2)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.columns import COLUMN, label, names_of, read_all
from pymc_xbart.diagnostics.selection import some_trees, splits_of_trees
from pymc_xbart.forest.draws import find_draws
from pymc_xbart.forest.new_rows import read_new_rows
from pymc_xbart.forest.prior import whole_number
from pymc_xbart.forest.stored import StoredDraw, StoredForest
from pymc_xbart.forest.tables import as_numbers, first_rows
from pymc_xbart.forest.views import Seen, evaluate_trees, places_of, see
from pymc_xbart.kernels import route_values

Score = Callable[[Any, NDArray[np.float64]], float]


def permutation_importance(
    idata: Any,
    X: Any,
    y: Any,
    *,
    score: str | Score = "r2",
    repeats: int = 5,
    random_seed: int | np.random.Generator | None = None,
    var_name: str | None = None,
    draws: int | None = 100,
) -> xr.Dataset:
    """Loss in a score of every draw if the values of a column are shuffled among the rows.

    A shuffled column says nothing of y or of other columns, and is distributed as before. So the
    loss is what f gains from the column; rows that f was not fitted to say what it gains on new
    data. Where columns depend on each other, shuffled rows are unlike any that f has seen.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        What `pm.sample` returned, or its group ``sample_stats``, or a selection of either.
    X : array_like, DataFrame, xarray.DataArray or xarray.Dataset, shape (m, p)
        Rows to score, as for `predict`.
    y : array_like
        Responses at these rows; of the shape of f, (m,) or (k, m), for "r2". A score of your own
        takes it as it is.
    score : "r2" or callable
        ``score(y, f)`` is a number, the larger the better; f is a draw at the rows of X, (m,), or
        (k, m) for a variable of shape (k, n), on the scale of the forest. "r2" is 1 minus the
        squared errors of f over those of the mean of y; it makes sense where y is f and noise.
        Where a link stands between them, put it into the score, for instance
        ``lambda y, f: scipy.stats.poisson.logpmf(y, np.exp(f)).mean()``.
    repeats : int, default 5
        How many times to shuffle each column. The same for all draws.
    random_seed : int or numpy.random.Generator, optional
        That shuffles follow from.
    var_name : str, optional
        Name of the forest; needed if there are several.
    draws : int, optional, default 100
        How many draws of each chain to use, evenly spaced; all for None.

    Returns
    -------
    xarray.Dataset
        With the variables

        - ``loss``: (chain, draw, column, repeat), score of f minus score of f with the column
          shuffled
        - ``score``: (chain, draw), of f

    Raises
    ------
    KeyError, TypeError, ValueError
        If X does not fit the forest, y does not fit f, or the score is no number.

    Notes
    -----
    Only trees that split on a column are evaluated anew. The time grows with
    draws x repeats x rows x nodes, times the columns that a tree splits on.

    References
    ----------
    Breiman (2001). Random forests. Machine Learning 45, section 10.

    Fisher, Rudin & Dominici (2019). All models are wrong, but many are useful: learning a
    variable's importance by studying an entire class of prediction models simultaneously. Journal
    of Machine Learning Research 20(177).

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_xbart as pxb
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(100, 3))
    >>> y = 3 * X[:, 0] + rng.normal(0, 0.1, size=100)
    >>> with pm.Model():
    ...     f = pxb.XBARTForest("f", X, y=y, num_trees=10)
    ...     _ = pm.Normal("y", f, 0.1, observed=y)
    ...     idata = pm.sample(draws=50, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> loss = pxb.permutation_importance(idata, X, y, random_seed=1)["loss"]
    >>> int(loss.mean(("chain", "draw", "repeat")).idxmax())
    0
    """
    repeats = whole_number(repeats, "repeats")
    found = find_draws(idata, var_name, draws)
    matrix = read_new_rows(X, found).X
    score_of = _choose_score(score, y, (*found.first.batch, matrix.shape[0]))
    rng = np.random.default_rng(random_seed)
    orders = [rng.permutation(matrix.shape[0]) for _ in range(repeats)]
    rows = _shuffle(see(matrix, found.first.is_categorical), orders)
    names = names_of(found)
    scores = np.empty(found.text.size)
    losses = np.empty((scores.size, len(names), repeats))
    for d, draw in enumerate(read_all(found)):
        f = _values(draw, rows.seen)
        scores[d] = score_of(f)
        for v in range(len(names)):
            changes = np.stack([_changes(stored, v, rows) for stored in draw.forests], axis=1)
            losses[d, v] = [scores[d] - score_of(f + change) for change in changes]
    coords = {COLUMN: names, "repeat": np.arange(repeats)}
    return xr.Dataset(
        {
            "loss": label(found, losses, coords),
            "score": label(found, scores),
        }
    )


class _Rows(NamedTuple):
    """Rows as they are, and shuffled time and again."""

    seen: Seen
    everything: NDArray[np.float64]  # ((1 + repeats) * places, n), those of `seen` first


def _shuffle(seen: Seen, orders: list[NDArray[np.int64]]) -> _Rows:
    return _Rows(seen, np.concatenate([seen.rows, *(seen.rows[:, order] for order in orders)]))


def _values(draw: StoredDraw, seen: Seen) -> NDArray[np.float64]:
    """Evaluate every forest of a draw, (k, n)."""
    f = np.empty((len(draw.forests), seen.rows.shape[1]))
    for k, (mu, forest, view, cut_value, _) in enumerate(draw.forests):
        evaluate_trees(forest, view, cut_value, seen, f[k])
        f[k] += mu
    return f


def _changes(stored: StoredForest, column: int, rows: _Rows) -> NDArray[np.float64]:
    """What shuffling a column adds to f, (repeats, n): what it adds to the trees that have it."""
    num_places, num_rows = rows.seen.rows.shape
    has_column = splits_of_trees(stored, rows.seen.place.shape[0])[:, column]
    _, forest, view, cut_value, _ = some_trees(stored, has_column)
    place = places_of(forest, view, rows.seen)
    step = np.where(forest.column == column, num_places, 0).astype(np.int32)
    f = np.empty((rows.everything.shape[0] // num_places, num_rows))
    for k, values in enumerate(f):
        shown = forest._replace(column=place + np.int32(k) * step)
        route_values(shown, cut_value, rows.everything, values)
    changes: NDArray[np.float64] = f[1:] - f[0]
    return changes


def _choose_score(
    score: str | Score, y: Any, shape: tuple[int, ...]
) -> Callable[[NDArray[np.float64]], float]:
    """Score as a function of f (k, n) alone; `shape` is that of f for its owner."""
    if score == "r2":
        return _r2_of(_read_response(y, shape))
    if not callable(score):
        msg = f"score is {score!r}, but must be 'r2' or a function score(y, f) that gives a number."
        raise TypeError(msg)

    def score_of(f: NDArray[np.float64]) -> float:
        found = np.asarray(score(y, f.reshape(shape)))
        if found.size != 1 or found.dtype.kind not in "biuf":
            msg = (
                "score(y, f) must be a single number, but is of "
                f"type {found.dtype} and shape {found.shape}. Take its mean or sum, for instance."
            )
            raise ValueError(msg)
        return float(found.item())

    return score_of


def _read_response(y: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    response = as_numbers(y, "y")
    if response.shape != shape:
        msg = (
            f"y has shape {response.shape}, but f has {shape} at the rows of X. Pass the responses "
            "at these rows, or a score of your own."
        )
        raise ValueError(msg)
    rows = np.flatnonzero(~np.isfinite(response).reshape(-1, shape[-1]).all(axis=0))
    if rows.size:
        msg = f"y is not finite in {first_rows(rows)} (counting from 0). Leave these rows out."
        raise ValueError(msg)
    return response


def _r2_of(y: NDArray[np.float64]) -> Callable[[NDArray[np.float64]], float]:
    total = float(((y - y.mean(axis=-1, keepdims=True)) ** 2).sum())
    if total == 0.0:
        msg = "y is constant, so that there is nothing for f to explain. Pass a score of your own."
        raise ValueError(msg)
    return lambda f: 1.0 - float(((y - f.reshape(y.shape)) ** 2).sum()) / total
