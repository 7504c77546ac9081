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
    "whole multiples": lambda rng, n: 0.4 * np.append(rng.permutation(n - 1), 3),
}


def make(kind, curvature, rng, **prior_fields):
    """A case with a mild signal, so that no tree takes all of the probability."""
    X, fields = KINDS[kind](rng)
    h = CURVATURES[curvature](rng, len(X))
    g = 1.2 * rng.standard_normal(len(X))
    return inside.make_case(X, g, h, **({"alpha": 0.8, "beta": 0.5} | fields | prior_fields))


def with_matching_gradient(case):
    """Rows without curvature get no gradient, as under a Normal likelihood."""
    return case._replace(g=np.where(case.h > 0, case.g, 0.0))


def repeated(case, times):
    """The same data many times over, each row with its share of the gradient and curvature."""
    prior_fields = case.prior._asdict() | {"min_samples_leaf": case.prior.min_samples_leaf * times}
    X, g, h = (np.repeat(array, times, axis=0) for array in (case.X, case.g, case.h))
    return inside.make_case(X, g / times, h / times, **prior_fields)


# So few trees that pairs of them can be listed, too.
SMALLER_KINDS = {
    "continuous": lambda rng: (rng.permutation(5)[:, None], {}),
    "tied": lambda _: (np.array([[0, 0, 1, 1, 2, 2], [0, 1, 1, 0, 0, 1]]).T, {}),
    "0/1": lambda _: (
        np.array([[0, 0, 1, 1, 0, 1], [0, 1, 1, 0, 0, 1], np.ones(6)]).T,
        {"split_weights": [1.0, 3.0, 2.0]},
    ),
    "min_samples_leaf 2": lambda rng: (
        np.column_stack([rng.permutation(7), rng.permutation(7)]),
        {"min_samples_leaf": 2},
    ),
}


def make_smaller(kind, rng, **prior_fields):
    """A case of few trees under a Normal likelihood, in which many proposals are rejected."""
    X, fields = SMALLER_KINDS[kind](rng)
    # Steps of X as wide as a leaf, which lift the response and lower it in turn.
    steps = np.sum(X // fields.get("min_samples_leaf", 1), axis=1)
    h = np.append(rng.gamma(4.0, 0.5, len(X) - 1), 0.0)
    g = h * 1.5 * (-1.0) ** steps
    return inside.make_case(X, g, h, **({"alpha": 0.8, "beta": 0.5} | fields | prior_fields))
