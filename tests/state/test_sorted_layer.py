"""Finding keys among rows that are sorted by hash, whatever hashes they have."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.state.chunk import Chunk, is_same, join, none, same
from penstock.state.keys import same_keys, winners
from penstock.state.layout import NEVER
from penstock.state.merge import merge, newest
from penstock.state.sorted_layer import SortedLayer
from penstock.topics.hashing import hash_keys

#: The hash of each key; most of them are shared.
HASH_OF = [0, 1, 1, 1, 2**63, 2**63, 2**64 - 1, 2**64 - 1, 5, 6]


def chunk(keys: list[int]) -> Chunk:
    """Rows of these keys, sorted by hash."""
    keys = sorted(keys, key=lambda key: (HASH_OF[key], -key))
    rows = pa.record_batch({"key": pa.array(keys, pa.int64())})
    return Chunk(
        hashes=np.array([HASH_OF[key] for key in keys], np.uint64),
        rows=rows,
        gone=same(False, len(keys)),
        timers=np.array([10 * key for key in keys], np.int64),
        seen=same(NEVER, len(keys)),
    )


def cut(whole: Chunk, cuts: set[int]) -> SortedLayer:
    """A layer in chunks that do not part rows with the same hash."""
    hashes = whole.hashes.tolist()
    bounds = [0, *sorted(c for c in cuts if 0 < c < len(hashes) and hashes[c] != hashes[c - 1])]
    ends = [*bounds[1:], len(hashes)]
    return SortedLayer([whole.slice(start, end) for start, end in zip(bounds, ends, strict=True)])


@given(
    there=st.sets(st.integers(0, 9)),
    asked=st.lists(st.integers(0, 9), max_size=12),
    cuts=st.sets(st.integers(0, 9)),
)
def test_keys_are_found_where_they_are(there: set[int], asked: list[int], cuts: set[int]) -> None:
    whole = chunk(list(there))
    layer = cut(whole, cuts)
    hashes = np.array([HASH_OF[key] for key in asked], np.uint64)
    places = layer.find(hashes, [pa.array(asked, pa.int64())])
    keys = whole.rows["key"].to_pylist()
    assert [keys[place] if place >= 0 else None for place in places] == [
        key if key in there else None for key in asked
    ]
    # and everything that is in those places
    found: list[int | None] = [None] * len(asked)
    for part, rows, which in layer.at_places(places):
        for row, number in zip(rows, which, strict=True):
            found[number] = part.rows["key"][int(row)].as_py()
    assert found == [key if key in there else None for key in asked]


@given(
    there=st.sets(st.integers(0, 9)),
    low=st.none() | st.integers(-5, 99),
    high=st.integers(-5, 99),
    at=st.none() | st.integers(-5, 99),
    ordered=st.booleans(),
)
def test_rows_are_due_between_two_times(
    there: set[int], low: int | None, high: int, at: int | None, ordered: bool
) -> None:
    whole = chunk(list(there))
    if ordered:
        order = np.argsort(whole.timers, kind="stable").astype(np.uint32)
        whole = replace(whole, order=order)
    high = high if low is None else max(low, high)
    at = None if at is None or low is None else min(at, low)  # a layer is older than the batch
    found = [
        k for part in SortedLayer([whole], at).due(low, high) for k in part.rows["key"].to_pylist()
    ]
    assert sorted(found) == sorted(
        key
        for key in there
        if 10 * key <= high
        and (low is None or 10 * key > low or (at is not None and 10 * key <= at))
    )


@given(st.lists(st.sets(st.integers(0, 9)), max_size=4), st.sets(st.integers(0, 9)))
def test_merged_levels_hold_the_newest_row_of_each_key(
    layers: list[set[int]], cuts: set[int]
) -> None:
    def stamped(number: int, keys: set[int]) -> SortedLayer:
        whole = chunk(list(keys))
        rows = whole.rows.append_column("level", pa.array([number] * len(whole), pa.int64()))
        return cut(replace(whole, rows=rows), cuts)

    merged = list(merge([stamped(n, keys) for n, keys in enumerate(layers)], 1))
    rows = [row for part in merged for row in part.rows.to_pylist()]
    expected: dict[int, int] = {}
    for number, keys in enumerate(layers):
        expected = dict.fromkeys(keys, number) | expected
    assert {row["key"]: row["level"] for row in rows} == expected and len(rows) == len(expected)
    hashes = [number for part in merged for number in part.hashes.tolist()]
    assert hashes == sorted(hashes)
    for before, after in pairwise(merged):
        assert before.hashes[-1] < after.hashes[0]


KEYS = st.tuples(
    st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0.0, -0.0, float("nan"), 1.0])
)


def columns(keys: list[tuple[str | None, float | None]]) -> list[pa.Array]:
    """Keys by column."""
    kinds = (pa.string(), pa.float64())
    return [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(kinds)]


def text(key: tuple[str | None, float | None]) -> str:
    """Keys that are one key have one text."""
    return repr((key[0], key[1] if key[1] is None else key[1] + 0.0))


@given(st.lists(st.tuples(KEYS, KEYS), min_size=1))
def test_the_same_key(pairs: list[tuple[tuple[str, float], tuple[str, float]]]) -> None:
    left, right = (columns([pair[side] for pair in pairs]) for side in (0, 1))
    assert same_keys(left, right).tolist() == [text(one) == text(other) for one, other in pairs]


@given(keys=st.lists(KEYS), bits=st.sampled_from([0, 1, 60]), last=st.booleans())
def test_one_row_of_each_key_wins(keys: list[tuple[str, float]], bits: int, last: bool) -> None:
    hashes = hash_keys(columns(keys)) & np.uint64(2**bits - 1)
    chosen = winners(hashes, columns(keys), last=last)
    expected: dict[str, int] = {}
    for row, key in enumerate(keys):
        expected[text(key)] = row if last else expected.get(text(key), row)
    assert {text(keys[row]): row for row in chosen} == expected and len(chosen) == len(expected)
    assert hashes[chosen].tolist() == sorted(hashes[chosen].tolist())


def test_a_column_that_holds_one_value_takes_no_room() -> None:
    column = same(NEVER, 10**12)
    assert is_same(column) and is_same(column[5:]) and column[10**11] == NEVER
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_such_columns_stay_so_where_they_can() -> None:
    one, other = chunk([1, 2]), chunk([3])
    assert is_same(join([one, other]).seen) and is_same(one.take(np.array([0, 1, 1])).seen)
    gone = replace(other, gone=same(True, 1))
    assert join([one, gone]).gone.tolist() == [False, False, True]
    assert is_same(join([none(gone.rows.schema), gone]).gone)
    assert newest([gone], 1) is gone
