"""Stored trees come back as they were, in few bytes; what is no stored tree is refused."""

import base64
import zlib

import numpy as np
import pytest

from pymc_xbart.forest.stored import (
    PREFIX,
    StoredDraw,
    StoredForest,
    digest_of,
    digest_of_rows,
    read_draw,
    write_draw,
)
from pymc_xbart.kernels import cut_values, draw_prior_forest, rows_of_leaves
from tests.helpers import cases, inside, slow


def stored(case, rng, num_trees=6, mu=0.5):
    """Draw from the prior what a chain would store."""
    forest, leaf_of_row = draw_prior_forest(case.design, case.prior, num_trees, rng)
    cuts = cut_values(case.design, forest.column, forest.cut)
    view = np.where(forest.column < 0, 0, rng.integers(0, 3, forest.column.size))
    return StoredForest(mu, forest, view, cuts, rows_of_leaves(forest, leaf_of_row))


def drawn(case, forests, columns_digest=0, rows_digest=0, batch=()):
    is_categorical = np.arange(case.num_columns) % 2 == 1
    has_missing = np.arange(case.num_columns) % 3 == 1
    digests = columns_digest, rows_digest
    return StoredDraw(case.num_rows, *digests, is_categorical, has_missing, batch, forests)


def as_trees(stored_forest):
    """Every tree as nested tuples (column, view, cut, left, right), (value, rows) for leaves."""
    _, forest, view, cut_value, rows = stored_forest

    def at(start, node):
        i = start + node
        if forest.left[i] < 0:
            return forest.value[i], rows[i]
        children = (at(start, forest.left[i] + side) for side in (0, 1))
        return forest.column[i], view[i], cut_value[i], *children

    return [at(start, 0) for start in forest.tree_start[:-1].tolist()]


def test_trees_come_back_to_the_last_bit(rng):
    for case in cases.cases(rng, 40, max_rows=60):
        one = stored(case, rng)
        draw = drawn(case, [one], 7, 2**32 - 1)
        again = read_draw(write_draw(draw))
        assert again[:3] == draw[:3]
        assert again.batch == draw.batch
        np.testing.assert_array_equal(again[3:5], draw[3:5])
        assert again.forests[0].mu == 0.5
        assert as_trees(again.forests[0]) == as_trees(one)
        assert write_draw(again) == write_draw(draw)


def test_several_forests_of_one_variable_come_back_in_order(rng):
    case = cases.random_case(rng)
    forests = [stored(case, rng, mu=mu) for mu in np.arange(6.0)]
    draw = drawn(case, forests, batch=(2, 3))
    again = read_draw(write_draw(draw))
    assert again.batch == (2, 3)
    assert [each.mu for each in again.forests] == list(range(6))
    assert [as_trees(each) for each in again.forests] == [as_trees(each) for each in forests]


@pytest.mark.parametrize(("num_rows", "num_columns"), [(300, 256), (300, 257), (70_000, 1)])
def test_columns_and_rows_of_any_number_are_named(rng, num_rows, num_columns):
    X = np.zeros((num_rows, num_columns))
    X[:, -1] = rng.standard_normal(num_rows)
    case = inside.make_case(X, max_depth=2)
    one = stored(case, rng)
    assert one.forest.column.max() == num_columns - 1
    draw = drawn(case, [one])
    assert as_trees(read_draw(write_draw(draw)).forests[0]) == as_trees(one)


@pytest.mark.parametrize("num_rows", [200, 70_000])
def test_a_node_takes_less_than_12_bytes(rng, num_rows):
    case = inside.make_case(rng.standard_normal((num_rows, 10)), alpha=0.95, beta=1.25)
    one = stored(case, rng, num_trees=50)
    text = write_draw(drawn(case, [one]))
    binary = zlib.decompress(base64.b64decode(text.removeprefix(PREFIX)))
    assert len(binary) < 12 * one.forest.column.size


def test_the_text_is_ascii_and_names_its_format(rng):
    case = cases.random_case(rng)
    text = write_draw(drawn(case, [stored(case, rng)]))
    assert text.startswith("xbart2:")
    assert text.isascii()
    assert text.isprintable()


def test_what_is_no_stored_tree_is_refused(rng):
    case = cases.random_case(rng)
    text = write_draw(drawn(case, [stored(case, rng)]))
    for bad, message in [
        ("", "holds no trees"),
        ("x[0] <= 3", "holds 'x"),
        ("xbart9:" + text.removeprefix(PREFIX), "format 'xbart9'.*Update pymc_xbart"),
        (text[:-5], "damaged"),
        (text[:60], "damaged"),
        (PREFIX, "damaged"),
        (PREFIX + base64.b64encode(zlib.compress(b"1234")).decode(), "damaged"),
        (PREFIX + "ä", "damaged"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_draw(bad)


def test_digests_tell_names_and_rows_apart(rng):
    assert digest_of(None) == 0 != digest_of([])
    names = [None, [], ["ab"], ["a", "b"], ["b", "a"], ["a", "b", "c"]]
    assert len({digest_of(each) for each in names}) == len(names)
    X = rng.standard_normal((5, 3))
    assert digest_of_rows(X) == digest_of_rows(np.asfortranarray(X)) != digest_of_rows(X.T)


def test_shape_bits_are_those_of_the_format(rng):
    """The layout, read by hand: a reader in another language must find what the table says."""
    case = inside.make_case(np.arange(6.0)[:, None], alpha=0.999, beta=0.0, max_depth=2)
    one = stored(case, rng, num_trees=1, mu=-1.5)
    text = write_draw(StoredDraw(6, 11, 22, np.array([True]), np.array([False]), (), [one]))
    binary = zlib.decompress(base64.b64decode(text.removeprefix("xbart2:")))
    assert np.frombuffer(binary, "<u4", 5).tolist() == [6, 1, 11, 22, 0]
    assert [*binary[20:22]] == [0b1000_0000, 0]
    assert np.frombuffer(binary, "<f8", 1, 22)[0] == -1.5
    num_trees, num_splits = np.frombuffer(binary, "<u4", 2, 30)
    assert (num_trees, 2 * num_splits + 1) == (1, one.forest.column.size)
    bits = f"{binary[38]:08b}"[: 2 * num_splits + 1]
    assert [bit == "1" for bit in bits] == (one.forest.left >= 0).tolist()
    assert slow.as_tree(one.forest, 0) != slow.LEAF
