"""The random variable draws from the prior of a forest, alike in every PyTensor mode."""

import pickle

import numpy as np
import pytensor
import pytest
from scipy import stats

from pymc_xbart.forest.prior import TreeSettings
from pymc_xbart.plugin.random_variable import XBARTForestRV, forest_inputs

X = np.random.default_rng(1).normal(size=(30, 3))
EQUAL = np.full(3, 1 / 3)


def symbolic_draw(*inputs, size=None, seed=1, dtype=None, **settings):
    """One forest variable, its generator and the generator's next state."""
    generator = pytensor.shared(np.random.default_rng(seed))
    op = XBARTForestRV(**settings)
    after, f = op(*inputs, size=size, rng=generator, dtype=dtype, return_next_rng=True)
    return f, generator, after


def draws(num_draws, *inputs, mode="FAST_COMPILE", **kwargs):
    """Successive draws from one compiled function."""
    f, generator, after = symbolic_draw(*inputs, **kwargs)
    function = pytensor.function([], f, updates={generator: after}, mode=mode)
    return np.stack([function() for _ in range(num_draws)])


def p_value_of_normal(mu, sigma, *, sigma_drawn):
    """Compare f at one row over many forests with the Normal that its prior is there.

    Whatever the trees, each adds a leaf value N(0, sigma^2 / L) to a row.
    """
    f = draws(1, X, mu, sigma_drawn, EQUAL, size=(3000,), num_trees=4)[0]
    assert f.shape == (3000, 30)
    return stats.kstest(f[:, 11], stats.norm(mu, sigma).cdf).pvalue


def test_f_at_a_row_is_normal_with_mean_mu_and_deviation_sigma():
    assert p_value_of_normal(5.0, 2.0, sigma_drawn=2.0) > 1e-6


def test_that_check_would_catch_a_wrong_scale():
    assert p_value_of_normal(5.0, 2.0, sigma_drawn=2.4) < 1e-6


CASES = {
    "one": ((X, 1.0, 2.0, EQUAL), {}),
    "batch": ((X, 1.0, 2.0, EQUAL), {"size": (2,)}),
    "k-means": ((X, [1.0, 9.0], 2.0, EQUAL), {}),
    "k-scales": ((X, 1.0, [0.1, 9.0], EQUAL), {"size": (3, 2)}),
    "k-weights": ((X, 1.0, 2.0, np.eye(3)), {}),
    "k-designs": ((np.stack([X, -X]), 1.0, 2.0, EQUAL), {}),
    "single": ((X.astype(np.float32), 1.0, 2.0, EQUAL), {"dtype": "float32"}),
    "settings": ((X, 1.0, 2.0, EQUAL), {"num_cutpoints": 5, "max_depth": 2, "alpha": 0.5}),
}
SHAPES = {
    "one": (30,),
    "batch": (2, 30),
    "k-means": (2, 30),
    "k-scales": (3, 2, 30),
    "k-weights": (3, 30),
    "k-designs": (2, 30),
    "single": (30,),
    "settings": (30,),
}


@pytest.mark.parametrize("case", CASES)
def test_compiled_draws_equal_plain_ones_without_a_warning(case):
    inputs, settings = CASES[case]
    plain = draws(2, *inputs, num_trees=5, **settings)
    compiled = draws(2, *inputs, num_trees=5, mode="NUMBA", **settings)
    assert plain.shape == (2, *SHAPES[case])
    assert plain.dtype == compiled.dtype == settings.get("dtype", "float64")
    np.testing.assert_array_equal(plain, compiled)
    assert np.unique(plain[0]).size > 1
    assert not np.array_equal(plain[0], plain[1])


def test_forests_of_a_batch_differ():
    f = draws(1, X, 0.0, 1.0, EQUAL, size=(2,))[0]
    assert np.abs(np.corrcoef(f)[0, 1]) < 0.99


def test_seed_decides():
    first, again, other = (draws(1, X, 0.0, 1.0, EQUAL, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_columns_without_weight_are_never_split_on():
    grid = np.repeat(np.arange(5.0), 6)
    f = draws(1, np.column_stack([X[:, 0], grid]), 0.0, 1.0, [0.0, 1.0])[0]
    by_level = f.reshape(5, 6)
    np.testing.assert_array_equal(by_level, by_level[:, :1] * np.ones(6))
    assert np.unique(by_level[:, 0]).size == 5


def test_constant_columns_leave_nothing_to_split():
    f = draws(1, np.ones((9, 2)), 3.0, 1.0, [0.5, 0.5])[0]
    assert np.unique(f).size == 1


def test_a_single_new_row_can_be_drawn():
    assert draws(1, X[:1], 3.0, 1.0, EQUAL).shape == (1, 1)


def test_equal_settings_make_equal_ops():
    op = XBARTForestRV(num_trees=7, max_depth=3)
    assert op == XBARTForestRV(num_trees=np.int64(7), max_depth=3)
    assert hash(op) == hash(XBARTForestRV(num_trees=7, max_depth=3))
    assert op != XBARTForestRV(num_trees=7)
    assert op.settings == TreeSettings(num_trees=7, max_depth=3)


def test_ops_pickle_and_keep_nothing_from_a_draw():
    op = XBARTForestRV(num_trees=7)
    before = dict(vars(op))
    op.rng_fn(np.random.default_rng(1), X, np.float64(0), np.float64(1), EQUAL, None)
    assert vars(op) == before
    assert pickle.loads(pickle.dumps(op)) == op


def test_bad_settings_are_refused_by_the_op_too():
    with pytest.raises(ValueError, match="num_trees"):
        XBARTForestRV(num_trees=0)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((X, 0.0, 0.0, EQUAL), "sigma is 0"),
        ((X, 0.0, 1.0, np.ones(2)), "X has 3 column"),
    ],
)
def test_bad_values_are_refused_at_the_draw(mode, inputs, message):
    # Shared variables can be replaced at any time, so that checks at construction are not enough.
    shared = [pytensor.shared(np.asarray(value)) for value in inputs]
    with pytest.raises(ValueError, match=message):
        draws(1, *shared, mode=mode, num_trees=5)


def test_inputs_are_read_back_without_the_padding_of_a_batch():
    f, _, _ = symbolic_draw(X, [1.0, 2.0], 3.0, EQUAL, size=(2,))
    inputs = forest_inputs(f)
    np.testing.assert_array_equal(inputs.X, X)
    np.testing.assert_array_equal(inputs.mu, [1.0, 2.0])
    np.testing.assert_array_equal(inputs.sigma, 3.0)
    np.testing.assert_array_equal(inputs.split_weights, EQUAL)


def test_inputs_are_read_back_as_they_are_now():
    data = pytensor.shared(X)
    f, _, _ = symbolic_draw(data, 1.0, 3.0, EQUAL)
    data.set_value(X[:4] + 1.0)
    np.testing.assert_array_equal(forest_inputs(f).X, X[:4] + 1.0)
