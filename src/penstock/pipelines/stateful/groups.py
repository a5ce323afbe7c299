"""Groups of rows with the same key, numbered from 0."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

#: pyarrow.compute creates its functions at import, so type checkers do not see them.
pc: Any = pyarrow.compute

Numbers = NDArray[np.int64]
Columns = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each row; groups are numbered from 0."""

    of: Numbers
    #: The first row of each group.
    first: Numbers

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.first)


def group_rows(columns: Iterable[pa.Array], rows: int) -> Groups:
    """Group rows by these columns; null equals null. Without columns all rows are one group.

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
    """Make every row a separate group."""
    return Groups(np.arange(rows), np.arange(rows))


def expand(counts: Numbers) -> tuple[Numbers, Numbers]:
    """Count from 0 for each number; return the owner and the count of each element.

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
