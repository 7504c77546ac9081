import numpy as np
import pytest

from pymc_xbart.kernels.chunks import NUM_CHUNKS
from pymc_xbart.kernels.crew import make_crew
from tests.helpers import cases, inside, slow


def with_crew(case):
    """The same case, with a crew that splits every node in chunks, however small."""
    return case._replace(work=case.work._replace(crew=make_crew(2, least_work=0)))


alone_or_in_chunks = pytest.mark.parametrize("prepare", [lambda case: case, with_crew])


def random_node(rng, case):
    """A slice of the rows in random order."""
    rows = rng.permutation(case.num_rows)
    whole = inside.open_node(case, rows)
    start, stop = np.sort(rng.choice(case.num_rows + 1, 2, replace=False))
    inner = rows[start:stop]
    sums = case.g[inner].sum(), case.h[inner].sum()
    return whole, inside.Node(whole.start + int(start), whole.start + int(stop), 3, *sums)


@alone_or_in_chunks
@pytest.mark.parametrize("max_rows", [25, 10 * NUM_CHUNKS])
def test_rows_go_to_their_side_in_order(rng, prepare, max_rows):
    for case in map(prepare, cases.cases(rng, 200, max_rows=max_rows)):
        _, node = random_node(rng, case)
        rows, _, _ = inside.rows_of(case, node)
        v = int(rng.integers(case.num_columns))
        codes = case.design.codes[v]
        cut = int(rng.integers(-1, case.design.num_codes[v] + 1))
        left, right, last_left = inside.divide(case, node, v, cut)
        left_rows, right_rows = slow.partition(codes, cut, rows)
        assert left.stop - left.start == len(left_rows)
        assert right.start == left.stop
        assert right.stop - right.start == len(right_rows)
        assert last_left == max((int(codes[i]) for i in left_rows), default=-1)
        assert left.depth == right.depth == 4
        for side, expected in ((left, left_rows), (right, right_rows)):
            row, g, h = inside.rows_of(case, side)
            assert row.tolist() == list(expected)
            assert np.array_equal(g, inside.tallied(case, case.g[row]))
            assert np.array_equal(h, case.h[row])
            assert side.sum_g == pytest.approx(g.sum(), abs=1e-12)
            assert side.sum_h == pytest.approx(h.sum(), abs=1e-12)


@alone_or_in_chunks
def test_no_node_gets_in_the_way_of_another(rng, prepare):
    for case in map(prepare, cases.cases(rng, 50)):
        _, node = random_node(rng, case)
        n, size = case.num_rows, node.stop - node.start
        # Its children stand beyond all rows of the level, and theirs where it stood itself.
        for place in (node.start + n, node.start):
            before = case.work.rows.row.copy()
            cut = int(rng.integers(case.design.num_codes[0]))
            left, right, _ = inside.divide(case, node, 0, cut)
            assert (left.start, right.stop) == (place, place + size)
            after = case.work.rows.row.copy()
            after[place : place + size] = before[place : place + size]
            assert np.array_equal(after, before)
            node = inside.Node(place, place + size, 4, 0.0, 0.0)


def test_the_root_stays_while_its_children_are_split(rng):
    for case in cases.cases(rng, 20):
        root = inside.open_root(case)
        waiting = [root]
        while waiting:
            node = waiting.pop()
            left, right, _ = inside.divide(
                case, node, 0, int(rng.integers(case.design.num_codes[0]))
            )
            if node.depth < 2:
                waiting += [right, left]
        assert np.array_equal(inside.rows_of(case, root)[0], np.arange(case.num_rows))


def test_all_rows_start_in_the_root_in_order(rng):
    for case in cases.cases(rng, 20):
        root = inside.open_root(case)
        row, g, h = inside.rows_of(case, root)
        assert row.tolist() == list(range(case.num_rows))
        assert np.array_equal(g, inside.tallied(case, case.g))
        assert np.array_equal(h, case.h)
        assert root.sum_g == pytest.approx(case.g.sum(), abs=1e-12)
        assert root.sum_h == pytest.approx(case.h.sum(), abs=1e-12)
