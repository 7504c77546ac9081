"""The three cut priors inside a model: prior draws and steps follow the one asked for."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_xbart import XBARTForest, XBARTStep
from pymc_xbart.kernels import CUT_PRIORS
from tests.helpers import law

every_cut_prior = pytest.mark.parametrize("cut_prior", CUT_PRIORS)
# One column with a single cut, and one with 59.
X = np.column_stack([np.arange(60) % 2, np.arange(60)]).astype(float)


def model_of(cut_prior):
    with pm.Model() as model:
        f = XBARTForest("f", X, sigma=1.0, num_trees=5, max_depth=1, cut_prior=cut_prior)
        pm.Normal("y", f, 1.0, observed=X[:, 1] / 30)
    return model


def column_split_on(f):
    """Column that a tree of at most one split has used, told from its values at the rows."""
    if f.min() == f.max():
        return None
    return 0 if f[0] == f[58] and f[1] == f[59] else 1


# A tree splits half of the time: on either column in half of the cases, or on the first in one of
# 60. Under "paper", K = 60 cuts and V = 2 columns make it 30 times as likely to split as not.
@pytest.mark.parametrize(
    ("cut_prior", "first", "second"),
    [("columns", 1 / 4, 1 / 4), ("cuts", 1 / 120, 59 / 120), ("paper", 1 / 62, 59 / 62)],
)
def test_prior_draws_follow_the_cut_prior(cut_prior, first, second):
    f = XBARTForest.dist(X, sigma=1.0, num_trees=1, max_depth=1, alpha=0.5, cut_prior=cut_prior)
    draws = pm.draw(f, 4000, random_seed=4)
    shares = {None: 1 - first - second, 0: first, 1: second}
    expected = {column: math.log(share) for column, share in shares.items()}
    law.assert_law(map(column_split_on, draws), expected, false_fail=1e-6)
    assert law.smallest_visible_error(expected, 4000) < 0.09


@every_cut_prior
def test_the_step_samples_under_every_cut_prior(cut_prior):
    model = model_of(cut_prior)
    with model:
        step = XBARTStep(correction="none", rng=1)
    point, _ = step.step(model.initial_point())
    assert np.isfinite(point["f"]).all()
    assert point["f"].std() > 0


@pytest.mark.parametrize("correction", ["tree", "sweep"])
def test_a_corrected_step_refuses_the_paper_cut_prior(correction):
    with model_of("paper"), pytest.raises(ValueError, match="can't be combined with cut_prior"):
        XBARTStep(correction=correction)
