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
    inside.open_node(case, rows)
    start, stop = np.sort(rng.choice(case.num_rows + 1, 2, replace=False))
    inner = rows[start:stop]
    return rows, inside.Node(int(start), int(stop), 3, case.g[inner].sum(), case.h[inner].sum())


@alone_or_in_chunks
@pytest.mark.parametrize("max_rows", [25, 10 * NUM_CHUNKS])
def test_rows_go_to_their_side_in_the_order_they_came(rng, prepare, max_rows):
    for case in map(prepare, cases.cases(rng, 200, max_rows=max_rows)):
        rows, node = random_node(rng, case)
        v = int(rng.integers(case.num_columns))
        codes = case.design.codes[v]
        cut = int(rng.integers(-1, case.design.num_codes[v] + 1))
        left, right, last_left = inside.divide(case, node, v, cut)
        left_rows, right_rows = slow.partition(codes, cut, rows[node.start : node.stop])
        assert (left.start, left.stop, right.start, right.stop) == (
            node.start,
            node.start + len(left_rows),
            node.start + len(left_rows),
            node.stop,
        )
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
def test_rows_of_other_nodes_are_left_alone(rng, prepare):
    for case in map(prepare, cases.cases(rng, 50)):
        rows, node = random_node(rng, case)
        inside.divide(case, node, 0, int(rng.integers(case.design.num_codes[0])))
        after = inside.rows_of(case, inside.Node(0, case.num_rows, 0, 0.0, 0.0))[0]
        outside = np.r_[0 : node.start, node.stop : case.num_rows]
        assert np.array_equal(after[outside], rows[outside])
        assert sorted(after.tolist()) == list(range(case.num_rows))


def test_all_rows_start_in_the_root_in_order(rng):
    for case in cases.cases(rng, 20):
        root = inside.open_root(case)
        row, g, h = inside.rows_of(case, root)
        assert row.tolist() == list(range(case.num_rows))
        assert np.array_equal(g, inside.tallied(case, case.g))
        assert np.array_equal(h, case.h)
        assert root.sum_g == pytest.approx(case.g.sum(), abs=1e-12)
        assert root.sum_h == pytest.approx(case.h.sum(), abs=1e-12)
