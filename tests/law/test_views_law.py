"""Trees over columns with missing values and of categories follow the posterior as it is stated.

It is worked out here from the statement alone: a split draws a column, then the side of missing
values or an order of the categories, then a cut. Kernels know nothing of that, and views are not
asked for it, save for which of the (arbitrary) orders there are. One tree over six rows, up to two
levels deep; chains are thinned to near independence. Each comparison fails a correct chain with
probability 1e-6.
"""

import math
from itertools import product

import numpy as np
import pytest

from pymc_xbart.forest.correction import Correction
from pymc_xbart.forest.prior import TreeSettings, tree_prior
from pymc_xbart.forest.views import find_views, place_in_order, share_weights, show
from pymc_xbart.kernels import encode
from pymc_xbart.plugin.ensemble import Ensemble
from tests.helpers import law, slow

NAN = math.nan
GAPS = [1.0, 2.0, NAN, 3.0, NAN, 2.0]
GROUPS = [0.0, 1.0, 2.0, 0.0, NAN, 1.0]
X = np.column_stack([GAPS, GROUPS])
CATEGORICAL = (1,)
NUM_ORDERS = 8  # two for each of the categories, the missing one among them
Y = np.array([0.3, 1.5, -1.2, 0.9, -0.4, 2.0])
H, LEAF_VAR, MU = 0.5, 0.8, 0.5
ALPHA, BETA, MAX_DEPTH = 0.9, 0.4, 2
WEIGHTS = np.array([0.7, 0.3])
THIN, DRAWS = 8, 5_000  # successive trees are the same as often as independent ones
ALL_ROWS = list(range(len(Y)))


def rules(rows):
    """Splits of some rows by their column: a list of (probability given the column, left rows)."""
    return {0: list(cuts_with_gaps(rows)), 1: list(subsets(rows))}


def cuts_with_gaps(rows, sides=(-math.inf, math.inf)):
    for side in sides:
        place = {i: side if math.isnan(GAPS[i]) else GAPS[i] for i in rows}
        yield from prefixes(place, 1 / len(sides))


def subsets(rows):
    for order in range(NUM_ORDERS):
        places = place_in_order(np.array([GROUPS[i] for i in rows]), order)
        yield from prefixes(dict(zip(rows, places.tolist(), strict=True)), 1 / NUM_ORDERS)


def prefixes(place, share):
    cuts = sorted(set(place.values()))[:-1]
    for cut in cuts:
        yield share / len(cuts), frozenset(i for i in place if place[i] <= cut)


def trees(rows, depth, leaf, rules=rules):
    """Log-weight of every tree over some rows, as (column, left rows, left tree, right tree)."""
    by_column = {v: splits for v, splits in rules(rows).items() if splits and depth < MAX_DEPTH}
    if not by_column:
        return {(): leaf(rows)}
    p = ALPHA * (1 + depth) ** -BETA
    law_here = {(): math.log1p(-p) + leaf(rows)}
    available = sum(WEIGHTS[v] for v in by_column)
    for v, splits in by_column.items():
        for share, left in splits:
            below = [
                trees(part, depth + 1, leaf, rules)
                for part in ([i for i in rows if i in left], [i for i in rows if i not in left])
            ]
            prior = math.log(p * WEIGHTS[v] / available * share)
            for (one, a), (other, b) in product(*(each.items() for each in below)):
                tree = (v, left, one, other)
                law_here[tree] = np.logaddexp(law_here.get(tree, -math.inf), prior + a + b)
    return law_here


def posterior(rules=rules):
    def evidence(rows):
        return slow.log_evidence(H * (Y[rows] - MU), np.full(len(rows), H), LEAF_VAR)

    weights = trees(ALL_ROWS, 0, evidence, rules)
    total = slow.log_sum_exp(np.array(list(weights.values())))
    return {tree: weight - total for tree, weight in weights.items()}


