"""Trees in `sample_stats` outlive whatever becomes of the draws around them.

Two things are asked: that the text of each draw is the one that was stored, and that trees read
back from it give the f of the posterior to the last bit.
"""

import base64
import copy
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from pymc.model.transform.optimization import freeze_dims_and_data

import pymc_xbart as pxb
from pymc_xbart.forest.stored import PREFIX
from pymc_xbart.plugin.distribution import XBARTForest
from tests.helpers.kept import num_nodes, texts
from tests.helpers.runs import sample_plainly

ROOT = Path(__file__).parents[2]
N = 40
CHAINS, DRAWS = 2, 6
RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
Y = 5.0 + np.sin(2.0 * X["a"].to_numpy()) + RNG.normal(scale=0.2, size=N)


def make_model(X=X, **kwargs):
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=6, **kwargs)
        pm.Normal("y", f, 0.2, observed=Y)
    return model


def run(model, **kwargs):
    return sample_plainly(model, **({"chains": CHAINS, "draws": DRAWS} | kwargs))


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def idata(model):
    return run(model)


@pytest.fixture(scope="module")
def second(model):
    return run(model, random_seed=2)


def assert_alive(idata, kept):
    """Fail unless trees are those of `kept`, and give the f beside them."""
    assert texts(idata).tolist() == texts(kept).tolist()
    assert_trees_give_f(idata)


def assert_trees_give_f(idata, X=X, name="f"):
    f = idata["posterior"][name]
    np.testing.assert_array_equal(pxb.predict(idata, X, name).transpose(*f.dims), f)


def test_each_draw_has_its_own_trees_as_variable_width_text(idata):
    stat = idata["sample_stats"]["f_trees"]
    assert stat.dims[:2] == ("chain", "draw")
    assert isinstance(stat.dtype, np.dtypes.StringDType)
    kept = texts(idata)
    assert all(text.startswith(PREFIX) and text.isascii() for text in kept.flat)
    assert len(set(kept.flat)) == CHAINS * DRAWS
    assert_trees_give_f(idata)


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_netcdf_files_keep_them(idata, tmp_path, engine):
    for path in (tmp_path / "once.nc", tmp_path / "twice.nc"):
        idata.to_netcdf(path, engine=engine)
        loaded = xr.load_datatree(path, engine=engine)
        assert_alive(loaded, idata)
        idata = loaded
    assert_alive(az.from_netcdf(path).load(), idata)


def test_files_are_read_lazily(idata, tmp_path):
    path = tmp_path / "draws.nc"
    idata.to_netcdf(path)
    with xr.open_datatree(path) as opened:
        np.testing.assert_array_equal(
            pxb.predict(opened.isel(draw=[1, 3]), X), idata["posterior"]["f"].isel(draw=[1, 3])
        )


READ = """
import pickle, sys
import numpy as np, pandas as pd, xarray as xr
import pymc_xbart as pxb
path, engine = sys.argv[1:]
if engine == "zarr":
    pd.read_pickle("draws.pkl").to_zarr(path)
idata = xr.open_datatree(path, engine=engine)
np.save("f.npy", pxb.predict(idata, pd.read_pickle("X.pkl")).values)
assert "pymc" not in sys.modules
"""


# Zarr in a process of its own, too: it starts threads, beside which none should be forked.
@pytest.mark.parametrize("engine", ["h5netcdf", "zarr"])
def test_another_process_reads_them_without_pymc(idata, tmp_path, engine):
    X.to_pickle(tmp_path / "X.pkl")
    (tmp_path / "draws.pkl").write_bytes(pickle.dumps(idata))
    if engine == "h5netcdf":
        idata.to_netcdf(tmp_path / "draws", engine=engine)
    command = [sys.executable, "-c", READ, "draws", engine]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, timeout=300, cwd=tmp_path, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), idata["posterior"]["f"])


