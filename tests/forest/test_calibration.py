"""Prior mean and scale follow the response, whatever holds it; what can't calibrate is refused."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pymc_xbart.forest.calibration import calibrate, default_num_cutpoints, read_response

Y = np.array([1.0, 2.0, 4.0, 9.0])
MU = 4.0
SIGMA = np.sqrt(0.3 * 9.5)  # of a variance computed by hand: (9 + 4 + 0 + 25) / 4


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.tolist(),
        Y[:, None],
        Y.astype(np.float32),
        Y.astype(int),
        np.append(Y, np.nan),
        [*Y, None],
        np.ma.masked_array(np.append(Y, 1e9), mask=[0, 0, 0, 0, 1]),
        np.ma.masked_array(np.append(Y, np.inf), mask=[0, 0, 0, 0, 1]),
        pd.Series(Y, index=[7, 5, 3, 1]),
        pd.Series([1, 2, 4, 9, None], dtype="Int64"),
        pd.DataFrame({"y": Y}),
        pl.Series(Y),
        pl.Series([1, 2, 4, 9, None]),
        pl.DataFrame({"y": Y}),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}-{type(y).__name__}",
)
def test_calibration_is_mean_and_share_of_variance_of_what_is_present(y):
    mu, sigma = calibrate(y)
    assert mu == pytest.approx(MU, rel=1e-15)
    assert sigma == pytest.approx(SIGMA, rel=1e-15)


def test_calibration_follows_shift_and_scale():
    mu, sigma = calibrate(-1000 * Y + 3)
    assert mu == pytest.approx(-1000 * MU + 3)
    assert sigma == pytest.approx(1000 * SIGMA)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1.0, np.inf, 2.0, -np.inf], ValueError, "infinite values in rows 1 and 3 "),
        ([np.nan, np.nan], ValueError, "None of the 2 entries of y is a number"),
        ([], ValueError, "None of the 0 entries"),
        ([0.1] * 10, ValueError, "All entries of y equal 0.1.*Pass `sigma`"),
        ([3.0, np.nan], ValueError, "All entries of y equal 3"),
        ([1e200, -1e200], ValueError, "Rescale y"),
        ([1e-200, -1e-200], ValueError, "Rescale y"),
        (np.ones((3, 2)), ValueError, r"shape \(3, 2\).*one number for each observation"),
        (np.float64(3.0), ValueError, r"y has shape \(\)"),
        (pd.DataFrame({"a": Y, "b": Y}), ValueError, "2 columns"),
        (pl.DataFrame({"a": Y, "b": Y}), ValueError, "2 columns"),
        (["low", "high"], TypeError, "'low'"),
        (pd.Series(["low", "high"]), TypeError, "'low'"),
        (pd.Series(["1", "2"], dtype="category"), TypeError, "y holds categories"),
    ],
)
def test_useless_responses_are_refused(y, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        calibrate(y)


def test_missing_entries_keep_their_place():
    np.testing.assert_array_equal(read_response([1, None, 3]), [1.0, np.nan, 3.0])


def test_response_is_a_copy():
    y = Y.copy()
    numbers = read_response(y)
    y[0] = 99.0
    assert numbers[0] == Y[0]


@pytest.mark.parametrize(
    ("n", "cutpoints"), [(1, 100), (10_201, 101), (10_200, 100), (10**6, 1000)]
)
def test_default_number_of_cutpoints_is_the_root_of_n_but_at_least_100(n, cutpoints):
    assert default_num_cutpoints(n) == cutpoints
