"""Split the rows of a large node in two, chunk by chunk (floor 0: NumPy and Numba only).

    rows   |  L R R L  |  L R L R  |       the node, in chunks
    spare  |  L L R R  |  L L R R  |       each chunk with its sides apart, the right one backwards
    rows   |  L L L L  |  R R R R  |       both sides in their places, in order

Threads share the chunks. All rows go to spare before any comes back, since the place of one chunk
is where another one was.
"""

import numpy as np

from pymc_xbart.kernels.crew import (
    NUM_CHUNKS,
    PARTITION,
    PUT,
    is_worth_sharing,
    share_chunks,
    start_of_chunk,
)
from pymc_xbart.kernels.decorator import inner_kernel
from pymc_xbart.kernels.partition import partition_chunk, partition_rows, put_chunk


@inner_kernel
def split_rows(codes, column, cut, rows, start, stop, is_tabulated, spare, crew):
    """`partition_rows`, with the help of a crew if there is one."""
    # Without a crew, Numba does not even compile what follows.
    if crew is not None and is_tabulated and is_worth_sharing(crew, stop - start, 1):
        middle, last_left, left, right = partition_together(
            codes, column, cut, rows, start, stop, spare, crew
        )
        return middle, last_left, left, right, 0.0, 0.0
    return partition_rows(codes, cut, rows, start, stop, is_tabulated, spare)


@inner_kernel
def partition_together(codes, column, cut, rows, start, stop, spare, crew):
    """Do what `partition_rows` does where evidence is tabulated, with the help of a crew."""
    job = crew.job
    job[0]["column"] = column
    job[0]["cut"] = cut
    job[0]["start"] = start
    job[0]["stop"] = stop
    share_chunks(crew, PARTITION, do_chunk, (codes, rows, spare))
    middle, last_left, left, right = place_chunks(crew.chunks, start, stop)
    share_chunks(crew, PUT, do_chunk, (codes, rows, spare))
    return middle, last_left, left, right


@inner_kernel
def do_chunk(crew, k, codes, rows, spare):
    """Do what is to be done with chunk k of the node that has been posted."""
    job, chunk = crew.job[0], crew.chunks[k]
    start = start_of_chunk(job["start"], job["stop"], k)
    stop = start_of_chunk(job["start"], job["stop"], k + 1)
    if job["kind"] == PARTITION:
        middle, last_left, left, right = partition_chunk(
            codes, job["cut"], rows, start, stop, spare
        )
        chunk["middle"] = middle
        chunk["last_left"] = last_left
        chunk["left"] = left
        chunk["right"] = right
    else:
        put_chunk(
            spare, start, chunk["middle"], stop, rows, chunk["left_start"], chunk["right_start"]
        )


@inner_kernel
def place_chunks(chunks, start, stop):
    """Give the two sides of each chunk their places. Returns what `partition_rows` does."""
    middle = np.int64(start)
    last_left = np.int64(-1)
    left = np.int64(0)
    right = np.int64(0)
    for k in range(NUM_CHUNKS):
        chunks[k]["left_start"] = middle
        middle += chunks[k]["middle"] - start_of_chunk(start, stop, k)
        last_left = max(last_left, chunks[k]["last_left"])
        left += chunks[k]["left"]
        right += chunks[k]["right"]
    right_start = middle
    for k in range(NUM_CHUNKS):
        chunks[k]["right_start"] = right_start
        right_start += start_of_chunk(start, stop, k + 1) - chunks[k]["middle"]
    return middle, last_left, left, right
