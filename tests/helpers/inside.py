"""The one place in the tests that knows how kernels call each other.

Everything below `sweep` is internal and changes whenever something is made faster. Tests see a
`Case` (data, prior, scratch), its `Node`s, and plain Python numbers. (Compiled loops over many
trees or forests, in `loops`, and `entrances` to inner kernels are part of it.)
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels import (
    Design,
    Prior,
    Workspace,
    column_choice,
    encode,
    make_workspace,
)
from pymc_xbart.kernels.histogram import make_buckets, num_buckets, num_told_apart
from pymc_xbart.kernels.node_cuts import MAX_RANGE_DEPTH
from pymc_xbart.kernels.node_cuts import Node as ScoredNode
from pymc_xbart.kernels.ordered import ORDER_DTYPE
from tests.helpers import entrances, slow
from tests.helpers.loops import choose_columns, follow_trees, grow_trees, sweep_each

__all__ = [
    "choose_columns",
    "follow_trees",
    "grow_trees",
    "num_buckets",
    "sweep_each",
]


class Case(NamedTuple):
    """One tree to draw, as the kernels see it."""

    X: np.ndarray
    design: Design
    prior: Prior
    g: np.ndarray
    h: np.ndarray
    work: Workspace

    @property
    def num_rows(self):
        return self.g.size

    @property
    def num_columns(self):
        return self.design.num_codes.size

    @property
    def problem(self):
        """The same for the slow twins, which rank X themselves."""
        return slow.Problem(
            slow.ranks(self.X),
            self.g,
            self.h,
            self.prior,
            num_told_apart(self.num_rows, self.prior.num_cutpoints),
        )


class Node(NamedTuple):
    """A slice of the case's rows, and where it hangs in a tree."""

    start: int
    stop: int
    depth: int
    sum_g: float
    sum_h: float


class Cut(NamedTuple):
    """A candidate cut and the sums over the rows on its left."""

    code: int
    count: int
    g: float
    h: float


def make_prior(num_columns, **fields):
    """Prior in which trees split often enough to be interesting."""
    defaults = {
        "alpha": 0.9,
        "beta": 0.7,
        "leaf_var": 0.6,
        "split_weights": np.ones(num_columns),
        "num_cutpoints": 100,
        "min_samples_leaf": 1,
        "max_depth": 2**31 - 1,
    }
    prior = Prior(**(defaults | fields))
    return prior._replace(split_weights=np.asarray(prior.split_weights, float))


def make_case(X, g=None, h=None, **prior_fields):
    """Case on data X (n, p); g and h are flat unless given."""
    X = np.asarray(X, float)
    n, p = X.shape
    g = np.zeros(n) if g is None else np.asarray(g, float)
    h = np.zeros(n) if h is None else np.asarray(h, float)
    prior = make_prior(p, **prior_fields)
    return Case(X, encode(X), prior, g, h, make_workspace(n, p, prior.num_cutpoints))


def without_stored_sums(case):
    """The same case, with scratch in which no node can leave its sums to a child."""
    scratch = case.work.scratch
    nowhere = make_buckets(0, case.num_columns, scratch.buckets.tally.shape[2])
    return case._replace(work=case.work._replace(scratch=scratch._replace(stored=nowhere)))


def without_order(case):
    """The same case, with buckets as on large data sets."""
    order = np.empty((case.num_columns, 0), ORDER_DTYPE)
    return case._replace(design=case.design._replace(order=order))


def curvature_of(case):
    work = case.work
    return entrances.read_curvature(case.prior.leaf_var, case.h, work.blank)


def open_root(case):
    """Put all rows into one node."""
    sum_g, sum_h = entrances.open_root(case.g, case.h, curvature_of(case), case.work)
    return Node(0, case.num_rows, 0, sum_g, sum_h)


def open_node(case, row_numbers, depth=0):
    """Put some rows into a node by themselves."""
    open_root(case)
    rows = case.work.rows
    start = case.num_rows  # behind the root
    stop = start + len(row_numbers)
    rows.row[start:stop] = row_numbers
    rows.tally[start:stop] = rows.tally[row_numbers]
    rows.h[start:stop] = case.h[row_numbers]
    return Node(start, stop, depth, case.g[row_numbers].sum(), case.h[row_numbers].sum())


def redraw_leaves(case, forest, leaf_of_row, max_leaves, seed, chunk_rows=1_000):
    """Redraw leaf values of a forest: the new one, g and the trees that were redrawn."""
    new = forest._replace(value=forest.value.copy())
    g = case.g.copy()
    tree = entrances.redraw_leaves(
        *(new, leaf_of_row, g, curvature_of(case), case.work, max_leaves, chunk_rows),
        np.random.default_rng(seed),
    )
    num_trees = entrances.draw_block(new, tree.size, max_leaves, np.random.default_rng(seed))
    return new, g, tree[:num_trees]


