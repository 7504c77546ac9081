"""What any version has written, this one reads: see `tests/specimens/make.py`."""

from pathlib import Path

import arviz as az
import numpy as np
import pytest

from pymc_xbart import predict, trees

SPECIMENS = sorted((Path(__file__).parent / "specimens").glob("*.nc"))


@pytest.fixture(params=SPECIMENS, ids=lambda path: path.stem)
def idata(request):
    return az.from_netcdf(request.param)


def test_there_are_specimens():
    assert [path.stem for path in SPECIMENS] == ["xbart1"]


@pytest.mark.parametrize("name", ["f", "k"])
def test_forests_give_the_values_of_their_time(idata, name):
    X = idata["rows"]["X"].rename(row="new")
    stored = idata["posterior"][name]
    assert np.array_equal(predict(idata, X.values, name), stored)
    assert predict(idata, X.values, name).dims == stored.dims


def test_columns_keep_their_names(idata):
    X = idata["rows"]["X"]
    assert np.array_equal(predict(idata, X[:, ::-1], "f"), idata["posterior"]["f"])
    assert set(trees(idata, "f")["column"].dropna()) == {"age", "größe", "weight"}
