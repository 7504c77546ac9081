"""The picture of importance shows R^2 step by step, or losses, the largest first."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from pymc_xbart import permutation_importance, plot_importance, variable_importance
from tests.helpers import prior_runs
from tests.helpers.figures import ends_of, line, names_of


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(1)
    X = prior_runs.mixed_table(rng, 50)
    run = prior_runs.draw_run(rng, X, draws=20)
    y = rng.standard_normal(50)
    return variable_importance(run, X), permutation_importance(run, X, y, random_seed=1)


def made_up(num_columns):
    rng = np.random.default_rng(num_columns)
    r2 = np.sort(rng.random((2, 50, num_columns)), axis=-1)
    names = [f"mean income of the quarter in {1950 + v}" for v in range(num_columns)]
    data = {"r2": (("chain", "draw", "column"), r2), "reference": (("chain", "draw"), r2[..., -1])}
    return xr.Dataset(data, {"column": names})


def test_submodels_are_in_order_with_the_reference_behind(results):
    importance, _ = results
    ax = plot_importance(importance)
    first, *others = importance["column"].values.tolist()
    assert names_of(ax) == [first, *[f"+ {name}" for name in others]]
    means = importance["r2"].mean(("chain", "draw"))
    np.testing.assert_allclose(line(ax, "mean").get_xdata(), means)
    expected = importance["r2"].quantile((0.03, 0.97), ("chain", "draw")).T
    np.testing.assert_allclose(ends_of(ax, "94 % interval"), expected)
    [band] = ax.patches
    reference = importance["reference"].quantile((0.03, 0.97))
    np.testing.assert_allclose([band.get_x(), band.get_x() + band.get_width()], reference)
    assert ax.get_xlim() == (-0.02, 1.02)


def test_losses_are_sorted(results):
    _, permutation = results
    ax = plot_importance(permutation)
    loss = permutation["loss"].mean("repeat")
    means = loss.mean(("chain", "draw"))
    order = means.sortby(means, ascending=False)["column"].values.tolist()
    assert names_of(ax) == order
    np.testing.assert_allclose(line(ax, "mean").get_xdata(), means.sel(column=order))
    expected = loss.quantile((0.25, 0.75), ("chain", "draw")).sel(column=order).T
    np.testing.assert_allclose(ends_of(ax, "50 % interval"), expected)


@pytest.mark.parametrize("num_columns", [1, 3, 12, 40, 75])
def test_no_text_runs_into_another(num_columns):
    ax = plot_importance(made_up(num_columns))
    ax.figure.canvas.draw()
    names = names_of(ax)
    assert len(names) == min(num_columns, 41)
    assert (names[-1] == "35 more columns") == (num_columns == 75)
    texts = [*ax.get_yticklabels(), *ax.get_legend().get_texts(), ax.xaxis.label]
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])


def test_labels_replace_names(results):
    for result in results:
        names = names_of(plot_importance(result, labels={"size": "Size (m²)"}))
        assert {"Size (m²)", "+ Size (m²)"} & set(names)
        with pytest.raises(KeyError, match="labels names the column 'age'"):
            plot_importance(result, labels={"age": "Age"})


def test_it_draws_where_it_is_told(results):
    _, axes = plt.subplots(1, 2)
    for result, ax in zip(results, axes, strict=True):
        assert plot_importance(result, ax=ax) is ax
        size = plot_importance(result, figsize=(3, 2)).figure.get_size_inches()
        assert size.tolist() == [3, 2]


def test_losses_beyond_the_largest_are_counted(results):
    assert names_of(plot_importance(results[1], max_columns=1))[-1] == "3 more columns"


def test_anything_else_is_refused(results):
    for other in (xr.Dataset({"share": 1.0}), [1, 2], results[0]["r2"]):
        with pytest.raises(TypeError, match="without R\\^2 or losses"):
            plot_importance(other)
