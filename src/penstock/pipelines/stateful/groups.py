"""Rows that belong together because they have the same key, told by numbers from 0 on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

#: Arrow makes its functions when it is imported, where no type checker sees them.
pc: Any = pyarrow.compute

Numbers = NDArray[np.int64]
Columns = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row is in; groups have numbers from 0 on."""

    of: Numbers
    #: The first row of each group.
    first: Numbers

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.first)


def group_rows(columns: Iterable[pa.Array], rows: int) -> Groups:
    """Group rows by these columns; null is a value of its own. Without columns all are one group.

    >>> groups = group_rows([pa.array(["b", None, "b"]), pa.array([1, 1, 1])], 3)
    >>> groups.of.tolist(), groups.first.tolist()
    ([0, 1, 0], [0, 1])
    """
    codes, count = np.zeros(rows, np.int64), min(rows, 1)
    for column in columns:
        more, kinds = _codes(column)
        # made dense again at once, so that many columns do not overflow
        codes, count = (more, kinds) if count <= 1 else _codes(pa.array(codes * kinds + more))
    first = np.zeros(count, np.int64)
    # of several rows of a group the one assigned last stays
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)
    return Groups(codes, first)


def each_alone(rows: int) -> Groups:
    """Let every row be a group of its own."""
    return Groups(np.arange(rows), np.arange(rows))


def expand(counts: Numbers) -> tuple[Numbers, Numbers]:
    """Count up from 0 for each number: whose turn it is, and how far it has come.

    >>> [part.tolist() for part in expand(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - begins[owner]


def columns_of(rows: pa.RecordBatch, names: Sequence[str]) -> Columns:
    """Return columns by name."""
    return {name: rows.column(name) for name in names}


def take(columns: Mapping[str, pa.Array], places: Numbers) -> Columns:
    """Return these rows of every column."""
    wanted = pa.array(places)
    return {name: column.take(wanted) for name, column in columns.items()}


def _codes(column: pa.Array) -> tuple[Numbers, int]:
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 and 0.0 are one key
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
