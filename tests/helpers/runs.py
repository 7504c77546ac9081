"""Short runs of small models."""

import numpy as np
import pymc as pm

PLAIN = "FAST_COMPILE"  # no compilation, for what is tested in compiled form elsewhere


def sample(model, **kwargs):
    """`pm.sample` with few draws, a seed, and nothing printed."""
    defaults = {
        "tune": 15,
        "draws": 25,
        "chains": 1,
        "cores": 1,
        "random_seed": 1,
        "quiet": True,
        "compute_convergence_checks": False,
    }
    return pm.sample(model=model, **(defaults | kwargs))


def sample_plainly(model, **kwargs):
    """`sample` without compilation."""
    return sample(model, backend=PLAIN, **kwargs)


def posterior_mean(idata, name="f"):
    return idata["posterior"][name].mean(("chain", "draw")).values


def correlation(a, b):
    return float(np.corrcoef(a, b)[0, 1])
