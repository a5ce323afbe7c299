"""Converts rows of a function to the schema of their topic.

Lossless conversions are done: columns in another order, a narrow number in a wide column, a time
in other units. Everything else is an error that names the column.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from penstock.errors import InputError
from penstock.topics.ddl import type_text
from penstock.topics.schema import fit


def fit_rows(
    rows: pa.RecordBatch | pa.Table | Mapping[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """Return rows, or a dictionary of columns, as one batch under exactly this schema.

    >>> schema = pa.schema({"id": pa.int64(), "tag": pa.string()})
    >>> fit_rows({"tag": ["a"], "id": pa.array([1], pa.int32())}, schema).to_pylist()
    [{'id': 1, 'tag': 'a'}]
    """
    if isinstance(rows, Mapping):
        rows = _table(rows, schema)
    if not rows.schema.equals(schema):
        rows = _widened(rows, schema)
    batch = fit(rows, schema)
    return batch if isinstance(batch, pa.RecordBatch) else _joined(batch)


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        at = schema.get_field_index(name)
        # an unexpected column is refused later, together with its type
        arrays[name] = _column(name, values, schema.field(at).type if at >= 0 else None)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise InputError("rows", f"columns have different lengths: {shown}")
    return pa.table(arrays)


def _column(name: str, values: Any, wanted: pa.DataType | None) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if isinstance(values, np.ndarray):
            return pa.array(values)
        if not isinstance(values, list | tuple | range):
            kind = type(values).__name__
            hint = "an Arrow array, a NumPy array or a list, with one value for each row"
            raise InputError("rows", f"column {name!r}: must be a column, got {kind}", hint)
        if wanted is None or (types.is_primitive(wanted) and not _takes(wanted, values)):
            return pa.array(values)
        return pa.array(values, wanted)
    except (pa.ArrowException, OverflowError) as error:
        expected = f"expected {type_text(wanted)}: " if wanted else ""
        problem = f"column {name!r}: {expected}{str(error).splitlines()[0]}"
        raise InputError("rows", problem) from None


def _takes(wanted: pa.DataType, values: Any) -> bool:
    """Return whether values of Python may become this type: Python has one size of number only.

    Arrow alone would cut 1.5 to 1, and accept 5 as a time.
    """
    given = pa.array(values).type
    whole = bool(types.is_integer(given))
    if types.is_floating(wanted) and (whole or types.is_floating(given)):
        return True
    return (whole and bool(types.is_integer(wanted))) or _loses_nothing(given, wanted)


def _widened(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    arrays = []
    for name, array in zip(rows.schema.names, rows.columns, strict=True):
        at = schema.get_field_index(name)
        wanted = schema.field(at).type if at >= 0 else array.type
        if array.type != wanted and _loses_nothing(array.type, wanted):
            try:
                array = array.cast(wanted)
            except pa.ArrowException as error:
                problem = (
                    f"column {name!r}: {type_text(array.type)} to {type_text(wanted)}: {error}"
                )
                raise InputError("rows", problem) from None
        arrays.append(array)
    return type(rows).from_arrays(arrays, rows.schema.names)


def _loses_nothing(given: pa.DataType, wanted: pa.DataType) -> bool:
    if given == wanted or types.is_null(given):
        return True
    if types.is_dictionary(given):
        return _loses_nothing(given.value_type, wanted)
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        # a time without a zone is ambiguous; one with a zone is the same moment in UTC
        return (given.tz is None) == (wanted.tz is None)
    if types.is_string(wanted):
        return bool(types.is_large_string(given) or types.is_string_view(given))
    if types.is_binary(wanted):
        same = (types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
        return any(test(given) for test in same)
    for test in (types.is_integer, types.is_floating):
        if test(given) and test(wanted):
            return bool(given.bit_width < wanted.bit_width)
    return False


def _joined(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
