"""Kafka topics as sources and sinks of operators and of any streaming query: `penstock.kafka`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError, nearest
from penstock.topics.kafka.address import KafkaAddress, parse_address
from penstock.topics.kafka.client_settings import ClientSettings, make_settings
from penstock.topics.kafka.clients import load_client
from penstock.topics.kafka.partition_offsets import COMMITTED, UNCOMMITTED, PartitionOffsets
from penstock.topics.kafka.source_offsets import LOST_RULES
from penstock.topics.kafka.transactional_writer import check_prefix
from penstock.topics.kafka.value_formats import make_decoder, make_encoder
from penstock.topics.schema import schema_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["read", "write"]

#: Rows of a batch, unless the user says otherwise.
MAX_ROWS = 200_000
STARTS = ("earliest", "latest")
ISOLATIONS = (COMMITTED, UNCOMMITTED)


def read(
    spark: "SparkSession",
    address: str,
    *,
    schema: str | None = None,
    values: str = "json",
    start: str = "earliest",
    max_rows: int | None = MAX_ROWS,
    tasks: int | None = None,
    on_lost: str = "fail",
    isolation: str = COMMITTED,
    settings: Mapping[str, Any] | None = None,
    properties: str | Path | None = None,
) -> "DataFrame":
    """Return a streaming frame with the rows of a topic, `kafka://host:port/topic`.

    `values` is json, arrow (Arrow IPC) or bytes; `schema` has the columns. `_key`, `_partition`,
    `_offset` and `_timestamp` among them come from the message. A batch reads up to `max_rows`
    offsets in `tasks` tasks (None: one for each partition, and one for 1000 offsets at most).
    `on_lost` is fail or skip: what to do if retention has removed offsets before they were read.
    `settings` are those of librdkafka, and `properties` is a file with them.
    """
    place, clients = _check(address, settings, properties)
    decoder = make_decoder(values, schema)
    _check_choice("start", start, STARTS)
    _check_choice("on_lost", on_lost, LOST_RULES)
    _check_choice("isolation", isolation, ISOLATIONS)
    _check_count("max_rows", max_rows)
    _check_count("tasks", tasks)
    _check_topic(place, clients)
    from penstock.engines.spark.kafka.source import KafkaSource  # noqa: PLC0415  (needs Spark)

    options = {
        "address": str(place),
        "schema": schema_text(decoder.schema),
        "values": values,
        "start": start,
        "max_rows": str(max_rows or 0),
        "tasks": str(tasks or 0),
        "on_lost": on_lost,
        "isolation": isolation,
        **clients.to_options(),
    }
    spark.dataSource.register(KafkaSource)  # once per query, as with topics in a directory
    return spark.readStream.format(KafkaSource.name()).options(**options).load()


def write(
    df: "DataFrame",
    address: str,
    *,
    values: str = "json",
    key: str | None = None,
    id_prefix: str = "penstock",
    settings: Mapping[str, Any] | None = None,
    properties: str | Path | None = None,
) -> "DataStreamWriter":
    """Return a writer of a streaming frame into a topic, `kafka://host:port/topic`.

    Each row is a message with a JSON value; with `values="arrow"` a message has up to 1000 rows,
    with `values="bytes"` the column `value` is written as it is. `key` names the column with the
    key of the message. Each task writes in one transaction, whose id begins with `id_prefix`: a
    reader with `isolation.level=read_committed` sees each row once.
    """
    place, clients = _check(address, settings, properties)
    check_prefix(id_prefix)
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  (needs Spark)

    from penstock.engines.spark.kafka.sink import KafkaTarget  # noqa: PLC0415

    make_encoder(values, to_arrow_schema(df.schema, timezone="UTC"), key)
    _check_topic(place, clients)
    options = {"address": str(place), "values": values, "id_prefix": id_prefix}
    if key is not None:
        options["key"] = key
    df.sparkSession.dataSource.register(KafkaTarget)  # once per query
    writer = df.writeStream.format(KafkaTarget.name())
    return writer.options(**options, **clients.to_options()).outputMode("append")


def _check(
    address: str, settings: Mapping[str, Any] | None, properties: str | Path | None
) -> tuple[KafkaAddress, ClientSettings]:
    load_client("penstock.kafka")
    return parse_address(address), make_settings(settings, properties)


def _check_topic(place: KafkaAddress, clients: ClientSettings) -> None:
    """Raise `InputError` if the topic does not exist; brokers that do not answer may come back."""
    try:
        PartitionOffsets(place, clients).list_partitions()
    except ConnectionError:
        return


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(name, f"unknown: {value!r}", nearest(str(value), known))


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(name, f"must be a whole number of at least 1, got {value!r}")
