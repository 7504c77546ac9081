"""f at new rows, from forests that outlive the rows they were grown on (floor 1)."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.stored import read_draw
from pymc_xbart.forest.views import Views, evaluate_trees, see, to_columns
from pymc_xbart.kernels import Forest


def sums_of_trees(
    forests: Iterable[Forest],
    cut_values: Iterable[NDArray[np.float64]],
    views: Views,
    X: NDArray[np.float64],
) -> Iterator[NDArray[np.float64]]:
    """Evaluate forests one after the other.

    Parameters
    ----------
    forests : iterable of Forest
    cut_values : iterable of ndarray of shape (nodes,)
        For each forest, its cuts: rows with x <= value go left.
    views : Views
        That the forests split on.
    X : ndarray of shape (n, p)
        As `check_design` returns it.

    Yields
    ------
    ndarray of shape (n,)
        Sum of the trees at each row of `X`; at rows that a forest was grown on, to the last bit
        what `kernels.forest_values` gave there.
    """
    seen = see(X, views.is_categorical)
    for forest, cut_value in zip(forests, cut_values, strict=True):
        f = np.empty(X.shape[0])
        evaluate_trees(*to_columns(forest, cut_value, views), cut_value, seen, f)
        yield f


def mean_of_draws(draws: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean over draws, each (n,), of which there is at least one; they need not fit in memory."""
    remaining = iter(draws)
    total = next(remaining).copy()
    num_draws = 1
    for f in remaining:
        total += f
        num_draws += 1
    return total / num_draws


def evaluate_draws(
    texts: Sequence[str], X: NDArray[np.float64], num_threads: int = 1
) -> NDArray[np.float64]:
    """Evaluate stored draws of a variable.

    Parameters
    ----------
    texts : sequence of str
        As `write_draw` has written them; at least one, all of the same shape.
    X : ndarray of shape (n, p)
        As `check_design` returns it.
    num_threads : int, default 1
        Draws are shared among them; the result is the same.

    Returns
    -------
    ndarray of shape (draws, forests, n)
        mu and trees; at rows that a forest was grown on, the sampled f to the last bit.
    """
    first = read_draw(texts[0])
    seen = see(X, first.is_categorical)
    f = np.empty((len(texts), len(first.forests), X.shape[0]))

    def evaluate(draw: int) -> None:
        for k, (mu, forest, view, cut_value, _) in enumerate(read_draw(texts[draw]).forests):
            evaluate_trees(forest, view, cut_value, seen, f[draw, k])
            f[draw, k] += mu

    if num_threads == 1:
        for draw in range(len(texts)):
            evaluate(draw)
    else:
        with ThreadPoolExecutor(num_threads) as threads:
            list(threads.map(evaluate, range(len(texts))))  # a list, so that errors come out
    return f
