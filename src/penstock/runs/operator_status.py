"""Status of one operator of a run, read from the run directory alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.queries.retries import STABLE_S
from penstock.engines.spark.recovery.checkpoints import read_last_batch, read_planned_batch
from penstock.engines.spark.run_layout import RunLayout, read_json
from penstock.errors import InputError, TruncatedError
from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.topic_declaration import errors_topic
from penstock.runs.journal_tail import JournalTail
from penstock.topics.embedded.topic import Topic

#: The kind of operators that Penstock did not start: streaming queries of an application.
OBSERVED = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStatus:
    """One operator at one moment. A value that is unknown or does not apply is None."""

    name: str
    kind: str
    #: Replicas: wanted by the last decision, requested, running.
    wanted: int | None = None
    requested: int | None = None
    running: int | None = None
    #: Rows that wait for it, and how long the oldest row has waited.
    queue: int | None = None
    oldest_waiting_s: float | None = None
    #: Event time in seconds since 1970 up to which its input is complete.
    watermark: float | None = None
    last_commit_at: float | None = None
    restarts: int = 0
    #: Why it was restarted the last time.
    last_restart: str = ""
    #: How long it has been restarting, and the number of the last try; None if it works.
    restarting_s: float | None = None
    tries: int | None = None
    late_rows: int | None = None
    dead_letter_rows: int | None = None
    #: Why it stopped for good.
    error: str = ""


def read_operator(
    layout: RunLayout, name: str, declared: Mapping[str, Any], tail: JournalTail, now: float
) -> OperatorStatus:
    """Read the status of an operator; `declared` is its part of the run's pipeline.json."""
    kind, record = declared["kind"], _last_record(layout, name)
    scales = find_kind(kind).scales
    queue, oldest_s = _waiting(layout, name, declared["reads"], record, now)
    tick, last_commit_at = tail.tick, _last_commit_at(layout, name, record)
    restarting_s, tries = _find_retry(tail, name, last_commit_at, now)
    return OperatorStatus(
        name=name,
        kind=kind,
        wanted=tick.wanted.get(name) if scales and tick else None,
        requested=_requested(layout, name, tail) if scales else None,
        running=tick.running.get(name) if scales and tick else None,
        queue=queue,
        oldest_waiting_s=oldest_s,
        watermark=_watermark(layout, name, kind, record),
        last_commit_at=last_commit_at,
        restarts=tail.restarts[name],
        last_restart=tail.causes.get(name, ""),
        restarting_s=restarting_s,
        tries=tries,
        late_rows=_late_rows(layout, name, kind, tail),
        dead_letter_rows=_dead_letters(layout, name, declared),
        error=tail.failed.get(name, ""),
    )


def read_from_journal(tail: JournalTail) -> tuple[OperatorStatus, ...]:
    """Return the operators of a run without a pipeline, as the last tick has them."""
    tick = tail.tick
    if tick is None:
        return ()
    return tuple(
        OperatorStatus(
            name=name,
            kind=OBSERVED,
            wanted=tick.wanted.get(name),
            requested=tick.requested.get(name),
            running=running,
            queue=tick.ingests[name].backlog_rows if name in tick.ingests else None,
            late_rows=tail.late[name] or None,
        )
        for name, running in tick.running.items()
    )


def _last_record(layout: RunLayout, name: str) -> BatchRecord | None:
    directory = layout.batches(name)
    return BatchLog(directory).last() if directory.is_dir() else None


def _requested(layout: RunLayout, name: str, tail: JournalTail) -> int | None:
    order = read_json(layout.order(name))
    requested = tail.tick.requested if tail.tick else {}
    replicas = order.get("replicas") if order else requested.get(name)
    return None if replicas is None else int(replicas)


def _waiting(
    layout: RunLayout, name: str, reads: list[str], record: BatchRecord | None, now: float
) -> tuple[int | None, float | None]:
    """Return the rows that wait for an operator, and how many seconds the oldest has waited."""
    topics = [path for path in map(layout.topic, reads) if path.is_dir()]
    if not topics:
        return None, None
    rows, ages = 0, []
    done = record.end if record else _committed_ends(layout.checkpoint(name))
    for path in topics:
        topic = Topic.open(path)
        position = max(topic.first, done.get(path.name, topic.first))
        if topic.end > position:
            rows += topic.end - position
            ages.append(now - _committed_at(topic, position, now))
    return rows, max(ages, default=None)


def _committed_ends(checkpoint: Path) -> Mapping[str, int]:
    """Return the offsets that Spark has committed for an egress, which has no batch records."""
    numbers = [int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit()]
    batch = read_planned_batch(checkpoint, max(numbers)) if numbers else None
    return batch.ends if batch else {}


def _committed_at(topic: Topic, offset: int, now: float) -> float:
    try:
        return topic.commits(offset, offset + 1)[0].at
    except TruncatedError:  # it has been read and removed since
        return now


def _watermark(layout: RunLayout, name: str, kind: str, record: BatchRecord | None) -> float | None:
    """Return the watermark of the last batch in seconds; None if there is none."""
    if not find_kind(kind).uses_event_time:
        return None
    if record is not None and record.state is not None:
        micros = record.state.watermark
    else:  # Spark's log has the watermark of state that Spark keeps
        planned = read_last_batch(layout.checkpoint(name))
        micros = planned.watermark or None if planned else None
    return None if micros is None else micros / 1e6


def _last_commit_at(layout: RunLayout, name: str, record: BatchRecord | None) -> float | None:
    """Return the time of the last commit: from its record, or from Spark's log for an egress."""
    if record is not None:
        return record.committed_at
    commits = layout.checkpoint(name) / "commits"
    times = [path.stat().st_mtime for path in commits.glob("[0-9]*")]
    return max(times, default=None)


def _find_retry(
    tail: JournalTail, name: str, last_commit_at: float | None, now: float
) -> tuple[float | None, int | None]:
    """Return how long an operator has been failing, and its last try; None if it works.

    It works if it has committed since the last failure, or has not failed for so long that
    another failure would have a new cause.
    """
    retry = tail.retries.get(name)
    if retry is None or tail.tick is None or tail.written_at is None:
        return None, None
    failed_at = tail.written_at - (tail.tick.at - retry.at)
    age_s = max(0.0, now - failed_at)
    if age_s > retry.delay_s + STABLE_S or (last_commit_at or 0.0) > failed_at:
        return None, None
    return retry.since_s + age_s, retry.tries


def _late_rows(layout: RunLayout, name: str, kind: str, tail: JournalTail) -> int | None:
    """Count rows that arrived after the watermark, in the journal or in newer batch records."""
    directory = layout.batches(name)
    if not find_kind(kind).uses_event_time or not directory.is_dir():
        return None
    records = BatchLog(directory).read_new()
    return max(tail.late[name], sum(task.late for record in records for task in record.tasks))


def _dead_letters(layout: RunLayout, name: str, declared: Mapping[str, Any]) -> int | None:
    if declared["options"].get("on_error") != "dead-letter":
        return None
    path = layout.topic(errors_topic(name))
    return Topic.open(path).end if path.is_dir() else 0


def read_declared(run: Path) -> Mapping[str, Any]:
    """Return the pipeline as described in the run directory."""
    path = run / "pipeline.json"
    declared: Mapping[str, Any] | None = read_json(path)
    if declared is None:
        return {"name": run.name, "operators": {}}
    if not isinstance(declared.get("operators"), Mapping):
        raise InputError(str(path), "does not describe a pipeline", "restore it from a backup")
    return declared
