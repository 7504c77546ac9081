"""`XBARTForest`: a forest as a distribution of PyMC (floor 2).

Everything a user may get wrong about the prior is refused here, in a sentence, before anything is
compiled.
"""

import difflib
import inspect
import warnings
from collections.abc import Sequence
from typing import Any, cast

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import (
    convert_dims,
    convert_shape,
    convert_size,
    rv_size_is_none,
    shape_from_dims,
)
from pymc.util import UNSET
from pytensor.tensor.variable import TensorVariable

from pymc_xbart.forest.prior import TreeSettings, check_settings
from pymc_xbart.plugin.dirichlet import SPARSE, sparse_split_weights
from pymc_xbart.plugin.inputs import (
    batch_shape,
    check_batch,
    check_shape,
    column_weights,
    covariates,
    location_and_scale,
)
from pymc_xbart.plugin.logp import forest_logp
from pymc_xbart.plugin.random_variable import XBARTForestRV
from pymc_xbart.plugin.statistics import leaf_logp, split_logp
from pymc_xbart.plugin.storage import add_schema, describe_covariates

# What `dist` gets from PyMC beside our own arguments.
OF_PYMC = {"name", "rng", "return_next_rng"}
# What PyMC takes for itself where a forest is added to a model.
OF_VARIABLES = {"rng", "initval", "observed", "total_size", "transform", "default_transform"}
# Arguments that people bring along, and what to do instead.
OF_PYMC_BART = {
    "m": "m is num_trees here",
    "Y": "Y is y here, on the scale of f",
    "split_prior": "split_prior is split_weights here",
    "split_rules": "split_rules are not needed: a table says itself which columns hold categories, "
    "and `categorical` does for arrays",
    "separate_trees": "separate_trees is not needed: with shape=(k, n), forests are separate",
    "response": "response has no counterpart: leaves hold numbers",
}


