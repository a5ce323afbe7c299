"""Partitioned topics: rows sorted by slice, so that a reader of some slices reads only their rows.

A topic that is read by an operator with keyed state is partitioned. In each record batch of its
segments the rows of one slice lie together, in the order in which they came; how many rows each
slice has is written beside the batch. A slice is a range of the hash of a key, and never changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.topics.hashing import hash_keys, slice_of

#: The metadata key of a record batch.
SLICES = "slices"
#: Rows of each slice.
Counts = NDArray[np.int64]
#: Slice, first row in the record batch, number of rows.
Share = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The key columns and the number of slices of a topic."""

    key: tuple[str, ...]
    slices: int

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {"key": list(self.key), "slices": self.slices}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Partition":
        """Read what `to_json` wrote."""
        return cls(key=tuple(data["key"]), slices=int(data["slices"]))

    def check(self, schema: pa.Schema) -> None:
        """Raise `InputError` for key columns that the rows lack."""
        for name in self.key:
            if name not in schema.names:
                hint = f"it has {', '.join(schema.names)}"
                raise InputError("key", f"there is no column {name!r} in the topic", hint)

    def sort(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Counts]:
        """Return the rows sorted by slice, and the number of rows of each slice.

        Without a key all rows are in slice 0.
        """
        if not self.key:
            return rows, np.bincount([0] * rows.num_rows, minlength=self.slices)
        hashes = hash_keys([rows.column(name) for name in self.key])
        # small numbers are sorted by radix, which is many times faster
        number = slice_of(hashes, self.slices).astype(np.min_scalar_type(self.slices))
        order = np.argsort(number, kind="stable")
        return rows.take(pa.array(order)), np.bincount(number, minlength=self.slices)


def pack(counts: Counts) -> dict[str, bytes]:
    """Write the counts as metadata of a record batch."""
    return {SLICES: counts.astype("<u4").tobytes()}


def unpack(metadata: Mapping[bytes, bytes] | None) -> Counts:
    """Read what `pack` wrote; `ValueError` if it is not there."""
    if metadata is None or SLICES.encode() not in metadata:
        raise ValueError("does not say which rows belong to which slice")
    return np.frombuffer(metadata[SLICES.encode()], "<u4").astype(np.int64)


def shares(counts: Counts, low: int, high: int, wanted: Iterable[int]) -> Iterator[Share]:
    """Yield where the rows of some slices lie that fall between two places of a record batch.

    A batch that is cut at a part of its rows is cut at that part of each slice: so every slice
    continues at the same pace, and rows that came together are read together.

    >>> list(shares(np.array([4, 0, 2]), 0, 3, [0, 1, 2]))
    [(0, 0, 2), (2, 4, 1)]
    >>> list(shares(np.array([4, 0, 2]), 3, 6, [0, 1, 2]))
    [(0, 2, 2), (2, 5, 1)]
    """
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    begin, end = counts * low // total, counts * high // total
    for number in wanted:
        if end[number] > begin[number]:
            yield number, int(starts[number] + begin[number]), int(end[number] - begin[number])
