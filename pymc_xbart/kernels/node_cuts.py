"""Candidate cuts of a column in a node, by the way that suits its rows (floor 0).

On small data sets from rows in the order of the column (see `ordered`), else from sums over buckets
of codes (see `histogram`), which a node may keep for its children. NumPy and Numba only.
"""

from typing import NamedTuple

import numpy as np

from pymc_xbart.kernels.cuts import Cuts, list_cuts, make_cuts
from pymc_xbart.kernels.decorator import inlined_kernel, inner_kernel
from pymc_xbart.kernels.histogram import (
    Buckets,
    make_buckets,
    num_buckets,
    num_stored,
    sum_column,
)
from pymc_xbart.kernels.ordered import Members, list_ordered_cuts, make_members, mark_members
from pymc_xbart.kernels.sparse import Sparse, make_sparse

# Of the types that a tree's arrays have, and comparisons: for literals, Numba would compile all
# scoring once more.
NOWHERE = np.int32(-1)
YES, NO = np.bool_(True), np.bool_(False)
FIRST, SECOND = np.int64(0), np.int64(1)  # of two columns that are looked at together
MAX_RANGE_DEPTH = 64  # nodes from this depth on look for their code range themselves


class Scratch(NamedTuple):
    """Room for scoring nodes; contents are undefined between trees."""

    buckets: Buckets  # (1, 2, num_buckets), for two columns of a node that keeps no sums
    stored: Buckets  # (places, p, num_buckets), for those that do
    sparse: Sparse
    members: Members  # of the node at hand, on small data sets
    cuts: Cuts
    # Codes between which the last scored node of each depth lies, per column. Depth first, the last
    # scored node one level up is always the parent.
    code_range: np.ndarray  # (MAX_RANGE_DEPTH + 1, p, 2) int32


class Node(NamedTuple):
    """A node that waits to be scored. Places are positions in `Scratch.stored`, or NOWHERE."""

    start: int  # its slice of NodeRows
    stop: int
    depth: int
    sum_g: float
    sum_h: float
    place: int  # where it keeps its sums
    is_ready: bool  # its sums are there already
    parent_place: int  # where those of its parent are, if its larger sibling's are to be derived
    sibling_place: int  # where to put them
    has_parent: bool  # which was the last node to be scored at the depth above


def make_scratch(num_rows: int, num_columns: int, num_cutpoints: int) -> Scratch:
    """Allocate scratch for n rows and p columns."""
    size = num_buckets(num_cutpoints)
    return Scratch(
        make_buckets(1, 2, size),
        make_buckets(num_stored(num_rows, num_columns, size), num_columns, size),
        make_sparse(size),
        make_members(num_rows),
        make_cuts(size),
        np.empty((MAX_RANGE_DEPTH + 1, num_columns, 2), np.int32),
    )


def another_scratch(scratch: Scratch) -> Scratch:
    """Allocate what a second thread needs of its own to score columns of the same nodes."""
    size = scratch.buckets.tally.shape[-1]
    row, running = scratch.members.row, scratch.members.running
    return scratch._replace(
        buckets=make_buckets(1, 2, size),
        sparse=make_sparse(size),
        members=scratch.members._replace(row=row.copy(), running=running.copy()),
        cuts=make_cuts(size),
    )


@inner_kernel
def lone_node(start, stop, depth, sum_g, sum_h):
    """Node that neither its parent nor its sibling is scored with."""
    return Node(start, stop, depth, sum_g, sum_h, NOWHERE, False, NOWHERE, NOWHERE, False)


@inner_kernel
def without_places(node, place):
    """The same node, with sums at `place` if anywhere, and none to derive for a sibling."""
    return _with_places(node, place, place >= 0, NOWHERE, NOWHERE)


@inner_kernel
def with_sums(node):
    """The same node, with its sums where they are to be."""
    return _with_places(node, node.place, YES, node.parent_place, node.sibling_place)


@inner_kernel
def _with_places(node, place, is_ready, parent_place, sibling_place):
    return Node(
        node.start,
        node.stop,
        node.depth,
        node.sum_g,
        node.sum_h,
        place,
        is_ready,
        parent_place,
        sibling_place,
        node.has_parent,
    )


@inner_kernel
def may_be_sparse(node):
    """Whether nobody but the node itself needs its sums in their buckets."""
    return node.place < 0 and node.sibling_place < 0


@inner_kernel
def look_at(design, curvature, rows, node, members):
    """Prepare finding the cuts of a node, in any column."""
    if design.order.shape[1] > 0:
        mark_members(rows, node.start, node.stop, curvature.is_whole, members)


@inlined_kernel
def find_cuts(design, prior, curvature, rows, node, v, which, wants_codes, scratch):
    """Write the candidate cuts of column v to `scratch.cuts`. Returns how many there are.

    The node must be the one that was looked at last. If it keeps no sums, they go to the first or
    second of `scratch.buckets`, by `which`. The codes of the cuts may be left out unless they are
    asked for.
    """
    if design.order.shape[1] > 0:
        return list_ordered_cuts(
            design.codes[v],
            design.order[v],
            design.num_codes[v] < design.order.shape[1],
            node.stop - node.start,
            prior.num_cutpoints,
            prior.min_samples_leaf,
            curvature.is_whole,
            curvature.layout,
            wants_codes,
            scratch.members,
            scratch.cuts,
        )
    own = own_sums(scratch, node, v, which)
    parent = own
    sibling = own
    has_sibling = node.sibling_place >= 0
    if has_sibling:
        parent = column_of(scratch.stored, node.parent_place, v)
        sibling = column_of(scratch.stored, node.sibling_place, v)
    code_range = scratch.code_range[min(node.depth, MAX_RANGE_DEPTH), v]
    base, shift, first, last, is_sparse = sum_column(
        design.codes[v],
        rows,
        node.start,
        node.stop,
        code_range,
        curvature.is_whole,
        node.is_ready,
        own,
        has_sibling,
        parent,
        sibling,
        may_be_sparse(node),
        scratch.sparse,
    )
    position = scratch.sparse.position if is_sparse else scratch.sparse.everywhere
    if shift == 0 and node.place < 0:
        # The outermost buckets are the outermost codes. (Stored sums must keep the base they were
        # added up with.)
        code_range[0] = base + position[first]
        code_range[1] = base + position[last]
    return list_cuts(
        own,
        position,
        base,
        shift,
        first,
        last,
        node.stop - node.start,
        prior.num_cutpoints,
        prior.min_samples_leaf,
        curvature.is_whole,
        curvature.layout,
        wants_codes,
        scratch.cuts,
    )


@inner_kernel
def own_sums(scratch, node, v, which):
    """Where the sums of a column in a node are to be."""
    if node.place >= 0:
        return column_of(scratch.stored, node.place, v)
    return column_of(scratch.buckets, 0, which)


@inner_kernel
def column_of(stored, place, v):
    """Sums of one column in one of the nodes that keep theirs."""
    return Buckets(stored.tally[place, v], stored.h[place, v])


@inner_kernel
def start_code_range(code_range, depth, v, num_codes, is_on_record):
    """Take over the parent's code range in column v, or the whole column if it is not on record."""
    own = code_range[min(depth, MAX_RANGE_DEPTH), v]
    if is_on_record:
        parent = code_range[depth - 1, v]
        own[0] = parent[0]
        own[1] = parent[1]
    else:
        own[0] = 0
        own[1] = num_codes[v] - 1
