"""Split the rows of a large node in two, chunk by chunk (floor 0: NumPy and Numba only).

    rows   |  L R R L  |  L R L R  |      the node, in chunks
    rows   |  L L   L L  |  R R   R R  |  its children: what is of one chunk stays together

Threads share the chunks. How many rows of each go left is counted first, which says where they all
belong; the order is that of one thread.
"""

import numpy as np

from pymc_xbart.kernels.crew import (
    COUNT,
    NUM_CHUNKS,
    PARTITION,
    is_worth_sharing,
    share_chunks,
    start_of_chunk,
)
from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.partition import count_left, partition_rows, place_of_children


@inner_kernel
def split_rows(codes, column, cut, rows, start, stop, is_whole, crew):
    """Copy the rows of a node to where its children belong, with the help of a crew, if any.

    Returns where both sides start and stop there, and then what `partition_rows` does.
    """
    front = np.int64(place_of_children(rows, start))
    back = front + (stop - start)
    # Without a crew, Numba does not even compile what follows.
    if crew is not None and is_whole and is_worth_sharing(crew, stop - start, 1):
        middle, last_left, left, right = partition_together(
            codes, column, cut, rows, start, stop, front, crew
        )
        return front, middle, back, last_left, left, right, 0.0, 0.0
    middle, last_left, left, right, left_h, right_h = partition_rows(
        codes, cut, rows, start, stop, is_whole, front, back
    )
    return front, middle, back, last_left, left, right, left_h, right_h


@inner_kernel
def partition_together(codes, column, cut, rows, start, stop, front, crew):
    """`partition_rows` where tallies tell h, with the help of a crew."""
    job = crew.job
    job[0]["column"] = column
    job[0]["cut"] = cut
    job[0]["start"] = start
    job[0]["stop"] = stop
    share_chunks(crew, COUNT, do_chunk, (codes, rows))
    place_chunks(crew.chunks, start, stop, front)
    share_chunks(crew, PARTITION, do_chunk, (codes, rows))
    return sum_chunks(crew.chunks)


@inner_kernel
def do_chunk(crew, k, codes, rows):
    """Do what is to be done with chunk k of the node that has been posted."""
    job, chunk = crew.job[0], crew.chunks[k]
    start = start_of_chunk(job["start"], job["stop"], k)
    stop = start_of_chunk(job["start"], job["stop"], k + 1)
    if job["kind"] == COUNT:
        chunk["num_left"] = count_left(codes, job["cut"], rows, start, stop)
    else:
        _, last_left, left, right, _, _ = partition_rows(
            codes, job["cut"], rows, start, stop, True, chunk["front"], chunk["back"]
        )
        chunk["last_left"] = last_left
        chunk["left"] = left
        chunk["right"] = right


@inner_kernel
def place_chunks(chunks, start, stop, front):
    """Give the two sides of each chunk their places."""
    back = front + (stop - start)
    for k in range(NUM_CHUNKS):
        size = start_of_chunk(start, stop, k + 1) - start_of_chunk(start, stop, k)
        chunks[k]["front"] = front
        chunks[k]["back"] = back
        front += chunks[k]["num_left"]
        back -= size - chunks[k]["num_left"]


@inner_kernel
def sum_chunks(chunks):
    """What `partition_rows` returns, of all chunks."""
    last_left = np.int64(-1)
    left = np.int64(0)
    right = np.int64(0)
    for k in range(NUM_CHUNKS):
        last_left = max(last_left, chunks[k]["last_left"])
        left += chunks[k]["left"]
        right += chunks[k]["right"]
    last = chunks[NUM_CHUNKS - 1]
    return last["front"] + last["num_left"], last_left, left, right
