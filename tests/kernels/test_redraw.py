"""Trees stay well formed while their splits are redrawn."""

import numpy as np
import pytest

from pymc_xbart.kernels import (
    Prior,
    column_choice,
    encode,
    make_leaf_of_row,
    make_workspace,
    route_codes,
    stump_forest,
    sum_of_trees,
    sweep,
)

N, P, NUM_TREES = 60, 3, 4


def redraw(rng, num_sweeps, *, num_regrown=0, mtry=P, **prior_fields):
    """Sweep over a small data set; yields the forest, the leaf of each row, and the info."""
    X = np.column_stack([rng.standard_normal(N), rng.integers(0, 2, N), rng.integers(0, 5, N)])
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(N)
    design, h = encode(X), np.full(N, 10.0)
    fields = {"min_samples_leaf": 1, "max_depth": 2**31 - 1} | prior_fields
    prior = Prior(0.95, 0.5, 1.0, np.ones(P), num_cutpoints=20, **fields)
    work = make_workspace(N, P, prior.num_cutpoints)
    forest, leaf = stump_forest(NUM_TREES), make_leaf_of_row(NUM_TREES, N)
    choice = column_choice(P, mtry, is_per_tree=True)
    for _ in range(num_sweeps):
        g = h * (y - sum_of_trees(forest, leaf))
        forest, leaf, info = sweep(
            *(forest, leaf, g, h, design, prior, work, rng),
            is_corrected=True,
            num_regrown=num_regrown,
            choice=choice,
        )
        yield forest, leaf, info, design


@pytest.mark.parametrize("mtry", [1, P])
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 7}, {"max_depth": 2}], ids=str)
def test_trees_stay_well_formed(rng, mtry, limits):
    sizes = set()
    for forest, leaf, info, design in redraw(rng, 25, mtry=mtry, **limits):
        routed = np.empty_like(leaf)
        route_codes(forest, design.codes, routed)
        np.testing.assert_array_equal(leaf, routed)
        assert info.depth.max() <= limits.get("max_depth", N)
        for index in range(NUM_TREES):
            nodes = slice(*forest.tree_start[index : index + 2])
            assert_well_formed(forest, nodes, leaf[index], design, limits)
            sizes.add(nodes.stop - nodes.start)
    assert len(sizes) > 2  # it has grown and pruned


def assert_well_formed(forest, nodes, leaf, design, limits):
    column, cut, left, value = (array[nodes] for array in forest[1:])
    splits = np.flatnonzero(left >= 0)
    assert (left[splits] > splits).all()  # children come after their parents,
    children = np.concatenate([left[splits], left[splits] + 1])
    assert sorted(children) == list(range(1, left.size))  # and each has one
    assert ((column >= 0) == (left >= 0)).all()
    assert (value[splits] == 0.0).all()
    counts = np.bincount(leaf, minlength=left.size)
    assert counts[left < 0].min() >= limits.get("min_samples_leaf", 1)
    below = {node: leaf == node for node in np.flatnonzero(left < 0)}
    for node in splits[::-1]:
        in_left = below[left[node]]
        below[node] = in_left | below[left[node] + 1]
        codes = design.codes[column[node]]
        assert codes[in_left].max() == cut[node]  # a cut is named by a value on its left


@pytest.mark.parametrize("num_regrown", [0, 1, 3, NUM_TREES])
def test_as_many_trees_are_regrown_as_asked_for(rng, num_regrown):
    for *_, info, _ in redraw(rng, 10, num_regrown=num_regrown):
        assert info.regrown.sum() == num_regrown
        assert (info.accepted <= info.regrown).all()


def test_each_pair_of_trees_is_regrown_equally_often(rng):
    """Fails a correct choice with probability below 1e-6: 5.2 standard errors, 6 pairs."""
    num_sweeps = 600
    pairs = [
        tuple(np.flatnonzero(info.regrown))
        for *_, info, _ in redraw(rng, num_sweeps, num_regrown=2)
    ]
    _, counts = np.unique(pairs, axis=0, return_counts=True)
    assert counts.size == 6
    error = np.sqrt(num_sweeps * (1 / 6) * (5 / 6))
    assert np.abs(counts - num_sweeps / 6).max() < 5.2 * error


def test_all_trees_are_regrown_by_default():
    def run(num_regrown):
        return list(redraw(np.random.default_rng(1), 3, num_regrown=num_regrown))[-1][0]

    for one, other in zip(run(None), run(NUM_TREES), strict=True):
        np.testing.assert_array_equal(one, other)
