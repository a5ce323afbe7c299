"""Schemas of topics: parsing, comparing, and fitting rows to a schema."""

import pyarrow as pa

from penstock.errors import InputError
from penstock.topics.ddl import TIMESTAMP, field_text, kind_text, parse_fields, type_text

#: The last column of every topic: the time at which the producer was due to write the record.
EVENT = "_event"
_EVENT_FIELD = pa.field(EVENT, TIMESTAMP, nullable=False)


def parse_schema(text: str) -> pa.Schema:
    """Parse a schema in Spark's DDL.

    >>> parse_schema("id long, taken timestamp").names
    ['id', 'taken']
    """
    return pa.schema(parse_fields(text))


def schema_text(schema: pa.Schema) -> str:
    """Return a schema as DDL that `parse_schema` reads.

    >>> schema_text(pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string())}))
    'id long, tags array<string>'
    """
    return ", ".join(field_text(field) for field in schema)


def with_event(schema: pa.Schema) -> pa.Schema:
    """Return the schema with `_event` as its last column, and without metadata."""
    twice = {name for name in schema.names if schema.names.count(name) > 1}
    if twice:
        raise InputError("schema", f"has column {min(twice)!r} twice")
    if EVENT in schema.names and schema.field(EVENT).type != TIMESTAMP:
        problem = f"must be a timestamp, got {type_text(schema.field(EVENT).type)}"
        raise InputError(f"schema.{EVENT}", problem, "leave it out: every topic has it")
    return pa.schema([*map(_plain, without_event(schema)), _EVENT_FIELD])


def without_event(schema: pa.Schema) -> pa.Schema:
    """Return the schema without `_event`."""
    return pa.schema([field for field in schema if field.name != EVENT])


def first_difference(expected: pa.Schema, actual: pa.Schema) -> str:
    """Describe the first difference of two schemas; an empty string if they are equal.

    >>> first_difference(parse_schema("id long, tag string"), parse_schema("id int, tag string"))
    "column 'id': expected long, found int"
    """
    for number, (want, have) in enumerate(zip(expected, actual, strict=False), start=1):
        if want.name != have.name:
            if want.name not in actual.names:
                return f"column {want.name!r} ({type_text(want.type)}) is missing"
            if have.name not in expected.names:
                return f"column {have.name!r} ({type_text(have.type)}) is not expected"
            return f"column {number}: expected {want.name!r}, found {have.name!r}"
        if not want.equals(have):
            return f"column {want.name!r}: expected {kind_text(want)}, found {kind_text(have)}"
    for field in list(expected)[len(actual) :]:
        return f"column {field.name!r} ({type_text(field.type)}) is missing"
    for field in list(actual)[len(expected) :]:
        return f"column {field.name!r} ({type_text(field.type)}) is not expected"
    return ""


def compare_schemas(old: pa.Schema, new: pa.Schema) -> tuple[tuple[str, ...], str]:
    """Return the new columns, and why old rows cannot be read with the new schema.

    New columns may be anywhere but must be nullable: older rows have null there.

    >>> compare_schemas(parse_schema("id long"), parse_schema("note string, id long"))
    (('note',), '')
    >>> compare_schemas(parse_schema("id long"), parse_schema("id int"))
    ((), "column 'id': expected int, found long")
    """
    added = tuple(name for name in new.names if name not in old.names)
    kept = pa.schema([field for field in new if field.name not in added])
    difference = first_difference(kept, old)
    for name in added:
        if not difference and not new.field(name).nullable:
            difference = f"column {name!r} is new, so it cannot be 'not null'"
    return added, difference


def fill_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with this schema; missing nullable columns are null.

    `ValueError` names a column that is missing and must not be null.
    """
    columns = []
    for field in schema:
        if field.name in rows.schema.names:
            columns.append(rows.column(field.name))
        elif field.nullable:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            raise ValueError(f"column {field.name!r} is missing")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def fit(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """Return the rows with exactly this schema, or raise `InputError` with the first difference.

    Columns may be in any order. A nullable column without nulls fits a non-nullable one: tables
    seldom declare which columns cannot be null.
    """
    if rows.schema.equals(schema):
        return _checked(rows, schema)
    if sorted(rows.schema.names) == sorted(schema.names):
        rows = rows.select(schema.names)
    if difference := first_difference(_loose(schema), _loose(rows.schema)):
        hint = f"the topic's columns are: {schema_text(without_event(schema))}"
        raise InputError("rows", difference, hint)
    return _checked(rows, schema).cast(schema)


def _checked(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    for field, column in zip(schema, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            problem = f"column {field.name!r}: must not be null, but is in {column.null_count} rows"
            raise InputError("rows", problem)
    return rows


def _plain(field: pa.Field) -> pa.Field:
    return field.remove_metadata()


def _loose(schema: pa.Schema) -> pa.Schema:
    """Return the schema with all columns nullable."""
    return pa.schema([pa.field(field.name, _loose_type(field.type)) for field in schema])


def _loose_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_loose_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_loose_type(kind.key_type), _loose_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _loose_type(field.type)) for field in kind])
    return kind
