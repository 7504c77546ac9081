"""Slow, obvious twins of what diagnostics ask of trees."""

import itertools

import numpy as np


def expected_value(forest, rows_of_leaf, goes_left, is_included, tree, node=0):
    """Value of a tree at one row of which only some columns are known.

    `goes_left(k)` says whether the row does at the split at position k of the forest's arrays, and
    `rows_of_leaf` (nodes,) counts the rows of the fit.
    """
    k = forest.tree_start[tree] + node
    if forest.column[k] == -1:
        return forest.value[k]
    children = forest.left[k], forest.left[k] + 1
    values = [
        expected_value(forest, rows_of_leaf, goes_left, is_included, tree, child)
        for child in children
    ]
    if is_included[forest.column[k]]:
        return values[0] if goes_left(k) else values[1]
    return np.average(values, weights=[rows_below(forest, rows_of_leaf, tree, c) for c in children])


def rows_below(forest, rows_of_leaf, tree, node):
    k = forest.tree_start[tree] + node
    if forest.column[k] == -1:
        return rows_of_leaf[k]
    left = forest.left[k]
    return sum(rows_below(forest, rows_of_leaf, tree, child) for child in (left, left + 1))


def meetings(trees, num_columns):
    """Count the trees in which two columns are on one path; of trees as nested tuples."""
    counts = np.zeros((num_columns, num_columns), int)
    for tree in trees:
        met = {
            tuple(sorted(pair)) for path in _paths(tree) for pair in itertools.combinations(path, 2)
        }
        for low, high in met:
            counts[low, high] += 1
            counts[high, low] += low != high
    return counts


def _paths(tree):
    """Columns that each way from the root to a leaf splits on; a leaf is ()."""
    if not tree:
        return [[]]
    column, _, left, right = tree
    return [[column, *path] for path in _paths(left) + _paths(right)]
