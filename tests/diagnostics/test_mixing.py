"""R-hat and effective sample sizes are those of arviz-stats, which takes one after the other."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from pymc_xbart.diagnostics import mixing
from pymc_xbart.diagnostics.mixing import r_hat_and_ess


def by_arviz(draws):
    return np.stack(
        [
            array_stats.rhat(draws),
            array_stats.ess(draws, method="bulk"),
            array_stats.ess(draws, method="tail", prob=(0.05, 0.95)),
        ]
    )


def draw_chains(rng, chains, draws):
    """Quantities of many kinds, (quantities, chains, draws)."""
    noise = rng.standard_normal((60, chains, draws))
    for k, phi in enumerate(np.repeat([-0.8, 0.0, 0.5, 0.9, 0.99], 12)):
        for t in range(1, draws):
            noise[k, :, t] += phi * noise[k, :, t - 1]
    shifted = noise + rng.standard_normal((60, chains, 1))
    return np.concatenate(
        [
            noise,
            shifted,
            noise * np.arange(1, chains + 1)[:, None],  # the spread differs, not the mean
            np.round(noise),  # ties
            (noise > 2.0).astype(float),  # mostly one value
            1e8 + 1e-3 * noise,
            np.cumsum(noise, axis=-1),
        ]
    )


@pytest.mark.parametrize(
    ("chains", "draws"), [(4, 100), (2, 37), (3, 250), (4, 4), (2, 5), (4, 6), (7, 12)]
)
def test_numbers_are_those_of_arviz(rng, chains, draws):
    values = draw_chains(rng, chains, draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = by_arviz(values)
    np.testing.assert_allclose(r_hat_and_ess(values), wanted, rtol=1e-10, atol=0)


def test_a_single_chain_is_compared_half_by_half(rng):
    values = draw_chains(rng, 1, 100)
    r_hat, *ess = r_hat_and_ess(values)
    halves = values.reshape(-1, 2, 50)
    scores = (
        array_stats.ess(values, method="bulk"),
        array_stats.ess(values, method="tail", prob=(0.05, 0.95)),
    )
    np.testing.assert_allclose(ess, scores, rtol=1e-10)
    for each, half in zip(r_hat, halves, strict=True):
        z = [array_stats._z_scale(half), array_stats._z_fold(half)]
        with np.errstate(invalid="ignore", divide="ignore"):
            wanted = [array_stats.rhat(of, method="identity") for of in z]
        np.testing.assert_allclose(each, np.fmax(*wanted), rtol=1e-10)


def test_what_is_always_the_same_has_no_r_hat():
    r_hat, bulk, tail = r_hat_and_ess(np.full((1, 4, 10), 2.0))
    assert np.isnan(r_hat).all()
    assert bulk == tail == 40


def test_chains_that_stick_apart_have_an_infinite_r_hat():
    values = np.broadcast_to(np.arange(4.0)[:, None], (1, 4, 10))
    assert r_hat_and_ess(values)[0] == np.inf


def test_nan_stays_where_it_is(rng):
    values = rng.standard_normal((5, 2, 20))
    clean = r_hat_and_ess(values)
    values[3, 1, 7] = np.nan
    found = r_hat_and_ess(values)
    assert np.isnan(found[:, 3]).all()
    np.testing.assert_array_equal(np.delete(found, 3, axis=1), np.delete(clean, 3, axis=1))


def test_blocks_change_nothing(rng, monkeypatch):
    values = rng.standard_normal((23, 3, 11))
    whole = r_hat_and_ess(values)
    monkeypatch.setattr(mixing, "BLOCK", 8 * 33 * 4)
    np.testing.assert_array_equal(r_hat_and_ess(values), whole)
    assert r_hat_and_ess(values[:0]).shape == (3, 0)
