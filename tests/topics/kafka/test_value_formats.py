"""Values of messages: what they become, and how wrong ones are named."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.topics.kafka.arrow_values import MAX_MESSAGE_BYTES, encode_arrow
from penstock.topics.kafka.json_values import encode_json
from penstock.topics.kafka.messages import MessageBlock
from penstock.topics.kafka.value_formats import make_decoder, make_encoder
from penstock.topics.schema import parse_schema

SCHEMA = "id long, amount double, tag string, at timestamp, day date, raw binary, ok boolean"


def block(values: Sequence[bytes | None], first: int = 10) -> MessageBlock:
    """Messages with a hole before each."""
    return MessageBlock(
        topic="orders",
        partition=2,
        offsets=[first + 2 * number for number in range(len(values))],
        values=values,
        keys=[b"k%d" % number for number in range(len(values))],
        times_ms=[1_700_000_000_000 + number for number in range(len(values))],
    )


def decode(values: Sequence[bytes | None], schema: str, format: str = "json") -> list[Any]:
    rows: list[Any] = make_decoder(format, schema).decode(block(values)).to_pylist()
    return rows


def test_json_becomes_columns() -> None:
    value = {
        **{"id": 7, "amount": 1, "tag": "ä\n", "at": "2026-01-02T03:04:05.123456+01:00"},
        **{"day": "2026-01-31", "raw": "aGk=", "ok": True, "more": [1]},
    }
    rows = decode([json.dumps(value).encode(), b"{}", None, b" null"], SCHEMA)
    empty = dict.fromkeys(rows[0])
    assert rows == [
        {
            **{"id": 7, "amount": 1.0, "tag": "ä\n", "day": date(2026, 1, 31), "raw": b"hi"},
            **{"at": datetime(2026, 1, 2, 2, 4, 5, 123456, UTC), "ok": True},
        },
        *(empty, empty, empty),
    ]


def test_json_may_be_nested_and_pretty() -> None:
    value = json.dumps({"s": {"x": [1, 2]}, "d": "1.50"}, indent=2).encode()
    assert decode([value], "s struct<x: array<long>>, d decimal(10,2)") == [
        {"s": {"x": [1, 2]}, "d": Decimal("1.50")}
    ]


def test_columns_of_messages() -> None:
    schema = "_key string, id long, _partition int, _offset long, _timestamp timestamp"
    assert decode([b'{"id":1}', b'{"id":2}'], schema)[1] == {
        **{"_key": "k1", "id": 2, "_partition": 2, "_offset": 12},
        "_timestamp": datetime(2023, 11, 14, 22, 13, 20, 1000, UTC),
    }


@pytest.mark.parametrize(
    ("value", "schema", "field", "problem"),
    [
        (b'{"id":"x"}', "id long", "id", 'must be long, got "x"'),
        (b'{"id":1.5}', "id long", "id", "must be long, got 1.5"),
        (b'{"id":300}', "id byte", "id", "must be byte, got 300"),
        (b'{"id":1}', "tag string not null", "tag", "must be string and not null, got null"),
        (None, "tag string not null", "tag", "must be string and not null, got null"),
        (b'{"day":"soon"}', "id long, day date", "day", "must be a date such as"),
        (b'{"raw":"?"}', "raw binary", "raw", "must be a text in base64"),
        (b'{"at":5}', "at timestamp", "at", "must be timestamp, got 5"),
        (b'{"id":1', "id long", "value", 'is not JSON: {"id":1'),
        (b"", "id long", "value", "is not JSON: "),
        (b'{"id":1}{"id":2}', "id long", "value", "is not JSON"),
        (b'{"id":1}}null{"v":{"id":2}', "id long", "value", "is not JSON"),
        (b'{"id":1}},{"v":{"id":2}', "id long", "value", "is not JSON"),
        (b'{"tag":"\xff"}', "tag string", "value", r"is not JSON: {" '"tag":"' r"\xff"),
        (b"[1]", "id long", "value", "must be a JSON object, got [1]"),
        (b"7", "id long", "value", "must be a JSON object, got 7"),
        (b'"x', "id long", "value", 'is not JSON: "x'),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_wrong_value_is_named(
    value: bytes | None, schema: str, field: str, problem: str, before: int
) -> None:
    good = b'{"id":1,"tag":"a"}'
    with pytest.raises(InputError) as caught:
        decode([good] * before + [value, good], schema)
    error = caught.value
    assert error.where == f"topic orders, partition 2, offset {10 + 2 * before}"
    assert error.field == field
    assert problem in error.problem
    assert error.hint


@pytest.mark.parametrize(
    ("format", "schema", "problem"),
    [
        ("json", None, "schema: is needed for values of the format 'json'"),
        ("jsn", "id long", "values: unknown format 'jsn'"),
        ("json", "m map<string, long>", "schema.m: map<string, bigint> cannot be read|schema.m"),
        ("json", "s struct<d: date>", "schema.s: date inside struct"),
        ("json", "_offset int", "schema._offset: must be long, got int"),
        ("bytes", "id long", "schema: must have the columns value, _key"),
    ],
)
def test_a_wrong_schema_is_refused(format: str, schema: str | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_decoder(format, schema)


def test_plain_bytes() -> None:
    rows = make_decoder("bytes", None).decode(block([b"a", None])).to_pylist()
    assert [(row["value"], row["_key"], row["_offset"]) for row in rows] == [
        (b"a", b"k0", 10),
        (None, b"k1", 12),
    ]
    assert decode([b"a"], "value binary, _key string", "bytes") == [{"value": b"a", "_key": "k0"}]


def test_a_key_that_is_no_text_is_named() -> None:
    bad = MessageBlock(
        topic="t", partition=0, offsets=[5], values=[b"{}"], keys=[b"\xff"], times_ms=[0]
    )
    with pytest.raises(InputError, match="topic t, partition 0, offset 5: _key: is not UTF-8"):
        make_decoder("json", "_key string").decode(bad)


def test_arrow_there_and_back() -> None:
    rows = pa.record_batch({"id": range(2500), "tag": [f"t{n}" for n in range(2500)]})
    keys, values = make_encoder("arrow", rows.schema, None).encode(rows)
    assert len(values) == 3
    assert list(keys) == [None] * 3
    read = make_decoder("arrow", "id long, tag string, _offset long").decode(block(values))
    assert read.select(["id", "tag"]) == rows
    assert read["_offset"].to_pylist() == [10] * 1000 + [12] * 1000 + [14] * 500
    assert make_decoder("arrow", "id long").decode(block([])).num_rows == 0


def test_large_rows_make_small_messages() -> None:
    rows = pa.record_batch({"raw": [b"x" * 400_000] * 5})
    sizes = [len(message) for message in encode_arrow(rows)]
    assert len(sizes) == 3
    assert max(sizes) < MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"{}", "value: is not an Arrow IPC stream"),
        (None, "value: is not an Arrow IPC stream"),
        (next(encode_arrow(pa.record_batch({"id": ["x"]}))), "rows: column 'id': expected long"),
        (next(encode_arrow(pa.record_batch({"ID": [1]}))), "rows: column 'id' (long) is missing"),
    ],
)
def test_a_wrong_arrow_value_is_named(value: bytes | None, problem: str) -> None:
    good = next(encode_arrow(pa.record_batch({"id": [1]})))
    with pytest.raises(InputError) as caught:
        decode([good, value], "id long", "arrow")
    assert str(caught.value).startswith(f"topic orders, partition 2, offset 12: {problem}")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "amount": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "tag": st.none() | TEXTS,
        "at": st.none() | TIMES,
        "day": st.none() | st.dates(),
        "raw": st.none() | st.binary(max_size=5),
        "ok": st.none() | st.booleans(),
        "s": st.none() | st.fixed_dictionaries({"x": st.lists(st.integers(0, 9), max_size=2)}),
    }
)
FULL = parse_schema(f"{SCHEMA}, s struct<x: array<long>>")


@given(rows=st.lists(ROW, min_size=1, max_size=6))
def test_json_there_and_back(rows: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=FULL)
    values = encode_json(batch)
    assert all(isinstance(json.loads(value), dict) for value in values)
    assert make_decoder("json", FULL).decode(block(values)).to_pylist() == rows


def test_json_of_numbers_that_it_lacks_and_of_maps() -> None:
    schema = parse_schema("x double, m map<string, double>, l array<double>")
    nan = float("nan")
    rows = pa.RecordBatch.from_pylist([{"x": nan, "m": [("a", 1.0)], "l": [nan]}], schema=schema)
    assert encode_json(rows) == [b'{"x":null,"m":{"a":1.0},"l":[null]}']
    assert encode_json(pa.RecordBatch.from_pylist([], schema=pa.schema([]))) == []


def test_keys() -> None:
    rows = pa.record_batch({"id": [1, None], "who": ["a", "b"]})
    keys, values = make_encoder("json", rows.schema, "id").encode(rows)
    assert (list(keys), values[0]) == ([b"1", None], b'{"id":1,"who":"a"}')
    plain = pa.record_batch({"value": ["x"], "_key": ["y"]})
    assert make_encoder("bytes", plain.schema, None).encode(plain) == ([b"y"], [b"x"])


@pytest.mark.parametrize(
    ("format", "key", "problem"),
    [
        ("json", "idd", "key: there is no column 'idd'"),
        ("arrow", "id", "key: cannot be set with values='arrow'"),
        ("json", "list", "key: column 'list' is nested"),
        ("bytes", None, "rows: must be one column `value`"),
    ],
)
def test_what_cannot_be_written(format: str, key: str | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_encoder(format, parse_schema("id long, list array<long>"), key)