class XBARTForest(pm.Distribution):
    r"""Sum of regression trees with a BART prior, evaluated at the rows of X.

    .. math:: f(x) = \mu + \sum_{l=1}^{L} g_l(x)

    A node at depth d (root: 0) that has candidate cuts splits with probability :math:`\alpha (1 +
    d)^{-\beta}`; its column is drawn by `split_weights` among those with cuts, its cut uniformly
    among the candidates of that column (unless `cut_prior` says otherwise). Leaf values are
    :math:`N(0, \sigma^2 / L)`, so that f has prior mean `mu` and standard deviation `sigma` at
    every point, on its own scale: the link scale, where there is a link.

    `pm.sample` gives a forest an `XBARTStep` and leaves all other variables to their usual step
    methods.

    Parameters
    ----------
    name : str
        Name in the model.
    X : array_like, DataFrame, `pm.Data` or other non-random tensor, shape (n, p)
        Covariates, n >= 2, p >= 1. Columns of a table may hold numbers, booleans, dates, times or
        categories; see `categorical`. Entries may be missing: each split on such a column sends
        them left or right, which is part of the split, and a split may set them apart. Constant
        columns are allowed and never split on. Use `pm.Data` where rows will be replaced later. An
        array is copied, so that later changes to it do no harm; where memory is short, set
        ``X.flags.writeable = False`` before, and it is not.
    y : array_like, Series, one-column DataFrame or `pm.Data`, shape (m,) with m <= n, optional
        A response to calibrate the prior by, on the scale of f: ``mu = mean(y)`` and ``sigma =
        sqrt(0.3 * var(y))`` [2]_, over the entries that are not missing. It sets these two numbers
        once and is then forgotten; it is not the data of the likelihood. It may have fewer entries
        than X has rows, as where some rows are held out.
    mu : float, optional
        Prior mean of f. A constant, 0 by default. Not to be combined with `y`, which sets it.
    sigma : float or random variable, optional
        Prior standard deviation of f at a point, > 0. Exactly one of `y` and `sigma` must be given.
        A random one, ``pm.HalfNormal("scale", 1)`` say, is sampled beside the forest.
    num_trees : int, default 100
        Trees in the sum, L.
    alpha : float, default 0.95
        Probability that the root splits, in (0, 1) [1]_.
    beta : float, default 1.25
        How fast that probability falls with depth, >= 0 [2]_.
    split_weights : array_like of shape (p,), random variable or "sparse", optional
        Relative prior probabilities of splitting on each column, >= 0; equal by default. Random
        ones are sampled beside the forest: ``pm.Dirichlet("w", np.full(p, a / p))``, a being a
        positive number or a random variable, says that only a few columns matter, and is drawn
        outright. "sparse" adds such weights to the model, as ``<name>_split_weights``, with
        ``<name>_evenness``, a / (a + p), between 0 for few columns and 1 for all alike, and its
        prior Beta(1/2, 1) [3]_.
    num_cutpoints : int, optional
        About how many cuts each column offers in each node; ``max(floor(sqrt(n)), 100)`` by default
        [2]_.
    min_samples_leaf : int, default 1
        Rows that both sides of a split must keep.
    max_depth : int, optional
        Depth at which nodes do not split any more (root: 0); unlimited by default.
    cut_prior : {"columns", "cuts", "paper"}, default "columns"
        How prior weight is shared among the cuts of a node. With p_d the probability above, s the
        `split_weights` and K the number of candidate cuts of a column,

        - "columns": a node with cuts splits with probability p_d, on a column drawn by s among
          those with cuts, at one of its cuts: a 0/1 column is as likely as a continuous one;
        - "cuts": it splits with probability p_d, at a cut drawn among all by the s of its column:
          the more cuts, the likelier the column. This is what the code of the authors of [2]_ does;
        - "paper": each cut weighs p_d s / (sum of s), and stopping 1 - p_d: with equal s, the text
          of their paper, in which K cuts of each column make splitting K times as likely as p_d
          says. Trees are far larger, so that it is here for comparison. Only for steps with
          ``correction="none"``.

        Where no column has ties, the first two are the same.
    categorical : sequence of int or str, optional
        Columns whose values are categories, by number or name, beside those that a table declares
        as categorical without an order. A split on one sends a subset of its categories
        left: it is a cut in one of up to 32 orders of the categories, fixed and arbitrary, all of
        them equally likely. Missing values are a category.
    dims : str or tuple of str, optional
        Names of the dimensions, the last one that of the rows of X.
    shape : tuple of int, optional
        (n,), or (k, n) for k independent forests over the same X; then `mu` and `sigma` may have
        shape (k,), and `split_weights` (k, p).
    **kwargs
        `initval`, `rng`, `size` and others as for any `pymc.Distribution`. `observed`, `total_size`
        and `transform` have no meaning for a forest and are refused.

    Warns
    -----
    UserWarning
        If `y` holds only 0 and 1, which is probably not the scale of f.

    Notes
    -----
    The trees are no variables of the model; given f, its log-probability is a function of the
    hyperparameters only (a constant, when they are constants). It refuses gradients with respect to
    f, so that `pm.fit`, or NUTS over f, raise. What asks for no gradient can't be stopped:
    `pm.sample_smc`, `pm.find_MAP` (which warns that it does without), `pm.Metropolis` or `pm.Slice`
    put on f by hand run, treat the prior of f as flat, and are wrong. Observing f itself, for
    instance with `pm.observe`, makes it data: the trees are gone then. Where `sigma` or
    `split_weights` are random, leave f out of `pm.compute_log_prior` (`var_names`): its density
    depends on trees, of which the model knows none but the last.

    References
    ----------
    .. [1] Chipman, H. A., George, E. I. & McCulloch, R. E. (2010). BART: Bayesian additive
       regression trees. The Annals of Applied Statistics 4, 266-298.
    .. [2] He, J. & Hahn, P. R. (2023). Stochastic tree ensembles for regularized nonlinear
       regression. Journal of the American Statistical Association 118, 551-570.
    .. [3] Linero, A. R. (2018). Bayesian regression trees for high-dimensional prediction and
       variable selection. Journal of the American Statistical Association 113, 626-636.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_xbart import XBARTForest
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(size=(200, 3))
    >>> y = np.sin(6 * X[:, 0]) + rng.normal(0, 0.2, size=200)
    >>> with pm.Model():
    ...     f = XBARTForest("f", X, y=y, num_trees=20)
    ...     noise = pm.HalfNormal("noise", 1.0)
    ...     _ = pm.Normal("y", f, noise, observed=y)
    ...     prior = pm.sample_prior_predictive(5, random_seed=1)
    >>> prior["prior"]["f"].shape
    (1, 5, 200)
    """

    rv_type = XBARTForestRV

    def __new__(  # type: ignore[misc]  # PyMC's distributions are made into variables
        cls,
        name: str,
        X: Any,
        *,
        y: Any = None,
        mu: Any = None,
        sigma: Any = None,
        num_trees: int = 100,
        alpha: float = 0.95,
        beta: float = 1.25,
        split_weights: Any = None,
        num_cutpoints: int | None = None,
        min_samples_leaf: int = 1,
        max_depth: int | None = None,
        cut_prior: str = "columns",
        categorical: Sequence[int | str] | None = None,
        dims: str | Sequence[str] | None = None,
        shape: Any = None,
        **kwargs: Any,
    ) -> TensorVariable:
        """Add a forest to the model on the context stack; see the class."""
        _refuse_meaningless(name, kwargs)
        _check_dims(dims, X)
        given = {
            "y": y,
            "mu": mu,
            "sigma": sigma,
            "num_trees": num_trees,
            "alpha": alpha,
            "beta": beta,
            "num_cutpoints": num_cutpoints,
            "min_samples_leaf": min_samples_leaf,
            "max_depth": max_depth,
            "cut_prior": cut_prior,
            "categorical": categorical,
            "shape": shape,
        }
        if isinstance(split_weights, str) and split_weights == SPARSE:
            num_columns = _dry_run(cls, X, dims, given, kwargs)
            split_weights = sparse_split_weights(name, num_columns, describe_covariates(X).columns)
        rv: TensorVariable = super().__new__(
            cls, name, X, split_weights=split_weights, dims=dims, **given, **kwargs
        )
        add_schema(name, X, dims)
        return rv

    @classmethod
    def rv_op(
        cls, *inputs: Any, size: Any = None, rng: Any = None, **kwargs: Any
    ) -> TensorVariable:
        """Draw symbolically from checked inputs; used by PyMC."""
        settings = {name: kwargs.pop(name) for name in TreeSettings._fields if name in kwargs}
        rng = pt.random.shared_rng(seed=None) if rng is None else rng
        op = XBARTForestRV(**settings)
        f: TensorVariable = op(*inputs, size=size, rng=rng, return_next_rng=True, **kwargs)[1]
        return f

    @classmethod
    def dist(
        cls,
        X: Any,
        *,
        y: Any = None,
        mu: Any = None,
        sigma: Any = None,
        split_weights: Any = None,
        categorical: Any = None,
        shape: Any = None,
        size: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Create a forest that belongs to no model.

        Takes the arguments of the class, apart from `name` and `dims`.
        """
        given = {name: kwargs.pop(name) for name in TreeSettings._fields if name in kwargs}
        _refuse_unknown(kwargs)
        X, current_X, given["categorical"] = covariates(X, categorical)
        settings = check_settings(**given)
        num_rows, num_columns = current_X.shape
        if size is not None and shape is None:
            shape = (*convert_size(size), num_rows)
        shape = convert_shape(shape)
        check_shape(shape, num_rows)
        batch = batch_shape(shape)
        mu, sigma = location_and_scale(y, mu, sigma, num_rows, batch)
        split_weights = column_weights(split_weights, num_columns, batch)
        check_batch(mu, 0, shape, "mu")
        check_batch(sigma, 0, shape, "sigma")
        check_batch(split_weights, 1, shape, "split_weights")
        return super().dist(
            [X, mu, sigma, split_weights], shape=shape, **settings._asdict(), **kwargs
        )

    def support_point(
        rv: TensorVariable,
        size: Any,
        X: TensorVariable,
        mu: TensorVariable,
        sigma: TensorVariable,
        split_weights: TensorVariable,
    ) -> TensorVariable:
        """Prior mean at every row; used by PyMC."""
        # Not through the shape of `rv`: unoptimised initial-point functions would draw a forest to
        # get it.
        batch = tuple(mu.shape) if rv_size_is_none(size) else tuple(size)
        start: TensorVariable = pt.full((*batch, X.shape[-2]), mu[..., None])
        return start

    def logp(
        value: TensorVariable,
        X: TensorVariable,
        mu: TensorVariable,
        sigma: TensorVariable,
        split_weights: TensorVariable,
    ) -> TensorVariable:
        """Density of the trees given the hyperparameters that are random, else 0. Used by PyMC."""
        logp = pt.zeros(tuple(value.shape[:-1]))
        for term in (leaf_logp(sigma), split_logp(split_weights)):
            if term is not None:
                logp = logp + term
        return cast(TensorVariable, forest_logp(value, logp))


def _refuse_meaningless(name: str, kwargs: dict[str, Any]) -> None:
    """Refuse arguments that PyMC has for every distribution and that a forest has no use for."""
    if name == "tree":
        msg = (
            "A forest can't be called 'tree': its statistic tree_depth would be that of NUTS. "
            "Choose another name."
        )
        raise ValueError(msg)
    if kwargs.get("observed") is not None:
        msg = (
            "A forest can't be observed, since given f its trees are still unknown. Give the data "
            "to the likelihood, for instance pm.Normal('y', f, noise, observed=y), and pass y=y "
            "to the forest to calibrate its prior."
        )
        raise NotImplementedError(msg)
    if kwargs.get("total_size") is not None:
        msg = (
            "A forest is grown on all rows at once and can't be fitted to batches. Leave "
            "total_size out."
        )
        raise NotImplementedError(msg)
    if kwargs.get("transform", UNSET) not in (None, UNSET):
        msg = (
            "A forest can't be transformed, because its step method sets the values of f "
            "themselves. Apply the function to f in the model instead, for instance "
            "pm.math.exp(f)."
        )
        raise NotImplementedError(msg)


def _dry_run(forest: Any, X: Any, dims: Any, given: dict[str, Any], kwargs: dict[str, Any]) -> int:
    """Make a forest outside of the model: what is refused must leave no weights behind in it.

    Returns the number of columns of X.
    """
    given = given | {name: kwargs[name] for name in kwargs.keys() - OF_VARIABLES}
    if dims is not None and given["shape"] is None and given.get("size") is None:
        given["shape"] = shape_from_dims(convert_dims(dims), pm.modelcontext(None))
    with warnings.catch_warnings(action="ignore"):  # they come again
        rv = forest.dist(X, **given)
    return int(rv.owner.op.dist_params(rv.owner)[-1].type.shape[-1])


def _refuse_unknown(kwargs: dict[str, Any]) -> None:
    """Refuse arguments that nobody has, which PyMC would pass over in silence."""
    for name in sorted(kwargs.keys() - OF_PYMC):
        if name in OF_PYMC_BART:
            hint = f"Of pymc-bart's, {OF_PYMC_BART[name]}."
        elif name == "dims" or name in OF_VARIABLES:
            hint = "It belongs to a variable of a model, and `dist` makes none."
        else:
            ours = inspect.signature(XBARTForest.__new__).parameters.keys() - {"cls", "kwargs"}
            alike = difflib.get_close_matches(name, sorted(ours), 1)
            hint = f"Did you mean {alike[0]!r}?" if alike else "See its docstring."
        msg = f"XBARTForest has no argument {name!r}. {hint}"
        raise TypeError(msg)


def _check_dims(dims: str | Sequence[str] | None, X: Any) -> None:
    """Refuse dims whose last one has another length than X has rows."""
    model = pm.Model.get_context(error_if_none=False)
    names = convert_dims(dims)
    if model is not None and names and names[-1] in model.dim_lengths:
        check_shape((model.dim_lengths[names[-1]],), covariates(X)[1].shape[0])
