"""A quadratic stand-in for a log-likelihood, and what tuning learns for it."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_xbart.forest.surrogate import (
    COARSE,
    GAIN,
    LEAST_SIZE,
    MIN_SEEN,
    TARGET,
    Quadratic,
    coarsen,
    learn_size,
    learn_values,
    linearise,
    num_blocks,
    unlearnt_surrogate,
)
from tests.helpers.families import FAMILIES, OfData

N = 6


def seen(values):
    surrogate = unlearnt_surrogate(values.shape[1], 50)
    for f in values:
        surrogate = learn_values(surrogate, f)
    return surrogate


def at(mean, sd):
    """As if f had been Normal in each row."""
    return unlearnt_surrogate(mean.size, 50)._replace(mean=mean, var=sd**2)


def test_the_k_th_value_of_f_counts_k_times(rng):
    values = rng.normal(size=(30, N))
    learnt = seen(values)
    weights = np.arange(1, 31) / np.arange(1, 31).sum()
    mean = weights @ values
    assert np.allclose(learnt.mean, mean)
    assert np.allclose(learnt.var, weights @ (values - mean) ** 2)


def test_some_values_are_needed(rng):
    values = rng.normal(size=(MIN_SEEN, N))
    assert not seen(values[:-1]).is_known
    assert seen(values).is_known


def test_of_a_quadratic_log_likelihood_nothing_is_left(rng):
    likelihood = OfData(FAMILIES["normal"], rng.normal(size=N))
    quadratic = linearise(at(rng.normal(size=N), rng.uniform(0.1, 2, N)), likelihood, 1.0)
    fs = rng.normal(size=(5, N))
    differences = [likelihood.log_p(f) - quadratic.log_p(f) for f in fs]
    assert np.allclose(differences, differences[0])
    assert np.allclose(quadratic.gradient(fs[0]), likelihood.gradient_curvature(fs[0])[0])


# Where the gradient is smooth at the scale of sd: three nodes are exact up to degree 4.
@pytest.mark.parametrize("name", ["poisson", "binomial", "log-scale"])
def test_gradients_are_close_on_average(name, rng):
    """To those of a fine rule: the best straight line through the gradient, by least squares."""
    mean, sd = rng.normal(0, 0.3, N), rng.uniform(0.05, 0.3, N)
    likelihood = OfData(FAMILIES[name], FAMILIES[name].draw(mean, rng))
    quadratic = linearise(at(mean, sd), likelihood, 1.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights /= weights.sum()
    g = np.stack([likelihood.gradient_curvature(mean + z * sd)[0] for z in nodes])
    slope, curvature = weights @ g, -(weights * nodes) @ g / sd
    scale = np.abs(curvature).max()
    assert np.allclose(quadratic.slope, slope, atol=0.02 * scale)
    assert np.allclose(quadratic.curvature, np.maximum(curvature, 0.0), atol=0.05 * scale)


def test_the_gradient_is_that_of_the_sum(rng):
    quadratic = Quadratic(rng.normal(size=N), rng.normal(size=N), rng.uniform(size=N))
    f, step = rng.normal(size=N), 1e-6
    for i, direction in enumerate(np.eye(N)):
        rise = quadratic.log_p(f + step * direction) - quadratic.log_p(f - step * direction)
        assert rise / (2 * step) == pytest.approx(quadratic.gradient(f)[i], abs=1e-8)


def test_curvatures_are_rounded_without_bias(rng):
    """Fails with probability 1e-6."""
    exact = Quadratic(rng.normal(size=N), rng.normal(size=N), rng.uniform(size=N))
    count = 4_000
    rounded = [coarsen(exact, rng) for _ in range(count)]
    for each in rounded[:5]:
        assert each.center is exact.center
        assert each.slope is exact.slope
    unit = exact.curvature.mean() / COARSE  # a number is rounded to one of two multiples
    bound = 0.5 * unit / math.sqrt(count) * stats.norm.isf(0.5e-6 / N)
    error = np.mean([each.curvature for each in rounded], axis=0) - exact.curvature
    assert np.abs(error).max() < bound
    multiples = rounded[0].curvature / unit
    assert np.allclose(multiples, np.rint(multiples), atol=1e-5)


def test_no_curvature_stays_none(rng):
    flat = Quadratic(np.zeros(N), rng.normal(size=N), np.zeros(N))
    assert coarsen(flat, rng) == flat


class Impossible:
    """Finite in the first row only, where it curves upwards."""

    def gradient_curvature(self, f):
        return np.array([f[0], np.nan, np.inf, 1e200]), np.ones(4)


def test_rows_that_say_nothing_have_no_say():
    quadratic = linearise(at(np.full(4, 0.5), np.ones(4)), Impossible(), 1.0)
    assert quadratic.slope.tolist() == pytest.approx([0.5, 0, 0, 0])
    assert quadratic.curvature.tolist() == [0, 0, 0, 0]


def test_where_f_has_not_moved_the_stand_in_is_finite(rng):
    likelihood = OfData(FAMILIES["poisson"], rng.poisson(10, N))
    quadratic = linearise(at(np.zeros(N), np.zeros(N)), likelihood, 1.0)
    assert np.allclose(quadratic.curvature, 10, rtol=1e-3)


def test_blocks_follow_how_likely_they_are_accepted():
    surrogate = unlearnt_surrogate(N, 50)
    assert num_blocks(surrogate, 50) == 1
    smaller = learn_size(surrogate, 0.0, 50)
    assert smaller.log_size == pytest.approx(math.log(50) - GAIN * TARGET)
    assert num_blocks(smaller, 50) == 4
    assert learn_size(smaller, TARGET, 50).log_size == smaller.log_size
    assert learn_size(surrogate, 1.0, 50).log_size == surrogate.log_size  # all trees there are


def test_blocks_that_are_never_accepted_give_way_until_one_is():
    surrogate = unlearnt_surrogate(N, 50)
    for _ in range(100):
        surrogate = learn_size(surrogate, 0.0, 50)
    assert not surrogate.pays
    assert num_blocks(surrogate, 50) == round(50 / LEAST_SIZE)
    for _ in range(100):
        surrogate = learn_size(surrogate, 1.0, 50)
    assert surrogate.pays
