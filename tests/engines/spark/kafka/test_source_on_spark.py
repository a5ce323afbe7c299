"""The source in a streaming query: rows, read limit, backlog, a restart from its checkpoint."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.tools.kafka_mock import MockKafka, mock_kafka

from penstock.api import kafka
from penstock.engines.spark.ingest.backlog import read_backlog

pytestmark = pytest.mark.spark


@pytest.fixture
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        yield broker


def values(first: int, count: int) -> list[bytes]:
    rows = [{"id": number, "amount": number / 4} for number in range(first, first + count)]
    return [json.dumps(row).encode() for row in rows]


def test_a_query_reads_every_message_once(
    spark: SparkSession, broker: MockKafka, tmp_path: Path
) -> None:
    for partition in range(3):
        broker.write("orders", partition, values(partition * 1000, 1000))

    def run() -> list[dict[str, Any]]:
        frame = kafka.read(
            spark, broker.url("orders"), schema="id long, amount double", max_rows=1500
        )
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.processAllAvailable()
        progress = [json.loads(report.json) for report in query.recentProgress]
        query.stop()
        return progress

    progress = run()
    batches = [report["numInputRows"] for report in progress if report["numInputRows"]]
    assert batches == [1500, 1500]
    backlogs = [read_backlog(report["sources"][0]) for report in progress]
    assert [backlog.amount for backlog in backlogs if backlog][:2] == [1500, 0]
    broker.write("orders", 3, values(3000, 10))
    run()
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert Counter(row["id"] for row in rows) == Counter(range(3010))
    assert all(row["amount"] == row["id"] / 4 for row in rows)
