"""scikit-learn's conventions for estimators, without scikit-learn (floor 1).

Names, messages and tags are those that its tools and its `check_estimator` look for. It is imported
only where one of its own classes is due (tags, exceptions, warnings), and only if it is there.
"""

import inspect
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pymc_xbart.forest.covariates import column_names
from pymc_xbart.forest.tables import is_labelled_array, is_labelled_table, is_table, named_columns

MAX_NAMED = 5  # column names that an error message lists


class NotFittedError(ValueError, AttributeError):
    """Raised by an estimator that is used before `fit`, where scikit-learn is not installed."""


class Estimator:
    """Base of a regressor whose parameters are the keyword arguments of its constructor.

    The constructor stores them unchanged under their names; what `fit` finds gets a trailing
    underscore.
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Parameters and their defaults, in order."""
        parameters = inspect.signature(cls).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Without effect: no parameter is an estimator itself.
        """
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; they are checked by the next `fit`."""
        known = self._defaults()
        for name in params:
            if name not in known:
                msg = (
                    f"Invalid parameter {name!r} for {type(self).__name__}. Its parameters are "
                    f"{', '.join(known)}."
                )
                raise ValueError(msg)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        # By repr, since a parameter may be anything before it is checked, even an array.
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(allow_nan=True, categorical=True),
        )

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            msg = f"This {type(self).__name__} is not fitted yet. Call fit(X, y) first."
            raise _not_fitted_error()(msg)

    def _check_feature_names(self, names: NDArray[np.object_] | None) -> None:
        """Refuse X whose columns have other names than those that `fit` has seen."""
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None and names is not None:
            _check_names(seen.tolist(), names.tolist())
        elif (seen is None) != (names is None):
            has, was = ("does not have valid", "with") if names is None else ("has", "without")
            name = type(self).__name__
            msg = f"X {has} feature names, but {name} was fitted {was} feature names."
            warnings.warn(msg, UserWarning, stacklevel=3)

    def _check_num_features(self, num_columns: int) -> None:
        """Refuse X with more or fewer columns than `fit` has seen."""
        expected = self.n_features_in_  # type: ignore[attr-defined]
        if num_columns != expected:
            msg = (
                f"X has {num_columns} features, but {type(self).__name__} is expecting {expected} "
                "features as input: the columns that it was fitted on, in the same order."
            )
            raise ValueError(msg)


def feature_names(X: Any) -> NDArray[np.object_] | None:
    """Names of the columns, if X has some and all of them are text."""
    if not is_table(X):  # another kind of table, or an array with labels
        names = None if _has_numbers_for_names(X) else column_names(X)
        return None if names is None else np.array(names, dtype=object)
    if not all(isinstance(name, str) for name in X.columns):
        return None
    return np.array([name for name, _ in named_columns(X)], dtype=object)


def _has_numbers_for_names(X: Any) -> bool:
    """Whether X is a labelled array whose columns have labels that are no text."""
    if not is_labelled_array(X) or is_labelled_table(X) or X.ndim != 2:
        return False
    dim = X.dims[1]
    return dim in X.coords and not all(isinstance(name, str) for name in X.coords[dim].values)


def generator_of(random_state: Any) -> np.random.Generator:
    """Source of chance of a fit.

    Parameters
    ----------
    random_state : None, int, Generator or RandomState
        An int makes fits repeatable. A generator is used as it is and moves on. None asks the
        operating system; NumPy's global state is neither read nor changed.
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = (
            f"random_state is {random_state!r}, but must be None, a whole number that is not "
            "negative, a numpy.random.Generator or a numpy.random.RandomState."
        )
        raise type(error)(msg) from error


def conversion_warning() -> type[Warning]:
    """Warning category for data that had to be reshaped."""
    try:
        from sklearn.exceptions import DataConversionWarning
    except ImportError:
        return UserWarning
    return DataConversionWarning  # type: ignore[no-any-return]


def _not_fitted_error() -> type[Exception]:
    try:
        from sklearn.exceptions import NotFittedError as Theirs
    except ImportError:
        return NotFittedError
    return Theirs  # type: ignore[no-any-return]


def _check_names(seen: list[str], names: list[str]) -> None:
    if seen == names:
        return
    unseen = sorted(set(names) - set(seen))
    missing = sorted(set(seen) - set(names))
    msg = "The feature names should match those that were passed during fit.\n"
    if unseen:
        msg += f"Feature names unseen at fit time:\n{_list(unseen)}"
    if missing:
        msg += f"Feature names seen at fit time, yet now missing:\n{_list(missing)}"
    if not unseen and not missing:
        msg += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(msg)


def _list(names: list[str]) -> str:
    lines = [*names[:MAX_NAMED], *(["..."] if len(names) > MAX_NAMED else [])]
    return "".join(f"- {line}\n" for line in lines)
