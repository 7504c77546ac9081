"""The picture of convergence shows every number against its limit, and the chains behind them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from pymc_xbart import convergence_summary, plot_convergence

DRAW_DIMS = ("chain", "draw")
WHICH = ("r_hat", "ess_bulk", "ess_tail")


def make_run(rng, rows=50, names=("noise",), batch=(), with_f=True):
    """A run without PyMC: f, some numbers, and statistics of the trees."""
    shape = 4, 100
    coords = {"chain": np.arange(4), "draw": np.arange(100)}
    posterior = {name: (DRAW_DIMS, rng.standard_normal(shape)) for name in names}
    if with_f:
        dims = (*DRAW_DIMS, *(f"class_{k}" for k in range(len(batch))), "row")
        posterior["f"] = (dims, rng.standard_normal((*shape, *batch, rows)))
    stats = {
        f"f_{what}": (DRAW_DIMS, rng.uniform(0.5, 1, shape))
        for what in ("leaves", "depth", "acceptance")
    }
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(posterior, coords), "sample_stats": xr.Dataset(stats, coords)}
    )


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def dots(ax):
    """Position of each dot from top to bottom."""
    marked = [line for line in ax.lines if line.get_marker() == "o"]
    return [line.get_xdata()[0] for line in sorted(marked, key=lambda line: line.get_ydata()[0])]


def test_rows_are_a_distribution_and_numbers_have_names(rng):
    run = make_run(rng)
    summary = convergence_summary(run)
    axes = plot_convergence(run)
    assert axes.shape == (3, 3)
    singles = [name for name in summary.elements if name != "f"]
    assert names_of(axes[1, 0]) == singles
    for ax, numbers, which in zip(axes[0], axes[1], WHICH, strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_allclose(x[1:], np.sort(summary["f"][which]))
        np.testing.assert_allclose(y, np.arange(51) / 50)
        np.testing.assert_allclose(dots(numbers), [summary[name][which] for name in singles])
        limit = 1.01 if which == "r_hat" else 400
        assert ax.lines[-1].get_xdata()[0] == numbers.lines[-1].get_xdata()[0] == limit
        assert ax.get_xlim() == numbers.get_xlim()


def test_chains_are_traced(rng):
    run = make_run(rng)
    axes = plot_convergence(run)[-1]
    f, stats = run["posterior"]["f"], run["sample_stats"]
    drawn = {ax.get_title(): [line.get_ydata() for line in ax.lines] for ax in axes}
    np.testing.assert_allclose(drawn["mean of f"], f.mean("row"))
    np.testing.assert_allclose(drawn["variance of f"], f.var("row"))
    np.testing.assert_allclose(drawn["f_leaves"], stats["f_leaves"])


def test_each_of_several_forests_has_a_row(rng):
    axes = plot_convergence(make_run(rng, batch=(2,)))
    assert axes.shape == (4, 3)
    titles = [ax.get_title() for ax in axes[2:, 0]]
    assert titles == ["mean of f[0]", "mean of f[1]"]


def test_trees_alone_can_be_drawn(rng):
    axes = plot_convergence(make_run(rng, with_f=False, names=()))
    assert axes.shape == (2, 3)
    assert [ax.get_title() for ax in axes[1]] == ["f_leaves", "f_depth", "f_acceptance"]


def test_what_has_no_r_hat_is_said(rng):
    run = make_run(rng)
    run["sample_stats"]["f_depth"] = xr.zeros_like(run["sample_stats"]["f_depth"])
    apart = xr.zeros_like(run["posterior"]["noise"]) + np.arange(4)[:, None]
    run["posterior"]["noise"] = apart
    axes = plot_convergence(run)
    assert [text.get_text() for text in axes[1, 0].texts] == ["no R-hat: always the same, or NaN"]
    arrows = [line for line in axes[1, 0].lines if line.get_marker() == ">"]
    assert [line.get_ydata()[0] for line in arrows] == [0]  # infinite


@pytest.mark.parametrize("count", [1, 40])
def test_no_text_runs_into_another(rng, count):
    names = [f"the scale of the group effects number {k}" for k in range(count)]
    axes = plot_convergence(make_run(rng, names=names))
    axes[0, 0].figure.canvas.draw()
    for ax in axes.flat:
        for axis in (ax.xaxis, ax.yaxis):
            boxes = [
                label.get_window_extent()
                for label in axis.get_ticklabels()
                if label.get_text() and label.get_visible()
            ]
            for k, box in enumerate(boxes):
                assert not any(box.overlaps(other) for other in boxes[:k])


def test_it_draws_where_it_is_told(rng):
    summary = convergence_summary(make_run(rng))
    _, axes = plt.subplots(3, 3)
    assert (plot_convergence(summary, axes=axes) == axes).all()
    assert all(ax.lines for ax in axes.flat)
    with pytest.raises(ValueError, match=r"axes have shape \(3,\), but .* \(3, 3\)"):
        plot_convergence(summary, axes=axes[0])
