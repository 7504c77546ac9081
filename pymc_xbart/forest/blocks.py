"""Many trees at once under a log-likelihood that is not quadratic (floor 1).

A quadratic function Q of f stands in for the log-likelihood (see `surrogate`), and the kernels
update a block of trees under it, as they would under a Normal likelihood. The log-likelihood is
asked once, about the whole block (a surrogate transition: Liu 2001, "Monte Carlo Strategies in
Scientific Computing", section 9.4.3): f' is accepted instead of f with probability

    min(1, exp(log p(f') - Q(f') - log p(f) + Q(f)))

That is exact where the update leads from one forest to another as often as back, in the posterior
that Q gives. Each tree's does, and their sequence does since its order is drawn, so that the
opposite one is as likely. Q must not depend on the trees of the block.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.nonquadratic import LogLikelihood
from pymc_xbart.forest.surrogate import Quadratic
from pymc_xbart.kernels import (
    ColumnChoice,
    Design,
    Forest,
    Prior,
    SweepInfo,
    Workspace,
    describe_forest,
    join_forests,
    sum_of_trees,
    sweep,
    take_trees,
)

Array = NDArray[np.float64]


class Block(NamedTuple):
    """Some trees of a forest, and what they are at the rows of X."""

    trees: Forest
    leaf_of_row: NDArray[Any]  # (number of trees, n), uint16 or int32

    @property
    def values(self) -> Array:
        """Sum of the trees, (n,)."""
        values: Array = sum_of_trees(self.trees, self.leaf_of_row)
        return values


class BlockSampler:
    """Updates the trees of one forest in blocks.

    Parameters
    ----------
    likelihood : LogLikelihood
    quadratic : Quadratic
        What stands in for it.
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
        quadratic: Quadratic,
        design: Design,
        prior: Prior,
        choice: ColumnChoice,
        work: Workspace,
        rng: np.random.Generator,
    ) -> None:
        self._likelihood, self._quadratic = likelihood, quadratic
        self._design, self._prior, self._work = design, prior, work
        self._choice = choice
        self._rng = rng

    def sweep(
        self,
        forest: Forest,
        leaf_of_row: NDArray[Any],
        f: Array,
        *,
        num_blocks: int,
        num_regrown: int,
    ) -> tuple[Forest, NDArray[Any], SweepInfo, float]:
        """Update every tree once.

        Parameters
        ----------
        forest : Forest
        leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        f : ndarray of shape (n,)
            Sum of the trees, and whatever else is constant.
        num_blocks : int
            Of about equally many trees.
        num_regrown : int
            How many trees, drawn at random, are grown from the root.

        Returns
        -------
        forest : Forest
            Its trees are in another order, which means nothing.
        leaf_of_row : ndarray of shape (num_trees, n), uint16 or int32
        info : SweepInfo
        acceptance : float
            Mean over blocks of the probability to be accepted.
        """
        num_trees = forest.tree_start.size - 1
        order = self._rng.permutation(num_trees)
        bounds = _shares(num_trees, num_blocks)
        regrown = np.diff(_shares(num_regrown, num_blocks))
        weight = self._log_weight(f)
        blocks, infos, acceptance = [], [], 0.0
        for trees, count in zip(np.split(order, bounds[1:-1]), regrown, strict=True):
            block = Block(take_trees(forest, trees), leaf_of_row[trees])
            new, info = self._propose(block, f, int(count))
            new_f = f - block.values + new.values
            new_weight = self._log_weight(new_f)
            probability = float(np.exp(min(0.0, new_weight - weight)))
            if self._rng.random() < probability:
                block, f, weight = new, new_f, new_weight
            else:
                info = describe_forest(block.trees)._replace(
                    regrown=info.regrown, accepted=np.zeros_like(info.accepted)
                )
            blocks.append(block)
            infos.append(info)
            acceptance += probability / num_blocks
        forest = join_forests([block.trees for block in blocks])
        leaf_of_row = np.concatenate([block.leaf_of_row for block in blocks])
        info = SweepInfo(*(np.concatenate(parts) for parts in zip(*infos, strict=True)))
        return forest, leaf_of_row, info, acceptance

    def _propose(self, block: Block, f: Array, num_regrown: int) -> tuple[Block, SweepInfo]:
        """Update each tree of a block under Q."""
        trees, leaf_of_row, info = sweep(
            block.trees,
            block.leaf_of_row.copy(),
            self._quadratic.gradient(f),
            self._quadratic.curvature,
            self._design,
            self._prior,
            self._work,
            self._rng,
            is_corrected=True,
            num_regrown=num_regrown,
            redraws_leaves=False,
            choice=self._choice,
        )
        return Block(trees, leaf_of_row), info

    def _log_weight(self, f: Array) -> float:
        """Log of what Q leaves to be tested."""
        return self._likelihood.log_p(f) - self._quadratic.log_p(f)


def _shares(total: int, num_blocks: int) -> NDArray[np.int64]:
    """Where each of some blocks begins and the last one ends, if `total` is shared among them."""
    return np.rint(np.linspace(0, total, num_blocks + 1)).astype(np.int64)
