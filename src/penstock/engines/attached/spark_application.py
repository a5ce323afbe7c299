"""A classic Spark application: its queries, their progress, and what its tasks did.

Progress is polled. A listener would need a callback server in the application, and a listener that
is slow would hold up Spark's events.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.attached.application import Report
from penstock.engines.attached.file_backlog import FileCounter, FileListing
from penstock.engines.attached.spark_tasks import SparkTasks
from penstock.engines.spark.ingest.backlog import FileCount, find_directory
from penstock.engines.spark.queries.causes import find_cause

#: Seconds between two looks for new queries.
NEW_S = 3.0
_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")
_TIME = re.compile(r"\s*(\d+)\s*(ms|s|m|min|h)?\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 0.001}


class SparkQuery:
    """A streaming query of a classic session."""

    def __init__(self, query: StreamingQuery, name: str, tasks: SparkTasks) -> None:
        self._query, self._tasks, self.name = query, tasks, name
        self._java: Any = query._jsq
        self.query_id, self._run_id = str(query.id), str(query.runId)
        self.trigger_s = self._read_trigger_s()
        self._last = ""
        #: Reports that the next call will probably find, and one that is known.
        self._usual = 4
        self.has_ended = False

    def read_new(self) -> Sequence[Report]:
        """Return the progress since the last call, oldest first."""
        new = self._read_reports()
        self._usual = len(new) + 1
        if not new:
            return ()
        self._last = str(new[-1].get("timestamp") or self._last)
        facts = self._tasks.read(self._run_id)
        return [*map(Report, new[:-1]), Report(new[-1], facts)]

    def _read_reports(self) -> list[dict[str, Any]]:
        """Read the newest reports in one call, and as many more as are new."""
        recent = self._java.recentProgress()
        count, size = len(recent), self._usual
        while count:
            reports = self._tasks.read_reports(recent[max(0, count - size) : count])
            new = [each for each in reports if str(each.get("timestamp") or "") > self._last]
            if len(new) < len(reports) or size >= count:
                return new
            size *= 2
        return []

    def is_working(self) -> bool:
        """Whether a trigger is active."""
        return bool(self._java.status().isTriggerActive())

    def is_active(self) -> bool:
        """Whether it has not ended."""
        self.has_ended = self.has_ended or not bool(self._java.isActive())
        return not self.has_ended

    def read_error(self) -> str:
        """Return the cause of the error that ended it; "" if there is none."""
        error = self._query.exception()
        return find_cause(str(error)).message if error is not None else ""

    def make_counter(self, number: int, description: str) -> FileCounter | None:
        """Return a counter of unread files for a source that reads a local directory."""
        directory = find_directory({"description": description})
        if directory is None or (checkpoint := self._checkpoint()) is None:
            return None
        return make_file_counter(FileCount(directory, checkpoint / "sources" / str(number)))

    def _read_trigger_s(self) -> float | None:
        """Return the trigger interval, which Spark keeps in a private class."""
        with suppress(Exception):
            text = str(self._java.streamingQuery().trigger().toString())
            if (match := _INTERVAL.fullmatch(text)) and int(match[1]):
                return int(match[1]) / 1000
        return None

    def _checkpoint(self) -> Path | None:
        with suppress(Exception):
            return find_checkpoint(self._java.streamingQuery())
        return None


def find_checkpoint(execution: Any) -> Path | None:
    """Return the checkpoint of a query; None if it is not on this machine."""
    place = urlsplit(str(execution.resolvedCheckpointRoot()))
    return Path(unquote(place.path)) if place.scheme in ("", "file") else None


def make_file_counter(files: FileCount) -> FileCounter:
    """Return the counter of one source."""

    def list_files() -> FileListing | None:
        waiting = files.count()
        if waiting is None:
            return None
        batches = FrozenDict(files.by_batch)
        return FileListing(
            at=files.listed_at, read=files.files_read, waiting=waiting, by_batch=batches
        )

    return list_files


class SparkApplication:
    """The queries of a classic session, those given or all active ones."""

    def __init__(
        self,
        spark: SparkSession,
        queries: Iterable[StreamingQuery] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark, self._context = spark, spark.sparkContext
        self._manager: Any = spark._jsparkSession.streams()
        self._clock, self._next = clock, 0.0
        self._given = None if queries is None else list(queries)
        self._queries: dict[str, SparkQuery] = {}
        self._tasks = SparkTasks(self._context)
        wait = self._context.getConf().get("spark.locality.wait", "3s") or "3s"
        self.locality_wait_s = read_seconds(wait)
        self.cores = self._tasks.count_cores()

    def find_queries(self) -> Sequence[SparkQuery]:
        """Return the active queries; a restarted query is another one with the same name."""
        if self._given is None or not self._queries:
            self._find_new()
        return [query for query in self._queries.values() if not query.has_ended]

    def follow(self, query: StreamingQuery, name: str) -> SparkQuery:
        """Return a query that is followed under a name."""
        return SparkQuery(query, name, self._tasks)

    def _find_new(self) -> None:
        """Look for new queries now and then."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + NEW_S
        followed = sum(not query.has_ended for query in self._queries.values())
        if self._given is None and len(self._manager.active()) == followed:
            return
        active = self._given if self._given is not None else self._spark.streams.active
        for query in active:
            key = str(query.runId)
            if key not in self._queries:
                new = self.follow(query, self._name(query))
                if new.is_active():
                    self._queries[key] = new

    def _name(self, query: StreamingQuery) -> str:
        return choose_name(query.name, str(query.id), lambda name: self._is_taken(name, query))

    def _is_taken(self, name: str, query: StreamingQuery) -> bool:
        """Whether another query has the name; a later run of the same query keeps it."""
        others = (other for other in self._queries.values() if other.query_id != str(query.id))
        return any(other.name == name for other in others)

    def is_alive(self) -> bool:
        """Whether the Spark context has not been stopped."""
        try:
            java: Any = self._context._jsc
            return java is not None and not bool(java.sc().isStopped())
        except Exception:  # the JVM is gone
            return False

    def count_tasks(self) -> Mapping[str, int]:
        """Return the tasks that each executor has run."""
        return self._tasks.count_by_executor()

    def count_executors(self) -> int:
        """Return the executors that take tasks."""
        java: Any = self._context._jsc
        backend = java.sc().schedulerBackend()
        ids = backend.getExecutorIds()
        names = [str(ids.apply(number)) for number in range(ids.size())]
        return sum(bool(backend.isExecutorActive(name)) for name in names)


def choose_name(name: str | None, query_id: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name of a query: its own, or the begin of its id.

    >>> choose_name("words", "7e5f0a11-22", lambda name: False)
    'words'
    >>> choose_name(None, "7e5f0a11-22", lambda name: False)
    'query-7e5f0a11'
    >>> choose_name("words", "7e5f0a11-22", lambda name: True)
    'words-7e5f0a11'
    """
    begin = query_id[:8]
    if name is None:
        return f"query-{begin}"
    return f"{name}-{begin}" if is_taken(name) else name


def read_seconds(text: str) -> float | None:
    """Return a time of Spark's settings in seconds; None if it cannot be read.

    >>> read_seconds("3s"), read_seconds("500ms"), read_seconds("0"), read_seconds("soon")
    (3.0, 0.5, 0.0, None)
    """
    match = _TIME.fullmatch(text)
    return int(match[1]) * _UNITS[match[2]] if match else None
