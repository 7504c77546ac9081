"""Statistical assertions that say how often they are wrong (NumPy alone).

Each takes `false_fail`, the probability that a correct program fails it, and has beside it the
smallest error that it is sure to see. The laws compared are those of finite sets (of trees, say) or
of real numbers.
"""

import math
from collections import Counter

import numpy as np

FALSE_FAIL = 1e-6
# Expected draws in a cell below which cells are pooled. The likelihood-ratio statistic is referred
# to its limit, a chi-square law; with 20 draws to a cell its mean is off by 1 percent, and its far
# tail is the right one, which that of Pearson's statistic is not (12 times too heavy at 1e-6).
MIN_EXPECTED = 20


def chi_square_tail(x, dof):
    """P(chi-square with `dof` degrees of freedom > x), in closed form."""
    half = x / 2
    if half <= 0:
        return 1.0
    first = dof % 2 / 2  # terms half^s e^-half / Gamma(s + 1) for s = first, first + 1, ...
    tail = math.erfc(math.sqrt(half)) if dof % 2 else 0.0
    for k in range(dof // 2):
        s = first + k
        tail += math.exp(s * math.log(half) - half - math.lgamma(s + 1))
    return min(tail, 1.0)


def chi_square_quantile(tail, dof):
    """x that a chi-square variable exceeds with probability `tail`."""
    return _first_true(lambda x: chi_square_tail(x, dof) <= tail)


def _first_true(is_true):
    """Smallest x >= 0 at which a condition holds that holds ever after."""
    high = 1.0
    while not is_true(high):
        high *= 2
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_true(middle) else (middle, high)
    return high


def pool(expected):
    """Cell that each entry of `expected` belongs to, once rare ones are thrown together."""
    order = np.argsort(-expected, kind="stable")
    is_common = expected[order] >= MIN_EXPECTED
    num_common = int(is_common.sum())
    cell = np.empty(expected.size, int)
    cell[order[:num_common]] = np.arange(num_common)
    rest = order[num_common:]
    # What is rare even together joins the smallest of the others.
    joins = num_common > 0 and expected[rest].sum() < MIN_EXPECTED
    cell[rest] = num_common - joins
    return cell


def assert_law(draws, law, false_fail=FALSE_FAIL):
    """Fail unless `draws` look like independent draws from `law`.

    Parameters
    ----------
    draws : Counter or iterable of hashable
    law : dict
        Log-probability of each outcome.
    false_fail : float
        Level of the chi-square test (likelihood-ratio statistic, rare cells pooled). An outcome
        that `law` lacks fails at once.

    Power: see `smallest_visible_error`.
    """
    counts = Counter(draws)
    unknown = [outcome for outcome in counts if outcome not in law]
    assert not unknown, f"{len(unknown)} outcomes are impossible under the law, {unknown[0]} first"
    probability = np.exp(np.array(list(law.values())))
    assert abs(probability.sum() - 1) < 1e-9, f"the law sums to {probability.sum()}"
    num_draws = counts.total()
    count = np.array([counts[outcome] for outcome in law])
    cell = pool(probability * num_draws)
    expected = np.bincount(cell, probability * num_draws)
    observed = np.bincount(cell, count, minlength=expected.size)
    excess = observed - expected
    ratio = np.where(observed > 0, observed, 1.0) / expected
    statistic = 2 * float(np.sum(observed * np.log(ratio) - excess))
    level = chi_square_tail(statistic, expected.size - 1) if expected.size > 1 else 1.0
    worst = np.argmax(np.abs(excess) / np.sqrt(expected))
    outcome = list(law)[int(np.flatnonzero(cell == worst)[0])]
    assert level >= false_fail, (
        f"likelihood ratio {statistic:.1f} on {expected.size - 1} degrees of freedom "
        f"(p = {level:.1e}); "
        f"{outcome} and {(cell == worst).sum() - 1} others came up {observed[worst]:.0f} times in "
        f"{num_draws}, expected {expected[worst]:.1f}"
    )


def smallest_visible_error(law, num_draws, false_fail=FALSE_FAIL, false_pass=1e-3):
    """Total variation from which on `assert_law` misses an error with probability < `false_pass`.

    Counted after pooling. For large samples the statistic is non-central chi-square with parameter
    num_draws * sum((q - p)^2 / p) >= num_draws * (2 TV)^2, whose lower tail Birge (2001, lemma 8.1)
    bounds by P(X <= k + c - 2 sqrt((k + 2 c) log(1 / a))) <= a. Most errors are seen much earlier.
    """
    probability = np.exp(np.array(list(law.values())))
    dof = int(pool(probability * num_draws).max())
    quantile = chi_square_quantile(false_fail, dof)
    nats = -math.log(false_pass)
    parameter = _first_true(lambda c: dof + c - 2 * math.sqrt((dof + 2 * c) * nats) >= quantile)
    return math.sqrt(parameter / num_draws) / 2


def assert_same_law(draws, other_draws, false_fail=FALSE_FAIL):
    """Fail unless two samples of equal size look like draws from one unknown law on a finite set.

    Likelihood-ratio test of homogeneity, rare outcomes pooled by their number in both together. It
    sees what `assert_law` would see with half as many draws.
    """
    counts, other_counts = Counter(draws), Counter(other_draws)
    assert counts.total() == other_counts.total()
    outcomes = list(counts | other_counts)
    table = np.array([[c[outcome] for outcome in outcomes] for c in (counts, other_counts)], float)
    cell = pool(table.sum(axis=0) / 2)
    table = np.array([np.bincount(cell, row) for row in table])
    if table.shape[1] == 1:
        return
    expected = table.sum(axis=0) / 2
    statistic = 2 * float(np.sum(table * np.log(np.where(table > 0, table, 1.0) / expected)))
    level = chi_square_tail(statistic, table.shape[1] - 1)
    dof = table.shape[1] - 1
    assert level >= false_fail, (
        f"likelihood ratio {statistic:.1f} on {dof} degrees of freedom (p = {level:.1e})"
    )


def total_variation(law, other_law):
    """Total variation between two laws on finite sets, given as log-probabilities."""
    return 0.5 * math.fsum(
        abs(math.exp(law.get(outcome, -math.inf)) - math.exp(other_law.get(outcome, -math.inf)))
        for outcome in law.keys() | other_law.keys()
    )


def assert_close_in_total_variation(draws, law, false_fail=FALSE_FAIL):
    """Fail if the empirical law of `draws` is further from `law` than chance allows.

    Holds for every sample size: the mean distance is at most sum(sqrt(p (1 - p) / N)) / 2, and by
    McDiarmid's inequality it is exceeded by t with probability at most exp(-2 N t^2).

    Power: an error of total variation twice the limit is missed with probability < `false_fail`.
    """
    counts = Counter(draws)
    num_draws = counts.total()
    limit = total_variation_limit(law, num_draws, false_fail)
    empirical = {k: math.log(count / num_draws) for k, count in counts.items() if count > 0}
    distance = total_variation(empirical, law)
    assert distance <= limit, f"total variation {distance:.4f} exceeds {limit:.4f}"


def total_variation_limit(law, num_draws, false_fail=FALSE_FAIL):
    """Largest distance that `assert_close_in_total_variation` accepts."""
    probability = np.exp(np.array(list(law.values())))
    mean = np.sum(np.sqrt(probability * (1 - probability).clip(0) / num_draws)) / 2
    return float(mean + math.sqrt(-math.log(false_fail) / (2 * num_draws)))


def assert_cdf(sample, cdf, false_fail=FALSE_FAIL):
    """Fail unless a sample of real numbers follows the continuous distribution function `cdf`.

    Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, for every sample size.

    Power: an error of twice `cdf_limit` at some point is missed with probability < `false_fail`.
    """
    value = np.array([cdf(x) for x in np.sort(np.asarray(sample))])
    below = np.arange(value.size) / value.size
    distance = max(np.max(value - below), np.max(below + 1 / value.size - value))
    limit = cdf_limit(value.size, false_fail)
    assert distance <= limit, f"distribution functions differ by {distance:.4f} > {limit:.4f}"


def cdf_limit(num_draws, false_fail=FALSE_FAIL):
    """Largest difference between distribution functions that `assert_cdf` accepts."""
    return math.sqrt(math.log(2 / false_fail) / (2 * num_draws))


def assert_uniform(sample, false_fail=FALSE_FAIL):
    """`assert_cdf` for the uniform distribution on [0, 1]."""
    assert_cdf(sample, lambda x: min(max(x, 0.0), 1.0), false_fail)
