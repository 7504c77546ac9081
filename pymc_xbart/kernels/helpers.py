"""Threads that help with large nodes (floor 0: NumPy and Numba only).

They do pieces of whatever a sweep posts, see `crew`. The threads are ours, not Numba's, and live no
longer than a sweep: a process may fork before and after, several sweeps may run at once, and
nothing is compiled for whoever asks for one thread.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import config

from pymc_xbart.kernels.atomic import add, load, make_numbers, rest
from pymc_xbart.kernels.chunks import do_chunk
from pymc_xbart.kernels.column_scores import score_two_columns
from pymc_xbart.kernels.crew import (
    DONE,
    LEFT,
    MOVE,
    SCALE,
    SCORE,
    STOP,
    TALLY,
    curvature_of,
    node_of,
    take,
)
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.gradient import move_chunk, scale_chunk, tally_chunk
from pymc_xbart.kernels.node_cuts import another_scratch
from pymc_xbart.kernels.records import Design, Prior

NAME = "pymc_xbart helper"  # of the threads
NODES_PER_START = 256  # starting helpers takes as long as sharing that many nodes


def with_helpers[Result](
    leaf_of_row: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    design: Design,
    prior: Prior,
    work: Any,
    run: Callable[[Any], Result],
) -> Result:
    """Return `run(work)`, which replaces some trees, with helpers at hand if there is a crew.

    `work` is a `Workspace`; `run` gets it with a crew that is at work, and overwrites the leaves of
    each row, (num_trees, n), and g (n,).
    """
    # With no helper at hand, a sweep takes all pieces itself. (Threads without Numba take turns.)
    if work.crew is None or config.DISABLE_JIT:  # type: ignore[attr-defined]
        return run(work)
    if leaf_of_row.shape[0] * design.codes.size < NODES_PER_START * work.crew.least_work:
        return run(work)
    # Anew each time: helpers of a sweep that was interrupted while they started stay stopped.
    numbers = make_numbers(3)
    work = work._replace(crew=work.crew._replace(numbers=numbers))
    moved = leaf_of_row, g, h, work.value, work.blank
    arguments = *moved, design, prior, work.rows, work.scores, work.root_scores
    numbers[STOP] = 1
    _help(*arguments, work.scratch, work.crew)  # compiled here: new threads may have little stack
    numbers[STOP] = 0
    threads = [
        threading.Thread(
            target=_help,
            args=(*arguments, another_scratch(work.scratch), work.crew),
            name=NAME,
            daemon=True,
        )
        for _ in range(work.crew.num_helpers)
    ]
    try:
        for thread in threads:
            thread.start()
        return run(work)
    finally:
        # First of all, and without a call: no second interrupt can come before it.
        numbers[STOP] = 1
        for thread in threads:
            if thread.is_alive():
                thread.join()


@kernel
def _help(
    leaf_of_row,
    g,
    h,
    value,
    blank,
    design,
    prior,
    rows,
    scores,
    root_scores,
    scratch,
    crew,
):
    """Do pieces of whatever job is posted, until told to stop."""
    job = crew.job
    knows_even = False
    last = np.int64(0)
    turn = 0
    while load(crew.numbers, STOP) == 0:
        piece = take(crew) if load(crew.numbers, LEFT) > 0 else np.int64(-1)
        if piece < 0:
            rest(turn)
            turn += 1
            continue
        turn = 0
        knows_even = knows_even and job[0]["number"] == last
        last = job[0]["number"]
        if job[0]["kind"] == SCORE:
            knows_even = score_two_columns(
                design,
                prior,
                curvature_of(job, prior),
                rows,
                node_of(job),
                piece,
                job[0]["num_looked_at"],
                job[0]["num_considered"],
                job[0]["is_on_record"],
                knows_even,
                scratch,
                root_scores if job[0]["is_of_root"] else scores,
            )
        elif job[0]["kind"] == MOVE:
            move_chunk(crew, piece, leaf_of_row, g, h, value)
        elif job[0]["kind"] == SCALE:
            scale_chunk(crew, piece, g, h)
        elif job[0]["kind"] == TALLY:
            tally_chunk(crew, piece, g, blank, rows.tally)
        else:
            do_chunk(crew, piece, design.codes[job[0]["column"]], rows)
        add(crew.numbers, DONE, 1)
