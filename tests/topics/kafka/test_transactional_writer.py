"""The writer of a task against a broker of some lines: receipts, fencing, full queues, retries."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.errors import InputError
from penstock.topics.kafka import transactional_producer
from penstock.topics.kafka import transactional_writer as writer
from penstock.topics.kafka.address import KafkaAddress, parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import FencedError, Messages, TaskId
from penstock.topics.kafka.transactional_writer import write_once

ADDRESS, NONE = parse_address("kafka://a:1/out"), ClientSettings()
TASK = TaskId("query", 3)


class Broker:
    """Committed values and receipts, and the newest producer of each id."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.receipts: dict[str, TopicPartition] = {}
        self.epochs: dict[str, int] = {}
        #: Errors that the next calls raise, and messages for which the queue has room.
        self.errors: list[KafkaError] = []
        self.room = 100
        self.producers = 0

    def check(self) -> None:
        if self.errors:
            raise KafkaException(self.errors.pop(0))


class FakeProducer:
    def __init__(self, broker: Broker, own: dict[str, str]) -> None:
        self._broker, self._id, self._open = broker, own["transactional_id"], []
        self._receipt: tuple[str, TopicPartition] | None = None
        assert own["transaction_timeout_ms"] == "30000"
        broker.producers += 1

    def init_transactions(self, _: float) -> None:
        self._epoch = self._broker.epochs[self._id] = self._broker.epochs.get(self._id, 0) + 1

    def begin_transaction(self) -> None:
        self._open = []

    def produce_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        assert topic == "out"
        for number, message in enumerate(messages):
            if number < self._broker.room:
                self._open.append(message["value"])
            else:
                message["_error"] = KafkaError(KafkaError._QUEUE_FULL)

    def poll(self, _: float) -> None:
        pass

    def send_offsets_to_transaction(self, places: Any, group: str, _: float) -> None:
        self._receipt = group, places[0]

    def commit_transaction(self, _: float) -> None:
        self._broker.check()
        if self._broker.epochs[self._id] != self._epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        assert self._receipt is not None
        self._broker.values += self._open
        self._broker.receipts[self._receipt[0]] = self._receipt[1]

    def purge(self) -> None:
        pass


class FakeConsumer:
    def __init__(self, broker: Broker, group: str) -> None:
        self._broker, self._group = broker, group

    def committed(self, places: list[TopicPartition], _: float) -> list[TopicPartition]:
        return [self._broker.receipts.get(self._group, places[0])]

    def consumer_group_metadata(self) -> str:
        return self._group

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    broker = Broker()

    def make_producer(_: KafkaAddress, __: ClientSettings, **own: str) -> FakeProducer:
        return FakeProducer(broker, own)

    def make_consumer(*arguments: Any) -> FakeConsumer:
        return FakeConsumer(broker, arguments[3])

    monkeypatch.setattr(transactional_producer, "make_producer", make_producer)
    monkeypatch.setattr(transactional_producer, "make_consumer", make_consumer)
    writer._producers.clear()
    yield broker
    writer._producers.clear()


def rows(first: int, count: int = 4) -> Iterator[Messages]:
    for number in range(first, first + count, 2):
        yield [b"k", None], [b"%d" % number, b"%d" % (number + 1)]


def test_a_batch_is_written_once(broker: Broker) -> None:
    for batch in (0, 0, 1, 0, 1):
        receipt = write_once(ADDRESS, NONE, TASK, batch, rows(batch * 4))
        assert receipt.messages == 4
    assert broker.values == [b"%d" % number for number in range(8)]
    assert broker.producers == 1
    assert list(broker.receipts) == ["penstock-query-3"]


def test_nothing_needs_no_transaction(broker: Broker) -> None:
    assert write_once(ADDRESS, NONE, TASK, 0, iter([([], [])])).messages == 0
    assert broker.producers == 0


def test_an_id_that_was_taken_over_is_taken_back(broker: Broker) -> None:
    write_once(ADDRESS, NONE, TASK, 0, rows(0))
    broker.epochs[str(TASK)] += 1  # by a task that wrote nothing
    write_once(ADDRESS, NONE, TASK, 1, rows(4))
    assert broker.producers == 2
    broker.receipts[str(TASK)] = TopicPartition("out", 0, 2)  # by a task that wrote a batch
    assert write_once(ADDRESS, NONE, TASK, 2, rows(8)).messages == 0
    assert broker.producers == 3
    assert broker.values == [b"%d" % number for number in range(8)]


def test_rows_that_are_not_kept_are_not_written_twice(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_KEPT_BYTES", 1)
    write_once(ADDRESS, NONE, TASK, 0, rows(0))
    broker.epochs[str(TASK)] += 1
    with pytest.raises(FencedError, match="kafka://a:1/out"):
        write_once(ADDRESS, NONE, TASK, 1, rows(4))
    assert len(broker.values) == 4
    write_once(ADDRESS, NONE, TASK, 1, rows(4))  # Spark tries again
    assert len(broker.values) == 8


def test_a_full_queue_is_waited_for(broker: Broker) -> None:
    broker.room = 1
    write_once(ADDRESS, NONE, TASK, 0, rows(0))
    assert broker.values == [b"0", b"1", b"2", b"3"]


def test_errors(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.errors = [KafkaError(KafkaError._TRANSPORT, retriable=True)]
    assert write_once(ADDRESS, NONE, TASK, 0, rows(0)).messages == 4
    broker.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(InputError, match="topic out: refused by the broker"):
        write_once(ADDRESS, NONE, TASK, 1, rows(4))
    assert not writer._producers
    monkeypatch.setattr(transactional_producer, "PATIENCE_S", 0.0)
    broker.errors = [KafkaError(KafkaError._TRANSPORT, retriable=True)] * 2
    with pytest.raises(ConnectionError, match="Kafka at a:1, topic out"):
        write_once(ADDRESS, NONE, TASK, 1, rows(4))
    assert len(broker.values) == 4


def test_a_process_keeps_few_producers(broker: Broker) -> None:
    for index in range(5):
        write_once(ADDRESS, NONE, TaskId("query", index), 0, rows(0))
    assert len(writer._producers) == writer.MAX_PRODUCERS
