"""Moves that redraw one split of a tiny tree, slow and obvious, from the definition.

A site is a leaf, or a split whose children are leaves. One of the tree's sites is drawn, and a set
S of columns: that of its split, and every other one with probability mtry / p. Then what happens at
the site is drawn among stopping and the cuts of columns in S with two leaves below, with
probabilities proportional to posterior * P(S | outcome) / number of sites, where the prior of
children without cuts is taken to be that of others. The outcome is accepted with probability
min(1, ratio of what this leaves out). Written out for every tree, site and set of columns.
"""

import math
from typing import NamedTuple

from tests.helpers import moves, slow


class Rule(NamedTuple):
    """What the move minds."""

    counts_sites: bool = True
    minds_stuck_children: bool = True
    counts_columns: bool = True  # P(S | outcome)
    minds_share: bool = True  # that of the prior, S has A_S / A


RIGHT = Rule()


def sites(tree, path=()):
    """Where the sites of a tree are, as the sides taken from the root."""
    if tree == slow.LEAF:
        return [path]
    below = sites(tree[2], (*path, 2)) + sites(tree[3], (*path, 3))
    return [path, *below] if tree[2] == tree[3] == slow.LEAF else below


def subtree_at(tree, path):
    for side in path:
        tree = tree[side]
    return tree


def replaced(tree, path, subtree):
    """The tree with another subtree at the end of the path."""
    if not path:
        return subtree
    side, *rest = path
    below = replaced(tree[side], rest, subtree)
    return (*tree[:side], below, *tree[side + 1 :])


def rows_at(problem, tree, path):
    rows = problem.all_rows
    for side in path:
        rows = slow.partition(problem.codes[tree[0]], tree[1], rows)[side - 2]
        tree = tree[side]
    return rows


def outcomes_at(problem, tree, path):
    """What can be at a site: a leaf and all splits with two leaves, named by their largest code."""
    rows = rows_at(problem, tree, path)
    found = [slow.LEAF]
    for v, cuts in slow.available_cuts(problem, rows, len(path)).items():
        for cut in cuts:
            left, _ = slow.partition(problem.codes[v], cut, rows)
            found.append((v, int(problem.codes[v][left].max()), slow.LEAF, slow.LEAF))
    return found


def log_surplus(problem, tree, path, outcome):
    """Log of the prior of two leaves over that of two that could be split."""
    if outcome == slow.LEAF:
        return 0.0
    depth = len(path) + 1
    stop = 1 - problem.prior.alpha * (1 + depth) ** -problem.prior.beta
    if depth >= problem.prior.max_depth:
        return 0.0
    halves = slow.partition(problem.codes[outcome[0]], outcome[1], rows_at(problem, tree, path))
    num_stuck = sum(not slow.available_cuts(problem, half, depth) for half in halves)
    return -num_stuck * math.log(stop)


def log_share(problem, tree, path, columns):
    """Log of A_S / A at a site."""
    available = slow.available_cuts(problem, rows_at(problem, tree, path), len(path))
    weights = problem.prior.split_weights
    considered = math.fsum(weights[v] for v in available if v in columns)
    return math.log(considered) - math.log(math.fsum(weights[v] for v in available))


def log_prob_subset(columns, outcome, num_columns, share):
    """Log-probability of considering a set of columns, -inf if it lacks that of the split."""
    forced = set(outcome[:1])
    if not forced <= columns:
        return -math.inf
    num_out = num_columns - len(columns)
    drawn = (len(columns) - len(forced)) * math.log(share)
    return drawn + (num_out * math.log1p(-share) if num_out else 0.0)


def site_moves(problem, posterior, mtry, rule, tree, path):
    """Law of the tree after a move at one site: {tree: probability}."""
    num_columns = len(problem.codes)
    share = mtry / num_columns
    all_outcomes = outcomes_at(problem, tree, path)
    current = subtree_at(tree, path)
    moved = {}
    for columns in moves.subsets(num_columns, mtry):
        prob_columns = math.exp(log_prob_subset(columns, current, num_columns, share))
        if prob_columns == 0.0:
            continue
        outcomes = [found for found in all_outcomes if set(found[:1]) <= columns]
        log_weight, surplus = [], []
        for outcome in outcomes:
            tree_then = replaced(tree, path, outcome)
            surplus.append(log_surplus(problem, tree, path, outcome))
            weight = posterior[tree_then] - surplus[-1]
            if rule.counts_columns:
                weight += log_prob_subset(columns, outcome, num_columns, share)
            if rule.counts_sites:
                weight -= math.log(len(sites(tree_then)))
            if not rule.minds_share and outcome != slow.LEAF:
                weight -= log_share(problem, tree, path, columns)
            log_weight.append(weight)
        log_total = slow.log_sum_exp(log_weight)
        from_surplus = surplus[outcomes.index(current)]
        for outcome, weight, to_surplus in zip(outcomes, log_weight, surplus, strict=True):
            accepted = 1.0
            if rule.minds_stuck_children:
                accepted = math.exp(min(0.0, to_surplus - from_surplus))
            flow = prob_columns * math.exp(weight - log_total)
            then = replaced(tree, path, outcome)
            moved[then] = moved.get(then, 0.0) + flow * accepted
            moved[tree] = moved.get(tree, 0.0) + flow * (1 - accepted)
    return moved


def law_after(problem, posterior, mtry, before, rule=RIGHT):
    """Law of the tree after one move, from the law {tree: probability} before it."""
    after = {}
    for tree, prob in before.items():
        places = sites(tree)
        for path in places:
            moved = site_moves(problem, posterior, mtry, rule, tree, path)
            for then, flow in moved.items():
                after[then] = after.get(then, 0.0) + prob / len(places) * flow
    return after


def change(problem, posterior, mtry, rule=RIGHT):
    """Largest change of a tree's posterior probability by one move."""
    before = {tree: math.exp(log_prob) for tree, log_prob in posterior.items()}
    after = law_after(problem, posterior, mtry, before, rule)
    return max(abs(after.get(tree, 0.0) - prob) for tree, prob in before.items())


def log_law_from(problem, posterior, mtry, tree, num_moves, rule=RIGHT):
    """Law of the tree after some moves from a given one: {tree: log-probability}."""
    after = {tree: 1.0}
    for _ in range(num_moves):
        after = law_after(problem, posterior, mtry, after, rule)
    return {
        then: math.log(after[then]) if after.get(then, 0.0) > 0.0 else -math.inf
        for then in posterior
    }
