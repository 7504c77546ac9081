"""Names of categories can be read, however many there are, and stand even."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from pymc_xbart import plot_partial_dependence
from pymc_xbart.plots.names import SMALLEST, Layout, lay_out, write_names
from tests.helpers.figures import assert_texts_apart

SHORT = "ab", "gy", "Éî", "pq", "X"
LONG = "Île-de-France", "Provence-Alpes-Côte d'Azur", "gypsum"
COUNTS = [2, 3, 5, 8, 12, 18, 25, 40]


def made_up_names(count, kind):
    return [f"{kind[k % len(kind)]}{k // len(kind) or ''}" for k in range(count)]


def dependence(*columns, rng):
    """What `partial_dependence` returns, made up, of columns (name, points)."""
    names = [name for name, _ in columns]
    values = rng.standard_normal((2, 20, *(len(points) for _, points in columns)))
    categories = [name for name, points in columns if isinstance(points[0], str)]
    attrs = {"columns": names, "categories": categories, "long_name": "f"}
    return xr.DataArray(values, dict(columns), ("chain", "draw", *names), attrs=attrs)


@pytest.mark.parametrize("kind", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("count", COUNTS)
def test_all_are_there_and_none_runs_into_another(rng, count, kind):
    region = "region", made_up_names(count, kind)
    alone = xr.Dataset({"f": dependence(region, rng=rng)})
    age = "age", np.linspace(0, 80, 5)
    several = {
        "f_age": dependence(age, rng=rng),
        "f_region": dependence(region, rng=rng),
        "f_flag": dependence(("flag", [0.0, 1.0]), rng=rng),
        "f_income": dependence(("income", np.linspace(0, 9, 5)), rng=rng),
    }
    for axes in (plot_partial_dependence(alone), plot_partial_dependence(xr.Dataset(several))):
        assert_texts_apart(axes)
        ax = axes[min(1, axes.size - 1)]
        shown = ax.get_xticklabels()
        assert len(shown) == count
        assert min(label.get_size() for label in shown) >= SMALLEST


@pytest.mark.parametrize("count", COUNTS)
def test_none_runs_into_another_on_axes_of_cells(rng, count):
    kinds, regions = (made_up_names(n, LONG) for n in (12, count))
    result = xr.Dataset({"f": dependence(("kind", kinds), ("region", regions), rng=rng)})
    axes = plot_partial_dependence(result)
    assert_texts_apart(axes)
    if count > 8:  # fewer are curves
        assert len(axes[0].get_yticklabels()) == count
        assert min(label.get_size() for label in axes[0].get_yticklabels()) >= SMALLEST


def first_ink_below(ax, dpi=300):
    """How far below the axis the name of each tick begins, in points."""
    ax.tick_params(length=0)
    ax.axis(ymin=0)
    ax.spines[:].set_visible(False)
    ax.yaxis.set_visible(False)
    ax.figure.set_dpi(dpi)
    ax.figure.canvas.draw()
    bottom = int(ax.bbox.y0)
    is_ink = np.asarray(ax.figure.canvas.buffer_rgba())[::-1][:bottom, :, 0] < 128
    at = ax.transData.transform([(tick, 0) for tick in ax.get_xticks()])[:, 0].astype(int)
    near = int(0.3 * (at[1] - at[0]))
    rows = [np.flatnonzero(is_ink[:, x - near : x + near].any(axis=1)).max() for x in at]
    return (bottom - np.array(rows)) * 72 / dpi


@pytest.mark.parametrize(("inches", "degrees"), [(6.0, 45), (2.0, 90)])
def test_names_with_accents_stand_no_lower_than_others(inches, degrees):
    _, ax = plt.subplots(figsize=(inches / 0.775, 4))
    write_names(ax.xaxis, range(12), ["people of note", "Îlots of note"] * 6, inches)
    ax.set_xlim(-0.6, 11.6)
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {degrees}
    assert np.ptp(first_ink_below(ax)) < 1.0


def test_they_are_level_where_they_fit_then_slanted_then_upright_then_fewer():
    names = made_up_names(10, LONG)
    laid_out = [lay_out(names, inches, is_across=True) for inches in (20.0, 4.0, 1.5, 0.5, 0.01)]
    assert [layout.degrees for layout in laid_out] == [0, 45, 90, 90, 90]
    assert [layout.every for layout in laid_out[:4]] == [1, 1, 1, 3]
    assert lay_out(names, 1.5, is_across=False) == laid_out[2]._replace(degrees=0)
    assert lay_out([], 1.0, is_across=True) == Layout(0, 9.0, 1)