@pytest.mark.parametrize(
    "duplicate", [lambda d: pickle.loads(pickle.dumps(d)), copy.deepcopy, lambda d: d.copy()]
)
def test_copies_keep_them(idata, duplicate):
    assert_alive(duplicate(idata), idata)


SELECTIONS = {
    "isel": (lambda d: d.isel(draw=slice(2, 5)), np.s_[:, 2:5]),
    "sel": (lambda d: d.sel(chain=[1], draw=[0, 4]), np.s_[1:, [0, 4]]),
    "thinned": (lambda d: d.isel(draw=slice(None, None, 3)), np.s_[:, ::3]),
    "turned": (lambda d: d.isel(draw=slice(None, None, -1)), np.s_[:, ::-1]),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selections_keep_theirs(idata, selection):
    select, index = SELECTIONS[selection]
    selected = select(idata)
    assert texts(selected).tolist() == texts(idata)[index].tolist()
    assert_trees_give_f(selected)


def test_single_chains_and_draws_keep_theirs(idata):
    for selection in ({"chain": 1}, {"draw": 3}, {"chain": 1, "draw": 3}):
        assert_trees_give_f(idata.sel(selection))


@pytest.mark.parametrize("kwargs", [{"data_vars": "all"}, {"data_vars": "minimal"}])
@pytest.mark.parametrize("dim", ["draw", "chain"])
def test_runs_put_together_keep_them(idata, second, dim, kwargs):
    both = xr.concat([idata, second], dim=dim, **kwargs)
    axis = ("chain", "draw").index(dim)
    parts = [texts(idata), texts(second)]
    assert texts(both).tolist() == np.concatenate(parts, axis).tolist()
    assert_trees_give_f(both)
    assert_trees_give_f(both, X[["c", "a", "b"]])


@pytest.mark.parametrize("num_samples", [None, 5])
def test_extracted_samples_keep_theirs(idata, num_samples):
    f, stats = (
        az.extract(idata, group=group, num_samples=num_samples, random_seed=1, keep_dataset=True)
        for group in ("posterior", "sample_stats")
    )
    predicted = pxb.predict(stats, X)
    np.testing.assert_array_equal(predicted.transpose(*f["f"].dims), f["f"])


def interrupt(chain, number):
    """Callback that interrupts a chain, as a user would, after the draw of this number."""

    def callback(trace, draw):
        if (draw.chain, draw.draw_idx) == (chain, number):
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("cores", [1, 2])
def test_interrupted_runs_keep_the_trees_of_their_draws(model, cores):
    stopped = run(model, cores=cores, draws=30, callback=interrupt(1, 15 + 20))
    num_chains, num_draws = texts(stopped).shape
    assert num_chains * num_draws >= 21
    assert num_draws < 30 or num_chains < CHAINS
    assert "" not in texts(stopped)
    assert_trees_give_f(stopped)


def test_a_chain_interrupted_alone_keeps_what_it_has_drawn(model, tmp_path):
    whole = run(model, chains=1)
    stopped = run(model, chains=1, callback=interrupt(0, 15 + 2))
    assert texts(stopped).tolist() == texts(whole)[:, :3].tolist()
    assert_trees_give_f(stopped)
    stopped.to_netcdf(tmp_path / "stopped.nc")
    assert_alive(xr.load_datatree(tmp_path / "stopped.nc"), stopped)


def test_tuning_draws_are_kept_without_trees(model, idata, tmp_path):
    everything = run(model, discard_tuned_samples=False)
    assert_alive(everything, idata)
    assert (everything["warmup_sample_stats"]["f_trees"] == "").all()
    assert everything["warmup_posterior"].sizes["draw"] == 15
    everything.to_netcdf(tmp_path / "everything.nc")
    assert_alive(xr.load_datatree(tmp_path / "everything.nc"), idata)


def test_models_whose_data_are_frozen_keep_the_names_of_columns(idata):
    frozen = freeze_dims_and_data(make_model())
    run = sample_plainly(frozen, draws=2, tune=2)
    reordered = X[["c", "b", "a"]]
    np.testing.assert_array_equal(pxb.predict(run, reordered), pxb.predict(run, X))
    predicted = pxb.sample_posterior_predictive(idata, frozen, progressbar=False)
    assert "posterior_predictive" in predicted.children


def test_trees_may_be_left_out(model, idata):
    bare = run(model, xbart={"store_trees": False})
    assert set(bare["sample_stats"].data_vars) == set(idata["sample_stats"].data_vars) - {"f_trees"}
    np.testing.assert_array_equal(bare["posterior"]["f"], idata["posterior"]["f"])
    with pytest.raises(KeyError, match="No trees are stored"):
        pxb.predict(bare, X)


def test_f_may_be_left_out():
    with pm.Model() as model:
        f = XBARTForest("f", X, y=Y, num_trees=6)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f, noise, observed=Y)
    whole = run(model)
    short = run(model, var_names=["noise"])
    assert list(short["posterior"].data_vars) == ["noise"]
    assert texts(short).tolist() == texts(whole).tolist()
    np.testing.assert_array_equal(pxb.predict(short, X), whole["posterior"]["f"])


