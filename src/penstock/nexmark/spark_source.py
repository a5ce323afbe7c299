"""The stream as a source of Spark's own, for queries that need no topics.

    spark.dataSource.register(NexmarkSource)
    bids = spark.readStream.format("penstock-nexmark").option("kind", "bids").load()

Options: `kind` (persons, auctions or bids), `events` (so many events of all kinds; without it a
stream never ends), `rate` (events per second of event time), `hot` (on or off), `columns` (only
these, in this order), `rowsPerBatch` and `partitions` (tasks of a batch).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.errors import InputError, nearest
from penstock.nexmark.event_order import KINDS, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import rows
from penstock.nexmark.times import RATE, FixedRate
from penstock.topics.schema import parse_schema

FORMAT = "penstock-nexmark"
#: Rows that are made at a time, and rows of a batch if nobody says.
_PART, _BATCH = 1 << 15, 100_000
_OPTIONS = ("kind", "events", "rate", "hot", "columns", "rowsPerBatch", "partitions")
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is read: rows of one kind, from the first one on."""

    kind: EventKind
    setting: StreamSettings
    columns: tuple[str, ...]
    #: How many rows there are; None if they never end.
    rows: int | None
    rows_per_batch: int
    partitions: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "Wanted":
        """Read the options of a source, in which case they are written does not matter."""
        given = {name.lower(): text for name, text in options.items()}
        known = {name.lower(): name for name in _OPTIONS}
        for name in given.keys() - known.keys():
            raise InputError(name, "unknown option", nearest(name, _OPTIONS))
        name, hot = given.get("kind", ""), given.get("hot", "on")
        if name not in KINDS:
            raise InputError("kind", f"unknown kind of event {name!r}", nearest(name, KINDS))
        if hot not in _SWITCH:
            raise InputError("hot", f"must be on or off, got {hot!r}")
        kind = KINDS[name]
        count = _whole(given, "events", 0)
        return cls(
            kind=kind,
            setting=StreamSettings(hot=_SWITCH[hot], clock=FixedRate(_number(given, "rate", RATE))),
            columns=_columns(given.get("columns", ""), kind),
            rows=kind.rows_within(0, count)[1] if count else None,
            rows_per_batch=_whole(given, "rowsPerBatch", _BATCH),
            partitions=_whole(given, "partitions", 1),
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns, with their types."""
        schema = parse_schema(self.kind.schema)
        return pa.schema([schema.field(name) for name in self.columns])

    def cut(self, first: int, end: int) -> Sequence[InputPartition]:
        """Cut rows first, ..., end - 1 into partitions, as even as can be."""
        count = self.partitions
        bounds = [first + (end - first) * place // count for place in range(count + 1)]
        return [InputPartition(pair) for pair in pairwise(bounds)] if end > first else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the rows of a partition."""
        first, end = partition.value
        for part in range(first, end, _PART):
            until = min(part + _PART, end)
            yield from rows(self.kind, part, until, self.setting, self.columns).to_batches()


class NexmarkSource(DataSource):
    """What Spark knows as `penstock-nexmark`."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns that are read."""
        return from_arrow_schema(Wanted.parse(self.options).schema, False)

    def reader(self, schema: StructType) -> "NexmarkReader":  # noqa: ARG002
        """Read all of it at once."""
        return NexmarkReader(Wanted.parse(self.options))

    def streamReader(self, schema: StructType) -> "NexmarkStream":  # noqa: ARG002, N802
        """Read it batch by batch."""
        return NexmarkStream(Wanted.parse(self.options))


class NexmarkReader(DataSourceReader):
    """Reads so many events."""

    def __init__(self, wanted: Wanted) -> None:
        if wanted.rows is None:
            raise InputError("events", "is missing", "only a stream may go on for ever")
        self._wanted, self._end = wanted, wanted.rows

    def partitions(self) -> Sequence[InputPartition]:
        """Deal the rows."""
        return self._wanted.cut(0, self._end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the rows of a partition."""
        return self._wanted.read(partition)


class NexmarkStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the stream in batches; an offset is the number of rows before it."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Begin with the first row."""
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """So many rows a batch."""
        return ReadMaxRows(self._wanted.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Refuse to read all of what never ends."""
        if self._wanted.rows is None:
            raise InputError("events", "is missing", "availableNow needs a stream that ends")

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the end of the next batch; the start itself if nothing is left."""
        end, most = self._wanted.rows, self._wanted.rows_per_batch
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows
        elif end is not None:  # all that there is
            most = end
        behind = start["row"] + most
        return {"row": behind if end is None else min(behind, end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Deal the rows of a batch."""
        return self._wanted.cut(start["row"], end["row"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the rows of a partition."""
        return self._wanted.read(partition)


def _columns(text: str, kind: EventKind) -> tuple[str, ...]:
    known = parse_schema(kind.schema).names
    wanted = [name.strip() for name in text.split(",")] if text else known
    for name in wanted:
        if name not in known:
            problem = f"{kind.name} have no column {name!r}"
            raise InputError("columns", problem, nearest(name, known))
    return tuple(wanted)


def _whole(given: Mapping[str, str], name: str, usual: int) -> int:
    if (text := given.get(name.lower())) is None:
        return usual
    if not text.isdecimal() or int(text) < 1:
        raise InputError(name, f"must be a whole number above 0, got {text!r}")
    return int(text)


def _number(given: Mapping[str, str], name: str, usual: float) -> float:
    try:
        return float(given.get(name, usual))
    except ValueError:
        raise InputError(name, f"must be a number, got {given[name]!r}") from None
