"""The writer of a task against a real broker: receipts, fencing, kills, and what readers see."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kafka.topics import differences, make_topic, read_topic
from tests.tools.kafka_broker import KafkaBroker

from penstock.topics.kafka import transactional_writer
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import (
    FencedError,
    Messages,
    TaskId,
    TransactionalProducer,
)
from penstock.topics.kafka.transactional_writer import write_once

pytestmark = pytest.mark.kafka
NONE = ClientSettings()
ROOT = Path(__file__).parents[2]


def rows(first: int, count: int) -> Iterator[Messages]:
    """Messages with numbers, in two blocks."""
    for start in (first, first + count // 2):
        values = [json.dumps(start + number).encode() for number in range(count // 2)]
        yield [b"%d" % number for number in range(len(values))], values


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Begin and end without kept producers."""
    transactional_writer._producers.clear()
    yield
    for producer in transactional_writer._producers.values():
        producer.close()
    transactional_writer._producers.clear()


def test_a_repeated_task_writes_nothing(broker: KafkaBroker) -> None:
    address = parse_address(make_topic(broker, "receipts", 1))
    # more tasks than partitions
    for index in (0, 7):
        task = TaskId("q1", index)
        first = write_once(address, NONE, task, 4, rows(index * 100, 10))
        assert (first.batch, first.messages) == (4, 10)
        assert write_once(address, NONE, task, 4, rows(index * 100, 10)) == first
        transactional_writer._producers.clear()  # another process
        assert write_once(address, NONE, task, 4, rows(index * 100, 10)) == first
        # a late attempt at an earlier batch
        assert write_once(address, NONE, task, 3, rows(index * 100, 10)).batch == 4
        write_once(address, NONE, task, 5, rows(index * 100 + 10, 10))
    expected = [*range(20), *range(700, 720)]
    assert differences(expected, read_topic(broker, "receipts")) == ({}, {})


def test_a_task_without_rows_writes_nothing(broker: KafkaBroker) -> None:
    address = parse_address(make_topic(broker, "nothing", 1))
    assert write_once(address, NONE, TaskId("q2", 0), 0, iter(())).messages == 0
    assert read_topic(broker, "nothing", "read_uncommitted") == []


def test_a_task_that_ran_elsewhere_takes_its_id_back(broker: KafkaBroker) -> None:
    address, task = parse_address(make_topic(broker, "elsewhere", 1)), TaskId("q3", 0)
    write_once(address, NONE, task, 0, rows(0, 4))
    kept = dict(transactional_writer._producers)
    transactional_writer._producers.clear()
    write_once(address, NONE, task, 1, rows(4, 4))  # in another process
    transactional_writer._producers.clear()
    transactional_writer._producers.update(kept)
    write_once(address, NONE, task, 2, rows(8, 4))
    # taken over without a receipt
    TransactionalProducer(address, NONE, task).close()
    write_once(address, NONE, task, 3, rows(12, 4))
    assert differences(range(16), read_topic(broker, "elsewhere")) == ({}, {})


def test_a_late_attempt_is_fenced(broker: KafkaBroker) -> None:
    address, task = parse_address(make_topic(broker, "fenced", 1)), TaskId("q4", 0)
    late = TransactionalProducer(address, NONE, task)
    write_once(address, NONE, task, 0, rows(0, 4))
    with pytest.raises(FencedError):
        late.write(0, rows(0, 4))
    late.close()
    assert differences(range(4), read_topic(broker, "fenced")) == ({}, {})


KILLED = """
import json, os, signal, sys
from penstock.topics.kafka import transactional_producer as writer
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings

address, moment = parse_address(sys.argv[1]), sys.argv[2]
producer = writer.TransactionalProducer(address, ClientSettings(), writer.TaskId("q5", 0))
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if moment == "before the commit":
    producer._producer.flush(10)
    call = producer._call
    producer._call = lambda f: (
        (producer._producer.flush(10), die())
        if f == producer._producer.commit_transaction else call(f)
    )
batch, first = int(sys.argv[3]), int(sys.argv[4])
producer.write(batch, iter([([None] * 5, [b"%d" % (first + n) for n in range(5)])]))
die()
"""


def test_killed_attempts(broker: KafkaBroker) -> None:
    address, task = parse_address(make_topic(broker, "killed", 2)), TaskId("q5", 0)
    for batch, moment in enumerate(["before the commit", "after the commit"] * 2):
        command = [sys.executable, "-c", KILLED, str(address), moment, str(batch), str(batch * 5)]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, timeout=60)
        assert done.returncode == -signal.SIGKILL
        values = [b"%d" % (batch * 5 + number) for number in range(5)]
        began = time.monotonic()
        receipt = write_once(address, NONE, task, batch, iter([([None] * 5, values)]))
        # a take-over, not the time-out of the transaction
        assert time.monotonic() - began < 15
        assert (receipt.batch, receipt.messages) == (batch, 5)
        transactional_writer._producers.clear()
    assert differences(range(20), read_topic(broker, "killed")) == ({}, {})
    # readers that do not ask for committed messages see the attempts that were killed
    everything = read_topic(broker, "killed", "read_uncommitted")
    missing, more = differences(range(20), everything)
    assert not missing
    assert more == dict.fromkeys([*range(5), *range(10, 15)], 1)