def test_all_forests_of_a_model_give_their_f():
    with pm.Model(coords={"arm": ["control", "treated"], "row": np.arange(N)}) as model:
        f = XBARTForest("f", X, y=Y, num_trees=6)
        k = XBARTForest("k", X[["c", "a"]], sigma=1.0, num_trees=3, dims=("arm", "row"))
        pm.Normal("y", f + k[0] + np.arange(N) % 2 * k[1], 0.2, observed=Y)
    idata = run(model)
    assert_trees_give_f(idata)
    assert_trees_give_f(idata, X[["c", "a"]], "k")
    assert pxb.predict(idata, X[["a", "c"]], "k").dims == ("chain", "draw", "arm", "row")


def test_data_of_the_model_give_their_f():
    with pm.Model(coords={"row": np.arange(N), "column": list(X.columns)}) as model:
        data = pm.Data("X", X.to_numpy(), dims=("row", "column"))
        f = XBARTForest("f", data, y=Y, num_trees=6, dims="row")
        pm.Normal("y", f, 0.2, observed=Y, dims="row")
    idata = run(model)
    for rows in (X, X.to_numpy(), X[["b", "c", "a"]], idata["constant_data"]["X"]):
        assert_trees_give_f(idata, rows)


def test_single_precision_gives_f_as_it_was_rounded():
    with pytensor.config.change_flags(floatX="float32"):
        idata = run(make_model())
    f = idata["posterior"]["f"]
    assert f.dtype == np.float32
    np.testing.assert_array_equal(pxb.predict(idata, X).astype(np.float32), f)


def bytes_per_node(idata, name="f"):
    """Size as binary, without compression and text encoding, averaged over the nodes of a run."""
    kept = texts(idata, name).ravel().tolist()
    sizes = [len(zlib.decompress(base64.b64decode(text[len(PREFIX) :]))) for text in kept]
    return sum(sizes) / sum(map(num_nodes, kept))


@pytest.mark.parametrize(
    ("num_rows", "num_columns", "num_trees"), [(500, 10, 50), (500, 300, 50), (70_000, 5, 20)]
)
def test_a_node_takes_at_most_twelve_bytes(num_rows, num_columns, num_trees, rng):
    X = rng.normal(size=(num_rows, num_columns))
    y = np.sin(X[:, 0]) + X[:, 1] + rng.normal(scale=0.5, size=num_rows)
    with pm.Model() as model:
        f = XBARTForest("f", X, y=y, num_trees=num_trees)
        pm.Normal("y", f, 0.5, observed=y)
    idata = run(model, chains=1, draws=3, tune=4)
    assert 9.0 < bytes_per_node(idata) <= 12.0
