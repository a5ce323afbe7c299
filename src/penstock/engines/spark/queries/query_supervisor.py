"""Starts the queries of a run, a few at a time, and again those that failed, as long as allowed."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.events import Event, FailedEvent, RestartingEvent
from penstock.engines.spark.io.call_marker import find_deadliest, read_marks, read_stack
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.causes import Cause, find_cause
from penstock.engines.spark.queries.failures import Failure
from penstock.engines.spark.queries.query_status import is_starting
from penstock.engines.spark.queries.retries import MAX_SAME, Rows, Trouble, count_failure
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError

_LOG = logging.getLogger(__name__)
#: Queries that begin at once. Spark gives the process of a source ten seconds to start, which no
#: setting changes, and which is not enough on a busy machine if many do so together.
MAX_BEGINNING = 2 * (os.cpu_count() or 1)
#: Seconds between two lines about operators that are waited for.
SAY_EVERY_S = 15.0

#: Tells which batch of an operator comes next, and which rows the last one planned reads.
Position = Callable[[str], tuple[int, Rows]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a query is started, and what is known of its operator."""

    start: Callable[[], StreamingQuery]
    #: Seconds that a call of its function may take.
    call_timeout_s: float | None = None
    #: Whether rows that end the process of its function are put aside.
    keeps_letters: bool = False


