"""A forest that reaches no likelihood is sampled from its prior, and the user is told."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_xbart.plugin.distribution import XBARTForest
from tests.helpers import geweke
from tests.helpers.law import assert_cdf, cdf_limit
from tests.helpers.runs import PLAIN, sample, sample_plainly

N = 12
X = np.random.default_rng(1).normal(size=(N, 2))
MU, SIGMA = 3.0, 2.0
DRAWS = 3000
REPLICATIONS = 400
# Two samples of this size are further apart with probability below 1e-6 if their laws agree, and
# closer with probability below 1e-6 if their distribution functions differ by twice as much
# somewhere (Dvoretzky-Kiefer-Wolfowitz with Massart's constant, for each of the two).
TWO_SAMPLE_LIMIT = 2 * cdf_limit(DRAWS, 0.5e-6)


def forest(**kwargs):
    return XBARTForest("f", X, **({"mu": MU, "sigma": SIGMA, "num_trees": 3} | kwargs))


def sampled(draws, build=forest):
    """Values of f, (draws, N), from `pm.sample`."""
    with pm.Model() as model:
        build()
    with pytest.warns(UserWarning, match="Nothing in the model depends on the forest 'f'"):
        idata = sample_plainly(model, draws=draws, tune=0)
    return idata["posterior"]["f"].values[0]


def summaries(f):
    """Numbers that see the scale of f, the sharing of leaves, and the depth of trees."""
    return {
        "value": f[:, 0],
        "difference": np.abs(f[:, 0] - f[:, 1]),
        "spread": f.std(axis=1),
        "levels": np.array([np.unique(row).size for row in f]) + 1e-6 * f[:, 0],
    }


def largest_distance(f, other):
    """Largest Kolmogorov-Smirnov distance of their summaries."""
    pairs = zip(summaries(f).values(), summaries(other).values(), strict=True)
    return max(stats.ks_2samp(a, b).statistic for a, b in pairs)


@pytest.fixture(scope="module")
def prior_draws():
    with pm.Model():
        forest()
        prior = pm.sample_prior_predictive(DRAWS, random_seed=5, compile_kwargs={"mode": PLAIN})
    return prior["prior"]["f"].values[0]


def test_draws_follow_the_prior(prior_draws):
    # four summaries: fails a correct program with probability below 4e-6
    assert largest_distance(sampled(DRAWS), prior_draws) < TWO_SAMPLE_LIMIT


@pytest.mark.parametrize("wrong", [{"sigma": 1.4 * SIGMA}, {"alpha": 0.5}, {"beta": 0.2}])
def test_that_check_would_catch_another_prior(prior_draws, wrong):
    f = sampled(DRAWS, lambda: forest(**wrong))
    assert largest_distance(f, prior_draws) > TWO_SAMPLE_LIMIT


def test_draws_are_independent():
    # The correlation of successive draws has a standard deviation of 1 / sqrt(DRAWS): 5 of them
    # are passed with probability 6e-7, and true ones above 0.19 missed with the same.
    f = sampled(DRAWS)[:, 0]
    assert abs(np.corrcoef(f[1:], f[:-1])[0, 1]) < 5 / np.sqrt(DRAWS)


def test_draws_follow_the_prior_beside_nuts():
    def build():
        forest()
        pm.Normal("a")

    # An error of more than 0.21 in the distribution function is missed with probability 1e-6.
    assert_cdf(sampled(700, build)[:, 3], stats.norm(MU, SIGMA).cdf)


def test_forest_that_only_a_deterministic_hangs_on_is_sampled_from_its_prior():
    def build():
        pm.Deterministic("twice", 2 * forest())
        pm.Normal("y", pm.Normal("a"), 1.0, observed=X[:, 0])

    assert_cdf(sampled(700, build)[:, 3], stats.norm(MU, SIGMA).cdf)


def test_all_but_the_forest_without_likelihood_learn():
    with pm.Model() as model:
        forest()
        g = XBARTForest("g", X, sigma=1.0, num_trees=3)
        pm.Normal("y", g, 0.1, observed=X[:, 0])
    with pytest.warns(UserWarning, match="'f'"):
        posterior = sample_plainly(model)["posterior"]
    assert np.corrcoef(posterior["g"].mean(("chain", "draw")), X[:, 0])[0, 1] > 0.9


def build_random_hyperparameters():
    """The forest of this file, its hyperparameters random."""
    scale = pm.HalfCauchy("scale", 1.0)
    weights = pm.Dirichlet("weights", [0.5, 0.5])
    forest(sigma=scale, split_weights=weights)


def hyperparameter_failures(scale, weights, f):
    """Which of (draws,), (draws, 2), (draws, N) do not follow the prior, each at level 1e-6."""
    return geweke.failures(
        {
            "scale": stats.halfcauchy.cdf(scale),
            "weights": stats.beta(0.5, 0.5).cdf(weights[:, 0]),
            "f": stats.norm.cdf((f[:, 3] - MU) / scale),
        }
    )


@pytest.fixture(scope="module")
def random_hyperparameters():
    """Beside data that the forest has no part in."""
    with pm.Model() as model:
        build_random_hyperparameters()
        pm.Normal("y", pm.Normal("a"), 1.0, observed=pm.Data("y_data", np.zeros(2)))
    with pytest.warns(UserWarning, match="depends on the forest 'f'"):
        return geweke.Simulator(model, np.random.default_rng(1))


def end_of_replications(simulator, rng):
    replicas = simulator.replicate(REPLICATIONS, 5, rng)
    columns = (geweke.column_of(replicas, name) for name in ("scale", "weights", "f"))
    return hyperparameter_failures(*columns)


def test_random_hyperparameters_keep_their_prior(random_hyperparameters, rng):
    # Sure to see: distribution functions that differ by 0.27 somewhere.
    assert 2 * cdf_limit(REPLICATIONS) < 0.27
    assert end_of_replications(random_hyperparameters, rng) == set()


def larger_leaves(forests, splits):
    return [forest._replace(value=1.4 * forest.value) for forest in forests], splits


def first_column_alone(forests, splits):
    def move(counts):
        return np.where(np.arange(counts.size) == 0, counts.sum(), 0)

    return forests, [each._replace(counts=move(each.counts)) for each in splits]


@pytest.mark.parametrize(
    ("change", "seen"), [(larger_leaves, "scale"), (first_column_alone, "weights")]
)
def test_that_the_check_would_catch_wrong_statistics(
    random_hyperparameters, rng, monkeypatch, change, seen
):
    hyperparameters = random_hyperparameters.targets["f"].hyperparameters
    publish = hyperparameters.publish
    monkeypatch.setattr(
        hyperparameters,
        "publish",
        lambda forests, splits: publish(*change(forests, splits)),
    )
    assert seen in end_of_replications(random_hyperparameters, rng)


@pytest.mark.slow
def test_whole_runs_draw_hyperparameters_from_their_priors():
    # The logarithm of the scale has an autocorrelation of 0.28 after 80 draws, and 0.07 after 200.
    thin = 200
    with pm.Model() as model:
        build_random_hyperparameters()
    with pytest.warns(UserWarning, match="depends on the forest 'f'"):
        idata = sample(model, tune=1000, draws=REPLICATIONS * thin)
    posterior = idata["posterior"].isel(chain=0, draw=slice(None, None, thin))
    scale, weights, f = (posterior[name].values for name in ("scale", "weights", "f"))
    assert hyperparameter_failures(scale, weights, f) == set()
    # On which their levels rest: thinned draws hardly know of each other.
    for series in (np.log(scale), weights[:, 0], f[:, 3]):
        assert abs(np.corrcoef(series[1:], series[:-1])[0, 1]) < 0.15
