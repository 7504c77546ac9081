"""Pupils in schools: a forest beside group effects, the model that predictions are tried on."""

import functools

import numpy as np
import pymc as pm

import pymc_xbart as pxb
from tests.helpers.runs import PLAIN, sample_plainly

N = 30
SCHOOLS = ("ash", "bay", "cob", "dun")
COLUMNS = ("age", "score")
RNG = np.random.default_rng(20260301)
X = RNG.normal(size=(N, 2))
SCHOOL = np.arange(N) % len(SCHOOLS)
Y = np.sin(2 * X[:, 0]) + SCHOOL + RNG.normal(0, 0.2, size=N)

# Other pupils, and which of the schools they go to.
OTHERS = RNG.normal(size=(7, 2))
SCHOOL_OF_OTHERS = np.array([3, 0, 0, 2, 1, 3, 1])


def make_model(X=X, school=SCHOOL, y=None, schools=SCHOOLS, pupils=None, non_centred=False):
    """The model; its data can be replaced, or it can be written for other data at once."""
    n = len(X)
    coords = {
        "pupil": [f"p{i}" for i in range(n)] if pupils is None else pupils,
        "school": list(schools),
        "column": list(COLUMNS),
    }
    with pm.Model(coords=coords) as model:
        covariates = pm.Data("X", X, dims=("pupil", "column"))
        index = pm.Data("school_of_pupil", school, dims="pupil")
        response = pm.Data("y_data", Y[:n] if y is None else y, dims="pupil")
        f = pxb.XBARTForest("f", covariates, sigma=1, num_trees=5, dims="pupil")
        scale = pm.HalfNormal("scale", 1.0)
        if non_centred:
            z = pm.Normal("z", dims="school")
            a = pm.Deterministic("a", z * scale, dims="school")
        else:
            a = pm.Normal("a", 0.0, scale, dims="school")
        mean = pm.Deterministic("mean", f + a[index], dims="pupil")
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", mean, noise, observed=response, dims="pupil")
    return model


@functools.cache
def fit(non_centred=False):
    """A short run, which is not to be changed."""
    return sample_plainly(make_model(non_centred=non_centred), chains=2)


def predict(idata, model=None, **kwargs):
    """`pxb.sample_posterior_predictive` without compilation, with a seed, and nothing printed."""
    defaults = {"backend": PLAIN, "random_seed": 1, "progressbar": False}
    return pxb.sample_posterior_predictive(idata, model, **(defaults | kwargs))


def predicted(idata, model=None, *var_names, **kwargs):
    """Its draws of some variables, whatever the group."""
    if var_names:
        kwargs["var_names"] = list(var_names)
    result = predict(idata, model, **kwargs)
    group = "predictions" if "predictions" in result.children else "posterior_predictive"
    return result[group].to_dataset()


def move_pupils(model, X=OTHERS, school=SCHOOL_OF_OTHERS):
    """Replace the data of the model by those of other pupils, whose response is not known."""
    data = {"X": X, "school_of_pupil": school, "y_data": np.zeros(len(X))}
    with model:
        pm.set_data(data, coords={"pupil": [f"q{i}" for i in range(len(X))]})
