"""What samples forests wrongly raises where it can be caught; what can't be is pinned here.

Should a test of the second kind fail because PyMC has begun to raise, so much the better: the notes
of `XBARTForest` then promise too little.
"""

import warnings

import numpy as np
import pymc as pm
import pytest
from pytensor.gradient import NullTypeGradError

from pymc_xbart.plugin.distribution import XBARTForest
from pymc_xbart.plugin.step import XBARTStep
from tests.helpers.runs import PLAIN, sample, sample_plainly

N = 20
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=N)
MODE = {"mode": PLAIN}


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=3)
        pm.Normal("y", f, pm.HalfNormal("noise"), observed=Y)
    return model


NEED_GRADIENTS = {
    "advi": lambda: pm.fit(2, progressbar=False),
    "full-rank-advi": lambda: pm.fit(2, method="fullrank_advi", progressbar=False),
    "svgd": lambda: pm.fit(2, method="svgd", progressbar=False),
    "nuts-by-default": lambda: pm.sample(2, step=pm.NUTS(), progressbar=False),
    "nuts-over-f": lambda: pm.NUTS([pm.modelcontext(None)["f"]]),
    "hamiltonian": lambda: pm.HamiltonianMC(),
    "init-nuts": lambda: pm.init_nuts(chains=1, random_seed=[1], progressbar=False),
}


@pytest.mark.parametrize("method", NEED_GRADIENTS)
def test_methods_that_need_gradients_raise_with_advice(model, method):
    with model, pytest.raises(NullTypeGradError, match=r"Sample the model with pm.sample\(\)"):
        NEED_GRADIENTS[method]()


@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax"])
def test_other_implementations_of_nuts_are_refused_by_pymc(model, sampler):
    message = f"`nuts_sampler='{sampler}'` requires all variables to be differentiable"
    with pytest.raises(ValueError, match=message):
        sample(model, nuts_sampler=sampler)


def test_find_map_warns_and_runs_without_gradients(model):
    with warnings.catch_warnings():
        # about its future defaults and return value
        warnings.simplefilter("ignore", FutureWarning)
        with (
            model,
            pytest.warns(UserWarning, match="did not converge"),
            pytest.warns(UserWarning, match="no gradient with respect to f.*powell"),
        ):
            point = pm.find_MAP(maxiter=1, progressbar=False, compile_kwargs=MODE)
    assert point["f"].shape == (N,)


def test_sequential_monte_carlo_runs_unnoticed(model):
    with model:
        idata = pm.sample_smc(
            10,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            compile_kwargs=MODE,
        )
    assert idata["posterior"]["f"].shape == (1, 10, N)


@pytest.mark.parametrize("step", [pm.Slice, pm.Metropolis])
def test_steps_without_gradients_run_unnoticed_when_put_on_f_by_hand(model, step):
    with model:
        by_hand = step([model["f"]], compile_kwargs=MODE)
    idata = sample_plainly(model, step=by_hand, draws=3, tune=1)
    assert "f_leaves" not in idata["sample_stats"]


BATCHES = {
    "total-size": lambda f: pm.Normal("y", f, 1.0, observed=Y, total_size=10 * N),
    "potential": lambda f: pm.Potential(
        "y", pm.logp(pm.Normal.dist(f[:5], 1.0), pm.Minibatch(Y, batch_size=5)).sum()
    ),
    "minibatch": lambda f: pm.Normal(
        "y", f, 1.0, observed=pm.Minibatch(Y, batch_size=N), total_size=N
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batches_of_data_are_refused_before_sampling(case):
    with pm.Model() as model:
        BATCHES[case](XBARTForest("f", X, sigma=1.0, num_trees=3))
    with pytest.raises(NotImplementedError, match=r"'y' sees its data in batches.* forest 'f'"):
        sample(model)


REFUSED = {
    "not diagonal": (
        lambda f: pm.MvNormal("y", f, np.eye(N) + 0.2, observed=Y),
        "'y' ties rows of the forest 'f' to each other.*f \\+ u with u ~ MvNormal",
    ),
    "one forest for all classes": (
        lambda f: pm.Categorical("y", p=pm.math.softmax(f), observed=np.arange(N) % 2),
        "'y' ties rows.*For k classes make k forests, shape=\\(k, n\\)",
    ),
    "without bound": (
        lambda f: pm.Potential("boom", (f**2).sum()),
        "'boom' curves upwards in the forest 'f'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_likelihoods_that_sweeps_can_not_handle_are_refused_before_sampling(case, monkeypatch):
    build, message = REFUSED[case]
    with pm.Model() as model:
        build(XBARTForest("f", X, sigma=1.0, num_trees=3))
    monkeypatch.setattr(XBARTStep, "step", lambda *_: pytest.fail("sampled"))
    with pytest.raises(NotImplementedError, match=message):
        sample_plainly(model, cores=2, chains=2)
