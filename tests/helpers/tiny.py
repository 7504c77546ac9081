"""Problems small enough to list every tree, one for each thing that can go wrong."""

import numpy as np

from tests.helpers import inside


def _continuous(rng):
    X = rng.standard_normal((6, 2))
    return X, {}


def _tied(rng):
    X = np.column_stack([[0, 0, 1, 1, 2, 2, 2, 3], rng.integers(0, 3, 8)]).astype(float)
    return X, {}


def _binary(rng):
    X = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)] + [[1, 0, 1]], float)
    return rng.permutation(X), {}


def _unequal_split_weights(rng):
    left_out = rng.standard_normal(6)
    X = np.column_stack([rng.standard_normal(6), [0, 1, 1, 0, 1, 1], left_out, np.ones(6)])
    return X, {"split_weights": [1.0, 3.0, 0.0, 2.0]}


def _few_cutpoints(rng):
    return rng.standard_normal((9, 1)), {"num_cutpoints": 2}


def _one_cutpoint(rng):
    X = np.column_stack([rng.standard_normal(9), rng.integers(0, 4, 9)])
    return X, {"num_cutpoints": 1}


def _no_cut_passes(rng):
    # j = 7, and both sides need 3 of the 9 rows: no legal cut passes a multiple of j.
    X = np.column_stack([rng.standard_normal(9), [0, 1, 1, 2, 2, 3, 3, 4, 4]])
    return X, {"num_cutpoints": 1, "min_samples_leaf": 3}


def _large_leaves(rng):
    return rng.standard_normal((9, 2)), {"min_samples_leaf": 2, "num_cutpoints": 4}


def _shallow(rng):
    return rng.standard_normal((8, 2)), {"max_depth": 2}


KINDS = {
    "continuous": _continuous,
    "tied": _tied,
    "0/1": _binary,
    "unequal split weights": _unequal_split_weights,
    "few cutpoints": _few_cutpoints,
    "one cutpoint": _one_cutpoint,
    "no cut passes": _no_cut_passes,
    "min_samples_leaf 2": _large_leaves,
    "max_depth 2": _shallow,
}
CURVATURES = {
    "equal h": lambda _, n: np.full(n, 1.3),
    "unequal h": lambda rng, n: np.append(rng.gamma(1.0, 1.5, n - 1), 0.0),
}


def make(kind, curvature, rng, **prior_fields):
    """A case with a mild signal, so that no tree takes all of the probability."""
    X, fields = KINDS[kind](rng)
    h = CURVATURES[curvature](rng, len(X))
    g = 1.2 * rng.standard_normal(len(X))
    return inside.make_case(X, g, h, **({"alpha": 0.8, "beta": 0.5} | fields | prior_fields))
