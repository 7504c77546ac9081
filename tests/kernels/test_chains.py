"""Rank scores and autocorrelation times against loops that follow their definitions."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels import effective_draws, rank_scores


def ranks_by_counting(values):
    """Mean rank of each value, from 1: those below, and half of those that are the same."""
    return [sum((v < x) + 0.5 * (v == x) for v in values) + 0.5 for x in values]


def draw_values(rng, kind, n):
    return {
        "no ties": rng.standard_normal(n),
        "ties": rng.integers(0, 5, n).astype(float),
        "two values": rng.integers(0, 2, n).astype(float),
        "constant": np.full(n, 3.0),
        "symmetric": np.concatenate([np.arange(n // 2), -np.arange(n // 2)]).astype(float),
    }[kind]


@pytest.mark.parametrize("kind", ["no ties", "ties", "two values", "constant", "symmetric"])
@pytest.mark.parametrize("n", [2, 4, 30])
def test_scores_are_those_of_the_ranks(rng, kind, n):
    values = draw_values(rng, kind, n)
    table = rng.standard_normal(2 * n - 1)
    scores, folded = rank_scores(values[None], table)
    distances = np.abs(values - np.median(values))
    for found, of in ((scores, values), (folded, distances)):
        wanted = [table[int(2 * rank - 2)] for rank in ranks_by_counting(of)]
        np.testing.assert_array_equal(found[0], wanted)


def test_quantities_do_not_meet(rng):
    values = rng.standard_normal((7, 12))
    table = rng.standard_normal(23)
    together = rank_scores(values, table)
    for k in range(7):
        alone = rank_scores(values[k : k + 1], table)
        np.testing.assert_array_equal(together[0][k], alone[0][0])
        np.testing.assert_array_equal(together[1][k], alone[1][0])


def ess_by_definition(chains):
    """Vehtari et al. (2021), section 3.2, with Geyer's sequence as a list of pairs.

    Of the pair after the last one the even lag is added once if it is positive, or if the sequence
    has run out of lags.
    """
    m, n = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    covariance = [np.mean([c[: n - t] @ c[t:] / n for c in centred]) for t in range(n)]
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + chains.mean(axis=1).var(ddof=1)
    rho = [1.0, *(1 - (within - covariance[t]) / total for t in range(1, n))]
    pairs = [(rho[t], rho[t + 1]) for t in range(0, n - 2, 2)]
    stop = next((k for k, pair in enumerate(pairs) if sum(pair) <= 0), len(pairs) - 1)
    kept, last = pairs[:stop], pairs[stop]
    sums = np.minimum.accumulate([sum(pair) for pair in kept])
    time = -1 + 2 * sums.sum() + (last[0] if last[0] > 0 or sum(last) >= 0 else 0.0)
    return m * n / max(time, 1 / math.log10(m * n))


@pytest.mark.parametrize("phi", [-0.9, -0.3, 0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [20, 21])
def test_effective_draws_follow_their_definition(rng, phi, n):
    chains = rng.standard_normal((40, 4, n))
    for t in range(1, n):
        chains[..., t] += phi * chains[..., t - 1]
    chains[:20] += rng.standard_normal((20, 4, 1))
    centred = chains - chains.mean(axis=-1, keepdims=True)
    covariance = np.stack(
        [
            (centred[..., : n - t] * centred[..., t:]).sum(axis=-1).mean(axis=-1) / n
            for t in range(n)
        ],
        axis=-1,
    )
    found = effective_draws(covariance, chains.mean(axis=-1).var(axis=-1, ddof=1), 4)
    np.testing.assert_allclose(found, [ess_by_definition(each) for each in chains])
