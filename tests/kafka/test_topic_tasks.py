"""Tasks of a batch that write to topics in Kafka: killed, repeated, late; each row once."""

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kafka.topic_tasks import MOMENTS, Operator
from tests.tools.child import ROOT
from tests.tools.kafka_broker import KafkaBroker

from penstock.engines.spark.io import sink, task_attempt
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.io.task_attempt import list_pending_files
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.errors import InputError, OutageError
from penstock.state.state_files import StateFile
from penstock.topics.kafka import transactional_producer, transactional_writer
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import (
    COORDINATOR_S,
    TaskId,
    TransactionalProducer,
)

pytestmark = pytest.mark.kafka


@pytest.fixture
def address(broker: KafkaBroker) -> str:
    return broker.url(f"tasks-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def operator(address: str, tmp_path: Path) -> Iterator[Operator]:
    known = [(vars(module), dict(vars(module))) for module in (sink, task_attempt)]
    yield Operator(tmp_path, address)
    for names, before in known:
        names.update(before)
    forget_producers()


def forget_producers() -> None:
    """Let the next task be in another process."""
    for producer in transactional_writer._producers.values():
        producer.close()
    transactional_writer._producers.clear()


def test_a_repeated_task_writes_nothing(operator: Operator) -> None:
    first = [operator.write(0, 0, [1, 2]), operator.write(0, 1, [3])]
    forget_producers()
    # the function need not even be deterministic: the first attempt counts
    again = [operator.write(0, 0, [7]), operator.write(0, 1, [8, 9])]
    assert again == first
    operator.commit(0, again)
    assert operator.published() == operator.seen() == [1, 2, 3]
    assert operator.seen("read_uncommitted") == [1, 2, 3]
    assert operator.seen(topic="copy-errors") == [1, 2, 3]
    assert len(list(operator.layout.notes("copy").iterdir())) == 2


def test_a_batch_with_a_record_is_not_written_again(operator: Operator) -> None:
    operator.commit(0, [operator.write(0, 0, [1, 2])])
    for path in operator.layout.notes("copy").iterdir():
        path.unlink()
    forget_producers()
    operator.commit(0, [operator.write(0, 0, [1, 2])])
    assert operator.published() == operator.seen() == [1, 2]
    operator.commit(1, [operator.write(1, 0, [3])])
    assert operator.published() == operator.seen() == [1, 2, 3]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_tasks(operator: Operator, address: str, tmp_path: Path, moment: str) -> None:
    """Killed with open rows, with a note and open rows, after the commit: by SIGKILL."""
    command = [sys.executable, "-m", "tests.kafka.topic_tasks", str(tmp_path), address, moment]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == -signal.SIGKILL
    second = operator.write(0, 0, [1, 2, 3])
    operator.commit(0, [second])
    assert operator.published() == operator.seen() == [1, 2, 3]
    attempts = 1 if moment == "committed" else 2
    # readers that do not ask for committed rows see the killed attempt, too
    assert operator.seen("read_uncommitted") == sorted([1, 2, 3] * attempts)


def test_a_late_attempt_is_fenced(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = task_attempt.TaskAttempt.commit
    late: list[TaskMessage] = []

    def second_first(attempt: task_attempt.TaskAttempt, message: TaskMessage) -> None:
        monkeypatch.setattr(task_attempt.TaskAttempt, "commit", commit)
        late.append(operator.write(0, 0, [1, 2]))  # another attempt, while this one waits
        commit(attempt, message)

    monkeypatch.setattr(task_attempt.TaskAttempt, "commit", second_first)
    with pytest.raises(OutageError):
        operator.write(0, 0, [1, 2])
    operator.commit(0, late)
    assert operator.published() == operator.seen() == [1, 2]


def test_an_attempt_elsewhere_that_ended(operator: Operator, address: str) -> None:
    """A process whose producer was fenced meanwhile takes the id back."""
    operator.commit(0, [operator.write(0, 0, [1, 2])])
    ((_, kept),) = transactional_writer._producers.items()
    ((*_, task),) = transactional_writer._producers
    assert isinstance(task, TaskId)
    TransactionalProducer(kept._address, ClientSettings(), task).close()
    operator.commit(1, [operator.write(1, 0, [3])])
    assert operator.published() == operator.seen() == [1, 2, 3]
    assert address


def test_too_large_a_row(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a task whose rows are not taken is committed."""
    monkeypatch.setattr(transactional_producer, "MAX_MESSAGE_BYTES", 1000)
    with pytest.raises((OutageError, InputError), match=r"[Ss]ize"):
        operator.write(0, 0, list(range(1000)))
    assert operator.seen() == operator.published() == []
    monkeypatch.undo()
    forget_producers()
    operator.commit(0, [operator.write(0, 0, [1])])
    assert operator.seen() == operator.published() == [1]


def test_a_broker_that_comes_back(operator: Operator, broker: KafkaBroker) -> None:
    """The client would wait for the coordinator of receipts for ever: its producer is replaced."""
    operator.commit(0, [operator.write(0, 0, [1, 2])])
    broker.kill()
    time.sleep(1)
    broker.start()
    time.sleep(5)
    began = time.monotonic()
    for batch in (1, 2):
        operator.commit(batch, [operator.write(batch, 0, [batch + 2])])
    assert time.monotonic() - began < COORDINATOR_S
    assert operator.published() == operator.seen() == [1, 2, 3, 4]


def test_an_ingest_with_other_tasks(operator: Operator) -> None:
    """Spark may cut a repeated batch of an ingest otherwise: rows of tasks that differ count."""
    operator.set_kind(find_spark_kind("ingest"))
    same, other = operator.write(0, 0, [1, 2]), operator.write(0, 1, [3, 4])
    forget_producers()
    again = [operator.write(0, 0, [1, 2]), operator.write(0, 1, [3]), operator.write(0, 2, [4])]
    assert again[0] == same and again[1] != other
    operator.commit(0, again)
    assert operator.published() == [1, 2, 3, 4]
    # of an attempt that Spark has cut otherwise, foreign readers see the rows
    assert operator.seen() == [1, 2, 3, 3, 4, 4]


def test_an_older_copy_of_the_run_is_refused(operator: Operator) -> None:
    operator.write(0, 0, [1])
    operator.write(1, 0, [2])
    with pytest.raises(InputError, match=r"batch 1 was written, but batch 0 begins"):
        operator.write(0, 0, [1])


def test_files_of_a_pending_batch_stay(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.commit(0, [operator.write(0, 0, [1])])
    message = operator.write(1, 0, [2])
    file = replace(message.segments["b"], file="kept.arrow", messages=None)
    state = StateFile(segment=file, slice=0, first=0, batches=1, rows=1, bytes=1)
    monkeypatch.setattr(
        task_attempt,
        "_read_note",
        lambda _: task_attempt.TaskNote(
            digest="", message=TaskMessage(message.task, state_files=(state,))
        ),
    )
    assert list_pending_files(operator.layout, "copy") == {"kept.arrow"}
    recover(operator.pipeline, operator.layout)
    assert BatchLog(operator.layout.batches("copy")).numbers() == [0]
