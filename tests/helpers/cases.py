"""Data to try kernels on: random small cases with every kind of column."""

from itertools import pairwise

import numpy as np

from pymc_xbart.kernels import whole_multiples
from tests.helpers import inside, slow

COLUMN_KINDS = {
    "continuous": lambda rng, n: rng.standard_normal(n),
    "tied": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "many ties": lambda rng, n: np.round(rng.standard_normal(n), 1),
    "0/1": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "rare level": lambda rng, n: (np.arange(n) == rng.integers(n)).astype(float),
    "constant": lambda _, n: np.full(n, 3.0),
    "skewed": lambda rng, n: np.exp(5 * rng.standard_normal(n)),
}


def random_X(rng, n, p):
    kinds = rng.choice(list(COLUMN_KINDS), size=p)
    return np.column_stack([COLUMN_KINDS[kind](rng, n) for kind in kinds])


def random_h(rng, n):
    """Curvatures: all equal, whole multiples, unequal, or unequal with zeros among them."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(n, rng.uniform(0.2, 3))
    if kind == 3:
        return whole_multiples(rng.gamma(1.0, 1.5, n), 4.0, rng)
    h = rng.gamma(1.0, 1.5, n)
    if kind == 2:
        h[rng.random(n) < 0.3] = 0.0
    return h


def random_split_weights(rng, p):
    """Equal ones, or unequal ones with zeros among them."""
    if rng.random() < 0.5:
        return np.ones(p)
    weights = rng.gamma(1.0, 1.0, p)
    weights[rng.random(p) < 0.3] = 0.0
    return weights


def random_case(rng, max_rows=25, max_columns=4):
    """A case with anything in it, n and p included."""
    n = int(rng.integers(1, max_rows + 1))
    p = int(rng.integers(1, max_columns + 1))
    return inside.make_case(
        random_X(rng, n, p),
        g=2 * rng.standard_normal(n),
        h=random_h(rng, n),
        alpha=rng.choice([0.5, 0.95, 0.999]),
        beta=rng.choice([0.0, 0.5, 2.0]),
        leaf_var=rng.choice([0.01, 0.5, 10.0]),
        split_weights=random_split_weights(rng, p),
        num_cutpoints=int(rng.choice([1, 2, 3, 7, 100])),
        min_samples_leaf=int(rng.choice([1, 1, 2, 5])),
        max_depth=int(rng.choice([1, 2, 2**31 - 1, 2**31 - 1])),
    )


def cases(rng, count, **sizes):
    return [random_case(rng, **sizes) for _ in range(count)]


def count_trees(forest):
    """How often each tree comes up in a forest: {nested tuple: count}."""
    bounds = forest.tree_start.tolist()
    # Children are numbered as a tree grows, so columns and cuts alone tell trees apart.
    key = np.column_stack([forest.column, forest.cut])
    first, counts = {}, {}
    for tree, (start, stop) in enumerate(pairwise(bounds)):
        name = key[start:stop].tobytes()
        first.setdefault(name, tree)
        counts[name] = counts.get(name, 0) + 1
    return {slow.as_tree(forest, first[name]): count for name, count in counts.items()}


def same_forest(forest, other):
    """Whether two forests agree to the last bit."""
    pairs = list(zip(forest, other, strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