class QuerySupervisor:
    """The queries of a run; each goes on from its checkpoint when it is started again."""

    def __init__(
        self,
        layout: RunLayout,
        retry_for_s: float = inf,
        *,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Failures that are not the user's are retried for so long."""
        self._layout, self._retry_for_s, self._say, self._clock = layout, retry_for_s, say, clock
        self._starts: dict[str, Start] = {}
        self._trouble: dict[str, Trouble] = {}
        #: By operator: monotonic clock of its last start.
        self._started_at: dict[str, float] = {}
        #: By operator, as they were started last.
        self.queries: dict[str, StreamingQuery] = {}
        #: Operators that were stopped on purpose and will be started again.
        self._paused: set[str] = set()
        #: Operators that stopped for good, and why.
        self.failed: dict[str, str] = {}

    def add(
        self,
        operator: str,
        start: Callable[[], StreamingQuery],
        *,
        call_timeout_s: float | None = None,
        keeps_letters: bool = False,
    ) -> None:
        """Take a query that is to be started."""
        self._starts[operator] = Start(
            start=start, call_timeout_s=call_timeout_s, keeps_letters=keeps_letters
        )

    def start(self) -> None:
        """Start all, the last that was added first."""
        began = said = self._clock()
        for operator in reversed(self._starts):
            while not self.is_free:
                time.sleep(0.05)
                if self._clock() - said > SAY_EVERY_S:
                    said = self._clock()
                    self._say(format_waiting(self.beginning_names, said - began))
            self._start(operator)

    def _start(self, operator: str) -> None:
        self._started_at[operator] = self._clock()
        self.queries[operator] = self._starts[operator].start()

    @property
    def beginning_names(self) -> list[str]:
        """Operators whose sources are not there yet."""
        return [name for name, query in self.queries.items() if is_starting(query)]

    @property
    def beginning(self) -> int:
        """Queries whose sources are not there yet."""
        return len(self.beginning_names)

    @property
    def is_free(self) -> bool:
        """Whether another query may begin now."""
        return self.beginning < MAX_BEGINNING

    @property
    def restarting(self) -> dict[str, Trouble]:
        """Operators that stopped and are not started again yet."""
        return {
            name: trouble
            for name, trouble in self._trouble.items()
            if name not in self.failed and trouble.due > self._started_at.get(name, -inf)
        }

    # --- queries that end by themselves

    def watch(self, position: Position) -> list[Event]:
        """Look after queries that ended by themselves; return what happened, by the wall clock."""
        events: list[Event] = []
        for name in list(self.queries):
            if name not in self.failed and name not in self._paused:
                events += self._handle_exit(name, position)
        return events

    def _handle_exit(self, name: str, position: Position) -> list[Event]:
        if self.queries[name].isActive:
            return []
        if name in self.restarting:
            return self._start_again(name)
        error = self.queries[name].exception()
        if error is None:
            return []
        return self._handle_failure(name, error, *position(name))

    def _handle_failure(
        self, name: str, error: StreamingQueryException | Exception, batch: int, rows: Rows
    ) -> list[Event]:
        cause = find_cause(str(error))
        told = failures.load(self._layout, name)
        signature = repr(failures.make_signature(told.trace)) if told else cause.signature
        trouble = count_failure(
            self._trouble.get(name),
            batch=batch,
            rows=rows,
            signature=signature,
            reason=told.trace.strip().splitlines()[-1] if told else cause.message,
            now=self._clock(),
            started_at=self._started_at.get(name, -inf),
        )
        self._trouble[name] = trouble
        failure = self._failure_of_user(name, cause, told, trouble)
        if failure is not None:
            return [self._give_up(name, failure.text(name), trouble, failure)]
        lasted_s = trouble.due - trouble.since
        if name not in self._starts or lasted_s > self._retry_for_s:
            text = f"{name} was given up after {trouble.tries} tries: {trouble.reason}"
            return [self._give_up(name, f"{text}\n{cause.detail}".strip(), trouble)]
        return [self._restarting(name, trouble), *self._start_again(name)]

    def _failure_of_user(
        self, name: str, cause: Cause, told: Failure | None, trouble: Trouble
    ) -> Failure | None:
        """Return a failure that comes again on the same rows; None if it may be tried again."""
        if told is not None:
            return told if max(told.times, trouble.same) >= MAX_SAME else None
        if cause.is_crash:
            return self._death(name)
        if cause.is_network and not trouble.rows:  # whoever reads from outside may wait for it
            return None
        if cause.is_users and trouble.same >= MAX_SAME:
            topic, first, end = trouble.rows[0] if trouble.rows else ("", 0, 0)
            trace = cause.traceback or cause.message
            return Failure(topic=topic, first=first, end=end, trace=trace, times=trouble.same)
        return None

    def _death(self, name: str) -> Failure | None:
        """Return the rows on which the worker died twice or more; None if there are none."""
        mark, start = find_deadliest(read_marks(self._layout, name)), self._starts.get(name)
        if mark is None or mark.deaths + 1 < MAX_SAME or (start and start.keeps_letters):
            return None
        stack, limit_s = read_stack(self._layout, name), start.call_timeout_s if start else None
        where = failures.format_rows(mark.topic, mark.first, mark.end)
        problem = (
            f"call of {name} took longer than {limit_s:g} s on {where}"
            if limit_s is not None and stack
            else f"worker process died while processing {where} in operator {name}"
        )
        return Failure(
            topic=mark.topic,
            first=mark.first,
            end=mark.end,
            trace=stack,
            times=mark.deaths + 1,
            problem=f"{problem} ({mark.deaths + 1} times)",
        )

    def _restarting(self, name: str, trouble: Trouble) -> RestartingEvent:
        _LOG.info("query %s restarts, try %d: %s", name, trouble.tries, trouble.reason)
        return RestartingEvent(
            at=time.time(),
            operator=name,
            tries=trouble.tries,
            delay_s=round(max(0.0, trouble.due - self._clock()), 3),
            since_s=round(self._clock() - trouble.since, 3),
            retry_for_s=self._retry_for_s if isfinite(self._retry_for_s) else None,
            error=trouble.reason,
        )

    def _give_up(
        self, name: str, text: str, trouble: Trouble, failure: Failure | None = None
    ) -> FailedEvent:
        self.failed[name] = text
        rows = failure if failure is not None and failure.topic else None
        return FailedEvent(
            at=time.time(),
            operator=name,
            error=text,
            tries=trouble.tries,
            is_users=failure is not None,
            topic=rows.topic if rows else None,
            first_offset=rows.first if rows else None,
            end_offset=rows.end if rows else None,
        )

    def _start_again(self, name: str) -> list[Event]:
        """Start a query whose time has come, if no other one begins."""
        trouble = self._trouble[name]
        if self._clock() < trouble.due or not self.is_free or name not in self._starts:
            return []
        try:
            self._start(name)
        except InputError as wrong:
            return [self._give_up(name, str(wrong), trouble)]
        except (PySparkException, Py4JJavaError) as error:
            # such as a query that has not quite ended; the JVM lives, or another error came
            return self._handle_failure(name, error, trouble.batch, trouble.rows)
        return []

    # --- queries that are stopped on purpose

    def pause(self, operator: str) -> None:
        """Stop a query that `resume` starts again."""
        self._paused.add(operator)
        self.queries[operator].stop()

    def resume(self, operator: str) -> None:
        """Start a query that is paused or gone."""
        if not self.queries[operator].isActive:
            self._start(operator)
        self._paused.discard(operator)

    def give_up(self, operator: str, why: str) -> None:
        """Note that a paused query cannot be started any more."""
        self.failed[operator] = why

    @property
    def is_over(self) -> bool:
        """Whether an operator has failed and none works any more."""
        return bool(self.failed) and not any(query.isActive for query in self.queries.values())

    def close(self) -> None:
        """Start nothing again from here on."""
        self._starts.clear()


def format_waiting(names: list[str], seconds: float) -> str:
    """Say which operators are waited for.

    >>> format_waiting(["parse", "enrich"], 45.2)
    'waiting for 2 operators to start: parse, enrich (45 s)'
    >>> format_waiting(["parse"], 15)
    'waiting for 1 operator to start: parse (15 s)'
    """
    count = f"{len(names)} operator{'s' if len(names) != 1 else ''}"
    return f"waiting for {count} to start: {', '.join(names)} ({seconds:.0f} s)"
