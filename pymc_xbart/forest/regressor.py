"""`XBARTRegressor`: the paper's estimator, without PyMC (floor 1)."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.correction import REGROW
from pymc_xbart.forest.covariates import Labels, read_covariates, warn_of_gaps
from pymc_xbart.forest.estimator import Estimator, feature_names, generator_of
from pymc_xbart.forest.options import check_options
from pymc_xbart.forest.prediction import mean_of_draws, sums_of_trees
from pymc_xbart.forest.sampler import (
    Chain,
    Scale,
    Trace,
    draw_sweeps,
    make_task,
    record,
    start_sampling,
)
from pymc_xbart.forest.training import (
    read_training,
    weigh_rows,
)
from pymc_xbart.forest.views import Views, encode_views
from pymc_xbart.forest.warm_start import resume


class XBARTRegressor(Estimator):
    r"""Regression by accelerated Bayesian additive regression trees.

    .. math:: y_i \sim N(\mu + \sum_{l=1}^{L} g_l(x_i),\ \sigma^2)

    The algorithm XBART of [1]_: every sweep grows all trees anew, each from the root on what the
    others leave of y, and draws the noise variance, and, after every tree, the weights by which
    columns are considered. The sweeps after burn-in are averaged.

    With ``correction="none"``, the paper's default and this one's, the sweeps are a stochastic
    search and no exact posterior sampler: the mean predicts well, the intervals are a heuristic.
    ``correction="tree"`` samples the posterior; then ask for hundreds or thousands of sweeps, and
    for 50 trees or more, with which they are less alike.

    Parameters are checked by `fit`. All have keywords only.

    Parameters
    ----------
    num_trees : int, optional
        Trees in the sum, L; ``(log n)^(log log n) / 4`` by default, rounded, at least 1 [1]_.
    num_sweeps : int, default 40
        Sweeps in all, burn-in included.
    burnin : int, default 15
        First sweeps, which are not kept, >= 0 and below `num_sweeps`. As far as they are not
        corrected, they consider all columns, whatever `mtry` says.
    num_cutpoints : int, optional
        About how many cuts each column offers in each node; ``max(floor(sqrt(n)), 100)`` by default
        [1]_.
    mtry : int, optional
        Columns that a node considers, 1 to p; all p by default. They are drawn for each node,
        without replacement, by weights w ~ Dirichlet(1 + number of splits on each column). With
        ``correction="tree"`` they are drawn for each tree, by default a third of the columns, at
        least 5 and at most 30: those that it splits on, and every other one with probability
        mtry / p.
    correction : {"none", "tree", "sweep"}, default "none"
        "tree": each new tree must pass a Metropolis-Hastings test, so that the sweeps have the
        posterior as their law. "sweep": so must each sweep as a whole [1]_, which is rarely
        accepted with more than a few trees; it considers all columns. Both need a `cut_prior` other
        than "paper". The first sweeps, 15 or half of burn-in if that is less, go uncorrected, to
        arrive fast.
    regrow : float, default 0.2
        With ``correction="tree"``, share of the trees, drawn anew for each sweep and at least five,
        that are grown from the root, in (0, 1]. In each of the others two splits are redrawn, which
        is exact, too, and takes a fraction of the time.
    alpha : float, default 0.95
        Prior probability that the root of a tree splits, in (0, 1).
    beta : float, default 1.25
        A node at depth d splits with probability ``alpha * (1 + d) ** -beta``, >= 0 [1]_.
    leaf_var : float, optional
        Prior variance of a leaf value, > 0; ``0.3 * var(y) / L`` by default [1]_.
    noise_shape : float, default 3.0
        Shape of the noise variance's prior, > 0: it counts for as much as this number of rows.
        ``noise_rate / noise_var`` is chi-square with `noise_shape` degrees of freedom; that is, the
        noise variance is inverse gamma with shape ``noise_shape / 2`` and rate ``noise_rate / 2``.
        (The paper prints its alpha and eta without the halves.)
    noise_rate : float, optional
        Scale of that prior, > 0, in squared units of y. By default such that the noise variance is
        below that of y with probability 0.9; with 3 degrees of freedom it is ``0.584 * var(y)``.
        The paper names no values. These are the ones of [2]_: proper, so that the noise cannot
        vanish where trees can follow every row; free of the unit of y; and worth three rows.
    noise_update : {"sweep", "tree"}, default "sweep"
        How often the noise variance is drawn: once a sweep, or, as in [1]_, after every tree. Then
        noise falls within the first sweep, so that a few large trees follow all that there is of f,
        and the others find nothing to do. Uncorrected, forests stay like that: where there is
        little noise, they take longer and predict less well.
    min_samples_leaf : int, default 1
        Rows that both sides of a split must keep.
    max_depth : int, optional
        Depth at which nodes do not split any more (root: 0); unlimited by default.
    cut_prior : {"columns", "cuts", "paper"}, default "columns"
        How prior weight is shared among cuts. "columns": a node that has cuts splits with the
        probability above, and its columns are equally likely, however many cuts they have. "cuts",
        as in the authors' code: it does, and all cuts are equally likely. "paper", the paper's
        text: every cut has that probability divided by p as its weight, and stopping the rest to 1,
        so that K cuts make a split about K / p times as likely, and trees are far larger.
    categorical : sequence of int or str, optional
        Columns whose values are categories, by number or name, beside those that a table declares
        as categorical without an order. See `XBARTForest`.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        Source of chance. The same int gives the same result. NumPy's global state is neither read
        nor changed.
    warm_start : bool, default False
        Whether `fit` goes on from where the last one stopped, up to a new and larger total of
        `num_sweeps`. The rows of X must be the same; mean and scale of y stay those of the first
        fit, as far as they are not given. With the same settings otherwise, the result is that of
        one long run, to the last bit.
    progressbar : bool, default False
        Whether to show the sweeps as they go by.
    num_threads : int, default 1
        Threads that share the work on large nodes of a tree, >= 1. The result is the same to the
        last bit. Worth it from some ten thousand rows on, with cores that nothing else is using;
        the first fit with several threads compiles for them.

    Attributes
    ----------
    forests_ : list of kernels.Forest
        The kept forests, one for each sweep after burn-in. A draw of f at x is `mean_` plus the sum
        of the trees at x.
    cut_values_ : list of ndarray of shape (nodes,)
        For each of them, its cuts in the units of X: rows with x <= value go left. NaN at leaves.
    views_ : forest.views.Views
        What the field `column` of a forest counts: the columns of X, except that one with missing
        values or of categories has several.
    split_counts_ : ndarray of shape (num_sweeps - burnin, p), int
        Splits on each column, kept sweeps only.
    noise_sd_ : ndarray of shape (num_sweeps,)
        Standard deviation of the noise, sigma, at the end of each sweep; those of the kept forests
        are ``noise_sd_[burnin:]``.
    num_leaves_ : ndarray of shape (num_sweeps, num_trees), int
        Leaves of each tree.
    regrown_ : ndarray of shape (num_sweeps, num_trees), bool
        Whether a new tree was grown from the root; always true, except for ``correction="tree"``.
    accepted_ : ndarray of shape (num_sweeps, num_trees), bool
        Whether that tree passed its test, and false where there was none; always true without a
        test, and the same for all trees where the sweep is tested as a whole.
    num_trees_, mean_, leaf_var_, noise_rate_
        As used; `mean_` is the mean of y, in which rows count by weight.
    labels_ : list of list of str, or None
        For each column, its categories in the order of their numbers, or None if it holds numbers;
        None if no column of X was declared to hold categories.
    n_features_in_ : int
        Columns of X, p.
    feature_names_in_ : ndarray of shape (p,), object
        Their names, if X was a DataFrame whose columns are named by strings.

    References
    ----------
    .. [1] He, J., Yalov, S. & Hahn, P. R. (2019). XBART: Accelerated Bayesian additive regression
       trees. Proceedings of Machine Learning Research 89 (AISTATS), 1130-1138.
    .. [2] Chipman, H. A., George, E. I. & McCulloch, R. E. (2010). BART: Bayesian additive
       regression trees. The Annals of Applied Statistics 4, 266-298.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_xbart import XBARTRegressor
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(500, 3))
    >>> y = np.sin(6 * X[:, 0]) + rng.normal(0, 0.2, size=500)
    >>> model = XBARTRegressor(num_trees=20, random_state=1).fit(X, y)
    >>> model.predict(X[:5], return_draws=True).shape
    (25, 5)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    views_: Views

    def __init__(
        self,
        *,
        num_trees: int | None = None,
        num_sweeps: int = 40,
        burnin: int = 15,
        num_cutpoints: int | None = None,
        mtry: int | None = None,
        correction: str = "none",
        regrow: float = REGROW,
        alpha: float = 0.95,
        beta: float = 1.25,
        leaf_var: float | None = None,
        noise_shape: float = 3.0,
        noise_rate: float | None = None,
        noise_update: str = "sweep",
        min_samples_leaf: int = 1,
        max_depth: int | None = None,
        cut_prior: str = "columns",
        categorical: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        progressbar: bool = False,
        num_threads: int = 1,
    ) -> None:
        self.num_trees = num_trees
        self.num_sweeps = num_sweeps
        self.burnin = burnin
        self.num_cutpoints = num_cutpoints
        self.mtry = mtry
        self.correction = correction
        self.regrow = regrow
        self.alpha = alpha
        self.beta = beta
        self.leaf_var = leaf_var
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate
        self.noise_update = noise_update
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.cut_prior = cut_prior
        self.categorical = categorical
        self.random_state = random_state
        self.warm_start = warm_start
        self.progressbar = progressbar
        self.num_threads = num_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw forests given the data.

        Parameters
        ----------
        X : array_like or DataFrame of shape (n, p)
            Numbers, or categories in columns that are `categorical`; n >= 2. Entries may be
            missing. Constant columns are allowed and never split on.
        y : array_like or Series of shape (n,)
            Finite real numbers, not all equal.
        sample_weight : array_like of shape (n,), optional
            How many times each row counts, >= 0; once by default. As usual in scikit-learn, a row
            of weight 2 is the same as the row twice, and one of weight 0 is left out. Weights that
            average 1 may also be read as precisions: the noise variance of a row is then sigma^2 /
            weight. Whole weights are carried out by repeating rows, if that no more than doubles
            them. Otherwise `min_samples_leaf`, and the defaults of `num_trees` and
            `num_cutpoints`, count rows and not weights.

        Returns
        -------
        XBARTRegressor
            Itself.

        Raises
        ------
        ValueError, TypeError, NotImplementedError
            In a sentence, if data or parameters are of no use.

        Warns
        -----
        UserWarning
            If there are more threads than cores that this process may use.
        """
        names = feature_names(X)
        is_resumed = self.warm_start and self.__sklearn_is_fitted__()
        if is_resumed:
            self._check_feature_names(names)
        matrix, _, labels, categorical = read_covariates(
            X,
            self.views_.categorical if is_resumed else self.categorical,
            labels=self._known_labels() if is_resumed else None,
            copy=False,
        )
        matrix, training = weigh_rows(matrix, read_training(y, sample_weight, matrix.shape[0]))
        options = check_options(self.get_params(), matrix.shape, categorical)
        design, views = encode_views(matrix, categorical)
        if is_resumed:
            self._check_num_features(matrix.shape[1])
            scale, chain, trace = resume(self, options, design)
        else:
            rng = generator_of(self.random_state)
            scale, chain, trace = start_sampling(options, training, design, rng)
        task = make_task(options, training, design, views, scale)
        first = len(trace.noise_sd)
        numbers = _with_progressbar(range(first, options.num_sweeps), self.progressbar)
        for number, state, info in draw_sweeps(
            task, chain.state, chain.rng, numbers, options.burnin
        ):
            record(trace, task, state, info, is_kept=number >= options.burnin)
            chain = chain._replace(state=state)
        self._keep(scale, chain, trace, names)
        self.views_ = views
        self.labels_ = labels
        return self

    def predict(self, X: Any, *, return_std: bool = False, return_draws: bool = False) -> Any:
        """Posterior mean of f at new rows.

        Parameters
        ----------
        X : array_like or DataFrame of shape (m, p)
            The columns that the forest was grown on, in the same order.
        return_std : bool, default False
            Whether to return the standard deviation of f over the draws, too: how much the kept
            sweeps differ, divided by their number and not by one less, and without the noise of an
            observation.
        return_draws : bool, default False
            Whether to return the draws of f instead of their mean.

        Returns
        -------
        mean : ndarray of shape (m,)
        std : ndarray of shape (m,)
            If `return_std`.
        draws : ndarray of shape (num_sweeps - burnin, m)
            If `return_draws`, and then nothing else. In the order of the sweeps; draw k goes with
            ``noise_sd_[burnin + k]``.
        """
        self._check_is_fitted()
        if return_std and return_draws:
            msg = "Pass return_std or return_draws, but not both: the draws tell their deviation."
            raise ValueError(msg)
        self._check_feature_names(feature_names(X))
        matrix, names, *_ = read_covariates(
            X, self.views_.categorical, labels=self._known_labels(), min_rows=1, copy=False
        )
        self._check_num_features(matrix.shape[1])
        warn_of_gaps(matrix, self.views_.has_missing, names)
        sums = sums_of_trees(self.forests_, self.cut_values_, self.views_, matrix)
        if not (return_std or return_draws):
            return self.mean_ + mean_of_draws(sums)
        draws = np.empty((len(self.forests_), matrix.shape[0]))
        for draw, of_draw in zip(draws, sums, strict=True):
            draw[:] = of_draw  # one by one: all of them may be large
        if return_std:
            return self.mean_ + mean_of_draws(draws), draws.std(axis=0)
        draws += self.mean_
        return draws

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the variance of y that the posterior mean explains, R^2.

        Parameters
        ----------
        X : array_like or DataFrame of shape (m, p)
        y : array_like or Series of shape (m,)
        sample_weight : array_like of shape (m,), optional
            Weights of the rows, >= 0; equal by default.

        Returns
        -------
        float
            1 at best; 0 for the mean of y; below 0 for what is worse.
        """
        predicted = self.predict(X)
        y, weight = read_training(y, sample_weight, predicted.size)
        unexplained = np.sum(weight * (y - predicted) ** 2)
        total = np.sum(weight * (y - np.average(y, weights=weight)) ** 2)
        if total == 0.0:
            return float(unexplained == 0.0)
        return float(1.0 - unexplained / total)

    def _keep(
        self, scale: Scale, chain: Chain, trace: Trace, names: NDArray[np.object_] | None
    ) -> None:
        """Set all attributes of a fit."""
        self._chain = chain
        self.mean_, self.leaf_var_, self.noise_rate_ = scale
        self.forests_ = trace.forests
        self.cut_values_ = trace.cut_values
        self.split_counts_ = np.array(trace.split_counts)
        self.noise_sd_ = np.array(trace.noise_sd)
        self.num_leaves_ = np.array(trace.num_leaves)
        self.regrown_ = np.array(trace.regrown)
        self.accepted_ = np.array(trace.accepted)
        self.num_trees_ = self.num_leaves_.shape[1]
        self.n_features_in_ = self.split_counts_.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def _known_labels(self) -> Labels:
        """Labels of categories, column by column."""
        return self.labels_ or [None] * self.n_features_in_


def _with_progressbar(numbers: range, is_shown: bool) -> Iterable[int]:
    if not is_shown:
        return numbers
    from rich.progress import track

    return track(numbers, description="Sweeps")
