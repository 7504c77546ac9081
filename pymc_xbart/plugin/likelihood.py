"""What the rest of a model says about a forest: gradient and curvature, row by row (floor 2)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.exceptions import SamplingError
from pymc.logprob.utils import ParameterValueError
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_xbart.forest.tables import first_rows
from pymc_xbart.kernels import STEEPEST
from pymc_xbart.plugin.hyperparameters import Hyperparameters
from pymc_xbart.plugin.point_function import Point
from pymc_xbart.plugin.probe import Kind, draw_probes, find_kind
from pymc_xbart.plugin.random_variable import forest_inputs
from pymc_xbart.plugin.second_order import (
    SecondOrder,
    Total,
    check_shapes,
    dependent_factors,
    flatten,
)

ROUNDING = 1e-6  # curvatures this far below zero, relative to the largest, are zeros


class Likelihood:
    """Gradient and curvature of a model's log-probability in the value of a forest.

    Everything is taken from the model's own log-probability, so that offsets, group effects,
    weights, multipliers, ``f[index]``, latent children and other forests are no special cases.
    Pickles, also to processes that are spawned.

    Parameters
    ----------
    model : pymc.Model
    rv : TensorVariable
        One of its forests.
    mode : optional
        PyTensor mode to compile in; PyTensor's default by default.

    Attributes
    ----------
    depends : bool
        Whether anything in the model depends on the forest. If not, g and h are zero.
    is_quadratic : bool
        Whether it is a quadratic function of the forest's value, whatever the values of all other
        variables, so that one evaluation of g and h says everything. Known after `check`.
    names : tuple of str
        Variables and potentials whose log-probability depends on it.

    Raises
    ------
    NotImplementedError
        If one of them sees its data in batches.
    """

    def __init__(self, model: Model, rv: Variable, mode: Any = None) -> None:
        factors = dependent_factors(model, rv)
        self.names = tuple(factors)
        self.depends = bool(factors)
        self._model = model
        self._forest = rv.name
        self._mode = mode
        self.is_quadratic = True
        self._function: SecondOrder | None = None
        self._total: Total | None = None  # needed only where it is not quadratic
        if factors:
            value = model.rvs_to_values[rv]
            self._function = SecondOrder(model, value, list(factors.values()), mode)

    def gradient_curvature(
        self, f: NDArray[Any], point: Point, row: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate g = d log p / d f and h = -d^2 log p / d f^2 in one row of f.

        Parameters
        ----------
        f : ndarray of shape (n,) or (..., n)
            Value of the forest, whole even where one row is asked for.
        point : dict
            Values of all variables of the model, by the names of their value variables. That of the
            forest is ignored.
        row : int, default 0
            Which forest, where there are several over the same X; leading dimensions count in C
            order.

        Returns
        -------
        g, h : ndarray of shape (n,), float64
            h is >= 0. Both are new.

        Raises
        ------
        pymc.exceptions.SamplingError
            If one of them is not finite or above `STEEPEST`, or h is negative.
        """
        if self._function is None:
            num_rows = np.shape(f)[-1]
            return np.zeros(num_rows), np.zeros(num_rows)
        g, h = self._finite(self._function, f, point, row)
        lowest = h.min()
        if lowest >= 0.0:
            return g, h
        if lowest < -ROUNDING * h.max():
            raise SamplingError(self._rising(self.names))
        return g, np.maximum(h, 0.0)

    def at(self, f: NDArray[Any], point: Point, row: int = 0) -> "Conditional":
        """Log-probability as a function of one row of f. Parameters as for `gradient_curvature`."""
        conditional = self._conditional(f, point, row)
        if not np.isfinite(conditional.log_p(flatten(np.asarray(f))[row])):
            raise SamplingError(self._impossible(f, point))
        return conditional

    def _conditional(self, f: NDArray[Any], point: Point, row: int) -> "Conditional":
        if self._function is None or self._total is None:
            msg = "A quadratic log-probability is known by its gradient and curvature at one f."
            raise RuntimeError(msg)
        whole = np.array(f, dtype=self._function.dtype)
        diagonal = self._function.diagonal_at(point, row, whole.shape)
        return Conditional(whole, row, diagonal, self._total.at(point))

    def is_possible(self, f: NDArray[Any], point: Point) -> bool:
        """Whether the log-probability is finite; taken for granted of a quadratic one."""
        if self._function is None or self._total is None:
            return True
        return bool(np.isfinite(self._conditional(f, point, 0).log_p(flatten(f)[0])))

    def check(self, point: Point, rng: np.random.Generator) -> None:
        """Find out whether a log-probability is quadratic; refuse one that couples rows.

        Looks at random values of f and of the other variables, and costs some tens of evaluations.

        Parameters
        ----------
        point : dict
            Values of all variables, at which the model has a finite log-probability.
        rng : numpy.random.Generator

        Raises
        ------
        NotImplementedError
            Naming the variables at fault.
        ValueError
            If shapes don't fit, as where data has another number of rows than X.
        pymc.exceptions.SamplingError
            If the gradient or the curvature is not finite at `point`.
        """
        whole = self._function
        if whole is None:
            return
        rv = self._model[self._forest]
        value = self._model.rvs_to_values[rv]
        f = np.asarray(point[value.name], dtype=np.float64)
        factors = dependent_factors(self._model, rv)
        try:
            check_shapes(self._model, factors, point)
            for row in range(f[..., 0].size):
                self._finite(whole, f, point, row)
        except (AssertionError, ValueError) as error:  # what PyTensor raises where shapes don't fit
            raise ValueError(self._misfit(f, error)) from error
        batch = f.shape[:-1]
        sigma, _ = Hyperparameters(self._model, rv, batch, self._mode)(point)
        mu = forest_inputs(rv).mu
        seed = rng.integers(2**63)

        def kind_of(function: SecondOrder) -> Kind:  # by the same probes for each
            again = np.random.default_rng(seed)
            probes = draw_probes(whole, f, mu, sigma.reshape(batch), point, again)
            return find_kind(function, probes)

        kind = kind_of(whole)
        if kind is Kind.SEPARABLE:
            self.is_quadratic = False
            self._total = Total(self._model, value, list(factors.values()), self._mode)
        elif kind is not Kind.QUADRATIC:
            at_fault = [
                name
                for name, function in self._functions_by_name().items()
                if kind_of(function) is kind
            ]
            raise NotImplementedError(self._refusal(kind, at_fault or self.names))

    def _finite(
        self, function: SecondOrder, f: NDArray[Any], point: Point, row: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        g, h = function.diagonal(f, row, point)
        if not (_is_usable(g).all() and _is_usable(h).all()):
            raise SamplingError(self._not_finite(f, row, point, g, h))
        return g, h

    def _functions_by_name(self) -> dict[str, SecondOrder]:
        """Compile each factor by itself: worth its time only where one is to be named."""
        if self._function is not None and len(self.names) == 1:
            return {self.names[0]: self._function}
        rv = self._model[self._forest]
        value = self._model.rvs_to_values[rv]
        factors = dependent_factors(self._model, rv)
        return {
            name: SecondOrder(self._model, value, [factor], self._mode)
            for name, factor in factors.items()
        }

    def _refusal(self, kind: Kind, names: Any) -> str:
        if kind is Kind.COUPLED:
            return (
                f"The log-probability of {_listed(names)} ties rows of the forest {self._forest!r} "
                "to each other: its matrix of second derivatives with respect to f is not "
                "diagonal. Trees are grown from sums over rows, which is right only where each "
                "row of f enters by itself. Put what ties the rows into a variable of its own "
                "instead, for instance f + u with u ~ MvNormal and independent noise around it. "
                "For k classes make k forests, shape=(k, n), with the softmax over axis 0."
            )
        return self._rising(names)

    def _misfit(self, f: NDArray[Any], error: Exception) -> str:
        cause = str(error).partition("\n")[0].rstrip(". ")
        return (
            f"The log-probability of {_listed(self.names)} can't be evaluated where the forest "
            f"{self._forest!r} has shape {f.shape}: {cause}. What f meets in the model needs one "
            "entry for each row of X; index f, as in f[rows], where there are data for some rows "
            "only."
        )

    def _rising(self, names: Any) -> str:
        return (
            f"The log-probability of {_listed(names)} curves upwards in the forest "
            f"{self._forest!r}: it grows without bound as f moves away, so that f has no posterior "
            "mean to sweep around. Check the sign of pm.Potential terms and of weights."
        )

    def _impossible(self, f: NDArray[Any], point: Point) -> str:
        strange = [name for name, value in point.items() if not np.isfinite(value).all()]
        where = "f is not finite" if not np.isfinite(f).all() else "f is where it is"
        return (
            f"The log-probability of {_listed(self.names)} is not finite while the forest "
            f"{self._forest!r} is updated, where {where}"
            + (f", and neither are the values of {_listed(strange)}" if strange else "")
            + ". Check the priors and initial values of the variables beside f."
        )

    def _not_finite(
        self,
        f: NDArray[Any],
        row: int,
        point: Point,
        g: NDArray[np.float64],
        h: NDArray[np.float64],
    ) -> str:
        at_fault = [
            name
            for name, function in self._functions_by_name().items()
            if not all(_is_usable(x).all() for x in function.diagonal(f, row, point))
        ]
        bad = first_rows(np.flatnonzero(~(_is_usable(g) & _is_usable(h))))
        msg = (
            f"The log-probability of {_listed(at_fault or self.names)} has no finite gradient or "
            f"curvature, or one above {STEEPEST:g}, in the forest {self._forest!r}, in {bad} "
            "(counting from 0). "
        )
        strange = [name for name, value in point.items() if not np.isfinite(value).all()]
        if strange:
            return msg + (
                f"Values that are not finite: {_listed(strange)}. Check their priors and initial "
                "values."
            )
        return msg + (
            "Check the data of these rows, and the priors and initial values of the variables "
            "beside f: a scale of zero, for instance, or one that is nearly zero, has this effect."
        )


class Conditional:
    """Log-probability as a function of one row of a forest, all else being as it is.

    Parameters
    ----------
    f : ndarray of shape (n,) or (..., n)
        Value of the forest; overwritten.
    row : int
        The one that varies.
    diagonal, total : callable
        Of the whole of f: gradient and curvature of that row, and the log-probability.
    """

    def __init__(
        self,
        f: NDArray[Any],
        row: int,
        diagonal: Callable[[NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.float64]]],
        total: Callable[[NDArray[Any]], float],
    ) -> None:
        self._f = f
        self._row = flatten(f)[row]
        self._diagonal = diagonal
        self._total = total

    def gradient_curvature(
        self, f: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate d log p / d f and -d^2 log p / d f^2, (n,); not finite where unknown."""
        self._row[:] = f
        with np.errstate(all="ignore"):
            try:
                return self._diagonal(self._f)
            except ParameterValueError:
                return np.full(f.size, np.nan), np.full(f.size, np.nan)

    def log_p(self, f: NDArray[np.float64]) -> float:
        """Evaluate log p up to a constant; -inf where f is impossible."""
        self._row[:] = f
        with np.errstate(all="ignore"):
            try:
                total = self._total(self._f)
            except ParameterValueError:
                return -np.inf
        return total if total < np.inf else -np.inf


def _is_usable(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    usable: NDArray[np.bool_] = np.abs(x) <= STEEPEST  # false for NaN
    return usable


def _listed(names: Any) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
