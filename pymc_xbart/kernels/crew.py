"""Threads that help to score nodes (floor 0: NumPy and Numba only).

A sweep posts a node; it and its helpers take the node's columns, two at a time, until none is left.
Each works with scratch of its own, and writes what it finds to where the columns have their places:
the result does not depend on who took what, to the last bit.

The threads are ours, not Numba's, and live no longer than a sweep: a process may fork before and
after, several sweeps may run at once, and nothing is compiled for whoever asks for one thread.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import config

from pymc_xbart.kernels.atomic import add, load, make_numbers, rest, store
from pymc_xbart.kernels.column_scores import score_two_columns
from pymc_xbart.kernels.decorator import inner_kernel, kernel, returning_kernel
from pymc_xbart.kernels.evidence import EvidenceTable
from pymc_xbart.kernels.node_cuts import Node, another_scratch
from pymc_xbart.kernels.records import Design, Prior
from pymc_xbart.kernels.tally import Layout

# Rows times columns of a node: with fewer, sharing takes as long as it saves.
LEAST_WORK = 1 << 12
NODES_PER_START = 256  # starting helpers takes as long as sharing that many nodes

# What is known of a node that is shared, and of the table that it is to be scored with.
JOB_DTYPE = np.dtype(
    [
        ("number", np.int64),  # of the jobs so far
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
        ("is_tabulated", np.bool_),  # from here on as in EvidenceTable
        ("is_uniform", np.bool_),
        ("h", np.float64),
        ("count_end", np.int64),  # from here on as in Layout
        ("weight_start", np.int64),
        ("sum_start", np.int64),
    ],
    align=True,
)

NAME = "pymc_xbart helper"  # of the threads

LEFT, DONE, STOP = range(3)  # of `Crew.numbers`


class Crew(NamedTuple):
    """How a sweep and its helpers talk to each other."""

    # Pairs of columns that nobody has taken yet (below 0 once somebody was too late), pairs that
    # are done, and whether helpers are to stop. Whoever takes a pair may read the job: it stays
    # until all pairs are done.
    numbers: np.ndarray
    job: np.ndarray  # (1,) JOB_DTYPE
    least_work: int  # of a node that is shared, see `is_worth_sharing`
    num_helpers: int


def make_crew(num_threads: int, least_work: int) -> Crew | None:
    """Crew of a sweep with a number of threads, itself included; None if it works alone."""
    if num_threads == 1:
        return None
    return Crew(make_numbers(3), np.zeros(1, JOB_DTYPE), least_work, num_threads - 1)


def with_helpers[Result](
    num_trees: int, design: Design, prior: Prior, work: Any, run: Callable[[Any], Result]
) -> Result:
    """Return `run(work)`, which replaces some trees, with helpers at hand if there is a crew.

    `work` is a `Workspace`; `run` gets it with a crew that is at work.
    """
    # With no helper at hand, a sweep takes all columns itself. (Threads without Numba take turns.)
    if work.crew is None or config.DISABLE_JIT:  # type: ignore[attr-defined]
        return run(work)
    if num_trees * design.codes.size < NODES_PER_START * work.crew.least_work:
        return run(work)
    # Anew each time: helpers of a sweep that was interrupted while they started stay stopped.
    numbers = make_numbers(3)
    work = work._replace(crew=work.crew._replace(numbers=numbers))
    arguments = design, prior, work.rows, work.half_log, work.gain, work.scores, work.root_scores
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
def _help(design, prior, rows, half_log, gain, scores, root_scores, scratch, crew):
    """Score columns of whatever node is posted, until told to stop."""
    job = crew.job
    knows_even = False
    last = np.int64(0)
    turn = 0
    while load(crew.numbers, STOP) == 0:
        pair = take(crew) if load(crew.numbers, LEFT) > 0 else np.int64(-1)
        if pair < 0:
            rest(turn)
            turn += 1
            continue
        turn = 0
        knows_even = knows_even and job[0]["number"] == last
        last = job[0]["number"]
        knows_even = score_two_columns(
            design,
            prior,
            table_of(job, prior, half_log, gain),
            rows,
            node_of(job),
            pair,
            job[0]["num_looked_at"],
            job[0]["num_considered"],
            job[0]["is_on_record"],
            knows_even,
            scratch,
            root_scores if job[0]["is_of_root"] else scores,
        )
        add(crew.numbers, DONE, 1)


@inner_kernel
def is_worth_sharing(crew, num_rows, num_columns):
    """Whether a node has enough work for several threads."""
    return num_rows * num_columns >= crew.least_work


@inner_kernel
def post(crew, node, table, num_looked_at, num_considered, is_on_record, is_of_root):
    """Let helpers take columns of a node."""
    job = crew.job
    job[0]["number"] += 1
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
    job[0]["is_tabulated"] = table.is_tabulated
    job[0]["is_uniform"] = table.is_uniform
    job[0]["h"] = table.h
    job[0]["count_end"] = table.layout.count_end
    job[0]["weight_start"] = table.layout.weight_start
    job[0]["sum_start"] = table.layout.sum_start
    store(crew.numbers, DONE, 0)
    store(crew.numbers, LEFT, (num_looked_at + 1) // 2)


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


@returning_kernel
def table_of(job, prior, half_log, gain):
    """The table with which the node is to be scored."""
    return EvidenceTable(
        prior.leaf_var,
        job[0]["is_tabulated"],
        job[0]["is_uniform"],
        job[0]["h"],
        Layout(job[0]["count_end"], job[0]["weight_start"], job[0]["sum_start"]),
        half_log,
        gain,
    )


@inner_kernel
def take(crew):
    """Take a pair of columns, the last first. Returns its number, below 0 if none is left."""
    return add(crew.numbers, LEFT, -1) - 1


@inner_kernel
def finish(crew, num_done, num_pairs):
    """Wait until helpers have done the columns that they took."""
    num_done += add(crew.numbers, DONE, num_done)
    turn = 0
    while num_done < num_pairs:
        rest(turn)
        turn += 1
        num_done = load(crew.numbers, DONE)
