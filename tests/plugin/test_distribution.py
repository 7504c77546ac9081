"""`XBARTForest` takes what a user has, sets the prior it promises, and refuses the rest by name."""

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.distribution import support_point

from pymc_xbart.forest.calibration import calibrate
from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.random_variable import XBARTForestRV, forest_inputs

PLAIN = "FAST_COMPILE"  # of what is tested elsewhere in compiled form
RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 3))
Y = 50.0 + X[:, 0]
MU, SIGMA = calibrate(Y)


def forest(*args, coords=None, **kwargs):
    """A forest named f in a model of its own."""
    with pm.Model(coords=coords):
        return XBARTForest(kwargs.pop("name", "f"), *args, **kwargs)


@pytest.mark.parametrize(
    "y",
    [
        Y,
        list(Y),
        pd.Series(Y),
        pd.DataFrame({"y": Y}),
        pl.Series(Y),
        pl.DataFrame({"y": Y}),
        pytensor.shared(Y),
    ],
    ids=["array", "list", "pd-series", "pd-frame", "pl-series", "pl-frame", "shared"],
)
def test_response_sets_mu_and_sigma(y):
    inputs = forest_inputs(forest(X, y=y))
    np.testing.assert_allclose([inputs.mu, inputs.sigma], [MU, SIGMA])


def test_response_may_be_shorter_where_rows_are_held_out():
    inputs = forest_inputs(forest(X, y=Y[:20]))
    np.testing.assert_allclose([inputs.mu, inputs.sigma], calibrate(Y[:20]))


def test_response_may_be_data_of_the_model():
    with pm.Model():
        f = XBARTForest("f", pm.Data("X", X), y=pm.Data("y", Y))
    np.testing.assert_allclose([forest_inputs(f).mu, forest_inputs(f).sigma], [MU, SIGMA])


def test_missing_responses_are_left_out_of_the_calibration():
    y = Y.copy()
    y[3] = np.nan
    np.testing.assert_allclose(forest_inputs(forest(X, y=y)).mu, np.delete(Y, 3).mean())


@pytest.mark.parametrize("y", [X[:, 0] > 0, np.where(X[:, 0] < -1, np.nan, X[:, 0] > 0)])
def test_a_response_of_0_and_1_is_taken_with_a_warning(y):
    # Meant for a likelihood with a link, it would leave f hardly any room there.
    with pytest.warns(UserWarning, match=r"y holds only 0 and 1.*mu = .*pass sigma=1\.5") as said:
        inputs = forest_inputs(forest(X, y=y))
    assert said[0].filename == __file__
    np.testing.assert_allclose([inputs.mu, inputs.sigma], calibrate(y))


def test_mu_is_zero_unless_given():
    assert forest_inputs(forest(X, sigma=2.0)).mu == 0.0
    inputs = forest_inputs(forest(X, sigma=2.0, mu=-3))
    assert (inputs.mu, inputs.sigma) == (-3.0, 2.0)


def test_settings_reach_the_op():
    settings = {
        "num_trees": 7,
        "alpha": 0.5,
        "beta": 3.0,
        "num_cutpoints": 20,
        "min_samples_leaf": 2,
        "max_depth": 4,
        "cut_prior": "columns",
        "categorical": (1,),
    }
    f = forest(X, sigma=1.0, split_weights=[1, 2, 3], **settings)
    assert f.owner.op.settings._asdict() == settings
    np.testing.assert_array_equal(forest_inputs(f).split_weights, [1.0, 2.0, 3.0])
    assert forest(X, sigma=1.0).owner.op.settings.num_trees == 100


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_numeric_tables_are_taken(table):
    np.testing.assert_array_equal(forest_inputs(forest(table(X), sigma=1.0)).X, X)


def test_whole_numbers_are_taken_from_data():
    with pm.Model():
        f = XBARTForest("f", pm.Data("X", np.arange(10).reshape(5, 2)), sigma=1.0)
    assert f.owner.inputs[2].dtype == "float64"
    np.testing.assert_array_equal(forest_inputs(f).X, np.arange(10.0).reshape(5, 2))


def test_columns_of_data_are_taken():
    with pm.Model():
        f = XBARTForest("f", pm.Data("X", X)[:, 1:], sigma=1.0)
    np.testing.assert_array_equal(forest_inputs(f).X, X[:, 1:])


def test_covariates_are_a_copy():
    mine = X.copy()
    f = forest(mine, sigma=1.0)
    mine[0, 0] = 99.0
    np.testing.assert_array_equal(forest_inputs(f).X, X)


def test_forest_follows_replaced_data():
    with pm.Model(coords={"row": range(30), "column": range(3)}) as model:
        data = pm.Data("X", X, dims=("row", "column"))
        f = XBARTForest("f", data, y=Y, num_trees=5, dims="row")
        pm.set_data({"X": X[:7]}, coords={"row": range(7)})
        assert model.initial_point()["f"].shape == (7,)
        assert pm.draw(f, mode=PLAIN).shape == (7,)