def rows_of(case, node):
    """Row numbers of a node, with g and h as they lie beside them."""
    row, tally, h = (array[node.start : node.stop].copy() for array in case.work.rows[:3])
    _, _, g = unpack(case, tally)
    if curvature_of(case).is_whole:  # then h does not lie beside them
        h = case.h[row]
    return row, g, h


def tallied(case, g):
    """What is left of g in the units of a tally."""
    unit = case.work.rows.unit[0]
    return np.rint(g / unit) * unit


def as_tallied(case):
    """The same case with what is left of its g, which is fewer digits where rows have weights."""
    open_root(case)
    return case._replace(g=tallied(case, case.g))


def unpack(case, tally):
    """Number of rows, sum of weights and sum of g of each tally."""
    return _read(tally, curvature_of(case).layout, case.work.rows.unit[0])


def _read(tally, layout, unit):
    count = tally & ((1 << layout.count_end) - 1)
    weight = (tally & ((1 << layout.sum_start) - 1)) >> layout.weight_start
    return count, weight, (tally >> layout.sum_start) * unit


def scored(node):
    """The node as scoring wants it: with sums of its own only, kept nowhere."""
    # Counts come as int32, as within `build_tree`: other types would be compiled anew.
    counts = map(np.int32, (node.start, node.stop, node.depth))
    nowhere = np.int32(-1)
    sums = (node.sum_g, node.sum_h)
    return ScoredNode(*counts, *sums, nowhere, False, nowhere, nowhere, node.depth > 0)


def cuts_of(case, node, column, code_range=None, *, wants_codes=True):
    """Candidate cuts of a column, and the range of codes as `find_cuts` leaves it."""
    if code_range is None:
        code_range = 0, case.design.num_codes[column] - 1
    scratch = case.work.scratch
    range_used = scratch.code_range[min(node.depth, MAX_RANGE_DEPTH), column]
    range_used[:] = code_range
    num_cuts = entrances.find_cuts(
        *(case.design, case.prior, curvature_of(case), case.work.rows),
        *(scored(node), column, wants_codes, scratch),
    )
    code, tally, h = (array[:num_cuts] for array in scratch.cuts[:3])
    count, weight, g = unpack(case, tally)
    if curvature_of(case).is_whole:
        h = weight * curvature_of(case).h
    found = zip(*map(np.ndarray.tolist, (code, count, g, h)), strict=True)
    return [Cut(*cut) for cut in found], tuple(range_used.tolist())


def score(case, node):
    """Log-weights of splitting on each column and, last, of stopping; and the log of their sum."""
    scores = case.work.scores
    entrances.score_node(
        case.design,
        case.prior,
        curvature_of(case),
        column_choice(case.num_columns),
        case.work.rows,
        scored(node),
        case.work.scratch,
        scores,
        np.random.default_rng(0),  # not used where all columns are considered
    )
    num_considered = scores.num_considered[0]
    log_weights = np.full(case.num_columns + 1, -np.inf)
    log_weights[scores.considered[:num_considered]] = scores.log_weight[:num_considered]
    log_weights[-1] = scores.log_weight[num_considered]
    return log_weights, scores.log_total[0]


def log_weights_of_cuts(case, node, cuts):
    """e(left) + e(right) of cuts found by `cuts_of` just before, and the log of their sum."""
    scratch = case.work.scratch
    log_total = entrances.score_cuts(
        scratch.cuts, len(cuts), scored(node), curvature_of(case), case.work.rows
    )
    root, left_gain, right_gain = (array[: len(cuts)] for array in scratch.cuts[3:6])
    left_g = np.array([cut.g for cut in cuts])
    gain = left_gain * left_g**2 + right_gain * (node.sum_g - left_g) ** 2
    return gain + np.log(root), log_total


def divide(case, node, column, cut):
    """Children of a node, and the cut named by the largest code on the left."""
    start, middle, stop, last_left, left, right = entrances.split_rows(
        case.design.codes[column],
        np.int32(cut),
        case.work.rows,
        np.int32(node.start),
        np.int32(node.stop),
        curvature_of(case),
        case.work.crew,
    )
    depth = node.depth + 1
    return (
        Node(start, middle, depth, *left),
        Node(middle, stop, depth, *right),
        last_left,
    )


