"""Sweeps under a log-likelihood that is not quadratic in f (floor 1).

Kernels see a log-likelihood through gradient and curvature, and here these are taken anew for each
tree, at f without the tree. They serve to propose another tree T'; the log-likelihood itself
decides. With t the values of T's K leaves, v their prior variance and f the forest without the
tree, T' and t' are accepted with probability min(1, a(T', t') / a(T, t)),

    a(T, t) = exp(log p(f + T(t))) * prior(T) / q(T) * product over k of N(t_k; 0, v) / q(t_k)

where q(T) is how likely the kernels are to propose T, and q(t_k) = N(m_k, s_k^2), the density that
leaf values are drawn from, comes from some steps of Newton's method in each leaf. Both depend on f
without the tree and on nothing else in T, so that the way back meets the same ones. Where trees
are grown from the root, which is refused more often than redrawing a split or two, all leaf values
of the tree, the new or the old one, are then drawn once more, in a step of their own.

He, Yalov & Hahn (2019) have Normal likelihoods only. With one, m_k and s_k^2 would be exact, and
the ratio that of `kernels.regrow`.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.kernels import (
    ColumnChoice,
    Design,
    Forest,
    Prior,
    SweepInfo,
    Workspace,
    cautious,
    describe_forest,
    grow_successor,
    join_forests,
    log_prior_ratio,
    newton_step,
    redraw_successor,
    split_forest,
    tree_log_w,
)

Array = NDArray[np.float64]

NEWTON_STEPS = 3
# In prior standard deviations of a leaf value. Longer steps lead astray where a log-likelihood is
# flat on one side and steep on the other, as that of counts is far below them.
MAX_STEP = 2.0
CLOSE_ENOUGH = 0.25  # a step of so many standard deviations of the leaf value is the last one
# Share of the trees grown from the root that are drawn from their prior. Proposals that are
# narrower than what they propose for can leave a chain stuck; one that is not is enough to let it
# go.
FROM_PRIOR = 0.02


class LogLikelihood(Protocol):
    """What must be known of a log-likelihood, as a function of f (n,), all else being as it is."""

    def gradient_curvature(self, f: Array) -> tuple[Array, Array]:
        """Evaluate d log p / d f and -d^2 log p / d f^2, (n,); not finite where unknown."""

    def log_p(self, f: Array) -> float:
        """Evaluate log p up to a constant; -inf where f is impossible."""


class Tree(NamedTuple):
    """One tree of a forest."""

    nodes: Forest  # of one tree
    leaf: NDArray[Any]  # (1, n)

    @property
    def values(self) -> Array:
        """Leaf value of each row, (n,)."""
        values: Array = self.nodes.value[self.leaf[0]]
        return values


class LeafLaws(NamedTuple):
    """Normal laws that leaf values of one tree are drawn from, (nodes,); the prior at splits."""

    mean: Array
    var: Array
    evidence: float  # sum of the leaves' evidences, as the kernels took them


class Proposal(NamedTuple):
    """A tree that may replace another."""

    tree: Tree
    log_w: float  # log of prior / q, save for the evidence of the leaves
    current_log_w: float  # of the tree that it may replace


class TreeSampler:
    """Updates the trees of one forest under a log-likelihood that is not quadratic.

    Parameters
    ----------
    likelihood : LogLikelihood
    design : Design
    prior : Prior
    choice : ColumnChoice
        The same for all nodes of a tree.
    work : Workspace
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        likelihood: LogLikelihood,
        design: Design,
        prior: Prior,
        choice: ColumnChoice,
        work: Workspace,
        rng: np.random.Generator,
    ) -> None:
        self._likelihood = likelihood
        self._design, self._prior, self._work = design, prior, work
        self._leaf_var = prior.leaf_var
        self._choice = choice
        self._rng = rng

    def sweep(
        self,
        forest: Forest,
        leaf_of_row: NDArray[Any],
        f: Array,
        *,
        is_corrected: bool,
        num_regrown: int,
    ) -> tuple[Forest, NDArray[Any], SweepInfo]:
        """Update every tree once.

        Parameters
        ----------
        forest : Forest
        leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        f : ndarray of shape (n,)
            Sum of the trees, and whatever else is constant.
        is_corrected : bool
            Whether new trees and leaf values must be accepted; if not, all of them are, unless f
            would be impossible.
        num_regrown : int
            How many trees, drawn at random, are grown from the root.

        Returns
        -------
        forest : Forest
        leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        info : SweepInfo
        """
        trees = _split(forest, leaf_of_row)
        regrown = np.zeros(len(trees), np.bool_)
        regrown[self._rng.permutation(len(trees))[:num_regrown]] = True
        accepted = np.zeros(len(trees), np.bool_)
        log_p = self._likelihood.log_p(f)
        for index, tree in enumerate(trees):
            without = f - tree.values
            if is_corrected:
                trees[index], log_p, accepted[index] = self._update(
                    tree, without, log_p, bool(regrown[index])
                )
            else:
                trees[index], accepted[index] = self._regrow_uncorrected(tree, without)
            f = without + trees[index].values
        forest, leaf_of_row = _join(trees)
        info = describe_forest(forest)._replace(regrown=regrown, accepted=accepted)
        return forest, leaf_of_row, info

    def sweep_as_one(
        self, forest: Forest, leaf_of_row: NDArray[Any], f: Array, *, scan: str
    ) -> tuple[Forest, NDArray[Any], SweepInfo]:
        """Propose a whole new forest, as `kernels.sweep_as_one` does. See `sweep`."""
        current = _split(forest, leaf_of_row)
        is_reversible = scan == "reversible"
        order = list(range(len(current)))
        if is_reversible and self._rng.random() < 0.5:
            order.reverse()
        proposed = list(current)
        log_ratio = -self._likelihood.log_p(f)
        for index in order:
            tree = current[index]
            without = f - tree.values
            g, h = self._describe(without)
            proposal = self._grow(tree, g, h, evaluates=is_reversible)
            laws = self._leaf_laws(proposal.tree, g, h, without)
            proposed[index] = self._with_values(proposal.tree, self._draw(proposal.tree, laws))
            log_ratio += proposal.log_w + self._leaf_weight(proposed[index], laws)
            if is_reversible:  # the way back meets the same f without the tree
                laws = self._leaf_laws(tree, g, h, without)
                log_ratio -= proposal.current_log_w + self._leaf_weight(tree, laws)
            f = without + proposed[index].values
        log_ratio += self._likelihood.log_p(f)
        if not is_reversible:
            log_ratio -= self._weight_of_way_back(proposed, current, f)
        is_accepted = bool(np.log(self._rng.random()) < log_ratio)
        forest, leaf_of_row = _join(proposed if is_accepted else current)
        info = describe_forest(forest)
        return forest, leaf_of_row, info._replace(accepted=np.full(len(order), is_accepted))

    def _weight_of_way_back(self, proposed: list[Tree], current: list[Tree], f: Array) -> float:
        """Sum of log prior - log q over the current trees, were they proposed by a sweep."""
        total = 0.0
        for new, tree in zip(proposed, current, strict=True):
            without = f - new.values
            g, h = self._describe(without)
            total += tree_log_w(*tree, g, h, self._design, self._prior, self._work)
            total += self._leaf_weight(tree, self._leaf_laws(tree, g, h, without))
            f = without + tree.values
        return total

    def _update(
        self, tree: Tree, without: Array, log_p: float, is_regrown: bool
    ) -> tuple[Tree, float, bool]:
        """Propose another tree, then maybe other values. `log_p` is that of the current f."""
        if is_regrown and self._rng.random() < FROM_PRIOR:
            g, h = np.zeros_like(without), np.zeros_like(without)
        else:
            g, h = self._describe(without)
        propose = self._grow if is_regrown else self._redraw
        proposal = propose(tree, g, h)
        laws = self._leaf_laws(tree, g, h, without)
        weight = log_p + self._leaf_weight(tree, laws)
        new_laws = laws
        if not _is_same_structure(tree, proposal.tree):
            new_laws = self._leaf_laws(proposal.tree, g, h, without)
        new = self._with_values(proposal.tree, self._draw(proposal.tree, new_laws))
        new_log_p = self._likelihood.log_p(without + new.values)
        new_weight = new_log_p + self._leaf_weight(new, new_laws)
        log_ratio = new_weight - weight + (proposal.log_w - proposal.current_log_w)
        is_accepted = bool(np.log(self._rng.random()) < log_ratio)
        if is_accepted:
            tree, laws, log_p, weight = new, new_laws, new_log_p, new_weight
        if is_regrown:
            tree, log_p = self._redraw_values(tree, laws, without, log_p, weight)
        return tree, log_p, is_accepted

    def _redraw_values(
        self, tree: Tree, laws: LeafLaws, without: Array, log_p: float, weight: float
    ) -> tuple[Tree, float]:
        """Propose other leaf values for a tree with log-weight `weight`. Returns log p as well."""
        new = self._with_values(tree, self._draw(tree, laws))
        new_log_p = self._likelihood.log_p(without + new.values)
        log_ratio = new_log_p + self._leaf_weight(new, laws) - weight
        return (new, new_log_p) if np.log(self._rng.random()) < log_ratio else (tree, log_p)

    def _regrow_uncorrected(self, tree: Tree, without: Array) -> tuple[Tree, bool]:
        """Grow another tree and take it, unless its f is impossible."""
        g, h = self._describe(without)
        new = self._grow(tree, g, h, evaluates=False).tree
        new = self._with_values(new, self._draw(new, self._leaf_laws(new, g, h, without)))
        is_possible = self._likelihood.log_p(without + new.values) > -np.inf
        return (new, True) if is_possible else (tree, False)

    def _describe(self, f: Array) -> tuple[Array, Array]:
        described: tuple[Array, Array] = cautious(*self._likelihood.gradient_curvature(f))
        return described

    def _grow(self, tree: Tree, g: Array, h: Array, *, evaluates: bool = True) -> Proposal:
        nodes, leaf, log_w, current_log_w = grow_successor(
            *(*tree, g, h, self._design, self._prior, self._work, self._rng),
            choice=self._choice,
            evaluates=evaluates,
        )
        return Proposal(Tree(nodes, leaf), log_w, current_log_w)

    def _redraw(self, tree: Tree, g: Array, h: Array) -> Proposal:
        redrawn = redraw_successor(
            *(*tree, g, h, self._design, self._prior, self._work, self._rng),
            choice=self._choice,
        )
        return Proposal(Tree(*redrawn), 0.0, 0.0)

    def _leaf_laws(self, tree: Tree, g: Array, h: Array, without: Array) -> LeafLaws:
        """Find a Normal law for each leaf value, by Newton's method in all leaves at once."""
        v = self._leaf_var
        longest = MAX_STEP * math.sqrt(v)
        leaf, start = tree.leaf[0], np.zeros(tree.nodes.left.size)
        mean, var, evidence, f, distance = newton_step(without, leaf, start, g, h, v, longest)
        for _ in range(NEWTON_STEPS):
            if distance <= CLOSE_ENOUGH:
                break
            g, h = self._describe(f)
            mean, var, _, f, distance = newton_step(without, leaf, mean, g, h, v, longest)
        return LeafLaws(mean, var, evidence)

    def _draw(self, tree: Tree, laws: LeafLaws) -> Array:
        """Draw leaf values, (nodes,)."""
        drawn = laws.mean + np.sqrt(laws.var) * self._rng.standard_normal(laws.mean.size)
        return np.where(tree.nodes.left < 0, drawn, 0.0)

    def _leaf_weight(self, tree: Tree, laws: LeafLaws) -> float:
        """Prior of the leaf values over the density that they were drawn from, in logs.

        Less the evidence of the leaves, which is part of q(T).
        """
        nodes = tree.nodes
        log_ratio = log_prior_ratio(nodes.left, nodes.value, laws.mean, laws.var, self._leaf_var)
        return float(log_ratio) - laws.evidence

    @staticmethod
    def _with_values(tree: Tree, value: Array) -> Tree:
        return tree._replace(nodes=tree.nodes._replace(value=value))


def _is_same_structure(one: Tree, other: Tree) -> bool:
    """Whether two trees have the same splits, node by node."""
    pairs = zip(one.nodes[1:4], other.nodes[1:4], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _split(forest: Forest, leaf_of_row: NDArray[Any]) -> list[Tree]:
    leaves = (leaf[None] for leaf in np.ascontiguousarray(leaf_of_row))
    return [Tree(*pair) for pair in zip(split_forest(forest), leaves, strict=True)]


def _join(trees: list[Tree]) -> tuple[Forest, NDArray[Any]]:
    return join_forests([tree.nodes for tree in trees]), np.concatenate([t.leaf for t in trees])
