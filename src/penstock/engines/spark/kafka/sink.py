"""A streaming sink into a Kafka topic: a transaction with a receipt per task."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.engines.spark.kinds.task_context import read_batch_number, read_task_number
from penstock.errors import PenstockError
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import TaskId
from penstock.topics.kafka.transactional_writer import write_once
from penstock.topics.kafka.value_formats import make_encoder

_LOG = logging.getLogger(__name__)
FORMAT = "penstock-kafka-sink"
#: What Spark calls a query: the same in every start from a checkpoint.
_QUERY = "sql.streaming.queryId"


@dataclass
class KafkaMessage(WriterCommitMessage):
    """What a task has written, in this attempt or an earlier one."""

    messages: int


class KafkaTarget(DataSource):
    """The data source that Spark writes to; each query registers it separately."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> "KafkaSink":  # noqa: N802, ARG002
        """Make the writer; Spark calls this for each batch."""
        return KafkaSink(dict(self.options), schema)


class KafkaSink(DataSourceStreamArrowWriter):
    """Writes rows inside the task; nothing is left to do when all tasks are done."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options, self._schema = options, schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task once, whatever attempt this is."""
        options = self._options
        rows = to_arrow_schema(self._schema, timezone="UTC")
        encoder = make_encoder(options["values"], rows, options.get("key"))
        receipt = write_once(
            parse_address(options["address"]),
            ClientSettings.from_options(options),
            TaskId(_read_query(), read_task_number(), options["id_prefix"]),
            read_batch_number(),
            (encoder.encode(batch) for batch in iterator if batch.num_rows),
        )
        return KafkaMessage(receipt.messages)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Every task has committed its rows already."""
        written = sum(m.messages for m in messages if isinstance(m, KafkaMessage))
        _LOG.debug("batch %d: %d messages", batchId, written)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Tasks that have committed keep their receipts; the batch runs again."""


def _read_query() -> str:
    context = TaskContext.get()
    query = context.getLocalProperty(_QUERY) if context else None
    if not query:
        raise PenstockError("kafka: rows can be written by a streaming query only")
    return query
