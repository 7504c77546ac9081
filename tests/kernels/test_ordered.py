"""Cuts found by walking down the order of a column are those that buckets give."""

import numpy as np
import pytest

from pymc_xbart.kernels.ordered import MAX_ORDERED, ORDER_DTYPE, order_rows
from tests.helpers import inside

COLUMNS = {
    "continuous": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(0, max(2, n // 5), n),
    "few values": lambda rng, n: rng.integers(0, 4, n),
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.95, 0.0, rng.random(n)),
    "0/1": lambda _, n: np.arange(n) % 2,
    "constant": lambda _, n: np.ones(n),
}


CURVATURES = {
    "equal": lambda _, n: np.full(n, 1.3),
    "whole multiples": lambda rng, n: 0.5 * rng.integers(0, 9, n),
    "any": lambda rng, n: rng.gamma(2.0, size=n),
}


def make(rng, n, curvature="any", **prior_fields):
    X = np.column_stack([column(rng, n) for column in COLUMNS.values()])
    h = CURVATURES[curvature](rng, n)
    return inside.make_case(X, rng.standard_normal(n), h, **prior_fields)


def random_node(case, rng):
    """A node of some of the rows, on its own, written to the workspace of the case."""
    cut = rng.integers(case.design.num_codes[0])
    return inside.divide(case, inside.open_root(case), 0, cut)[rng.integers(2)]


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("min_samples_leaf", [1, 5])
@pytest.mark.parametrize("num_cutpoints", [1, 7, 100])
def test_cuts_are_those_of_buckets(rng, num_cutpoints, min_samples_leaf, curvature):
    fields = {"num_cutpoints": num_cutpoints, "min_samples_leaf": min_samples_leaf}
    for n in (2, 3, 30, 200):
        case = make(rng, n, curvature, **fields)
        for _ in range(4):
            node = random_node(case, rng)
            if node.stop == node.start:
                continue
            for column in range(case.num_columns):
                found, _ = inside.cuts_of(case, node, column)
                expected, _ = inside.cuts_of(inside.without_order(case), node, column)
                assert [cut[:2] for cut in found] == [cut[:2] for cut in expected]
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_allclose(one[2:], other[2:], rtol=0, atol=1e-12)


def test_that_the_check_would_see_other_cuts(rng):
    case = make(rng, 200, num_cutpoints=7)
    coarser = case._replace(prior=case.prior._replace(num_cutpoints=6))
    node = inside.open_root(case)
    found, _ = inside.cuts_of(case, node, 0)
    expected, _ = inside.cuts_of(inside.without_order(coarser), node, 0)
    assert [cut[:2] for cut in found] != [cut[:2] for cut in expected]


def test_rows_are_in_the_order_of_their_codes(rng):
    codes = rng.integers(0, 20, (3, 50)).astype(np.uint16)
    order = order_rows(codes)
    assert order.dtype == ORDER_DTYPE
    for column, rows in zip(codes, order, strict=True):
        assert sorted(rows) == list(range(50))
        assert (np.diff(column[rows].astype(int)) >= 0).all()


@pytest.mark.parametrize(("n", "width"), [(MAX_ORDERED, MAX_ORDERED), (MAX_ORDERED + 1, 0)])
def test_large_data_sets_keep_no_order(n, width):
    assert order_rows(np.zeros((2, n), np.uint16)).shape == (2, width)
