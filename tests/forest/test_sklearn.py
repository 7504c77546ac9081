"""The regressor is an estimator to scikit-learn, and does without it otherwise."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_estimator,
)
from sklearn.utils.validation import check_is_fitted

from pymc_xbart import XBARTRegressor

ROOT = Path(__file__).parents[2]


def quick(**options):
    return XBARTRegressor(**({"num_sweeps": 8, "burnin": 4, "random_state": 1} | options))


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(120, 3))
    return X, np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(120)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"correction": "tree"},
        {"cut_prior": "paper", "num_sweeps": 8, "burnin": 4},
    ],
    ids=str,
)
def test_it_passes_the_checks_of_scikit_learn(options):
    with warnings.catch_warnings():
        # One is that it does not inherit from scikit-learn; others are what the checks provoke.
        warnings.simplefilter("ignore")
        results = check_estimator(XBARTRegressor(**options), on_skip=None)
    status = {result["check_name"]: result["status"] for result in results}
    assert status.pop("check_array_api_input", "skipped") == "skipped"  # wants a variable set
    assert len(status) > 40
    assert set(status.values()) == {"passed"}


def test_it_knows_columns_by_name_as_scikit_learn_does():
    check_dataframe_column_names_consistency("XBARTRegressor", quick())


def test_its_tags_say_that_it_is_a_regressor():
    assert is_regressor(XBARTRegressor())
    assert XBARTRegressor().__sklearn_tags__().target_tags.required


def test_it_can_be_cloned_and_searched_for_the_best_parameters(data):
    X, y = data
    model = quick(num_trees=3)
    copy = clone(model.fit(X, y))
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    check_is_fitted(model)
    search = GridSearchCV(quick(), {"num_trees": [1, 20]}, cv=2).fit(X, y)
    assert search.best_params_ == {"num_trees": 20}


def test_it_works_in_a_pipeline_and_in_cross_validation(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), quick(num_trees=10))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.7
    weighted = pipeline.fit(X, y, xbartregressor__sample_weight=np.ones(120))
    # Trees do not care for the units of X.
    np.testing.assert_allclose(weighted.predict(X), quick(num_trees=10).fit(X, y).predict(X))


@pytest.mark.parametrize("use", [lambda m, X: m.predict(X), lambda m, X: m.score(X, X[:, 0])])
def test_use_before_fit_raises_the_error_of_scikit_learn(data, use):
    with pytest.raises(NotFittedError, match=r"Call fit\(X, y\) first"):
        use(XBARTRegressor(), data[0])


def test_a_column_of_responses_is_taken_with_a_warning(data):
    X, y = data
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        model = quick().fit(X, y[:, None])
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.predict(X), quick().fit(X, y).predict(X))


def test_parameters_are_read_and_set_by_name():
    model = XBARTRegressor(num_trees=7)
    assert model.get_params()["num_trees"] == 7
    assert model.set_params(alpha=0.5, mtry=2) is model
    assert (model.alpha, model.mtry) == (0.5, 2)
    with pytest.raises(ValueError, match=r"Invalid parameter 'trees' .*num_trees, num_sweeps"):
        model.set_params(mtry=3, trees=4)
    assert model.mtry == 2


def test_repr_names_what_is_not_default():
    assert repr(XBARTRegressor()) == "XBARTRegressor()"
    changed = XBARTRegressor(mtry=2, cut_prior="cuts", noise_shape=3.0)
    assert repr(changed) == "XBARTRegressor(mtry=2, cut_prior='cuts')"


def test_parameters_have_keywords_only():
    with pytest.raises(TypeError, match="positional"):
        XBARTRegressor(7)


# Everything else looks as if it were not installed.
BLOCK = """
import sys

LIBRARIES = {"numpy", "numba", "llvmlite", "narwhals", "scipy"}
ALLOWED = {*sys.stdlib_module_names, *LIBRARIES, "pymc_xbart"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        # (what SciPy asks for is a part of the standard library, under a name of the platform's)
        if name.partition(".")[0] not in ALLOWED and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""

FIT = """
import pickle
import numpy as np
from pymc_xbart import XBARTRegressor

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 3))
y = X[:, 0] + rng.normal(scale=0.1, size=60)
model = XBARTRegressor(random_state=1)
for use in (lambda: model.predict(X), lambda: model.score(X, y)):
    try:
        use()
    except (ValueError, AttributeError) as error:
        print(type(error).__name__)
model = pickle.loads(pickle.dumps(model.fit(X, y)))
print(model.score(X, y) > 0.8, "sklearn" in sys.modules)
"""


def run(code):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_it_runs_where_scikit_learn_and_pymc_are_not_installed():
    done = run(BLOCK + FIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["NotFittedError", "NotFittedError", "True", "False"]


def test_that_check_would_catch_an_import():
    assert "No module named 'sklearn'" in run(BLOCK + "import sklearn").stderr


def test_fitting_does_not_import_scikit_learn_where_it_is_installed():
    code = FIT.partition("for use in")[0] + "import sys\nmodel.fit(X, y).predict(X)\n"
    done = run(code + "print('sklearn' in sys.modules, 'rich' in sys.modules)")
    assert done.stdout.split() == ["False", "False"], done.stderr