@pytest.mark.parametrize(
    ("kwargs", "mu"),
    [
        ({"sigma": 1.0, "shape": (2, 30)}, np.zeros((2, 30))),
        ({"sigma": 1.0, "size": 2}, np.zeros((2, 30))),
        ({"sigma": 1.0, "dims": ("k", "row")}, np.zeros((2, 30))),
        ({"sigma": [1.0, 5.0], "mu": [3.0, 4.0], "shape": (2, 30)}, [[3.0] * 30, [4.0] * 30]),
        ({"y": Y, "dims": "row"}, np.full(30, MU)),
        ({"y": Y, "shape": 30}, np.full(30, MU)),
        ({"y": Y}, np.full(30, MU)),
    ],
)
def test_start_is_the_prior_mean_and_draws_have_its_shape(kwargs, mu):
    f = forest(X, num_trees=3, coords={"k": "ab", "row": range(30)}, **kwargs)
    assert pm.draw(f, mode=PLAIN).shape == np.shape(mu)
    np.testing.assert_array_equal(support_point(f).eval(mode=PLAIN), mu)


def test_start_does_not_draw_a_forest(monkeypatch):
    with pm.Model() as model:
        XBARTForest("f", pm.Data("X", X), y=Y)
        XBARTForest("k", X, sigma=1.0, shape=(2, 30))
    monkeypatch.setattr(XBARTForestRV, "rng_fn", lambda *_: pytest.fail("drew a forest"))
    model.initial_point()


def test_initial_values_are_taken():
    with pm.Model() as model:
        XBARTForest("f", X, y=Y, initval=Y)
    np.testing.assert_array_equal(model.initial_point()["f"], Y)


def test_prior_predictive_draws_forests_and_the_seed_decides():
    with pm.Model():
        f = XBARTForest("f", X, y=Y, num_trees=5)
        pm.Normal("y", f, 1.0, observed=Y)
        first, again = (
            pm.sample_prior_predictive(3, random_seed=4)["prior"]["f"].values for _ in range(2)
        )
    assert first.shape == (1, 3, 30)
    np.testing.assert_array_equal(first, again)
    assert np.unique(first).size > 10


def test_models_in_single_precision():
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as model:
            f = XBARTForest("f", X, y=Y, num_trees=5)
            pm.Normal("y", f, 1.0, observed=Y)
        assert f.dtype == model.initial_point()["f"].dtype == "float32"
        assert pm.draw(f, mode=PLAIN).dtype == "float32"
        assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_models_copy_and_pickle():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=5)
        pm.Normal("y", f, pm.HalfNormal("s"), observed=Y)
    point = model.initial_point()
    logp = model.compile_logp()(point)
    for twin in (cloudpickle.loads(cloudpickle.dumps(model)), model.copy()):
        assert twin["f"].owner.op == f.owner.op
        assert twin.compile_logp()(point) == logp


def test_do_replaces_the_forest_and_observe_keeps_it():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=5)
        pm.Normal("y", f, pm.HalfNormal("s"))
    assert {rv.name for rv in pm.do(model, {"f": Y}).free_RVs} == {"y", "s"}
    observed = pm.observe(model, {"y": Y})
    assert {rv.name for rv in observed.free_RVs} == {"f", "s"}
    assert isinstance(observed["f"].owner.op, XBARTForestRV)


def test_model_shows_the_forest():
    with pm.Model() as model:
        XBARTForest("f", X, sigma=2.0)
    assert "f ~ XBARTForest(" in model.str_repr()


