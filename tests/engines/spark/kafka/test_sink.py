"""The sink without Spark: what a task hands to the writer."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.engines.spark.kafka import sink
from penstock.engines.spark.kafka.sink import KafkaMessage, KafkaTarget
from penstock.errors import PenstockError
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import Messages, Receipt, TaskId

SCHEMA = StructType([StructField("id", LongType()), StructField("who", StringType())])
OPTIONS = {"address": "kafka://a:1/out", "values": "json", "key": "who", "id_prefix": "shop"}


class Context:
    """What Spark says of a task."""

    def __init__(self, query: str | None) -> None:
        self._values = {"sql.streaming.queryId": query, "streaming.sql.batchId": "7"}

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802
        return self._values[key]

    def partitionId(self) -> int:  # noqa: N802
        return 2


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def write_once(
        address: Any, settings: Any, task: TaskId, batch: int, messages: Iterator[Messages]
    ) -> Receipt:
        calls.append((str(address), settings, str(task), batch, list(messages)))
        return Receipt(batch=batch, messages=5)

    monkeypatch.setattr(sink, "write_once", write_once)
    return calls


def use_context(monkeypatch: pytest.MonkeyPatch, query: str | None) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: Context(query))


def test_a_task_writes_its_rows(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    use_context(monkeypatch, "q")
    options = {**OPTIONS, "setting.client.id": "me"}
    writer = KafkaTarget(options).streamWriter(SCHEMA, False)
    rows = pa.record_batch({"id": [1], "who": ["ann"]})
    message = writer.write(iter([rows.slice(0, 0), rows]))
    assert message == KafkaMessage(5)
    settings, values = ClientSettings({"client.id": "me"}), [([b"ann"], [b'{"id":1,"who":"ann"}'])]
    assert written == [("kafka://a:1/out", settings, "shop-q-2", 7, values)]
    writer.commit([message, None], 7)
    writer.abort([message, None], 7)


def test_a_batch_query_is_refused(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    use_context(monkeypatch, None)
    with pytest.raises(PenstockError, match="by a streaming query only"):
        KafkaTarget(OPTIONS).streamWriter(SCHEMA, False).write(iter([]))
