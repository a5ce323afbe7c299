"""The source against a real broker: transactions, retention, new partitions, outages, logins."""

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.engines.spark.kafka.test_source import read, reader_of
from tests.kafka.topics import QUIET, add_partitions, delete_before, make_topic, produce
from tests.tools.kafka_broker import PASSWORD, USER, KafkaBroker

import penstock
from penstock.engines.spark.kafka.source import KafkaReader
from penstock.errors import InputError
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import make_settings
from penstock.topics.kafka.partition_offsets import PartitionOffsets
from penstock.topics.kafka.row_writer import KafkaRowWriter
from penstock.topics.kafka.row_writer import make_topic as make_kafka_topic

pytestmark = pytest.mark.kafka
ALL = ReadAllAvailable()


def rows(first: int, count: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(first, first + count)]


def wait_for_more(reader: KafkaReader, here: dict[str, Any]) -> dict[str, Any]:
    """Return the next offset, as soon as the broker has it."""
    deadline = time.monotonic() + 20
    while (there := reader.latestOffset(here, ALL)) == here:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return there


def test_committed_rows_only(broker: KafkaBroker) -> None:
    """Ends of transactions have offsets, aborted rows do, and open ones hold readers back."""
    make_topic(broker, "tx", 1)
    config = {**QUIET, "bootstrap.servers": broker.address, "transactional.id": "tx"}
    producer = Producer(config)
    producer.init_transactions(30)
    for number in range(30):
        producer.begin_transaction()
        producer.produce("tx", b'{"id":%d}' % number)
        producer.flush()
        producer.commit_transaction() if number % 3 else producer.abort_transaction()
    reader = reader_of(broker, "tx", max_rows="7")
    start = reader.initialOffset()
    found, here = [], start
    began = time.monotonic()
    while (there := reader.latestOffset(here, reader.getDefaultReadLimit())) != here:
        found += read(reader, here, there)
        here = there
    assert found == [number for number in range(30) if number % 3]
    assert time.monotonic() - began < 5
    assert here["tx"] == {"0": 60}
    producer.begin_transaction()
    producer.produce("tx", b'{"id":100}')
    producer.flush()
    assert reader.latestOffset(here, ALL) == here
    everything = reader_of(broker, "tx", isolation="read_uncommitted")
    assert read(everything, start, everything.latestOffset(start, ALL)) == [*range(30), 100]
    producer.commit_transaction()
    assert read(reader, here, wait_for_more(reader, here)) == [100]


def test_lost_offsets(broker: KafkaBroker, capsys: pytest.CaptureFixture[str]) -> None:
    make_topic(broker, "lost", 2)
    produce(broker, "lost", rows(0, 10), 0)
    produce(broker, "lost", rows(50, 10), 1)
    strict, lenient = reader_of(broker, "lost"), reader_of(broker, "lost", on_lost="skip")
    start = strict.initialOffset()
    planned = strict.latestOffset(start, ALL)
    delete_before(broker, "lost", {0: 4})
    message = "partition 0: offset 0 was removed before it was read; the first one there is 4"
    with pytest.raises(InputError, match=message):
        strict.latestOffset(start, ALL)
    with pytest.raises(InputError, match=message):  # a batch that was planned before
        read(strict, start, planned)
    there = lenient.latestOffset(start, ALL)
    assert there["#lost"] == 4
    assert sorted(read(lenient, start, planned)) == [*range(4, 10), *range(50, 60)]
    assert capsys.readouterr().err.count("4 offsets were lost") == 2


def test_partitions_that_appear(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engines.spark.kafka.source.PARTITIONS_EVERY_S", 0.1)
    make_topic(broker, "grows", 1)
    produce(broker, "grows", rows(0, 5))
    reader = reader_of(broker, "grows")
    here = reader.latestOffset(reader.initialOffset(), ALL)
    add_partitions(broker, "grows", 3)
    produce(broker, "grows", rows(5, 5), 2)
    assert read(reader, here, wait_for_more(reader, here)) == [5, 6, 7, 8, 9]


def test_an_outage_is_waited_for(broker: KafkaBroker) -> None:
    make_topic(broker, "outage", 1)
    produce(broker, "outage", rows(0, 50))
    reader = reader_of(broker, "outage")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    broker.kill()
    assert reader.latestOffset(start, ALL) == start
    back = threading.Timer(2, broker.start)
    back.start()
    assert read(reader, start, end) == list(range(50))
    back.join()
    assert wait_for_more(reader, start) == end


def test_a_topic_is_not_made_by_reading(broker: KafkaBroker) -> None:
    with pytest.raises(InputError, match="topic nobody: does not exist"):
        penstock.kafka.read(None, broker.url("nobody"), schema="id long")  # type: ignore[arg-type]


def login(broker: KafkaBroker, path: Path, password: str) -> PartitionOffsets:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={USER}\nsasl.password={password}\n"
    )
    address = parse_address(f"kafka://127.0.0.1:{broker.login_port}/secured")
    settings = make_settings(properties=path)
    make_kafka_topic(address, settings, 2)
    with KafkaRowWriter(address, settings) as writer:
        writer.flush()
    return PartitionOffsets(address, settings)


def test_logins(broker: KafkaBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert login(broker, tmp_path / "right", PASSWORD).list_partitions() == [0, 1]
    with pytest.raises(InputError, match="topic secured: refused by the broker") as caught:
        login(broker, tmp_path / "wrong", f"{PASSWORD}2")
    assert PASSWORD not in str(caught.value)
    assert PASSWORD not in caplog.text
