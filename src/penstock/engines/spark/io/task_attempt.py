"""One attempt at a task of a batch: its transaction, and what an earlier attempt has committed.

In files an attempt is invisible until the batch record names it. In Kafka it is visible when its
transaction commits, so its message to the driver is kept as a note: the next attempt at the same
task of the same batch returns that message and writes nothing.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.task_context import read_batch_number, read_task_number
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.kafka.cluster import find_cluster
from penstock.topics.kafka.task_transaction import SUFFIX, KafkaTransaction, read_note_batch

if TYPE_CHECKING:
    from penstock.engines.spark.operator_bundle import OperatorBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    """What a task of a batch has reported, with a digest of its rows."""

    digest: str
    message: TaskMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempt:
    """The transaction of an attempt, and the note of an earlier one."""

    #: None: the rows go to files.
    transaction: KafkaTransaction | None = None
    earlier: TaskNote | None = None
    #: The message of a task whose batch has a record: nothing is left to do.
    done: TaskMessage | None = None
    #: Whether a batch that runs again may have other tasks: Penstock does not plan them.
    is_foreign: bool = False

    @property
    def message(self) -> TaskMessage | None:
        """What to return without running the task; None if it must run."""
        if self.earlier is not None and not self.is_foreign:
            return self.earlier.message
        return self.done

    def find_same(self) -> TaskMessage | None:
        """Return the message of an earlier attempt with the same rows, after the task has run."""
        if self.earlier is None or self.transaction is None:
            return None
        if self.earlier.digest != self.transaction.digest():
            return None
        return self.earlier.message

    def commit(self, message: TaskMessage) -> None:
        """Commit the rows of the task, if they are in Kafka."""
        if self.transaction is None:
            return
        note = TaskNote(digest=self.transaction.digest(), message=message)
        self.transaction.commit(pickle.dumps(note))


def begin_attempt(layout: RunLayout, bundle: "OperatorBundle") -> TaskAttempt:
    """Begin an attempt at the task that Spark runs here."""
    cluster = find_cluster(layout.topics)
    if cluster is None or not bundle.outputs:
        return TaskAttempt()
    name, batch = bundle.operator.name, read_batch_number()
    if BatchLog(layout.batches(name)).get(batch) is not None:
        return TaskAttempt(done=TaskMessage(_make_empty_record()))
    transaction = KafkaTransaction(cluster, name, batch, layout.notes(name), read_task_number())
    return TaskAttempt(
        transaction=transaction,
        earlier=None if transaction.note is None else _read_note(transaction.note),
        is_foreign=bundle.kind.reads_outside,
    )


def list_pending_files(layout: RunLayout, operator: str) -> set[str]:
    """Return the files of state that committed tasks of an unfinished batch have written.

    Removes the notes of batches with a record.
    """
    last = BatchLog(layout.batches(operator)).last()
    pending: set[str] = set()
    for path in _list_notes(layout.notes(operator)):
        if last is not None and read_note_batch(path) <= last.batch:
            path.unlink(missing_ok=True)
            continue
        message = _read_note(path.read_bytes()).message
        pending |= {file.file for file in message.state_files}
        pending |= {merge.into.file for merge in message.merged if merge.into is not None}
    return pending


def _list_notes(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.glob(f"*{SUFFIX}"))


def _read_note(content: bytes) -> TaskNote:
    note = pickle.loads(content)
    assert isinstance(note, TaskNote)
    return note


def _make_empty_record() -> TaskRecord:
    return TaskRecord(rows_in=0, rows_out=0, busy_s=0.0, cpu_s=0.0, began=0.0, ended=0.0)
