"""The log-probability of a forest is its expression's, and it refuses gradients in f."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import NullTypeGradError
from pytensor.graph.replace import vectorize_graph

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.logp import forest_logp

X = np.random.default_rng(1).normal(size=(20, 2))
Y = X[:, 0] + 1.0
MODES = ["FAST_COMPILE", "NUMBA"]


@pytest.mark.parametrize("mode", MODES)
def test_expression_comes_through(mode):
    value, a = pt.vector("value"), pt.scalar("a")
    function = pytensor.function(
        [value, a], 2.0 * forest_logp(value, a**2) + value.sum(), mode=mode
    )
    for _ in range(3):
        assert function([1.0, 2.0], 3.0) == 21.0


@pytest.mark.parametrize("mode", MODES)
def test_output_outlives_its_expression(mode):
    # The output is a view: were that not declared, its memory would be freed or written over.
    value, a = pt.vector("value"), pt.vector("a")
    logp = forest_logp(value, pt.exp(a))
    function = pytensor.function([value, a], [logp, logp + 1.0, pt.exp(a) * 2.0], mode=mode)
    a_value = np.arange(1000.0) / 1000
    results = [function([1.0], a_value) for _ in range(20)]
    for logp_value, plus_one, doubled in results:
        np.testing.assert_allclose(logp_value, np.exp(a_value))
        np.testing.assert_allclose(plus_one, np.exp(a_value) + 1.0)
        np.testing.assert_allclose(doubled, 2.0 * np.exp(a_value))


def test_gradient_flows_into_the_expression():
    value, a = pt.vector("value"), pt.scalar("a")
    gradient = pt.grad(3.0 * forest_logp(value, a**2), a)
    assert pytensor.function([value, a], gradient, on_unused_input="ignore")([1.0], 5.0) == 30.0


def test_gradient_in_the_value_is_refused():
    value, a = pt.vector("value"), pt.scalar("a")
    with pytest.raises(NullTypeGradError, match=r"pm.sample\(\)"):
        pt.grad(forest_logp(value, a) + value.sum(), value)


def test_shape_is_known_without_computing():
    value, a = pt.matrix("value"), pt.vector("a")
    function = pytensor.function([value, a], forest_logp(value, a).shape, on_unused_input="ignore")
    np.testing.assert_array_equal(function(np.ones((2, 3)), np.ones(2)), [2])


def test_batches_of_values_give_batches_of_log_probabilities():
    value, a = pt.vector("value"), pt.scalar("a")
    values = pt.matrix("values")
    [batched] = vectorize_graph([forest_logp(value, a)], replace={value: values})
    np.testing.assert_array_equal(batched.eval({values: np.ones((4, 3)), a: 2.0}), [2.0] * 4)


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=5)
        XBARTForest("k", X, sigma=1.0, num_trees=5, shape=(3, 20))
        noise = pm.HalfNormal("noise")
        pm.Normal("y", f, noise, observed=Y)
    return model


def test_constant_hyperparameters_give_zero_for_each_forest(model):
    f, k = model.logp(vars=[model["f"], model["k"]], sum=False)
    assert (f.type.ndim, k.type.ndim) == (0, 1)
    values = pytensor.function(model.value_vars, [f, k], on_unused_input="ignore")
    of_f, of_k = values(**model.initial_point())
    assert of_f == 0.0
    np.testing.assert_array_equal(of_k, np.zeros(3))


def test_variational_inference_is_refused(model):
    with model, pytest.raises(NullTypeGradError, match="variational inference"):
        pm.fit(2, progressbar=False)


def test_nuts_over_f_is_refused(model):
    with model, pytest.raises(NullTypeGradError, match="NUTS over f"):
        pm.NUTS([model["f"], model["noise"]])


def test_gradients_in_other_variables_are_not(model):
    point = model.initial_point()
    residuals = Y - point["f"]
    # noise ~ HalfNormal(1) at 1, in log space: -1 + 1 from prior and Jacobian, then the likelihood
    expected = (residuals**2).sum() - 20.0
    gradient = model.compile_dlogp(vars=[model["noise"]])(point)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_forest_without_likelihood_stays_in_the_joint_log_probability():
    # An expression that optimisation removes would leave f an unused input, which PyMC refuses.
    with pm.Model() as lonely:
        XBARTForest("f", X, sigma=1.0, num_trees=5)
        pm.Normal("a")
    point = lonely.initial_point()
    assert np.isfinite(lonely.compile_logp()(point))
    assert lonely.compile_dlogp(vars=[lonely["a"]])(point) == 0.0
