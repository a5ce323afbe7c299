"""Rows brought under the schema of their topic: what loses nothing, and nothing else."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.pipelines.row_conversion import fit_rows
from penstock.topics.schema import parse_schema

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MICROSECONDS = int(NOON.timestamp() * 1_000_000)


def fitted(values: Any, kind: str) -> Any:
    """One column under one type, read back."""
    return fit_rows({"c": values}, parse_schema(f"c {kind}")).column("c").to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1, 2], pa.int8()), "long", [1, 2]),
        (pa.array([1, 2], pa.uint32()), "long", [1, 2]),
        (pa.array([1.5], pa.float32()), "double", [1.5]),
        (pa.array([MICROSECONDS // 1000], pa.timestamp("ms", "UTC")), "timestamp", [NOON]),
        (pa.array([MICROSECONDS * 1000], pa.timestamp("ns", "UTC")), "timestamp", [NOON]),
        (pa.array([MICROSECONDS], pa.timestamp("us", "Asia/Tokyo")), "timestamp", [NOON]),
        (pa.array(["a"], pa.large_string()), "string", ["a"]),
        (pa.array(["a"], pa.string_view()), "string", ["a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "string", ["a", "b", "a"]),
        (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
        (pa.array([b"ab"], pa.large_binary()), "binary", [b"ab"]),
        (pa.nulls(2), "double", [None, None]),
        (pa.chunked_array([[1], [2, 3]]), "long", [1, 2, 3]),
        (np.array([1, 2], np.int32), "long", [1, 2]),
        (np.array([True]), "boolean", [True]),
        ([1, 2], "int", [1, 2]),
        ((1, 2), "double", [1.0, 2.0]),
        ([0.1], "float", [pytest.approx(0.1, rel=1e-6)]),
        (range(3), "short", [0, 1, 2]),
        ([None, 1], "long", [None, 1]),
        ([None, None], "timestamp", [None, None]),
        ([NOON.astimezone(timezone(timedelta(hours=9)))], "timestamp", [NOON]),
        ([date(2024, 1, 1)], "date", [date(2024, 1, 1)]),
        ([Decimal("1.50")], "decimal(10,2)", [Decimal("1.50")]),
        ([["a"], []], "array<string>", [["a"], []]),
        ([{"x": 1, "y": "b"}], "struct<x: int, y: string>", [{"x": 1, "y": "b"}]),
        ([{"k": 1}], "map<string, long>", [[("k", 1)]]),
    ],
)
def test_what_loses_nothing_is_done(values: Any, kind: str, expected: list[Any]) -> None:
    assert fitted(values, kind) == expected


@pytest.mark.parametrize(
    ("values", "kind", "problem"),
    [
        (pa.array([1]), "int", "expected int, found long"),
        (pa.array([1.0]), "long", "expected long, found double"),
        (pa.array([1]), "double", "expected double, found long"),
        (pa.array([1.5]), "float", "expected float, found double"),
        (pa.array([1]), "timestamp", "expected timestamp, found long"),
        (pa.array([0], pa.timestamp("us")), "timestamp", "expected timestamp, found timestamp_ntz"),
        (pa.array([NOON]), "timestamp_ntz", "expected timestamp_ntz, found timestamp"),
        (pa.array([1501], pa.timestamp("ns", "UTC")), "timestamp", "lose data"),
        (pa.array(["a"]), "binary", "expected binary, found string"),
        (pa.array(["a"]), "long", "expected long, found string"),
        (np.array([1.0]), "long", "expected long, found double"),
        ([1.5], "long", "expected long, found double"),
        ([5], "timestamp", "expected timestamp, found long"),
        ([True], "long", "expected long, found boolean"),
        ([datetime(2024, 1, 1, 12)], "timestamp", "expected timestamp, found timestamp_ntz"),
        ([NOON], "date", "expected date, found timestamp"),
        ([300], "byte", "expected byte: "),
        ([1 << 70], "long", "expected long: "),
        ([1, "a"], "long", "expected long: "),
        (["a", 1], "string", "expected string: "),
        ("abc", "string", "must be a column, got str"),
        (7, "long", "must be a column, got int"),
    ],
)
def test_everything_else_names_the_column_and_both_types(
    values: Any, kind: str, problem: str
) -> None:
    with pytest.raises(InputError) as wrong:
        fitted(values, kind)
    assert "column 'c': " in wrong.value.problem
    assert problem in wrong.value.problem


SCHEMA = parse_schema("id long not null, tag string")


def test_columns_may_come_in_any_order_and_form() -> None:
    expected = [{"id": 1, "tag": "a"}]
    for rows in (
        {"tag": ["a"], "id": [1]},
        pa.table({"tag": ["a"], "id": pa.array([1], pa.int16())}),
        pa.record_batch({"id": [1], "tag": ["a"]}),
    ):
        batch = fit_rows(rows, SCHEMA)
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.equals(SCHEMA) and batch.to_pylist() == expected


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({"id": [1]}, "column 'tag' (string) is missing"),
        ({"id": [1], "tag": ["a"], "more": [1.0]}, "column 'more' (double) is not expected"),
        ({"id": [None], "tag": ["a"]}, "column 'id': must not be null"),
        ({"id": [1, 2], "tag": ["a"]}, "columns have different lengths: 'id' 2, 'tag' 1"),
        ({}, "is missing"),
    ],
)
def test_columns_that_are_missing_or_too_many(rows: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        fit_rows(rows, SCHEMA)
    assert problem in wrong.value.problem


def test_chunks_become_one_batch_and_no_rows_are_rows_too() -> None:
    parts = [pa.table({"id": [i], "tag": [str(i)]}) for i in range(3)]
    assert fit_rows(pa.concat_tables(parts), SCHEMA).num_rows == 3
    empty = fit_rows(pa.table({"id": [], "tag": []}), SCHEMA)
    assert empty.num_rows == 0 and empty.schema.equals(SCHEMA)


def test_rows_that_fit_are_not_copied() -> None:
    given_ = pa.record_batch([pa.array([1, 2]), pa.array(["a", "b"])], schema=SCHEMA)
    assert fit_rows(given_, SCHEMA).column("id").buffers()[1].address == (
        given_.column("id").buffers()[1].address
    )


@given(st.lists(st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(width=64))))
def test_python_numbers_are_kept_as_they_are_or_refused(values: list[Any]) -> None:
    try:
        found = fitted(values, "long")
    except InputError:
        return
    assert found == values
