"""Keep g that of the forest without the tree at hand (floor 0: NumPy and Numba only).

When f moves by t under a quadratic log-likelihood, g moves by -h t.
"""

import numpy as np

from pymc_xbart.kernels.crew import MOVE, is_worth_sharing, share_chunks, start_of_chunk
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel


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

    With the help of a crew if there is one. `value` holds the values of the tree's nodes.
    """
    # Without a crew, Numba does not even compile what follows.
    if crew is not None and is_worth_sharing(crew, g.size, 1):
        crew.job[0]["sign"] = sign
        crew.job[0]["tree"] = index
        share_chunks(crew, MOVE, move_chunk, (leaf_of_row, g, h, value))
        return
    move_rows(sign, leaf_of_row[index], g, h, value, np.int64(0), np.int64(g.size))


@inner_kernel
def move_chunk(crew, k, leaf_of_row, g, h, value):
    """Move chunk k of g as has been posted."""
    job = crew.job[0]
    start = start_of_chunk(0, g.size, k)
    stop = start_of_chunk(0, g.size, k + 1)
    move_rows(job["sign"], leaf_of_row[job["tree"]], g, h, value, start, stop)


@inner_kernel
def move_rows(sign, leaf, g, h, value, start, stop):
    """Move some rows of g, with `leaf` (n,) that of each row."""
    for i in range(POSITION_DTYPE(start), POSITION_DTYPE(stop)):
        g[i] += sign * (h[i] * value[POSITION_DTYPE(leaf[i])])
