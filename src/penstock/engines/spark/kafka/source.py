"""A streaming source that reads a Kafka topic with confluent-kafka; its offsets are Spark's."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.offset_ranges import Share
from penstock.topics.kafka.partition_offsets import PartitionOffsets
from penstock.topics.kafka.range_reader import find_reader
from penstock.topics.kafka.source_offsets import SourceOffsets, cut_tasks, plan_next
from penstock.topics.kafka.value_formats import make_decoder

FORMAT = "penstock-kafka-source"
#: Seconds without an answer of the brokers after which the query fails.
MAX_OUTAGE_S = 30.0
#: Seconds between two looks for new partitions.
PARTITIONS_EVERY_S = 2.0
_RETRY_S = 0.5

Result = TypeVar("Result")


class KafkaSource(DataSource):
    """The data source that Spark reads; each query registers it separately."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the values, and those of Kafka that were asked for."""
        decoder = make_decoder(self.options["values"], self.options["schema"])
        return from_arrow_schema(decoder.schema, False)

    def streamReader(self, schema: StructType) -> "KafkaReader":  # noqa: N802
        """Make the reader; Spark calls this in the source's process and in each task."""
        return KafkaReader(dict(self.options), schema)


class KafkaPartition(InputPartition):
    """What one task reads."""

    def __init__(self, value: Share) -> None:
        super().__init__(value)


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the process of the source, reads them in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options, self._schema = dict(options), schema
        self._address = parse_address(options["address"])
        self._settings = ClientSettings.from_options(options)
        self._offsets: PartitionOffsets | None = None
        self._partitions: list[int] = []
        self._listed_at = self._answered_at = -1.0
        #: The newest known ends, and those at which a query with availableNow stops.
        self._end: Mapping[int, int] = {}
        self._target: Mapping[int, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Begin with the oldest or the newest message."""
        offsets = self._open()
        find = offsets.first if self._options["start"] == "earliest" else offsets.end
        positions = self._wait_for(lambda: find(self._list_partitions()))
        return SourceOffsets(topic=self._address.topic, next=positions).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit that the user gave."""
        most = int(self._options["max_rows"])
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch; the start if there is no batch."""
        here = SourceOffsets.from_json(self._address.topic, start)
        try:
            self._end = self._find_end()
            there = plan_next(
                here,
                self._end if self._target is None else self._bounded(self._target, here),
                lambda: self._open().first(self._end),
                most=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
                tasks=int(self._options["tasks"]) or None,
                on_lost=self._options["on_lost"],
            )
        except ConnectionError as error:
            self._check_outage(error)
            return start
        self._answered_at = time.monotonic()
        if there.lost > here.lost:
            self._report_lost(there.lost - here.lost)
        return start if there is here else there.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the ends of all partitions, so that Spark's progress shows the backlog."""
        end = self._end or self._wait_for(self._find_end)
        return SourceOffsets(topic=self._address.topic, next=end).latest_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the ends at which the query stops."""
        self._target = self._wait_for(self._find_end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch, the same ones for every attempt."""
        topic = self._address.topic
        here, there = SourceOffsets.from_json(topic, start), SourceOffsets.from_json(topic, end)
        return [KafkaPartition(share) for share in cut_tasks(here, there)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task's offsets into columns."""
        options = self._options
        decoder = make_decoder(options["values"], options["schema"])
        expected = to_arrow_schema(self._schema, timezone="UTC")
        reader = find_reader(
            self._address, self._settings, options["isolation"], options["on_lost"]
        )
        lost = reader.lost
        for part in partition.value:
            for block in reader.read(part):
                rows = decoder.decode(block)
                columns = [
                    column.cast(kind)
                    for column, kind in zip(rows.columns, expected.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=expected)
        if reader.lost > lost:
            self._report_lost(reader.lost - lost)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark's checkpoint is the only record of what was read."""

    def stop(self) -> None:
        """The client ends with its process."""

    def _report_lost(self, offsets: int) -> None:
        # processes of Spark have no log; their standard error is a file of the run
        print(f"penstock: {self._address}: {offsets} offsets were lost", file=sys.stderr)

    def _open(self) -> PartitionOffsets:
        # made on first use: a task's copy of this object needs none
        if self._offsets is None:
            isolation = self._options["isolation"]
            self._offsets = PartitionOffsets(self._address, self._settings, isolation)
        return self._offsets

    def _find_end(self) -> Mapping[int, int]:
        return self._open().end(self._list_partitions())

    def _list_partitions(self) -> list[int]:
        now = time.monotonic()
        if not self._partitions or now - self._listed_at > PARTITIONS_EVERY_S:
            self._partitions, self._listed_at = self._open().list_partitions(), now
        return self._partitions

    def _bounded(self, target: Mapping[int, int], here: SourceOffsets) -> Mapping[int, int]:
        """Return the ends up to a target, which an earlier start may have passed."""
        names = target.keys() & self._end.keys() | here.next.keys() & self._end.keys()
        return {
            number: max(min(self._end[number], target.get(number, 0)), here.next.get(number, 0))
            for number in names
        }

    def _check_outage(self, error: ConnectionError) -> None:
        """Raise the error if the brokers have not answered for long."""
        now = time.monotonic()
        if self._answered_at < 0:
            self._answered_at = now
        if now - self._answered_at > MAX_OUTAGE_S:
            raise error

    def _wait_for(self, ask: Callable[[], Result]) -> Result:
        """Ask until the brokers answer, or raise after a while."""
        deadline = time.monotonic() + MAX_OUTAGE_S
        while True:
            try:
                return ask()
            except ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
