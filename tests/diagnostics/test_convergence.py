"""The summary of convergence says what arviz-stats says of each number, and what to do."""

import math

import arviz_stats as azs
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from pymc_xbart import XBARTForest, convergence_summary
from pymc_xbart.diagnostics import quantities

DRAW_DIMS = ("chain", "draw")
TREES = ("leaves", "depth", "acceptance")
ROWS = [f"row {i}" for i in range(30)]
CLASSES = ["one", "other"]


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A run read from its file, with forests f (rows) and g (classes, rows), and X."""
    rng = np.random.default_rng(1)
    n = len(ROWS)
    X = pd.DataFrame(rng.uniform(size=(n, 3)), columns=["dose", "gap", "more"], index=ROWS)
    X["group"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    X.loc[X["gap"] < 0.3, "gap"] = np.nan
    y = X["dose"].to_numpy() + rng.normal(0, 0.2, n)
    with pm.Model(coords={"row": ROWS, "class": CLASSES}):
        f = XBARTForest("f", X, y=y, num_trees=10, dims="row")
        g = XBARTForest("g", X[["dose", "gap"]], sigma=1.0, num_trees=5, dims=("class", "row"))
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f, noise, observed=y, dims="row")
        pm.Normal("z", g, noise, observed=np.stack([y, -y]), dims=("class", "row"))
        idata = pm.sample(
            draws=40,
            tune=30,
            chains=2,
            cores=1,
            random_seed=1,
            quiet=True,
            compute_convergence_checks=False,
        )
    path = tmp_path_factory.mktemp("run") / "run.nc"
    idata.to_netcdf(path)
    with xr.open_datatree(path) as opened:
        yield opened, X


def check(found, draws):
    """Compare with arviz-stats, number by number."""
    draws = draws.to_dataset(name="x")
    wanted = {
        "r_hat": azs.rhat(draws)["x"],
        "ess_bulk": azs.ess(draws)["x"],
        "ess_tail": azs.ess(draws, method="tail", prob=(0.05, 0.95))["x"],
    }
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        xr.testing.assert_allclose(found[name], values.rename(name), rtol=1e-10)


def test_numbers_are_those_of_arviz_under_the_same_labels(fit):
    idata, _ = fit
    summary = convergence_summary(idata)
    for name in ("f", "g", "noise"):
        check(summary[name], idata["posterior"][name])
    assert summary["g"]["r_hat"].dims == ("class", "row")
    assert summary["g"]["row"].values.tolist() == ROWS
    for name, what in [("f", "leaves"), ("g", "depth"), ("g", "acceptance")]:
        check(summary[f"{name}_{what}"], idata["sample_stats"][f"{name}_{what}"])


def test_mean_and_variance_over_rows_should_mix(fit):
    idata, _ = fit
    summary = convergence_summary(idata)
    for name in ("f", "g"):
        f = idata["posterior"][name]
        for what, wanted in [("mean", f.mean("row")), ("variance", f.var("row"))]:
            xr.testing.assert_allclose(summary.mixing[f"{what} of {name}"], wanted)
            check(summary[f"{what} of {name}"], summary.mixing[f"{what} of {name}"])
    assert summary.forests == ("f", "g")
    assert summary.mixing["mean of g"].dims == ("chain", "draw", "class")


def same(found, wanted):
    """Compare two summaries of the same draws.

    Of the quantities taken over rows only their draws: the two in the middle are equally far from
    the median, but for rounding, and R-hat's ranks tell which of them is farther.
    """
    assert list(found.elements) == list(wanted.elements)
    for name, each in wanted.elements.items():
        if " of " not in name:
            # Where a variable of two forests has labels, trees do not know of them.
            left, right = (one.drop_vars("class", errors="ignore") for one in (found[name], each))
            xr.testing.assert_identical(left, right)
    for name, draws in wanted.mixing.items():
        np.testing.assert_allclose(found.mixing[name], draws, rtol=1e-10)


def test_blocks_of_rows_change_nothing(fit, monkeypatch):
    idata, X = fit
    rows = {"f": X, "g": X[["dose", "gap"]]}
    whole = convergence_summary(idata)
    for limit, rows_at_once in (("BLOCK", 3), ("READ", 7), ("EVALUATED", 8)):
        monkeypatch.setattr(quantities, f"{limit}_BYTES", 8 * 80 * 2 * rows_at_once)
    same(convergence_summary(idata), whole)
    same(convergence_summary(idata, rows), whole)


def test_rows_from_trees_are_those_of_the_posterior(fit):
    idata, X = fit
    same(convergence_summary(idata, {"f": X, "g": X[["gap", "dose"]]}), convergence_summary(idata))


def test_new_rows_keep_their_labels(fit):
    idata, X = fit
    f = convergence_summary(idata, X[4:9], var_names="f")["f"]
    assert f["row"].values.tolist() == ROWS[4:9]


def test_f_that_was_not_kept_is_seen_by_its_trees_or_at_new_rows(fit):
    idata, X = fit
    idata = xr.DataTree.from_dict(
        {
            "posterior": idata["posterior"].to_dataset().drop_vars(["f", "g"]),
            "sample_stats": idata["sample_stats"].to_dataset(),
            "constant_data": idata["constant_data"].to_dataset(),
        }
    )
    summary = convergence_summary(idata)
    assert list(summary.elements) == ["noise", *(f"{f}_{what}" for f in "fg" for what in TREES)]
    assert summary.advice[-1] == (
        "f and g not being in the posterior, only trees were looked at. Pass X, rows at which to "
        "evaluate."
    )
    summary = convergence_summary(idata, {"f": X}, var_names=["f", "noise"])
    assert {"f", "mean of f", "variance of f"} < set(summary.elements)
    assert not any("Pass X" in thought for thought in summary.advice)


def test_selected_chains_and_draws_will_do(fit):
    idata, X = fit
    wanted = convergence_summary(idata.isel(chain=[1], draw=slice(10, 30)))
    part = idata.isel(draw=slice(10, 30)).isel(chain=1)
    same(convergence_summary(part), wanted)
    same(convergence_summary(part, {"f": X, "g": X[["dose", "gap"]]}), wanted)


def make_run(rng, rows=200, draws=250, chains=4, **posterior):
    """A run that could not be better, unless `posterior` makes it so; without PyMC."""
    shape = chains, draws
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    values = {"f": rng.standard_normal((*shape, rows)), "noise": rng.standard_normal(shape)}
    values |= posterior
    stats = {f"f_{what}": (DRAW_DIMS, rng.uniform(0.5, 1.0, shape)) for what in TREES}
    dims = {
        name: (*DRAW_DIMS, *(f"{name}_{k}" for k in range(v.ndim - 2)))
        for name, v in values.items()
    }
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({name: (dims[name], v) for name, v in values.items()}, coords),
            "sample_stats": xr.Dataset(stats, coords),
        }
    )


def test_nothing_is_said_against_draws_that_are_independent(rng):
    """Of 200 rows 5 % may be beyond: R-hat of 1 000 independent draws exceeds 1.01 by 4 sd."""
    summary = convergence_summary(make_run(rng))
    [thought] = summary.advice
    assert thought.startswith("R-hat and effective draws say nothing against convergence")


def test_chains_apart_are_named_with_what_holds(rng):
    run = make_run(rng)
    # Half of the rows up in two chains and down in the others: mean and variance are the same.
    apart = 0.3 * np.resize([1, -1], 4)[:, None, None] * np.resize([1, -1], 200)
    f = run["posterior"]["f"] + apart
    advice = convergence_summary(make_run(rng, f=f.values)).advice
    assert advice[0].startswith(
        "The chains disagree on f (R-hat above 1.01 in 100% of 200 elements, up to 1."
    )
    assert advice[1].startswith("They do agree on mean and variance of f over rows")
    assert advice[2].startswith("Sample about ")
    assert "Tune for longer" in advice[2]


def test_a_level_that_wanders_into_other_terms_is_recognised(rng):
    level = np.cumsum(rng.standard_normal((4, 250)), axis=1)
    f = rng.standard_normal((4, 250, 200)) + level[..., None]
    advice = convergence_summary(make_run(rng, f=f, a=-level)).advice
    assert any(thought.startswith("It is the level of f that differs") for thought in advice)
    assert "a (R-hat " in advice[0]


def test_trees_of_other_shapes_are_not_held_against_f(rng):
    run = make_run(rng)
    leaves = run["sample_stats"]["f_leaves"]
    run["sample_stats"]["f_leaves"] = leaves + xr.DataArray(np.arange(4), dims="chain")
    advice = convergence_summary(run).advice
    assert advice[0].startswith("The chains disagree on f_leaves (R-hat ")
    assert advice[1].startswith("They do agree on f, which trees of other shapes can make")


def test_few_effective_draws_are_counted(rng):
    """Of 2 000 draws, each repeated 10 times, about 200 are effective: R-hat is near 1.01.

    So chains are given equal means and variances, in halves, that R-hat has nothing to say.
    """
    noise = rng.standard_normal((4, 50))
    halves = noise.reshape(8, 25)
    halves -= halves.mean(axis=1, keepdims=True)
    halves /= halves.std(axis=1, keepdims=True)
    noise = np.repeat(halves.reshape(4, 50), 10, axis=1)
    summary = convergence_summary(make_run(rng, rows=3, draws=500, noise=noise))
    ess = summary["noise"][["ess_bulk", "ess_tail"]].to_array().min()
    assert 100 < ess < 399
    assert summary.advice == (
        f"The chains agree, but fewer than 400 draws are effective of noise ({ess:.0f}).",
        f"Sample about {math.ceil(400 / ess)} times as many draws. Forests of more trees "
        "(num_trees) mix faster.",
    )


def test_what_never_changes_is_not_held_against_the_run(rng):
    run = make_run(rng, rows=1, draws=110, chains=2)
    run["sample_stats"]["f_acceptance"] = xr.ones_like(run["sample_stats"]["f_acceptance"])
    summary = convergence_summary(run)
    assert np.isnan(summary["f_acceptance"]["r_hat"])
    assert np.isnan(summary["variance of f"]["r_hat"])  # of a single row
    assert "f_acceptance" not in " ".join(summary.advice)
    assert "-" in str(summary).split("f_acceptance")[1].split("\n")[0]


def test_nan_is_named(rng):
    noise = rng.standard_normal((4, 250))
    noise[2, 7] = np.nan
    advice = convergence_summary(make_run(rng, noise=noise)).advice
    assert advice == ("Some draws of noise are NaN: look for what makes them so.",)


def test_what_samplers_say_of_themselves_is_passed_on(rng):
    run = make_run(rng)
    stats = run["sample_stats"]
    stats["f_acceptance"] = stats["f_acceptance"] * 1e-6
    count = xr.DataArray(np.arange(1000).reshape(4, 250), dims=DRAW_DIMS)
    stats["diverging"], stats["reached_max_treedepth"] = count < 3, count < 20
    text = "\n".join(convergence_summary(run).advice)
    assert "trees of f (0.000) were hardly ever accepted" in text
    assert "3 draws of NUTS diverged" in text
    assert "largest tree depth in 2.0% of the draws" in text


@pytest.mark.parametrize(
    ("chains", "words"), [(1, "R-hat compares its halves"), (2, "2 chains can agree by chance")]
)
def test_few_chains_are_said_to_be_few(rng, chains, words):
    assert any(
        words in thought for thought in convergence_summary(make_run(rng, chains=chains)).advice
    )


def test_few_draws_are_not_judged(rng):
    advice = convergence_summary(make_run(rng, draws=20)).advice
    assert advice == ("20 draws a chain are too few to judge by. Sample 4 chains of 100 or more.",)


def test_the_table_has_a_line_for_each_quantity(rng):
    noise = rng.standard_normal((4, 250)) + 0.2 * np.arange(4)[:, None]
    summary = convergence_summary(make_run(rng, noise=noise))
    table, f = summary.table, summary["f"]
    assert table.index.tolist() == list(summary.elements)
    assert table.loc["f"].tolist() == [
        200,
        f["r_hat"].median(),
        f["r_hat"].max(),
        (f["r_hat"] > 1.01).mean(),
        f["ess_bulk"].median(),
        f["ess_bulk"].min(),
        f["ess_tail"].median(),
        f["ess_tail"].min(),
    ]
    assert table.loc["noise", "above"] == 1


def test_the_worst_elements_have_their_labels(rng):
    group = rng.standard_normal((4, 250, 3, 2))
    group[..., 2, 1] += np.arange(4)[:, None]
    summary = convergence_summary(make_run(rng, group=group))
    worst = summary.worst(3)
    assert worst.index[0] == "group[2, 1]"
    assert worst["r_hat"].is_monotonic_decreasing
    assert len(worst) == 3
    assert len(summary.worst(10_000)) == 200 + 6 + 1 + 5


def test_it_is_printed_with_its_advice(rng):
    summary = convergence_summary(make_run(rng, **{"a<b": rng.standard_normal((4, 250))}))
    text, page = str(summary), summary._repr_html_()
    assert repr(summary) == text
    assert " ".join(text.split()).endswith(" ".join(summary.advice))
    assert "<table" in page
    assert "a&lt;b" in page
    assert "a<b" not in page


def test_text_and_empty_variables_are_left_out(rng):
    run = make_run(rng, draws=10, nothing=np.empty((4, 10, 0)))
    run["posterior"]["name"] = (DRAW_DIMS, np.full((4, 10), "a"))
    assert list(convergence_summary(run).elements)[:3] == ["f", "noise", "mean of f"]
    with pytest.raises(ValueError, match="no draws of nothing"):
        convergence_summary(run, var_names="nothing")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"var_names": ["noise", "h"]}, KeyError, "'h', but these were sampled: f, noise"),
        ({"var_names": []}, KeyError, "no name"),
        ({"X": {"noise": [[1.0]]}}, KeyError, "'noise', but the forests are: f"),
        ({"X": [[1.0]]}, KeyError, "No trees are stored"),
    ],
)
def test_what_was_not_sampled_is_refused(rng, options, error, message):
    with pytest.raises(error, match=message):
        convergence_summary(make_run(rng, rows=3, draws=10), **options)


@pytest.mark.parametrize(
    ("select", "error", "message"),
    [
        (lambda run: run["posterior"].to_dataset(), TypeError, "idata is a Dataset"),
        (lambda run: run.isel(draw=0), ValueError, "'chain' and 'draw'"),
        (lambda run: run.isel(draw=slice(3)), ValueError, "4 chain.* of 3 draw"),
        (lambda run: run.filter(lambda _: False), KeyError, "neither a posterior nor statistics"),
    ],
)
def test_draws_that_tell_nothing_are_refused(rng, select, error, message):
    with pytest.raises(error, match=message):
        convergence_summary(select(make_run(rng, rows=3, draws=10)))
