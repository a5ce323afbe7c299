"""Counts and sums by key: each batch emits the new totals of the keys that changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.pipelines.stateful.columns import Names, names_of, output_of
from penstock.pipelines.stateful.groups import columns_of, group_rows, take
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.totals import plus, total, total_fields
from penstock.state.handle import State
from penstock.topics.schema import EVENT


def counts(by: Names, *, sums: Names = (), time: str = EVENT) -> "Counts":
    """Count rows by key and add up columns; the output has the key, n, and sum_X for each.

    The time matters only if the operator has a ttl_s: counts restart after it.

    >>> from penstock import counts, try_batches
    >>> batches = [[{"word": "a", "size": 2}, {"word": "b", "size": 3}], [{"word": "a", "size": 5}]]
    >>> tried = try_batches(counts(by="word", sums="size"), batches, "word string, size int")
    >>> tried.rows[-1]
    {'word': 'a', 'n': 2, 'sum_size': 7}
    """
    return Counts(by=names_of("by", by), sums=names_of("sums", sums, least=0), time=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Ready):
    """See `counts`."""

    sums: tuple[str, ...] = ()

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        schema, key = self._rows_and_key(inputs)
        totals = total_fields(schema, self.sums)
        return Shape(state=totals, output=output_of([*key, *totals]))

    @property
    def forgets(self) -> bool:
        """Counts never close."""
        return False

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Add the rows of a slice to the totals of their keys."""
        if not given.num_rows:
            return None
        key = columns_of(given, self.by)
        groups = group_rows(key.values(), given.num_rows)
        keys = take(key, groups.first)
        new = total(given, self.sums, groups)
        stamps = new.pop(EVENT)
        rows = keys | plus(state.get(keys), new)
        state.put(rows)
        return rows | {EVENT: stamps}
