"""Changes the parallelism of an operator with Spark's own state, step by step.

Steps: hold the source, wait for the batch, stop the query, repartition the state, restart, verify,
resume. Other operators keep running. The change is logged before repartitioning and cleared
afterwards; a restart completes it. The state always has the old or the new number of partitions.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.events import Event, FailedEvent, RescaledEvent, StepEvent
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_totals import TotalsRules, add_totals
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.native_state.repartition import repartition, use_in_this_thread
from penstock.engines.spark.native_state.rescale_log import Cost, RescaleLog, estimate_s
from penstock.engines.spark.queries.query_status import is_between_batches, is_starting
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.recovery.checkpoints import (
    OFFSETS,
    PlannedBatch,
    read_last_batch,
    read_log,
    sync_batch,
)
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import PenstockError, RescaleError

_LOG = logging.getLogger(__name__)
STEPS = ("hold", "wait", "stop", "repartition", "restart", "verify", "resume")
#: How long to wait for the end of a batch, and for the start of a query.
MAX_WAIT_S = 120.0
#: How often a failed repartition is tried.
MAX_TRIES = 3


class Rescaler:
    """Rescales operators in the background, one change per operator at a time."""

    def __init__(
        self, spark: SparkSession, layout: RunLayout, query_supervisor: QuerySupervisor
    ) -> None:
        self._spark, self._layout, self._query_supervisor = spark, layout, query_supervisor
        self._wanted: dict[str, int] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_closing = False
        #: Events with wall-clock times, oldest first; the reader removes them.
        self.events: deque[Event] = deque()

    # --- called by the engine

    def finish(self, name: str, first: int) -> int:
        """Complete an interrupted change; return the number of partitions of the state."""
        last = read_last_batch(self._layout.checkpoint(name))
        if last is None:
            return first
        target = RescaleLog.load(self._layout, name).target
        return last.partitions if target is None else self._repartition(name, target).partitions

    def request(self, name: str, replicas: int) -> None:
        """Start a change, or queue it behind the one in progress; only the latest is kept."""
        with self._lock:
            self._wanted[name] = replicas
            if name not in self._threads:
                thread = threading.Thread(target=self._work, args=(name,), daemon=True)
                self._threads[name] = thread
                thread.start()

    def is_busy(self, name: str) -> bool:
        """Whether an operator is being rescaled."""
        return name in self._threads

    def expected_s(self, name: str) -> float | None:
        """Return the expected seconds of a change, from past ones; None before the first."""
        costs = RescaleLog.load(self._layout, name).costs
        return (
            estimate_s(costs, count_state_rows(self._query_supervisor.queries[name]))
            if costs
            else None
        )

    def close(self, patience_s: float) -> None:
        """Start no more changes, and wait for those in progress."""
        with self._lock:
            self._is_closing = True
            self._wanted.clear()
            threads = list(self._threads.values())
        deadline = time.monotonic() + patience_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    # --- in a thread for each operator

    def _work(self, name: str) -> None:
        use_in_this_thread(self._spark)
        while True:
            with self._lock:
                if name not in self._wanted:
                    del self._threads[name]
                    return
                wanted = self._wanted.pop(name)
            try:
                self._rescale(name, wanted)
            except Exception as error:  # any kind: other operators keep running
                event = FailedEvent(at=time.time(), operator=name, error=_error_text(error))
                self.events.append(event)

    def _rescale(self, name: str, wanted: int) -> None:
        """Run all steps; the query is restarted even if the repartition fails."""
        before = self._last(name)
        if before.partitions == wanted:
            return
        seconds: dict[str, float] = {}
        refused: Exception | None = None
        rows, now = count_state_rows(self._query_supervisor.queries[name]), before.partitions
        try:
            with self._step(name, "hold", seconds):
                write_command(self._layout, name, Command(replicas=before.partitions, hold=True))
            with self._step(name, "wait", seconds):
                self._wait_for_batch_end(name)
            with self._step(name, "stop", seconds):
                self._query_supervisor.pause(name)
            with self._step(name, "repartition", seconds):
                now = self._repartition(name, wanted).partitions
        except Exception as error:
            refused = error
        if name in self._query_supervisor.failed:
            raise refused or RescaleError(f"{name} has stopped")
        if RescaleLog.load(self._layout, name).target is not None:
            self._query_supervisor.give_up(
                name, f"{_error_text(refused)}\nhint: restart the run to try it again"
            )
            return
        with self._step(name, "restart", seconds):
            self._query_supervisor.resume(name)
            self._wait_for_start(name)
        with self._step(name, "verify", seconds):
            running = self._last(name).partitions
        with self._step(name, "resume", seconds):
            write_command(self._layout, name, Command(replicas=running))
        if refused is not None or running != now:
            raise refused or RescaleError(f"{name} has {running} partitions of state, not {now}")
        self._record_cost(name, Cost(rows, round(sum(seconds.values()), 3)))
        event = RescaledEvent(
            at=time.time(),
            operator=name,
            replicas=wanted,
            before=before.partitions,
            state_rows=rows,
            pause_s=round(sum(seconds.values()), 3),
            hold_s=round(seconds["hold"], 3),
            wait_s=round(seconds["wait"], 3),
            stop_s=round(seconds["stop"], 3),
            repartition_s=round(seconds["repartition"], 3),
            restart_s=round(seconds["restart"], 3),
            verify_s=round(seconds["verify"], 3),
            resume_s=round(seconds["resume"], 3),
        )
        self.events.append(event)

    @contextmanager
    def _step(self, name: str, step: str, seconds: dict[str, float]) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds[step] = time.perf_counter() - began
        _LOG.debug("rescale of %s: step %s took %.3f s", name, step, seconds[step])
        took_s = round(seconds[step], 3)
        event = StepEvent(at=time.time(), operator=name, step=step, duration_s=took_s)
        self.events.append(event)

    def _wait_for_batch_end(self, name: str) -> None:
        """Wait for the end of a batch; the source is on hold, so that no other batch starts."""
        deadline = time.monotonic() + MAX_WAIT_S
        while time.monotonic() < deadline:
            query = self._query_supervisor.queries[name]
            idle = query.isActive and not is_starting(query) and is_between_batches(query)
            if idle and self._last(name).is_committed:
                return
            if self._is_closing or name in self._query_supervisor.failed:
                raise RescaleError(f"{name} has stopped")
            time.sleep(0.01)
        raise RescaleError(f"the batch of {name} did not end within {MAX_WAIT_S:g} s")

    def _wait_for_start(self, name: str) -> None:
        deadline = time.monotonic() + MAX_WAIT_S
        while is_starting(self._query_supervisor.queries[name]):
            if time.monotonic() > deadline:
                raise RescaleError(f"{name} did not begin within {MAX_WAIT_S:g} s")
            time.sleep(0.01)

    # --- the state

    def _repartition(self, name: str, wanted: int) -> PlannedBatch:
        """Repartition the state, or complete an interrupted repartition."""
        log = RescaleLog.load(self._layout, name)
        log.target = wanted
        log.save(self._layout, name)
        self._repartition_with_retries(name, wanted)
        last = self._last(name)
        # the batch read nothing; readers of the records must not wait for it
        record = BatchRecord(
            batch=last.number,
            start=last.ends,
            end=last.ends,
            planned_at=last.planned_at,
            committed_at=last.planned_at,
            tasks=(),
            offset_log=read_log(self._layout.checkpoint(name), OFFSETS, last.number),
        )
        sync_batch(self._layout.checkpoint(name), last.number)
        batches = BatchLog(self._layout.batches(name))
        batches.put(add_totals(record, batches.get(last.number - 1), TotalsRules()))
        log.target = None
        log.save(self._layout, name)
        return last

    def _repartition_with_retries(self, name: str, wanted: int) -> None:
        for tries in range(MAX_TRIES, 0, -1):
            last = self._last(name)
            if last.partitions == wanted and last.is_committed:
                return
            try:
                repartition(self._spark, self._layout.checkpoint(name), wanted)
            except RescaleError:
                if self._last(name) == last and last.is_committed:  # the state is unchanged
                    log = RescaleLog.load(self._layout, name)
                    log.target = None
                    log.save(self._layout, name)
                    raise
                if tries == 1:
                    raise

    def _last(self, name: str) -> PlannedBatch:
        last = read_last_batch(self._layout.checkpoint(name))
        if last is None:
            raise RescaleError(f"{name} has had no batch yet")
        return last

    def _record_cost(self, name: str, cost: Cost) -> None:
        log = RescaleLog.load(self._layout, name)
        log.costs.append(cost)
        log.save(self._layout, name)


def _error_text(error: Exception | None) -> str:
    return str(error) if isinstance(error, PenstockError) else " ".join(str(error).splitlines()[:3])


def count_state_rows(query: StreamingQuery) -> int:
    """Return the rows of state after the last batch, as Spark reports them."""
    progress = query.lastProgress
    return sum(state["numRowsTotal"] for state in progress["stateOperators"]) if progress else 0
