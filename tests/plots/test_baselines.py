"""Pictures are those that somebody has looked at, in `baselines/`.

After a change that is meant, draw them anew and look at each before it is committed:

    UPDATE_BASELINES=1 uv run pytest tests/plots/test_baselines.py

Texts are left out, since fonts are drawn a little differently by each version of Matplotlib; other
tests read them.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles

import pymc_xbart as pxb
from tests.helpers import prior_runs
from tests.plots.test_convergence import make_run

BASELINES = Path(__file__).with_name("baselines")
# Root mean square of differences of 0 to 255: 0 on the machine that drew them, a few where lines
# fall on other pixels, 15 and more where a curve or a panel is missing.
TOLERANCE = 6.0
ROWS = 60


@pytest.fixture(scope="module")
def table():
    return prior_runs.mixed_table(np.random.default_rng(1), ROWS)


@pytest.fixture(scope="module")
def run(table):
    return prior_runs.draw_run(np.random.default_rng(2), table, trees=10, draws=60)


def y_of(table):
    return table["size"].to_numpy() + np.random.default_rng(3).normal(size=ROWS)


def largest_tree(run):
    return int(pxb.trees(run, chain=0, draw=0)["tree"].mode()[0])


PICTURES = {
    "convergence": lambda *_: pxb.plot_convergence(make_run(np.random.default_rng(4))),
    "inclusion": lambda run, _: pxb.plot_inclusion(run),
    "importance": lambda run, table: pxb.plot_importance(pxb.variable_importance(run, table)),
    "permutation": lambda run, table: pxb.plot_importance(
        pxb.permutation_importance(run, table, y_of(table), random_seed=1)
    ),
    "partial_dependence": lambda run, table: pxb.plot_partial_dependence(run, table),
    "pairs": lambda run, table: pxb.plot_partial_dependence(
        run, table, [("size", "income"), ("size", "colour"), ("flag", "colour")]
    ),
    "ice": lambda run, table: pxb.plot_ice(run, table),
    "ale": lambda run, table: pxb.plot_ale(run, table, ["size", "income", "flag"]),
    "joint_ale": lambda run, table: pxb.plot_ale(run, table, ("size", "income"), grid=6),
    "effects": lambda run, table: pxb.plot_effects(
        pxb.treatment_effects(run, table, groups=table["colour"])
    ),
    "residuals": lambda run, table: pxb.plot_residuals(run, table, y_of(table)),
    "tree": lambda run, _: pxb.plot_tree(run, chain=0, draw=0, tree=largest_tree(run)),
}


def draw(name, run, table, path):
    """Save a picture without its texts."""
    drawn = PICTURES[name](run, table)
    figure = np.ravel(drawn)[0].figure
    remove_ticks_and_titles(figure)
    for ax in figure.axes:
        ax.set(xlabel="", ylabel="")
        for text in ax.texts:
            text.set_text("")
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]:
        if legend is not None:
            legend.remove()
    figure.savefig(path, dpi=50)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_as_they_were(name, run, table, tmp_path):
    expected = BASELINES / f"{name}.png"
    if os.environ.get("UPDATE_BASELINES"):
        draw(name, run, table, expected)
        return
    draw(name, run, table, tmp_path / expected.name)
    assert compare_images(str(expected), str(tmp_path / expected.name), TOLERANCE) is None


def test_that_they_would_see_other_draws(table, tmp_path):
    other = prior_runs.draw_run(np.random.default_rng(5), table, trees=10, draws=60)
    draw("partial_dependence", other, table, tmp_path / "other.png")
    expected = BASELINES / "partial_dependence.png"
    assert compare_images(str(expected), str(tmp_path / "other.png"), TOLERANCE) is not None
