"""Schemas as text, what they differ in, and rows that fit them."""

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.topics.schema import (
    EVENT,
    first_difference,
    fit,
    parse_schema,
    schema_text,
    with_event,
    without_event,
)

UTC = pa.timestamp("us", tz="UTC")


def test_all_words_of_types() -> None:
    found = parse_schema(
        "a byte, b tinyint, c short, d smallint, e int, f INTEGER, g long, h bigint, i float, "
        "j double, k decimal(12, 3), l decimal, m string, n binary, o boolean, p date, q timestamp"
    )
    assert list(found.types) == [
        *(pa.int8(), pa.int8(), pa.int16(), pa.int16(), pa.int32(), pa.int32()),
        *(pa.int64(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.decimal128(12, 3), pa.decimal128(10, 0), pa.string(), pa.binary(), pa.bool_()),
        *(pa.date32(), UTC),
    ]


def test_nested_types_and_not_null() -> None:
    found = parse_schema(
        "id: long NOT NULL, tags array<string>, `a b` map<string, array<int>>,"
        "place struct<x: double not null, y double>"
    )
    place = pa.struct([pa.field("x", pa.float64(), nullable=False), ("y", pa.float64())])
    assert found == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("tags", pa.list_(pa.string())),
            ("a b", pa.map_(pa.string(), pa.list_(pa.int32()))),
            ("place", place),
        ]
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no columns"),
        ("id", "has no type ''"),
        ("id lnog", "has no type 'lnog'"),
        ("id long text string", "has 'text' where ',' should be"),
        ("id long, id int", "has column 'id' twice"),
        ("id array<long", "has '' where '>' should be"),
        ("id array long", "has 'long' where '<' should be"),
        ("id long not", "has 'not' without 'null'"),
        ("id decimal(40,2)", "decimal(40,2)"),
        ("id decimal(x)", "has 'x' where a number should be"),
        ("id long,", "has '' where a column's name should be"),
        ("id long; text string", "cannot be read from '; text string' on"),
        ("id struct<a int", "has '' where"),
    ],
)
def test_a_wrong_text_is_answered_with_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_schema(text)
    assert problem in raised.value.problem and repr(text) in raised.value.problem


def test_a_misspelt_type_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'timestamp'"):
        parse_schema("taken timestmp")


simple = st.sampled_from(
    [pa.int8(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), UTC]
) | st.tuples(st.integers(1, 38), st.integers(0, 38)).map(
    lambda pair: pa.decimal128(max(pair), min(pair))
)
names = st.text(st.characters(codec="utf-8", exclude_characters="`", min_codepoint=32), min_size=1)


def _struct(kinds: list[pa.DataType]) -> pa.DataType:
    return pa.struct([pa.field(f"f{i}", k, nullable=i % 2 == 0) for i, k in enumerate(kinds)])


kinds = st.recursive(
    simple,
    lambda inner: (
        inner.map(pa.list_)
        | st.tuples(simple, inner).map(lambda pair: pa.map_(*pair))
        | st.lists(inner, min_size=1, max_size=3).map(_struct)
    ),
    max_leaves=6,
)
fields = st.tuples(names, kinds, st.booleans()).map(
    lambda field: pa.field(field[0], field[1], nullable=field[2])
)
schemas = st.lists(fields, min_size=1, max_size=5, unique_by=lambda field: field.name).map(
    pa.schema
)


@given(schemas)
def test_text_and_back(schema: pa.Schema) -> None:
    assert parse_schema(schema_text(schema)) == schema
    assert first_difference(schema, parse_schema(schema_text(schema))) == ""


@given(schemas, schemas)
def test_a_difference_is_found_exactly_if_there_is_one(one: pa.Schema, other: pa.Schema) -> None:
    assert bool(first_difference(one, other)) == (not one.equals(other))


@given(st.text("adgilnorst,:<>() `39", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        parse_schema(text)


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ("id long, text string", ""),
        ("id int, text string", "column 'id': expected long, found int"),
        ("id long not null, text string", "column 'id': expected long, found long not null"),
        ("id long", "column 'text' (string) is missing"),
        ("id long, text string, x int", "column 'x' (int) is not expected"),
        ("text string, id long", "column 1: expected 'id', found 'text'"),
        ("id long, x int", "column 'text' (string) is missing"),
        ("id long, x int, text string", "column 'x' (int) is not expected"),
    ],
)
def test_the_first_difference_names_column_and_types(found: str, difference: str) -> None:
    assert first_difference(parse_schema("id long, text string"), parse_schema(found)) == difference


def test_the_event_is_the_last_column_wherever_it_stood() -> None:
    event = pa.field(EVENT, UTC, nullable=False)
    plain = parse_schema("id long, text string")
    for given_schema in (plain, parse_schema("id long, _event timestamp, text string")):
        assert with_event(given_schema) == pa.schema([*plain, event])
        assert without_event(with_event(given_schema)) == plain


def test_an_event_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="must be a timestamp, got long"):
        with_event(parse_schema("id long, _event long"))


def test_columns_with_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="'a' twice"):
        with_event(pa.schema([("a", pa.int64()), ("a", pa.int32())]))


def test_rows_fit_in_any_order_and_without_nulls() -> None:
    schema = parse_schema("id long not null, place struct<x: int not null>")
    place = pa.array([{"x": 1}, {"x": 2}], pa.struct([("x", pa.int32())]))
    fitted = fit(pa.table({"place": place, "id": [1, 2]}), schema)
    assert fitted.schema.equals(schema) and fitted.column("id").to_pylist() == [1, 2]


def test_rows_that_do_not_fit_are_refused_with_the_first_difference() -> None:
    schema = parse_schema("id long not null, text string")
    with pytest.raises(InputError, match="column 'id': must not be null, but is in 1 rows"):
        fit(pa.table({"id": [1, None], "text": ["a", "b"]}), schema)
    with pytest.raises(InputError, match="column 'text': expected string, found long"):
        fit(pa.table({"id": [1], "text": [2]}), schema)
    with pytest.raises(InputError, match="id long not null, text string"):
        fit(pa.table({"id": [1]}), schema)
