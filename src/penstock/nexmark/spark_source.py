"""The stream as a Spark data source, for queries without topics.

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
#: Rows generated at a time, and default rows of a batch.
_PART, _BATCH = 1 << 15, 100_000
_OPTIONS = ("kind", "events", "rate", "hot", "columns", "rowsPerBatch", "partitions")
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Parsed options: the rows of one kind to read."""

    kind: EventKind
    setting: StreamSettings
    columns: tuple[str, ...]
    #: The number of rows; None for an endless stream.
    rows: int | None
    rows_per_batch: int
    partitions: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Parse the options of a source; names are case-insensitive."""
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
        """Split rows first, ..., end - 1 into equal partitions."""
        count = self.partitions
        bounds = [first + (end - first) * place // count for place in range(count + 1)]
        return [InputPartition(pair) for pair in pairwise(bounds)] if end > first else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Generate the rows of a partition."""
        first, end = partition.value
        for part in range(first, end, _PART):
            until = min(part + _PART, end)
            yield from rows(self.kind, part, until, self.setting, self.columns).to_batches()


class NexmarkSource(DataSource):
    """The data source `penstock-nexmark`."""

    @classmethod
    def name(cls) -> str:
        """The format name in Spark."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns that are read."""
        return from_arrow_schema(SourceOptions.parse(self.options).schema, False)

    def reader(self, schema: StructType) -> "NexmarkReader":  # noqa: ARG002
        """Read all of it at once."""
        return NexmarkReader(SourceOptions.parse(self.options))

    def streamReader(self, schema: StructType) -> "NexmarkStream":  # noqa: ARG002, N802
        """Read it batch by batch."""
        return NexmarkStream(SourceOptions.parse(self.options))


class NexmarkReader(DataSourceReader):
    """Reads a fixed number of events."""

    def __init__(self, options: SourceOptions) -> None:
        if options.rows is None:
            raise InputError("events", "is missing", "only a stream may be endless")
        self._options, self._end = options, options.rows

    def partitions(self) -> Sequence[InputPartition]:
        """Split the rows into partitions."""
        return self._options.cut(0, self._end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Generate the rows of a partition."""
        return self._options.read(partition)


class NexmarkStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the stream in batches; an offset is the number of rows before it."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Begin with the first row."""
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """So many rows a batch."""
        return ReadMaxRows(self._options.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raise `InputError` for an endless stream."""
        if self._options.rows is None:
            raise InputError("events", "is missing", "availableNow needs a stream that ends")

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the end of the next batch; the start itself if nothing is left."""
        end, most = self._options.rows, self._options.rows_per_batch
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows
        elif end is not None:  # all that there is
            most = end
        behind = start["row"] + most
        return {"row": behind if end is None else min(behind, end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Split the rows of a batch into partitions."""
        return self._options.cut(start["row"], end["row"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Generate the rows of a partition."""
        return self._options.read(partition)


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