def read(stored):
    """A stored tree, as `trees` writes it."""
    _, forest, view, cut_value, _ = stored

    def at(node, rows):
        if forest.left[node] < 0:
            return ()
        v = int(forest.column[node])
        values = X[rows, v]
        if v in CATEGORICAL:
            is_left = place_in_order(values, view[node]) <= cut_value[node]
        else:
            is_left = np.where(np.isnan(values), view[node] == 0, values <= cut_value[node])
        left, right = rows[is_left], rows[~is_left]
        children = at(forest.left[node], left), at(forest.left[node] + 1, right)
        return (v, frozenset(left.tolist()), *children)

    return at(0, np.arange(len(Y)))


def make_ensemble():
    views = find_views(X, CATEGORICAL)
    settings = TreeSettings(1, ALPHA, BETA, max_depth=MAX_DEPTH, categorical=CATEGORICAL)
    prior = tree_prior(
        settings,
        sigma=math.sqrt(LEAF_VAR),
        split_weights=share_weights(WEIGHTS, views),
        num_rows=len(Y),
    )
    return Ensemble(encode(show(X, views)), views, prior, MU, 1)


def chain(correction, rng):
    ensemble = make_ensemble()
    state = ensemble.draw_prior(ensemble.prior, rng)
    drawn = []
    for _ in range(DRAWS):
        for _ in range(THIN):
            g = H * (Y - state.f)
            h = np.full(len(Y), H)
            state, _ = ensemble.sweep(state, g, h, ensemble.prior, rng, correction)
        drawn.append(read(ensemble.stored(state)))
    return drawn


@pytest.mark.parametrize(
    "correction", [Correction("tree"), Correction("tree", mtry=1), Correction("sweep")]
)
def test_trees_follow_the_posterior(correction, rng):
    law.assert_law(chain(correction, rng), posterior())


def test_trees_are_drawn_from_the_prior(rng):
    ensemble = make_ensemble()
    drawn = [read(ensemble.stored(ensemble.draw_prior(ensemble.prior, rng))) for _ in range(DRAWS)]
    law.assert_law(drawn, trees(ALL_ROWS, 0, lambda _: 0.0))


def test_that_it_would_catch_a_side_for_all(rng):
    def left_only(rows):
        return {0: list(cuts_with_gaps(rows, (-math.inf,))), 1: list(subsets(rows))}

    with pytest.raises(AssertionError):
        law.assert_law(chain(Correction("tree"), rng), posterior(left_only))


def test_that_it_would_catch_views_that_weigh_as_much_as_columns(rng, monkeypatch):
    monkeypatch.setattr(
        "tests.law.test_views_law.share_weights", lambda weights, views: weights[views.column]
    )
    with pytest.raises(AssertionError):
        law.assert_law(chain(Correction("tree"), rng), posterior())


def test_random_split_weights_know_the_probability_of_the_trees(rng):
    """Ratios of the density under two sets of weights are those of the statement."""
    logp = {}
    ensemble = make_ensemble()
    states = [ensemble.draw_prior(ensemble.prior, rng) for _ in range(40)]
    for state in states:
        counts, availability = ensemble.splits(state)
        for s in ([0.7, 0.3], [0.2, 0.8]):
            logp[tuple(s)] = counts @ np.log(s) - np.log(availability @ np.array(s)).sum()
        difference = logp[0.7, 0.3] - logp[0.2, 0.8]
        assert difference == pytest.approx(stated(read(ensemble.stored(state))), abs=1e-9)


def stated(tree, rows=ALL_ROWS):
    """Log-probability of the columns of a tree's splits under weights (.7, .3), less (.2, .8)."""
    if not tree:
        return 0.0
    v, left, one, other = tree
    by_column = [u for u, splits in rules(rows).items() if splits]
    log_ratio = 0.0
    for sign, s in ((1, [0.7, 0.3]), (-1, [0.2, 0.8])):
        log_ratio += sign * math.log(s[v] / sum(s[u] for u in by_column))
    parts = [i for i in rows if i in left], [i for i in rows if i not in left]
    return log_ratio + stated(one, parts[0]) + stated(other, parts[1])
