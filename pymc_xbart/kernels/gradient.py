"""Keep g that of the forest without the tree at hand (floor 0: NumPy and Numba only).

When f moves by t under a quadratic log-likelihood, g moves by -h t. What is done to a row here has
nothing to do with the others: a crew, if there is one, shares the rows in chunks.
"""

import numpy as np

from pymc_xbart.kernels.crew import (
    MOVE,
    SCALE,
    TALLY,
    is_worth_sharing,
    layout_of,
    post_layout,
    share_chunks,
    start_of_chunk,
)
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.tally import tally_rows, unit_of


@inner_kernel
def take_out(forest, index, leaf_of_row, g, h, value, crew):
    """Move g from the forest to the forest without one tree. `value` (2 n,) is scratch."""
    start = forest.tree_start[index]
    for node in range(forest.tree_start[index + 1] - start):
        value[node] = forest.value[start + node]
    move(np.float64(1.0), index, leaf_of_row, g, h, value, crew)


@inner_kernel
def put_in(tree, num_nodes, index, leaf_of_row, g, h, value, crew):
    """Move g from the forest without one tree to the forest with its successor."""
    for node in range(num_nodes):
        value[node] = tree[node]["value"]
    move(np.float64(-1.0), index, leaf_of_row, g, h, value, crew)


@inner_kernel
def move(sign, index, leaf_of_row, g, h, value, crew):
    """Add `sign` times h times the value of a tree at each row to g.

    `value` holds the values of the tree's nodes.
    """
    # Without a crew, Numba does not even compile what follows.
    if crew is not None and is_worth_sharing(crew, g.size, 1):
        crew.job[0]["factor"] = sign
        crew.job[0]["tree"] = index
        share_chunks(crew, MOVE, move_chunk, (leaf_of_row, g, h, value))
        return
    move_rows(sign, leaf_of_row[index], g, h, value, np.int64(0), np.int64(g.size))


@inner_kernel
def scale(factor, g, h, crew):
    """Multiply g and h by a factor."""
    if crew is not None and is_worth_sharing(crew, g.size, 1):
        crew.job[0]["factor"] = factor
        share_chunks(crew, SCALE, scale_chunk, (g, h))
        return
    scale_rows(factor, g, h, np.int64(0), np.int64(g.size))


@inner_kernel
def take_up(g, curvature, blank, rows, crew):
    """Let the root in `rows` have g (n,) of the forest without the tree to be built or redrawn.

    `blank` is that of the workspace, as `read_curvature` left it.
    """
    layout = curvature.layout
    rows.unit[0], inverse_unit = unit_of(g, layout)
    if crew is not None and is_worth_sharing(crew, g.size, 1):
        crew.job[0]["factor"] = inverse_unit
        post_layout(crew, layout)
        share_chunks(crew, TALLY, tally_chunk, (g, blank, rows.tally))
        return
    tally_rows(g, inverse_unit, blank, layout, rows.tally, np.int64(0), np.int64(g.size))


@inner_kernel
def move_chunk(crew, k, leaf_of_row, g, h, value):
    """Move chunk k of g as has been posted."""
    job = crew.job[0]
    start, stop = chunk_of(g, k)
    move_rows(job["factor"], leaf_of_row[job["tree"]], g, h, value, start, stop)


@inner_kernel
def scale_chunk(crew, k, g, h):
    """Multiply chunk k of g and h as has been posted."""
    start, stop = chunk_of(g, k)
    scale_rows(crew.job[0]["factor"], g, h, start, stop)


@inner_kernel
def tally_chunk(crew, k, g, blank, tally):
    """Write the tallies of chunk k as has been posted."""
    start, stop = chunk_of(g, k)
    tally_rows(g, crew.job[0]["factor"], blank, layout_of(crew.job), tally, start, stop)


@inner_kernel
def chunk_of(g, k):
    """Where chunk k of g starts and stops."""
    return start_of_chunk(0, g.size, k), start_of_chunk(0, g.size, k + 1)


@inner_kernel
def move_rows(sign, leaf, g, h, value, start, stop):
    """Move some rows of g, with `leaf` (n,) that of each row."""
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        g[i] += sign * (h[i] * value[POSITION_DTYPE(leaf[i])])


@inner_kernel
def scale_rows(factor, g, h, start, stop):
    """Multiply some rows of g and h."""
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        g[i] *= factor
        h[i] *= factor
