"""How well chains mix, many quantities at once (floor 0: NumPy and Numba only).

The two parts of rank-normalised R-hat and of effective sample sizes that are loops for each
quantity: scores that stand for ranks, and the sum of autocorrelations.

Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021). Rank-normalization, folding, and localization:
an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16, 667-718.
"""

import math

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.kernels.decorator import inner_kernel, kernel


def rank_scores(
    values: NDArray[np.float64], table: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of draws by their ranks, and by the ranks of their distances from the median.

    Parameters
    ----------
    values : ndarray of shape (quantities, n)
        Draws, n even.
    table : ndarray of shape (2 n - 1,)
        Score of rank 1 + k / 2 in position k. Tied draws share their mean rank, hence the halves.

    Returns
    -------
    scores, folded : ndarray of shape (quantities, n)
    """
    scores, folded = np.empty_like(values), np.empty_like(values)
    _score(values, np.argsort(values, axis=-1), table, scores, folded)
    return scores, folded


def effective_draws(
    autocovariance: NDArray[np.float64], variance_of_means: NDArray[np.float64], num_chains: int
) -> NDArray[np.float64]:
    """Effective sample sizes by Geyer's initial monotone sequence.

    Parameters
    ----------
    autocovariance : ndarray of shape (quantities, n)
        Mean over the chains, by lag; sums over n draws are divided by n at each lag, n >= 2.
    variance_of_means : ndarray of shape (quantities,)
        Sample variance of the means of the chains.
    num_chains : int
        At least 2.

    Returns
    -------
    ndarray of shape (quantities,)
        At most n_all log10(n_all), with n_all draws in all chains.
    """
    num_draws = num_chains * autocovariance.shape[1]
    time = np.empty(autocovariance.shape[0])
    _autocorrelation_time(
        autocovariance, variance_of_means, np.empty(autocovariance.shape[1]), time
    )
    return num_draws / np.maximum(time, 1.0 / math.log10(num_draws))


@kernel
def _score(values, order, table, scores, folded):
    """See `rank_scores`; `order` (quantities, n) ascends, `scores` and `folded` are overwritten."""
    n = values.shape[1]
    distance = np.empty(n)
    nearest = np.empty(n, np.int64)
    for i in range(values.shape[0]):
        _share_ranks(values[i], order[i], table, scores[i])
        _fold(values[i], order[i], distance, nearest)
        _share_ranks(distance, nearest, table, folded[i])


@inner_kernel
def _share_ranks(values, order, table, scores):
    """Overwrite scores with those of the ranks, ties sharing their mean."""
    start = 0
    while start < order.size:
        end = start
        while end + 1 < order.size and values[order[end + 1]] == values[order[start]]:
            end += 1
        for k in range(start, end + 1):
            scores[order[k]] = table[start + end]
        start = end + 1


@inner_kernel
def _fold(values, order, distance, nearest):
    """Overwrite distances from the median, and their order, which takes no sorting.

    Below the median they ascend downwards, above it upwards, also after rounding: the two are
    merged.
    """
    high = order.size // 2
    low = high - 1
    median = (values[order[low]] + values[order[high]]) / 2
    for k in range(values.size):
        distance[k] = abs(values[k] - median)
    for k in range(order.size):
        if high == order.size or (low >= 0 and distance[order[low]] <= distance[order[high]]):
            nearest[k] = order[low]
            low -= 1
        else:
            nearest[k] = order[high]
            high += 1


@kernel
def _autocorrelation_time(autocovariance, variance_of_means, rho, time):
    """See `effective_draws`; `rho` (n,) and `time` (quantities,) are overwritten."""
    n = autocovariance.shape[1]
    for i in range(time.size):
        within = autocovariance[i, 0] * n / (n - 1)
        total = autocovariance[i, 0] + variance_of_means[i]
        even = 1.0
        odd = 1.0 - (within - autocovariance[i, 1]) / total
        rho[0] = even
        rho[1] = odd
        # Positive: autocorrelations of neighbouring lags, added in pairs, end before the first
        # negative sum.
        t = 1
        while t < n - 3 and even + odd > 0.0:
            even = 1.0 - (within - autocovariance[i, t + 1]) / total
            odd = 1.0 - (within - autocovariance[i, t + 2]) / total
            if even + odd >= 0.0:
                rho[t + 1] = even
                rho[t + 2] = odd
            t += 2
        last = t - 2
        # The even lag after the last whole pair counts once, or draws that alternate would seem to
        # be worth more than they are.
        extra = even if even > 0.0 or even + odd >= 0.0 else 0.0
        # Monotone: no pair is larger than the one before it.
        for k in range(1, last - 1, 2):
            before = rho[k - 1] + rho[k]
            if rho[k + 1] + rho[k + 2] > before:
                rho[k + 1] = before / 2
                rho[k + 2] = before / 2
        sum_of_rho = 0.0
        for k in range(last + 1):
            sum_of_rho += rho[k]
        time[i] = -1.0 + 2.0 * sum_of_rho + extra
