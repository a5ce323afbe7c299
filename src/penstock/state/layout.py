"""The columns of a state: key, values, and bookkeeping columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.topics.ddl import field_text, type_text

HASH, GONE, TIMER, SEEN = "_hash", "_gone", "_timer", "_seen"
#: Row numbers of a record batch sorted by timer; only in files with timers.
ORDER = "_order"
#: A column of what `State.get` returns.
FOUND = "_found"
_RESERVED = (HASH, GONE, TIMER, SEEN, ORDER, FOUND)

#: No timer; or a row that does not age.
NEVER = int(np.iinfo(np.int64).max)

#: Accepted forms of rows; a single array is enough for a single column.
Rows: TypeAlias = pa.RecordBatch | pa.Table | Mapping[str, Any] | pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLayout:
    """Key columns first, then value columns."""

    key: pa.Schema
    #: Values as `State.get` returns them: any of them may be null.
    values: pa.Schema
    #: Key and values as `State.put` takes them.
    rows: pa.Schema
    #: Key and values as layers store them: a deleted row has no values.
    stored: pa.Schema

    def take_keys(self, given: Rows) -> pa.RecordBatch:
        """Return the keys as one batch, or raise `InputError` with the first difference."""
        return _batch(given, self.key, "keys")

    def take_rows(self, given: Rows) -> pa.RecordBatch:
        """Return the rows as one batch, or raise `InputError` with the first difference."""
        return _batch(given, self.rows, "rows")


@lru_cache(maxsize=64)
def make_layout(key: pa.Schema, values: pa.Schema) -> StateLayout:
    """Check the columns of a state.

    >>> make_layout(pa.schema({"_hash": pa.string()}), pa.schema({"n": pa.int64()}))
    Traceback (most recent call last):
    penstock.errors.InputError: state._hash: is a reserved column of the state
    hint: give it another name
    """
    names = [*key.names, *values.names]
    if not len(key):
        raise InputError("state", "has no key", "name at least one column of the rows as the key")
    for name in names:
        if name in _RESERVED:
            problem = "is a reserved column of the state"
            raise InputError(f"state.{name}", problem, "give it another name")
        if names.count(name) > 1:
            raise InputError(
                f"state.{name}", "occurs twice", "key and value columns need different names"
            )
    for field in key:
        if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
            problem = f"{type_text(field.type)} cannot be a key"
            raise InputError(f"state.{field.name}", problem, "use its parts as several columns")
    plain = [field.remove_metadata() for field in (*key, *values)]
    stored = [*plain[: len(key)], *(field.with_nullable(True) for field in plain[len(key) :])]
    return StateLayout(
        key=pa.schema(plain[: len(key)]),
        values=pa.schema(stored[len(key) :]),
        rows=pa.schema(plain),
        stored=pa.schema(stored),
    )


def _batch(given: Rows, schema: pa.Schema, label: str) -> pa.RecordBatch:
    """Arrange rows by the columns of the schema; types must match."""
    columns = _columns(given, schema, label)
    hint = f"the columns are: {', '.join(map(field_text, schema))}"
    arrays = []
    for field in schema:
        if field.name not in columns:
            problem = f"column {field.name!r} ({type_text(field.type)}) is missing"
            raise InputError(label, problem, hint)
        arrays.append(_array(columns.pop(field.name), field, label, hint))
    for name in columns:
        raise InputError(label, f"column {name!r} is not expected", hint)
    if len({len(array) for array in arrays}) > 1:
        sizes = ", ".join(f"{field.name} {len(a)}" for field, a in zip(schema, arrays, strict=True))
        raise InputError(label, f"the columns differ in length: {sizes}")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(given: Rows, schema: pa.Schema, label: str) -> dict[str, Any]:
    if isinstance(given, pa.RecordBatch | pa.Table):
        return dict(zip(given.schema.names, given.columns, strict=True))
    if isinstance(given, Mapping):
        return dict(given)
    if len(schema) != 1:
        problem = f"one array is not enough for {len(schema)} columns"
        raise InputError(label, problem, "give a batch, or a dictionary of arrays")
    return {schema.names[0]: given}


def _array(given: Any, field: pa.Field, label: str, hint: str) -> pa.Array:
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if not isinstance(given, pa.Array):
        try:
            given = pa.array(given, field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
            problem = f"column {field.name!r}: is no {type_text(field.type)}: {error}"
            raise InputError(label, problem, hint) from None
    if given.type != field.type:
        expected, actual = type_text(field.type), type_text(given.type)
        problem = f"column {field.name!r}: expected {expected}, found {actual}"
        raise InputError(label, problem, hint)
    if not field.nullable and given.null_count:
        problem = f"column {field.name!r}: must not be null, but is in {given.null_count} rows"
        raise InputError(label, problem, hint)
    return given


def microseconds(times: Any, rows: int) -> NDArray[np.int64]:
    """Return timers in microseconds; null means no timer."""
    given: pa.Array = times if isinstance(times, pa.Array) else _flat(times)
    if pa.types.is_timestamp(given.type):
        given = given.cast(pa.timestamp("us", given.type.tz), safe=False)
    elif not (pa.types.is_integer(given.type) or pa.types.is_null(given.type)):
        problem = f"must be timestamps or microseconds, got {type_text(given.type)}"
        raise InputError("timers", problem)
    if len(given) != rows:
        raise InputError("timers", f"must be one for each row, got {len(given)} for {rows} rows")
    numbers: NDArray[np.int64]
    numbers = given.cast(pa.int64()).fill_null(NEVER).to_numpy(zero_copy_only=False)
    return numbers


def _flat(times: Any) -> pa.Array:
    return times.combine_chunks() if isinstance(times, pa.ChunkedArray) else pa.array(times)
