"""Counts, sums and latest stamps of groups of rows; totals can be added to totals."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.stateful.columns import column_of
from penstock.pipelines.stateful.groups import Columns, Groups, pc
from penstock.topics.ddl import TIMESTAMP, type_text
from penstock.topics.schema import EVENT

#: The column with the number of rows.
N = "n"
#: The latest stamp, as stored.
STAMP = pa.field(EVENT, TIMESTAMP)


def total_fields(schema: pa.Schema, sums: Sequence[str]) -> list[pa.Field]:
    """Return the columns of totals: integers are summed as long, others as double."""
    fields = [pa.field(N, pa.int64())]
    for name in sums:
        kind = column_of(schema, name, "sums").type
        if not (pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)):
            problem = f"column {name!r} is {type_text(kind)}, which cannot be summed"
            raise InputError("sums", problem, "name columns of numbers, such as long or double")
        fields.append(pa.field(_summed(name), _wide(kind)))
    return fields


def total(rows: pa.RecordBatch, sums: Sequence[str], groups: Groups) -> Columns:
    """Add up the rows of each group."""
    totals = {N: pa.array(np.bincount(groups.of, minlength=groups.count))}
    for name in sums:
        totals[_summed(name)] = _sum(rows.column(name), groups)
    return totals | {EVENT: latest(rows.column(EVENT), groups)}


def total_again(totals: Mapping[str, pa.Array], groups: Groups) -> Columns:
    """Add up totals of smaller groups."""
    sums = {name: _sum(column, groups) for name, column in totals.items() if name != EVENT}
    return sums | {EVENT: latest(totals[EVENT], groups)}


def plus(old: pa.RecordBatch, new: Mapping[str, pa.Array]) -> Columns:
    """Add totals to earlier ones, which are null where there are none."""
    sums = {}
    for name, column in new.items():
        before = old.column(name)
        if name == EVENT:
            sums[name] = later_stamps(before, column)
        else:
            sums[name] = pc.coalesce(pc.add(before, column), before, column)
    return sums


def latest(stamps: pa.Array, groups: Groups) -> pa.Array:
    """Return the latest stamp of each group."""
    micros = np.full(groups.count, np.iinfo(np.int64).min)
    np.maximum.at(micros, groups.of, stamps.cast(pa.int64()).to_numpy())
    return pa.array(micros).cast(TIMESTAMP)


def later_stamps(stamps: pa.Array, other: pa.Array) -> pa.Array:
    """Return the later of two stamps, row by row; null is ignored."""
    numbers = pc.max_element_wise(stamps.cast(pa.int64()), other.cast(pa.int64()))
    return numbers.cast(TIMESTAMP)


def _sum(column: pa.Array, groups: Groups) -> pa.Array:
    """Return the sums of non-null values; null for groups without any."""
    of = groups.of
    if column.null_count:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        of, column = of[there], column.drop_null()
    kind = _wide(column.type)
    sums = np.zeros(groups.count, kind.to_pandas_dtype())
    np.add.at(sums, of, column.cast(kind).to_numpy())
    return pa.array(sums, mask=np.bincount(of, minlength=groups.count) == 0)


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _summed(name: str) -> str:
    return f"sum_{name}"
