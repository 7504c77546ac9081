"""What a run leaves behind, drawn from the prior without PyMC: columns of all kinds."""

import numpy as np
import pandas as pd
import xarray as xr

from pymc_xbart.forest.covariates import describe_columns, read_covariates
from pymc_xbart.forest.stored import StoredDraw, StoredForest, digest_of, write_draw
from pymc_xbart.forest.views import encode_views, share_weights, to_columns
from pymc_xbart.kernels import cut_values, draw_prior_forest, rows_of_leaves
from tests.helpers import inside

COLOURS = ["red", "green", "blue", "grey", "black"]


def mixed_table(rng, num_rows):
    """Numbers, numbers with gaps, categories with gaps, and two values."""
    table = pd.DataFrame(
        {
            "size": rng.standard_normal(num_rows),
            "income": rng.standard_normal(num_rows),
            "colour": pd.Categorical(rng.choice(COLOURS, num_rows), COLOURS),
            "flag": rng.integers(0, 2, num_rows),
        }
    )
    table.loc[rng.random(num_rows) < 0.3, "income"] = np.nan
    table.loc[rng.random(num_rows) < 0.2, "colour"] = np.nan
    return table


def draw_run(
    rng,
    X,
    *,
    batch=(),
    dims=None,
    chains=2,
    draws=4,
    trees=5,
    split_weights=None,
    categorical=None,
    **prior_fields,
):
    """Stored draws of a forest "f" over X, a table or a matrix, as `pm.sample` leaves them."""
    covariates = read_covariates(X, categorical)
    design, views = encode_views(covariates.X, covariates.categorical)
    num_rows, num_columns = covariates.X.shape
    weights = np.ones(num_columns) if split_weights is None else np.asarray(split_weights, float)
    weights = share_weights(weights, views)
    prior = inside.make_prior(weights.size, split_weights=weights, **prior_fields)

    def draw_forest():
        forest, leaf_of_row = draw_prior_forest(design, prior, trees, rng)
        cuts = cut_values(design, forest.column, forest.cut)
        rows = rows_of_leaves(forest, leaf_of_row)
        return StoredForest(1.5, *to_columns(forest, cuts, views), cuts, rows)

    text = np.empty((chains, draws), object)
    for place in np.ndindex(chains, draws):
        forests = [draw_forest() for _ in np.ndindex(batch)]
        digest = digest_of(covariates.names)
        bits = views.is_categorical, views.has_missing
        text[place] = write_draw(StoredDraw(num_rows, digest, 0, *bits, batch, forests))
    labels = {"chain": np.arange(chains), "draw": np.arange(draws)}
    stats = xr.Dataset({"f_trees": (("chain", "draw"), text)}, labels)
    stats["f_trees"] = stats["f_trees"].astype(np.dtypes.StringDType())
    schema = describe_columns(X)._replace(dims=dims).to_bytes()
    constants = xr.Dataset({"f_schema": ("f_schema_dim_0", schema)})
    return xr.DataTree.from_dict({"sample_stats": stats, "constant_data": constants})


def value_of(nodes, row, included, node=0):
    """Value of a tree at a row, read off its table with nodes as index.

    At splits on columns that are not `included` it is the mean of both children, by their rows.
    """
    line = nodes.loc[node]
    if line["left"] < 0:
        return line["value"]
    values = [value_of(nodes, row, included, line[side]) for side in ("left", "right")]
    if line["column"] in included:
        return values[0 if _goes_left(line, row[line["column"]]) else 1]
    return np.average(values, weights=nodes.loc[[line["left"], line["right"]], "rows"])


def _goes_left(line, x):
    if pd.isna(x):
        return line["missing"] == "left"
    return x in line["categories"] if line["categories"] is not None else x <= line["cut"]


def slow_f(table, X, included):
    """f at the rows of X by the table of all trees, (draws, forests, rows).

    With the `included` columns only, the others being averaged out.
    """
    if "forest" not in table:
        table = table.assign(forest=0)
    rows = X.to_dict("records")
    return np.array(
        [
            [
                np.atleast_1d(table.attrs["mu"])[forest]
                + np.sum(
                    [
                        [value_of(nodes.set_index("node"), row, included) for row in rows]
                        for _, nodes in of_forest.groupby("tree")
                    ],
                    axis=0,
                )
                for forest, of_forest in of_draw.groupby("forest")
            ]
            for _, of_draw in table.groupby(["chain", "draw"])
        ]
    )
