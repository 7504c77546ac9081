"""How a sweep shares work with threads that help (floor 0: NumPy and Numba only).

A sweep posts a job, made of pieces; it and its helpers take pieces until none is left. When a node
is scored, a piece is two of its columns; when its rows are split in two, or when g follows f, it is
a chunk of rows. Each thread works with scratch of its own, and writes what it finds to where the
pieces have their places: the result does not depend on who took what, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.atomic import add, load, make_numbers, rest, store
from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.evidence import Curvature
from pymc_xbart.kernels.node_cuts import Node
from pymc_xbart.kernels.tally import Layout

# Rows of a node times columns that are read of them: with fewer, sharing takes as long as it saves.
LEAST_WORK = 1 << 12

SCORE, COUNT, PARTITION, MOVE, SCALE, TALLY = range(6)  # kinds of jobs

# What is known of a node that is shared, and either of the curvature that it is to be scored with,
# or of the split that its rows are to follow; or what is to be done to g.
JOB_DTYPE = np.dtype(
    [
        ("number", np.int64),  # of the jobs so far
        ("kind", np.int64),
        ("column", np.int32),
        ("cut", np.int32),
        ("factor", np.float64),  # see gradient
        ("tree", np.int64),
        ("start", np.int32),  # from here on as in Node
        ("stop", np.int32),
        ("depth", np.int32),
        ("sum_g", np.float64),
        ("sum_h", np.float64),
        ("place", np.int32),
        ("is_ready", np.bool_),
        ("parent_place", np.int32),
        ("sibling_place", np.int32),
        ("has_parent", np.bool_),
        ("num_looked_at", np.int64),  # from here on as in score_two_columns
        ("num_considered", np.int64),
        ("is_on_record", np.bool_),
        ("is_of_root", np.bool_),  # see Scores
        ("is_whole", np.bool_),  # from here on as in Curvature
        ("is_uniform", np.bool_),
        ("h", np.float64),
        ("count_end", np.int64),  # from here on as in Layout
        ("weight_start", np.int64),
        ("sum_start", np.int64),
    ],
    align=True,
)

NUM_CHUNKS = 32  # of the rows of a node, or of g

# What is found in a chunk of the rows of a node, and where its two sides belong.
CHUNK_DTYPE = np.dtype(
    [
        ("num_left", np.int64),
        ("front", np.int64),  # from here on as in partition_rows
        ("back", np.int64),
        ("last_left", np.int64),
        ("left", np.int64),
        ("right", np.int64),
    ]
)

LEFT, DONE, STOP = range(3)  # of `Crew.numbers`


class Crew(NamedTuple):
    """How a sweep and its helpers talk to each other."""

    # Pieces that nobody has taken yet (below 0 once somebody was too late), pieces that are done,
    # and whether helpers are to stop. Whoever takes a piece may read the job: it stays until all
    # pieces are done.
    numbers: np.ndarray
    job: np.ndarray  # (1,) JOB_DTYPE
    chunks: np.ndarray  # (NUM_CHUNKS,) CHUNK_DTYPE
    least_work: int  # of a node that is shared, see `is_worth_sharing`
    num_helpers: int


def make_crew(num_threads: int, least_work: int) -> Crew | None:
    """Crew of a sweep with a number of threads, itself included; None if it works alone."""
    if num_threads == 1:
        return None
    job, chunks = np.zeros(1, JOB_DTYPE), np.zeros(NUM_CHUNKS, CHUNK_DTYPE)
    return Crew(make_numbers(3), job, chunks, least_work, num_threads - 1)


@inner_kernel
def is_worth_sharing(crew, num_rows, num_columns):
    """Whether a node has enough work for several threads."""
    return num_rows * num_columns >= crew.least_work


@inner_kernel
def post_node(crew, node, curvature, num_looked_at, num_considered, is_on_record, is_of_root):
    """Let helpers take columns of a node."""
    job = crew.job
    job[0]["start"] = node.start
    job[0]["stop"] = node.stop
    job[0]["depth"] = node.depth
    job[0]["sum_g"] = node.sum_g
    job[0]["sum_h"] = node.sum_h
    job[0]["place"] = node.place
    job[0]["is_ready"] = node.is_ready
    job[0]["parent_place"] = node.parent_place
    job[0]["sibling_place"] = node.sibling_place
    job[0]["has_parent"] = node.has_parent
    job[0]["num_looked_at"] = num_looked_at
    job[0]["num_considered"] = num_considered
    job[0]["is_on_record"] = is_on_record
    job[0]["is_of_root"] = is_of_root
    job[0]["is_whole"] = curvature.is_whole
    job[0]["is_uniform"] = curvature.is_uniform
    job[0]["h"] = curvature.h
    post_layout(crew, curvature.layout)
    post_pieces(crew, SCORE, (num_looked_at + 1) // 2)


@inner_kernel
def post_layout(crew, layout):
    """Write down where the sums of tallies lie."""
    job = crew.job
    job[0]["count_end"] = layout.count_end
    job[0]["weight_start"] = layout.weight_start
    job[0]["sum_start"] = layout.sum_start


@inner_kernel
def post_pieces(crew, kind, num_pieces):
    """Let helpers take pieces of a job that has been written down."""
    crew.job[0]["number"] += 1
    crew.job[0]["kind"] = kind
    store(crew.numbers, DONE, 0)
    store(crew.numbers, LEFT, num_pieces)


@inner_kernel
def share_chunks(crew, kind, do, arguments):
    """Have the chunks of a job that has been written down done, with whatever help there is.

    `do(crew, k, *arguments)` is what is to be done to chunk k.
    """
    post_pieces(crew, kind, NUM_CHUNKS)
    num_done = 0
    k = take(crew)
    while k >= 0:
        do(crew, k, *arguments)
        num_done += 1
        k = take(crew)
    finish(crew, num_done, NUM_CHUNKS)


@inner_kernel
def start_of_chunk(start, stop, k):
    """First row of chunk k, of NUM_CHUNKS."""
    return start + k * np.int64(stop - start) // NUM_CHUNKS


@inner_kernel
def node_of(job):
    """The node that has been posted."""
    return Node(
        job[0]["start"],
        job[0]["stop"],
        job[0]["depth"],
        job[0]["sum_g"],
        job[0]["sum_h"],
        job[0]["place"],
        job[0]["is_ready"],
        job[0]["parent_place"],
        job[0]["sibling_place"],
        job[0]["has_parent"],
    )


@inner_kernel
def curvature_of(job, prior):
    """The curvature with which the node is to be scored."""
    return Curvature(
        prior.leaf_var,
        job[0]["is_whole"],
        job[0]["is_uniform"],
        job[0]["h"],
        layout_of(job),
    )


@inner_kernel
def layout_of(job):
    """Where the sums of tallies lie, as has been posted."""
    return Layout(job[0]["count_end"], job[0]["weight_start"], job[0]["sum_start"])


@inner_kernel
def take(crew):
    """Take a piece, the last first. Returns its number, below 0 if none is left."""
    return add(crew.numbers, LEFT, -1) - 1


@inner_kernel
def finish(crew, num_done, num_pieces):
    """Wait until helpers have done the pieces that they took."""
    num_done += add(crew.numbers, DONE, num_done)
    turn = 0
    while num_done < num_pieces:
        rest(turn)
        turn += 1
        num_done = load(crew.numbers, DONE)
