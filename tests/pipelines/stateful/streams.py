"""Streams for the tests of functions on state, and DuckDB as an oracle over the same rows.

Rows are numbered in the order in which they come. Which of them are late is told by the rule that
each test writes down; the watermark is computed here a second time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

SECOND = 1_000_000
COLUMNS = "id long, user string, page int, price long, weight double, at timestamp"
#: Later than everything, so that the watermark passes everything.
FAR = 1_000_000 * SECOND

_SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "user": pa.string(),
        "page": pa.int32(),
        "price": pa.int64(),
        "weight": pa.float64(),
        "at": TIMESTAMP,
        EVENT: TIMESTAMP,
    }
)
_JUDGED = pa.schema(
    [*list(_SCHEMA)[:5], *(pa.field(name, pa.int64()) for name in ("t", "e", "batch", "w"))]
)

Row = dict[str, Any]

#: Each example takes some 20 ms.
some = settings(max_examples=30)


@dataclass(frozen=True)
class Stream:
    """Rows cut into batches, into how many slices they go, and how late they may be."""

    batches: list[list[Row]]
    slices: int
    delay_s: float

    @property
    def flushed(self) -> list[pa.Table]:
        """The batches, one with a row that closes everything, and one that sees it closed."""
        far = {"id": -1, "user": "far", "page": 0, "price": 0, "weight": 0.0, "t": FAR, "e": FAR}
        return [*map(table, self.batches), table([far]), table([])]

    @property
    def options(self) -> dict[str, Any]:
        """For `try_batches`."""
        return {"slices": self.slices, "delay_s": self.delay_s}


users = st.sampled_from([None, "", "ann", "bob", "a user with a long name", *"abcdefgh"])
prices = st.none() | st.integers(-5, 5)
weights = st.none() | st.integers(-8, 8).map(lambda quarter: quarter / 4)


@st.composite
def streams(draw: Any, most: int = 40, keys: Any = users) -> Stream:
    """Up to so many rows, cut anywhere; some batches are empty."""
    # one key, a few or many; close together or far apart
    some_keys = draw(
        st.sampled_from([1, 2, 100]).flatmap(lambda n: st.lists(keys, min_size=1, max_size=n))
    )
    last = draw(st.sampled_from([10, 40, 120]))
    times = st.integers(0, last).map(lambda half_s: half_s * SECOND // 2)
    pages = st.integers(0, draw(st.integers(0, 1)))
    columns = st.tuples(st.sampled_from(some_keys), pages, prices, weights, times, times)
    rows = [
        dict(zip(("user", "page", "price", "weight", "t", "e"), values, strict=True)) | {"id": n}
        for n, values in enumerate(draw(st.lists(columns, max_size=most)))
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    bounds = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    return Stream(
        batches=[rows[begin:end] for begin, end in bounds],
        slices=draw(st.sampled_from([1, 7])),
        delay_s=draw(st.sampled_from([0.0, 2.5, 20.0, 1000.0])),
    )


def table(rows: Sequence[Row]) -> pa.Table:
    """Rows as they come; `t` is the time of the event, `e` the stamp."""
    columns = {name: [row[name] for row in rows] for name in _SCHEMA.names[:5]}
    stamps = {"at": [row["t"] for row in rows], EVENT: [row["e"] for row in rows]}
    return pa.table(columns | stamps, schema=_SCHEMA)


def watermarks(batches: Sequence[Sequence[Row]], delay_s: float) -> list[int | None]:
    """The watermark of each batch: the latest time of all before, minus the delay."""
    seen: list[int] = []
    found: list[int | None] = []
    for batch in batches:
        found.append(max(seen) - int(delay_s * SECOND) if seen else None)
        seen += [row["t"] for row in batch]
    return found


def judged(stream: Stream, closes: Callable[[Row], int]) -> tuple[list[Row], list[int]]:
    """The rows that are not late, with their batch and its watermark `w`; the ids of the others."""
    good, late = [], []
    marks = watermarks(stream.batches, stream.delay_s)
    for number, (batch, mark) in enumerate(zip(stream.batches, marks, strict=True)):
        for row in batch:
            if mark is not None and closes(row) <= mark:
                late.append(row["id"])
            else:
                good.append(row | {"batch": number, "w": mark})
    return good, late


@dataclass(frozen=True)
class Sql:
    """Asks DuckDB about rows with the columns of `judged`."""

    connection: duckdb.DuckDBPyConnection

    def __call__(self, query: str, **tables: Sequence[Row]) -> list[tuple[Any, ...]]:
        for name, rows in tables.items():
            self.connection.register(name, pa.Table.from_pylist(list(rows), _JUDGED))
        return in_order(self.connection.execute(query).fetchall())


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in an order that does not matter; null can be compared with nothing else."""
    return sorted(rows, key=repr)


def shown(output: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Rows of an output, times as microseconds, without the one that closes everything."""
    columns = []
    for name in names:
        column = output.column(name)
        is_time = pa.types.is_timestamp(column.type)
        columns.append((column.cast(pa.int64()) if is_time else column).to_pylist())
    return in_order([row for row in zip(*columns, strict=True) if "far" not in row])


def ids(late: Sequence[Sequence[Row]]) -> list[int]:
    """Which rows were late."""
    return sorted(row["id"] for batch in late for row in batch)


def apart(most: int) -> tuple[pa.Table, pa.Table]:
    """Two rows for each pair of seconds up to the most, under the name of the pair."""
    pairs = [(a, b) for a in range(most) for b in range(most)]
    names = pa.array([f"{a} {b}" for a, b in pairs])
    one, other = (pa.array([pair[i] * SECOND for pair in pairs], TIMESTAMP) for i in (0, 1))
    return pa.table({"user": names, EVENT: one}), pa.table({"user": names, EVENT: other})


def timed(*seconds: float, user: str | None = "ann") -> pa.Table:
    """Rows of one user with these stamps."""
    stamps = pa.array([round(second * SECOND) for second in seconds], TIMESTAMP)
    return pa.table({"user": pa.array([user] * len(seconds), pa.string()), EVENT: stamps})
