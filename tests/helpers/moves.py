"""Metropolis-Hastings moves between tiny trees, slow and obvious, from the definition.

A tree T' that replaces T is grown from the root with a subset S of the columns: those of T, and
every other one with probability mtry / p. Written out for every tree and subset.
"""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from tests.helpers import slow


class Proposal(NamedTuple):
    """What is proposed under one subset of columns. Trees are named by their number."""

    columns: frozenset
    trees: np.ndarray  # those that split on no other columns
    log_q: np.ndarray  # their log-probabilities
    log_w: np.ndarray  # log of posterior / q, up to a constant that is the same for all


def columns_of(tree):
    """Columns that a tree splits on."""
    if tree == slow.LEAF:
        return frozenset()
    return frozenset({tree[0]}) | columns_of(tree[2]) | columns_of(tree[3])


def options_among(columns):
    """Options of a node that considers some columns only, with their log-weights.

    Whether a node can split at all, all columns decide; and of a split's prior probability those
    that are considered get everything.
    """

    def options(problem, rows, depth):
        found = slow.node_options(slow.considering(problem, columns), rows, depth)
        found[slow.STOP] = slow.node_options(problem, rows, depth)[slow.STOP]
        return found

    return options


def subsets(num_columns, mtry):
    """Sets of columns that may be considered."""
    if mtry == num_columns:
        return [frozenset(range(num_columns))]
    flags = product([False, True], repeat=num_columns)
    return [frozenset(np.flatnonzero(is_in).tolist()) for is_in in flags]


def slow_proposals(problem, posterior, mtry):
    """A `Proposal` for each subset of columns, by enumeration."""
    number = {tree: k for k, tree in enumerate(posterior)}
    proposals = []
    for columns in subsets(len(problem.codes), mtry):
        law = slow.enumerate_law(problem, options_among(columns))
        log_q = np.array(list(law.values()))
        log_target = np.array([posterior[tree] for tree in law])
        trees = np.array([number[tree] for tree in law])
        proposals.append(Proposal(columns, trees, log_q, log_target - log_q))
    return proposals


class Chain(NamedTuple):
    """The chain on all trees that a set of proposals and a rule to accept them make up."""

    trees: list
    num_used: np.ndarray  # columns that each tree splits on
    num_columns: int
    share: float  # mtry / p
    proposals: list[Proposal]
    counts_columns: bool = True  # whether the rule minds that a subset holds the columns of T
    is_corrected: bool = True

    def move(self, law):
        """Law of the tree after one move from a tree with this law, (num_trees,) probabilities."""
        after = np.zeros_like(law)
        for proposal in self.proposals:
            trees, num_drawn = proposal.trees, len(proposal.columns) - self.num_used
            num_left_out = self.num_columns - len(proposal.columns)
            prob_subset = self.share ** num_drawn[trees] * (1 - self.share) ** num_left_out
            for k, start in enumerate(trees):
                if law[start] == 0.0:
                    continue
                flow = law[start] * prob_subset[k] * np.exp(proposal.log_q)
                arrives = flow * self.acceptance(proposal, k)
                after[trees] += arrives
                after[start] += law[start] * prob_subset[k] - arrives.sum()
        return after

    def acceptance(self, proposal, k):
        """Probability of accepting each tree in place of the k-th."""
        if not self.is_corrected:
            return np.ones(len(proposal.trees))
        log_ratio = proposal.log_w - proposal.log_w[k]
        if self.counts_columns:
            num_used = self.num_used[proposal.trees]
            log_ratio = log_ratio + (num_used[k] - num_used) * math.log(self.share)
        return np.exp(np.minimum(log_ratio, 0.0))

    def law_from(self, tree):
        """Law of the tree after one move from a given one: {tree: log-probability}."""
        start = np.zeros(len(self.trees))
        start[self.trees.index(tree)] = 1.0
        with np.errstate(divide="ignore"):
            log_prob = np.log(self.move(start).clip(0.0))  # rounding may leave -1e-17
        return dict(zip(self.trees, log_prob.tolist(), strict=True))


def make_chain(problem, posterior, mtry, proposals=None, **rule):
    """Chain on all trees of a posterior, with proposals found by enumeration unless given."""
    trees = list(posterior)
    num_columns = len(problem.codes)
    if proposals is None:
        proposals = slow_proposals(problem, posterior, mtry)
    num_used = np.array([len(columns_of(tree)) for tree in trees])
    return Chain(trees, num_used, num_columns, mtry / num_columns, proposals, **rule)


def log_share(problem, tree, columns):
    """Sum over the splits of a tree of the log of A_S / A.

    A is the sum of the split weights of all columns with cuts in the node, and A_S of those that
    are considered.
    """
    total = 0.0
    waiting = [(tree, problem.all_rows, 0)]
    while waiting:
        subtree, rows, depth = waiting.pop()
        if subtree == slow.LEAF:
            continue
        available = slow.available_cuts(problem, rows, depth)
        weights = problem.prior.split_weights
        total += math.log(sum(weights[v] for v in available if v in columns))
        total -= math.log(sum(weights[v] for v in available))
        left, right = slow.partition(problem.codes[subtree[0]], subtree[1], rows)
        waiting += [(subtree[2], left, depth + 1), (subtree[3], right, depth + 1)]
    return total
