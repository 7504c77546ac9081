"""Tallies count rows, and add up weights and g, in any order, as closely as their bits allow."""

import math

import numpy as np
import pytest

from pymc_xbart.kernels.tally import ROOM
from tests.helpers import inside

SIZES = (1, 2, 3, 4, 7, 8, 100, 1000, 70_000)


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_sums_of_some_rows(rng, n, has_weights):
    g = rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30)
    weight = rng.poisson(4.0, n) + 1 if has_weights else np.ones(n, int)
    tallies, read, bits = inside.tally(g, weight if has_weights else None)
    assert bits == n.bit_length() + (int(weight.sum()).bit_length() if has_weights else 0)
    for _ in range(20):
        is_in = rng.random(n) < rng.random()
        count, total_weight, total = read(tallies[is_in].sum())
        assert count == is_in.sum()
        assert total_weight == weight[is_in].sum()
        bound = 2.0 ** (bits - ROOM) * np.abs(g).sum()
        assert total == pytest.approx(math.fsum(g[is_in]), rel=0, abs=bound * max(1, count))


@pytest.mark.parametrize("n", SIZES)
def test_the_order_of_adding_makes_no_difference(rng, n):
    tallies, _, _ = inside.tally(rng.standard_cauchy(n), rng.integers(0, 9, n))
    order = rng.permutation(n)
    assert np.cumsum(tallies[order])[-1] == tallies.sum()
    assert tallies.sum() - tallies[order[: n // 2]].sum() == tallies[order[n // 2 :]].sum()


def test_sums_as_large_as_they_get_do_not_overflow():
    for n in SIZES:
        for sign in (-1.0, 1.0):
            tallies, read, _ = inside.tally(np.full(n, sign * (2.0 - 1e-15)), np.full(n, 8))
            count, weight, total = read(tallies.sum())
            assert (count, weight) == (n, 8 * n)
            assert total == pytest.approx(sign * 2.0 * n, rel=1e-9)


def test_whole_numbers_are_kept_as_they_are(rng):
    g = rng.integers(-1000, 1000, 500).astype(float)
    tallies, read, _ = inside.tally(g)
    assert [read(t) for t in tallies] == [(1, 1, value) for value in g]
    weight = rng.integers(0, 9, 500).tolist()
    tallies, read, _ = inside.tally(g, weight)
    assert [read(t) for t in tallies] == [(1, w, value) for w, value in zip(weight, g, strict=True)]


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-100, 1e100])
def test_g_of_any_size(rng, scale):
    g = scale * rng.standard_normal(50)
    tallies, read, _ = inside.tally(g)
    assert read(tallies.sum())[-1] == pytest.approx(g.sum(), rel=1e-12, abs=1e-200)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_g_that_is_no_number_makes_every_sum_none(rng, bad):
    g = rng.standard_normal(50)
    g[rng.integers(50)] = bad
    tallies, read, _ = inside.tally(g, [2] * 50)
    count, weight, total = read(tallies.sum())
    assert (count, weight) == (50, 100)
    assert np.isnan(total)
