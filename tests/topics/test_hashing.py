"""Hashes are the same for ever: state on disk rests on them."""

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.topics.hashing import hash_keys, slice_of, split

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)

#: Written down once: were one of these to change, no state on disk could be read any more.
GOLDEN = [
    (pa.int64(), 0, "6b6f20c9232a5e88"),
    (pa.int64(), 1, "e5fdb4eba0eeee07"),
    (pa.int64(), -1, "a768429ff46f3199"),
    (pa.int64(), 2**63 - 1, "49fa45b372cd7483"),
    (pa.int64(), None, "3b721e0c587dddd2"),
    (pa.int8(), -1, "a768429ff46f3199"),
    (pa.uint8(), 1, "e5fdb4eba0eeee07"),
    (pa.uint64(), 2**64 - 1, "a768429ff46f3199"),
    (pa.bool_(), True, "e5fdb4eba0eeee07"),
    (pa.bool_(), None, "3b721e0c587dddd2"),
    (pa.float64(), 0.0, "6b6f20c9232a5e88"),
    (pa.float64(), -0.0, "6b6f20c9232a5e88"),
    (pa.float64(), 1.5, "a1e85d8c561c6181"),
    (pa.float64(), math.inf, "c1425a9fa52a34f6"),
    (pa.float64(), math.nan, "416a44eaef2cb66f"),
    (pa.float32(), 1.5, "a1e85d8c561c6181"),
    (pa.float32(), math.nan, "416a44eaef2cb66f"),
    (pa.date32(), date(2024, 2, 29), "6b79dc5aad71cb61"),
    (pa.timestamp("us", "UTC"), NOON, "9baedd33a3aad104"),
    (pa.timestamp("us"), NOON.replace(tzinfo=None), "9baedd33a3aad104"),
    (pa.decimal128(10, 2), Decimal("-1.25"), "f31c64c1fe764014"),
    (pa.decimal128(10, 2), Decimal("10.00"), "bfc3498022769e3b"),
    (pa.decimal128(10, 2), None, "78e6df7a2f55819f"),
    (pa.string(), "", "bbb7512e2dcdf20c"),
    (pa.string(), "a", "f02d3461fee18ccc"),
    (pa.string(), "eight by", "d9828b70d28eb0f5"),
    (pa.string(), "nine byte", "e6b3c85dbf8658d9"),
    (pa.string(), "żółć", "0c0c483e28385ba6"),
    (pa.string(), None, "3b721e0c587dddd2"),
    (pa.large_string(), "nine byte", "e6b3c85dbf8658d9"),
    (pa.string_view(), "nine byte", "e6b3c85dbf8658d9"),
    (pa.binary(), b"", "bbb7512e2dcdf20c"),
    (pa.binary(), b"\0", "bbc481665ec4557a"),
    (pa.binary(), b"\0\0", "2bc4e6bdf719f59f"),
    (pa.binary(1), b"a", "f02d3461fee18ccc"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOLDEN)
def test_golden(kind: pa.DataType, value: Any, expected: str) -> None:
    (found,) = hash_keys([pa.array([value], kind)])
    assert f"{found:016x}" == expected


def test_golden_of_several_columns() -> None:
    found = hash_keys([pa.array([1, None]), pa.array(["a", "a"])])
    assert [f"{number:016x}" for number in found] == ["0531456a982b5d23", "5a0ddf84e1112040"]


ALL = 2**64 - 1
WORDS = st.none() | st.integers(-(2**63), 2**63 - 1)
#: A plain string ends somewhere in a word, begins anywhere, and may be longer than a block.
TEXTS = st.none() | st.text("aż\0", max_size=40) | st.binary(max_size=40).map(bytes.hex)


def slow_mix(number: int) -> int:
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & ALL
    number = (number ^ number >> 27) * 0x94D049BB133111EB & ALL
    return number ^ number >> 31


def slow_word(value: Any) -> int:
    """The word of a value, one at a time and in whole numbers."""
    if value is None:
        return 0x0A110F1715E40B0D
    if isinstance(value, float):
        value = math.nan if math.isnan(value) else value + 0.0
        return int.from_bytes(struct.pack("<d", value), "little")
    if isinstance(value, int):
        return value & ALL
    content = value.encode() if isinstance(value, str) else value
    cuts = range(0, max(len(content), 1), 8)
    parts = (int.from_bytes(content[cut : cut + 8], "little") for cut in cuts)
    mixed = (slow_mix(part + n * 0x9E3779B97F4A7C15 & ALL) for n, part in enumerate(parts, 1))
    return sum(mixed) + len(content) & ALL


def slow_hash(*key: Any) -> int:
    total = 0x51CED57A7E000001
    for part in key:
        total = slow_mix(total * 0x9E3779B97F4A7C15 + slow_word(part) & ALL)
    return total


@given(st.lists(st.tuples(WORDS, TEXTS, st.none() | st.floats()), max_size=20), st.integers(0, 20))
def test_like_whole_numbers_one_at_a_time(rows: list[tuple[Any, ...]], start: int) -> None:
    kinds = (pa.int64(), pa.string(), pa.float64())
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(kinds)]
    parts = [column.slice(start) for column in columns]  # also where a buffer does not begin
    assert hash_keys(parts).tolist() == [slow_hash(*row) for row in rows[start:]]


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([None if n % 7 == 0 else "x" * (n % 23) for n in range(200)])
    whole = hash_keys([texts])
    monkeypatch.setattr("penstock.topics.hashing._BLOCK", 3)
    assert (hash_keys([texts]) == whole).all()


def test_keys_that_differ_have_hashes_that_differ() -> None:
    numbers = np.arange(-100_000, 100_000)
    texts = [f"key {n}" for n in numbers]
    for columns in ([pa.array(numbers)], [pa.array(texts)], [pa.array(texts), pa.array(numbers)]):
        assert len(np.unique(hash_keys(columns))) == len(numbers)
    one, other = pa.array(["a"]), pa.array(["b"])
    assert hash_keys([one, other]) != hash_keys([other, one])


@pytest.mark.parametrize("slices", [1, 7, 64, 1000])
def test_slices_are_ranges_of_the_hash_and_equally_large(slices: int) -> None:
    hashes = np.sort(hash_keys([pa.array(np.arange(100 * slices))]))
    found = slice_of(hashes, slices)
    assert (np.diff(found) >= 0).all()
    counts = np.bincount(found, minlength=slices)
    # a share is binomial: five standard deviations are no chance
    assert len(counts) == slices and abs(counts - 100).max() <= 60
    edge = np.array([0, ALL], np.uint64)
    assert slice_of(edge, slices).tolist() == [0, slices - 1]


def test_a_key_stays_in_its_slice() -> None:
    words = hash_keys([pa.array(["penstock", "slice", "level"])])
    assert slice_of(words, 64).tolist() == [63, 19, 0]


@given(st.lists(st.integers(0, 30), max_size=50), st.integers(1, 300))
def test_rows_are_split_in_the_order_in_which_they_came(ids: list[int], slices: int) -> None:
    rows = pa.record_batch({"id": pa.array(ids, pa.int64()), "at": pa.array(range(len(ids)))})
    hashes = hash_keys([rows["id"]])
    owners = slice_of(hashes, slices).tolist()
    found = split(rows, hashes, slices)
    assert {n: part["at"].to_pylist() for n, part in found.items()} == {
        number: [at for at, owner in enumerate(owners) if owner == number] for number in owners
    }