BAD = {
    "neither": ({}, ValueError, "pass `sigma`.* or `y`"),
    "both": ({"y": Y, "sigma": 1.0}, ValueError, "got both `y` and `sigma`"),
    "y-and-mu": ({"y": Y, "mu": 1.0}, ValueError, "got both `y` and `mu`"),
    "y-too-long": ({"y": np.append(Y, 1.0)}, ValueError, "y has 31 entries, but X has 30 rows"),
    "y-infinite": ({"y": np.append(Y[1:], np.inf)}, ValueError, "infinite values in row 29"),
    "y-missing": ({"y": np.full(30, np.nan)}, ValueError, "None of the 30 entries"),
    "y-constant": ({"y": np.ones(30)}, ValueError, "All entries of y equal 1"),
    "y-wide": ({"y": np.ones((30, 2))}, ValueError, "one number for each observation"),
    "sigma": ({"sigma": 0.0}, ValueError, "sigma is 0"),
    "mu": ({"sigma": 1.0, "mu": np.inf}, ValueError, "mu must be finite"),
    "mu-per-row": ({"sigma": 1.0, "mu": Y}, ValueError, r"mu has shape \(30,\).*one number"),
    "sigma-per-row": ({"sigma": Y}, ValueError, r"sigma has shape \(30,\).*one number"),
    "k-sigmas": ({"sigma": [1.0, 2.0], "shape": (3, 30)}, ValueError, r"asks for shape \(3,\)"),
    "k-weights": (
        {"sigma": 1.0, "split_weights": np.eye(3)},
        ValueError,
        "split_weights has shape",
    ),
    "weights": ({"sigma": 1.0, "split_weights": [1, 2]}, ValueError, "X has 3 column"),
    "alpha": ({"sigma": 1.0, "alpha": 1.0}, ValueError, "alpha is 1"),
    "beta": ({"sigma": 1.0, "beta": -1.0}, ValueError, "beta is -1"),
    "num_trees": ({"sigma": 1.0, "num_trees": 0}, ValueError, "num_trees is 0"),
    "cutpoints": ({"sigma": 1.0, "num_cutpoints": 0}, ValueError, "num_cutpoints is 0"),
    "cut_prior": ({"sigma": 1.0, "cut_prior": "rows"}, ValueError, "cut_prior is 'rows'"),
    "shape": ({"sigma": 1.0, "shape": 7}, ValueError, "length 7, but X has 30 rows"),
    "shape-turned": ({"sigma": 1.0, "shape": (30, 2)}, ValueError, "k comes first"),
    "shape-empty": ({"sigma": 1.0, "shape": ()}, ValueError, "each of the 30 rows"),
    "dims": ({"sigma": 1.0, "dims": "few"}, ValueError, "dimension 'few' has length 4"),
    "dims-and-shape": (
        {"sigma": 1.0, "dims": "few", "shape": 30},
        ValueError,
        "'few' has length 4",
    ),
    "observed": ({"sigma": 1.0, "observed": Y}, NotImplementedError, "can't be observed"),
    "total_size": ({"sigma": 1.0, "total_size": 99}, NotImplementedError, "Leave total_size out"),
    "misspelt": ({"sigma": 1.0, "num_tree": 5}, TypeError, "'num_tree'. Did you mean 'num_trees'"),
    "unknown": ({"sigma": 1.0, "particles": 5}, TypeError, "no argument 'particles'"),
    "called-tree": ({"name": "tree", "sigma": 1.0}, ValueError, "can't be called 'tree'"),
    "of-pymc-bart": ({"sigma": 1.0, "m": 50}, TypeError, "no argument 'm'.*m is num_trees here"),
    "transform": (
        {"sigma": 1.0, "transform": pm.distributions.transforms.log},
        NotImplementedError,
        "can't be transformed",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_a_sentence(case):
    kwargs, error, message = BAD[case]
    with pytest.raises(error, match=message):
        forest(X, coords={"few": range(4)}, **kwargs)


@pytest.mark.parametrize(
    ("covariates", "error", "message"),
    [
        (X.astype(str), TypeError, "not real numbers"),
        (pd.DataFrame({"sex": ["F", "M"]}), TypeError, "Column 'sex'"),
        (X[:0], ValueError, "no rows"),
        (X[:, :0], ValueError, "no columns"),
        (X[:, 0], ValueError, "two dimensions"),
        (pytensor.shared(X[:, 0]), ValueError, "two dimensions"),
        (pt.matrix("X"), TypeError, "without a value"),
    ],
)
def test_bad_covariates_are_refused(covariates, error, message):
    with pytest.raises(error, match=message):
        forest(covariates, sigma=1.0)


RANDOM = {
    "X": (lambda a: {"X": X * a, "sigma": 1.0}, "X depends on a random variable"),
    "y": (lambda a: {"X": X, "y": Y * a}, "y depends on a random variable"),
    "mu": (lambda a: {"X": X, "mu": 2 * a, "sigma": 1.0}, r"use a \+ f where f stood"),
    "minibatch": (
        lambda _: {"X": pm.Minibatch(pt.as_tensor(X), batch_size=5), "sigma": 1.0},
        "X is a pm.Minibatch",
    ),
}


@pytest.mark.parametrize("case", RANDOM)
def test_random_inputs_are_refused(case):
    kwargs, message = RANDOM[case]
    with pm.Model(), pytest.raises(NotImplementedError, match=message):
        XBARTForest("f", **kwargs(pm.Normal("a")))


def test_what_belongs_to_variables_is_told_apart_from_what_nobody_knows():
    with pytest.raises(TypeError, match=r"'dims'\. It belongs to a variable of a model"):
        XBARTForest.dist(X, sigma=1.0, dims="row")


def test_distribution_without_a_model():
    assert pm.draw(XBARTForest.dist(X, y=Y, num_trees=3), mode=PLAIN).shape == (30,)
    with pytest.raises(TypeError, match="No model on context stack"):
        XBARTForest("f", X, y=Y)