def tree_log_prob(case, tree):
    """Log-probability of a tree, recomputed with the scores that growing it draws from.

    -inf if one of its cuts is no candidate.
    """
    total = 0.0
    # Last in, first out, left child on top: the order in which trees grow.
    waiting = [(tree, open_root(case))]
    while waiting:
        subtree, node = waiting.pop()
        log_weights, log_total = score(case, node)
        if subtree == slow.LEAF:
            total += log_weights[-1] - log_total
            continue
        column, cut, left_tree, right_tree = subtree
        if log_weights[column] == -np.inf:
            return -np.inf
        total += log_weights[column] - log_total
        cuts, _ = cuts_of(case, node, column)
        cut_log_weights, cut_log_total = log_weights_of_cuts(case, node, cuts)
        left, right, _ = divide(case, node, column, cut)
        counts = [c.count for c in cuts]
        if left.stop - left.start not in counts:
            return -np.inf
        total += cut_log_weights[counts.index(left.stop - left.start)] - cut_log_total
        waiting += [(right_tree, right), (left_tree, left)]
    return float(total)


def enumerate_law(case, node=None):
    """Log-probability of every tree that can grow from a node, with the scores it is drawn from.

    Nodes are scored depth first, as while a tree grows.
    """
    node = open_root(case) if node is None else node
    log_weights, log_total = score(case, node)
    law = {slow.LEAF: float(log_weights[-1] - log_total)}
    own = [array[node.start : node.stop] for array in case.work.rows[:3]]
    kept = [array.copy() for array in own]
    for column in np.flatnonzero(log_weights[:-1] > -np.inf).tolist():
        cuts, _ = cuts_of(case, node, column)
        cut_log_weights, cut_log_total = log_weights_of_cuts(case, node, cuts)
        for cut, cut_log_weight in zip(cuts, cut_log_weights, strict=True):
            log_prob = log_weights[column] - log_total + cut_log_weight - cut_log_total
            left, right, last_left = divide(case, node, column, cut.code)
            left_law, right_law = enumerate_law(case, left), enumerate_law(case, right)
            for array, before in zip(own, kept, strict=True):
                array[:] = before  # grandchildren stand where their grandparent stood
            for left_tree, left_log_prob in left_law.items():
                for right_tree, right_log_prob in right_law.items():
                    tree = (column, int(last_left), left_tree, right_tree)
                    law[tree] = float(log_prob + left_log_prob + right_log_prob)
    return law


def columns_considered(choice, rng):
    """Columns that one node considers, in the order in which they were drawn."""
    considered = np.empty(choice.weights.size, np.int32)
    count = entrances.draw_columns(choice, considered, rng)
    return considered[:count].tolist()


def columns_for_tree(choice, forest, tree, rng):
    """Columns that are considered for whatever may replace a tree of a forest."""
    entrances.draw_subset(forest.column[slice(*forest.tree_start[tree : tree + 2])], choice, rng)
    return columns_considered(choice, rng)


def weights_of(h):
    """Number that all of h are whole multiples of, with the weights; None if they are not.

    Where all h are equal, the weights are 1.
    """
    case = make_case(np.zeros((len(h), 1)), h=h)
    curvature = curvature_of(case)
    if not curvature.is_whole:
        return None
    tallies = np.empty(len(h), np.int64)
    entrances.tally_rows(np.zeros(len(h)), case.work.blank, curvature.layout, tallies)
    return curvature.h, unpack(case, tallies)[1].tolist()


def sum_in_log_space(log_weights, size=None):
    log_weights = np.asarray(log_weights, float)
    return entrances.log_sum_exp(log_weights, log_weights.size if size is None else size)


def sum_of_many_in_log_space(log_weights, size=None, factor=None):
    log_weights = np.array(log_weights, float)
    factor = np.ones(log_weights.size) if factor is None else factor.copy()
    size = log_weights.size if size is None else size
    return entrances.log_sum_exp_of_many(log_weights, factor, size)


def terms_of_many(log_weights, factor):
    """Factors times exponentials, as their sum leaves them: over the largest exponential."""
    terms = np.array(log_weights, float)
    entrances.log_sum_exp_of_many(terms, factor, terms.size)
    return terms


def draw_from_sum(log_weights, factor, rng):
    """Index drawn in proportion to factor times exponential."""
    terms = terms_of_many(log_weights, factor)
    return entrances.draw_from_weights(terms, terms.size, rng)


def draw_index(log_weights, rng):
    log_weights = np.asarray(log_weights, float)
    log_total = entrances.log_sum_exp(log_weights, log_weights.size)
    return entrances.draw_from_log_weights(log_weights, log_weights.size, log_total, rng)


def tally(g, weight=None):
    """Tallies of rows, and how to read a sum of them: (number, weight, sum of g).

    Also the bits that number and weight take. Without weights, each row weighs 1.
    """
    g = np.asarray(g, float)
    layout = entrances.lay_out(g.size, 0 if weight is None else sum(weight))
    blank = np.ones(g.size, np.int64)
    if weight is not None:
        blank += np.asarray(weight, np.int64) << layout.weight_start
    tallies = np.empty(g.size, np.int64)
    unit = entrances.tally_rows(g, blank, layout, tallies)
    return tallies, lambda tally: _read(int(tally), layout, unit), layout.sum_start
