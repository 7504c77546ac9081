"""Every recipe of `docs/models.md` samples."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_xbart as pxb
from tests.helpers.runs import sample_plainly

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
RECIPES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
N = 24


def names(rng):
    """What the page says it has, and what recipes need besides."""
    normal = rng.normal(size=N)
    counts = rng.integers(0, 3, size=N)
    return {
        "np": np,
        "pd": pd,
        "pm": pm,
        "pxb": pxb,
        "n": N,
        "age": np.where(counts == 1, np.nan, normal),
        "region": np.array(["a", "b", "c"])[counts],
        "X": rng.normal(size=(N, 2)),
        "Z": rng.normal(size=(N, 2)),
        "x": rng.normal(size=N),
        "trials": counts + 1,
        "successes": np.minimum(counts, 1),
        "normal": normal,
        "count": counts,
        "positive": rng.gamma(2, size=N),
        "time": rng.gamma(2, size=N),
        "end": np.full(N, 3.0),
        "exposure": np.full(N, 2.0),
        "weight": np.full(N, 2.0),
        "offset": 0.1 * normal,
        "group": counts,
        "z": rng.integers(0, 2, size=N),
    }


def response(recipe, known):
    """The kind of y that the likelihood of a recipe wants."""
    if "Bernoulli" in recipe:
        return known["z"]
    is_count = re.search("Poisson|NegativeBinomial|Categorical|Ordered", recipe)
    return known["count"] if is_count and "latent" not in recipe else known["normal"]


@pytest.mark.parametrize("recipe", RECIPES, ids=[str(k) for k in range(len(RECIPES))])
def test_recipe_samples(recipe, rng):
    known = names(rng)
    known["y"] = response(recipe, known)
    with pm.Model() as model:
        exec(recipe, known)
    with warnings.catch_warnings():
        # NUTS beside a dozen tuning draws may diverge, which is not what is asked here.
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        idata = sample_plainly(model, tune=2, draws=2)
    assert all(np.isfinite(v).all() for v in idata["posterior"].data_vars.values())


def test_there_are_recipes():
    assert len(RECIPES) > 12
