"""A tree is drawn with everything that its table says, and no text runs into another."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_xbart import plot_tree, trees
from pymc_xbart.forest.schema import Schema
from pymc_xbart.forest.stored import StoredDraw, StoredForest, digest_of, write_draw
from pymc_xbart.kernels import cut_values, draw_prior_forest, encode, rows_of_leaves
from pymc_xbart.plots import tree as module
from tests.helpers import inside, prior_runs

NAMES = ["age", "mean income of the neighbourhood in 2020", "c"]


@pytest.fixture(scope="module")
def idata():
    rng = np.random.default_rng(3)
    design = encode(rng.standard_normal((60, 3)))
    prior = inside.make_prior(3, alpha=0.95, beta=0.7)
    text = np.empty((1, 2), object)
    for draw in range(2):
        forest, leaf = draw_prior_forest(design, prior, 8, rng)
        cuts = cut_values(design, forest.column, forest.cut)
        view = np.zeros(forest.column.size, np.int32)
        stored = StoredForest(0.0, forest, view, cuts, rows_of_leaves(forest, leaf))
        numbers = np.zeros(3, np.bool_)
        text[0, draw] = write_draw(
            StoredDraw(60, digest_of(NAMES), 0, numbers, numbers, (), [stored])
        )
    stats = xr.Dataset({"f_trees": (("chain", "draw"), text)}, {"chain": [0], "draw": [0, 1]})
    constants = xr.Dataset({"f_schema": ("byte", Schema(NAMES).to_bytes())})
    return xr.DataTree.from_dict({"sample_stats": stats, "constant_data": constants})


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_every_node_is_there(idata):
    for tree in range(8):
        ax = plot_tree(idata, draw=1, tree=tree)
        nodes = trees(idata, draw=1, tree=tree)
        shown = [text for text in texts(ax) if text not in ("yes", "no")]
        assert len(shown) == len(nodes)
        assert sum("≤" in text for text in shown) == (nodes["left"] >= 0).sum()
        assert ax.get_title() == f"tree {tree} of chain 0, draw 1"


def test_the_last_draw_is_the_default(idata):
    assert texts(plot_tree(idata, tree=2)) == texts(plot_tree(idata, draw=1, tree=2))


def test_the_last_draw_of_runs_put_together_is_that_of_the_last_run(idata):
    stats = idata["sample_stats"].to_dataset()
    first, last = stats.isel(draw=[0]), stats.isel(draw=[1]).assign_coords(draw=[0])
    both = idata.copy()
    both["sample_stats"] = xr.DataTree(xr.concat([first, last], "draw"))
    assert texts(plot_tree(both, tree=2)) == texts(plot_tree(idata, draw=1, tree=2))


def test_selections_are_drawn_as_they_are(idata):
    ax = plot_tree(idata.isel(chain=0, draw=-1), tree=2)
    assert texts(ax) == texts(plot_tree(idata, tree=2))
    assert ax.get_title() == "tree 2 of chain 0, draw 1"
    with pytest.raises(ValueError, match="no dimension 'chain'"):
        plot_tree(idata.isel(chain=0), chain=0)
    stacked = idata.copy()
    stats = idata["sample_stats"].to_dataset().stack(sample=("chain", "draw"))
    stacked["sample_stats"] = xr.DataTree(stats.drop_vars(["sample", "chain", "draw"]))
    with pytest.raises(ValueError, match=r"These are several draws.*isel\(sample=\[0\]\)"):
        plot_tree(stacked)
    assert texts(plot_tree(stacked.isel(sample=[1]), tree=2)) == texts(ax)


def test_forests_are_counted(idata):
    with pytest.raises(ValueError, match="forest is 3, but the variable has 1, counted from 0"):
        plot_tree(idata, forest=3)


@pytest.mark.parametrize(
    ("cut", "text"), [(12345.0, "12345"), (-3.0, "-3"), (0.5, "0.5"), (1e12, "1e+12")]
)
def test_whole_cuts_are_told_in_full(cut, text):
    assert module._text_of_number(cut) == text


def test_long_names_are_cut_short(idata):
    shown = [text for tree in range(8) for text in texts(plot_tree(idata, tree=tree))]
    assert any(text.startswith("mean income of th…\n") for text in shown)
    assert not any("neighbourhood" in text for text in shown)


def test_no_two_nodes_overlap(idata):
    for tree in range(8):
        ax = plot_tree(idata, tree=tree)
        ax.figure.canvas.draw()
        boxes = [
            text.get_bbox_patch().get_window_extent()
            for text in ax.texts
            if text.get_text() not in ("yes", "no")
        ]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k])


def test_it_draws_where_it_is_told(idata):
    _, axes = plt.subplots(1, 2)
    assert plot_tree(idata, ax=axes[1]) is axes[1]
    assert axes[1].texts
    assert not axes[0].texts


def test_a_single_leaf_is_a_tree_too(idata):
    sizes = trees(idata).groupby(["draw", "tree"]).size()
    draw, tree = sizes[sizes == 1].index[0] if (sizes == 1).any() else sizes.idxmin()
    ax = plot_tree(idata, draw=int(draw), tree=int(tree))
    assert len(texts(ax)) >= 1


def test_unknown_trees_are_refused(idata):
    with pytest.raises(KeyError, match="no tree 8"):
        plot_tree(idata, tree=8)


def test_cuts_of_dates_are_dates(rng):
    days = pd.date_range("2020-01-01", periods=40, freq="9D")
    run = prior_runs.draw_run(rng, pd.DataFrame({"visit": days}), max_depth=1, alpha=1.0, trees=1)
    cut = pd.Timestamp(trees(run, chain=0, draw=0)["cut"][0], unit="s")
    assert f"≤ {cut:%Y-%m-%d}\n" in "".join(texts(plot_tree(run, draw=0)))
