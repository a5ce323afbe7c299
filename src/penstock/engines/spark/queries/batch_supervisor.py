"""Supervises the batches of a run: failures, slow batches, and the end of queries."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from statistics import median

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.events import Event, SlowBatchEvent
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.call_marker import read_marks
from penstock.engines.spark.kinds.kind import SparkKind, find_spark_kind
from penstock.engines.spark.queries.query_status import is_working
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.queries.retries import Rows, list_ranges
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.operator import Operator

#: Seconds between two messages about a batch that has not ended.
SAY_EVERY_S = 5.0
#: A batch is slow if it takes this many times the usual time, and at least this many seconds.
SLOW_FACTOR = 5.0
MIN_SLOW_S = 10.0
#: Batches whose median time is usual.
_MAX_DURATIONS = 20


def is_slow(elapsed_s: float, usual_s: float) -> bool:
    """Whether a batch has taken much longer than usual so far.

    >>> is_slow(9.0, 0.5), is_slow(11.0, 0.5), is_slow(11.0, 4.0), is_slow(21.0, 4.0)
    (False, True, False, True)
    """
    return elapsed_s > max(MIN_SLOW_S, SLOW_FACTOR * usual_s)


@dataclass(slots=True)
class BatchTimer:
    """Times the batches of one operator."""

    #: The usual time before the first batch ends.
    usual_s: float
    _durations_s: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_DURATIONS))
    _batch: int | None = None
    _began_at: float | None = None
    _reported_batch: int | None = None

    @property
    def usual(self) -> float:
        """Seconds that a batch usually takes."""
        return median(self._durations_s) if self._durations_s else self.usual_s

    def update(self, now: float, batch: int, *, is_busy: bool) -> float | None:
        """Note the present batch; return the seconds of a slow batch, once per batch."""
        if self._began_at is not None and (not is_busy or batch != self._batch):
            self._durations_s.append(now - self._began_at)
            self._began_at = None
        if not is_busy:
            return None
        if self._began_at is None:
            self._began_at, self._batch = now, batch
        elapsed_s = now - self._began_at
        if self._reported_batch == batch or not is_slow(elapsed_s, self.usual):
            return None
        self._reported_batch = batch
        return elapsed_s


class BatchSupervisor:
    """The batches of all queries of a run."""

    def __init__(
        self,
        layout: RunLayout,
        operators: Mapping[str, Operator],
        trackers: Mapping[str, OperatorTracker],
        query_supervisor: QuerySupervisor,
        usual_s: float,
    ) -> None:
        """`usual_s` is the planned time of a batch."""
        self._layout, self._operators, self._trackers = layout, operators, trackers
        self._query_supervisor = query_supervisor
        self._timers = {name: BatchTimer(usual_s) for name in operators}
        #: False while operators start: their batches wait for processes and are not slow.
        self.is_timing = False

    def update(self) -> list[Event]:
        """Restart failed queries; return events with wall-clock times."""
        events = self._query_supervisor.watch(self.position)
        for name, query in self._query_supervisor.queries.items() if self.is_timing else ():
            if name not in self._query_supervisor.failed:
                events += self._find_slow_batch(name, query)
        return events

    def position(self, name: str) -> tuple[int, Rows]:
        """Return the next batch of an operator, and the rows that it reads."""
        batch = self._next_batch(name)
        return batch, self._read_rows(name, batch)

    def _next_batch(self, name: str) -> int:
        if name in self._trackers:
            return self._trackers[name].log.next
        if not self._layout.batches(name).is_dir():  # an egress has no records
            return 0
        last = BatchLog(self._layout.batches(name)).last()
        return last.batch + 1 if last is not None else 0

    def _read_rows(self, name: str, batch: int) -> Rows:
        try:
            plan = self._kind(name).planned_input(self._layout, name, batch)
        except (OSError, InputError, AssertionError):  # no batch is planned yet
            return ()
        return list_ranges(dict(plan.start), dict(plan.end))

    def _find_slow_batch(self, name: str, query: StreamingQuery) -> list[Event]:
        batch = self._trackers[name].log.next if name in self._trackers else 0
        is_busy = is_working(query)
        seconds = self._timers[name].update(time.monotonic(), batch, is_busy=is_busy)
        if seconds is None:
            return []
        rows = self._find_slow_rows(name, batch)
        topic, first, end = rows[0] if rows else (None, None, None)
        event = SlowBatchEvent(
            at=time.time(),
            operator=name,
            batch=batch,
            duration_s=round(seconds, 1),
            usual_s=round(self._timers[name].usual, 3),
            topic=topic,
            first_offset=first,
            end_offset=end,
        )
        return [event]

    def _find_slow_rows(self, name: str, batch: int) -> Rows:
        """Return the rows of the longest running call, or else of the whole batch."""
        marks = read_marks(self._layout, name)
        if marks:
            mark = min(marks, key=lambda mark: mark.began_at)
            return ((mark.topic, mark.first, mark.end),)
        return self._read_rows(name, batch)

    def is_quiet(self, name: str) -> bool:
        """Whether no batch of an operator runs now."""
        return self._kind(name).is_quiet(self._query_supervisor.queries[name])

    def _kind(self, name: str) -> SparkKind:
        return find_spark_kind(self._operators[name].kind)

    def stop_queries(self, patience_s: float, say: Callable[[str], None]) -> None:
        """Let running batches end, then stop all queries; say which batch delays the stop."""
        began, reported_at = time.monotonic(), -inf
        for name, query in self._query_supervisor.queries.items():
            while not self.is_quiet(name) and time.monotonic() - began < patience_s:
                waited_s = time.monotonic() - began
                if waited_s >= 1 and waited_s - reported_at >= SAY_EVERY_S:
                    reported_at = waited_s
                    say(format_ending(name, waited_s))
                time.sleep(0.05)
            query.stop()


def format_ending(name: str, seconds: float) -> str:
    """Return the message about a batch that has not ended.

    >>> format_ending("enrich", 12.3)
    'waiting for the batch of enrich, 12 s; press Ctrl-C again to stop at once'
    """
    return f"waiting for the batch of {name}, {seconds:.0f} s; press Ctrl-C again to stop at once"
