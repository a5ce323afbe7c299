"""Changes the replicas of an operator whose state is Spark's own, step by step.

Hold the source, wait for the batch, stop the query, let Spark deal the state anew, restart,
verify, resume. The others go on meanwhile. What is wanted is written down before Spark touches
the state and struck out afterwards, so that a start after a kill finishes what was begun: the
state is cut into the old or the new number of parts, never anything between.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_totals import TotalsRules, with_totals
from penstock.engines.port import Event
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.native_state.costs import Cost, expected_s
from penstock.engines.spark.native_state.repartition import repartition, use_in_this_thread
from penstock.engines.spark.queries.query_status import is_beginning, is_between_batches
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.recovery.checkpoints import (
    OFFSETS,
    PlannedBatch,
    last_batch,
    read_log,
    sync_batch,
)
from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.errors import PenstockError, RescaleError

STEPS = ("hold", "wait", "stop", "repartition", "restart", "verify", "resume")
#: How long the end of a batch is waited for, and the first answer of a query.
PATIENCE_S = 120.0
#: How often Spark is asked again for a repartition that it could not do.
TRIES = 3
#: Repartitions that are remembered for what they cost.
REMEMBERED = 50


@dataclass(kw_only=True)
class RescaleLog:
    """What is written down about an operator's repartitions."""

    #: Replicas that Spark is dealing the state to; None if nothing is under way.
    target: int | None = None
    costs: list[Cost] = field(default_factory=list)

    @classmethod
    def load(cls, layout: RunLayout, operator: str) -> "RescaleLog":
        """Read it; empty if nothing was written yet."""
        hint = "if no change of its replicas was under way, remove the file"
        data = read_json(layout.native(operator), hint) or {}
        costs = [Cost(*cost) for cost in data.get("costs", ())]
        return cls(target=data.get("target"), costs=costs)

    def save(self, layout: RunLayout, operator: str) -> None:
        """Write it at once."""
        kept = self.costs[-REMEMBERED:]
        write_json(layout.native(operator), {"target": self.target, "costs": kept})


class Rescaler:
    """Carries out one change after the other of each operator, beside everything else."""

    def __init__(self, spark: SparkSession, layout: RunLayout, starter: QuerySupervisor) -> None:
        self._spark, self._layout, self._starter = spark, layout, starter
        self._wanted: dict[str, int] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_closing = False
        #: By the wall clock, oldest first; whoever reads them takes them away.
        self.events: deque[Event] = deque()

    # --- asked by the engine

    def finish(self, name: str, first: int) -> int:
        """Complete what a kill cut short; return into how many parts the state is cut."""
        last = last_batch(self._layout.checkpoint(name))
        if last is None:
            return first
        target = RescaleLog.load(self._layout, name).target
        return last.partitions if target is None else self._repartition(name, target).partitions

    def request(self, name: str, replicas: int) -> None:
        """Begin a change, or let it follow the one that is under way; only the last one counts."""
        with self._lock:
            self._wanted[name] = replicas
            if name not in self._threads:
                thread = threading.Thread(target=self._work, args=(name,), daemon=True)
                self._threads[name] = thread
                thread.start()

    def is_busy(self, name: str) -> bool:
        """Whether a change of an operator is under way."""
        return name in self._threads

    def expected_s(self, name: str) -> float | None:
        """Seconds that a change would take now, by those before; None before the first."""
        costs = RescaleLog.load(self._layout, name).costs
        return expected_s(costs, state_rows(self._starter.queries[name])) if costs else None

    def close(self, patience_s: float) -> None:
        """Begin nothing more, and let what is under way come to its end."""
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
            except Exception as error:  # of whatever kind: the others go on
                self._tell("failed", name, error=_in_words(error))

    def _rescale(self, name: str, wanted: int) -> None:
        """Go through all steps; whatever happens to the state, the query runs again."""
        before = self._last(name)
        if before.partitions == wanted:
            return
        seconds: dict[str, float] = {}
        refused: Exception | None = None
        rows, now = state_rows(self._starter.queries[name]), before.partitions
        try:
            with self._step(name, "hold", seconds):
                write_command(self._layout, name, Command(replicas=before.partitions, hold=True))
            with self._step(name, "wait", seconds):
                self._wait_for_the_end(name)
            with self._step(name, "stop", seconds):
                self._starter.pause(name)
            with self._step(name, "repartition", seconds):
                now = self._repartition(name, wanted).partitions
        except Exception as error:
            refused = error
        if name in self._starter.failed:
            raise refused or RescaleError(f"{name} has stopped")
        if RescaleLog.load(self._layout, name).target is not None:
            self._starter.give_up(name, f"{_in_words(refused)}\nhint: a new start tries it again")
            return
        with self._step(name, "restart", seconds):
            self._starter.resume(name)
            self._wait_for_the_beginning(name)
        with self._step(name, "verify", seconds):
            found = self._last(name).partitions
        with self._step(name, "resume", seconds):
            write_command(self._layout, name, Command(replicas=found))
        if refused is not None or found != now:
            raise refused or RescaleError(f"{name} has {found} parts of state, not {now}")
        self._learn(name, Cost(rows, round(sum(seconds.values()), 3)))
        numbers = {f"{step}_s": round(took_s, 3) for step, took_s in seconds.items()}
        total = {"replicas": wanted, "before": before.partitions, "state_rows": rows}
        self._tell("rescaled", name, **total, pause_s=round(sum(seconds.values()), 3), **numbers)

    @contextmanager
    def _step(self, name: str, step: str, seconds: dict[str, float]) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds[step] = time.perf_counter() - began
        self._tell("step", name, step=step, seconds=round(seconds[step], 3))

    def _wait_for_the_end(self, name: str) -> None:
        """Under backlog the next batch begins at once, so the source has to be held by now."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            query = self._starter.queries[name]
            idle = query.isActive and not is_beginning(query) and is_between_batches(query)
            if idle and self._last(name).is_committed:
                return
            if self._is_closing or name in self._starter.failed:
                raise RescaleError(f"{name} has come to its end")
            time.sleep(0.01)
        raise RescaleError(f"the batch of {name} did not end within {PATIENCE_S:g} s")

    def _wait_for_the_beginning(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while is_beginning(self._starter.queries[name]):
            if time.monotonic() > deadline:
                raise RescaleError(f"{name} did not begin within {PATIENCE_S:g} s")
            time.sleep(0.01)

    # --- the state

    def _repartition(self, name: str, wanted: int) -> PlannedBatch:
        """Let Spark deal the state anew, or go on where it was cut short."""
        memory = RescaleLog.load(self._layout, name)
        memory.target = wanted
        memory.save(self._layout, name)
        self._insist(name, wanted)
        last = self._last(name)
        # the batch read nothing; who follows the records must not wait for it
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
        log = BatchLog(self._layout.batches(name))
        log.put(with_totals(record, log.get(last.number - 1), TotalsRules()))
        memory.target = None
        memory.save(self._layout, name)
        return last

    def _insist(self, name: str, wanted: int) -> None:
        for tries in range(TRIES, 0, -1):
            last = self._last(name)
            if last.partitions == wanted and last.is_committed:
                return
            try:
                repartition(self._spark, self._layout.checkpoint(name), wanted)
            except RescaleError:
                if self._last(name) == last and last.is_committed:  # nothing was touched
                    memory = RescaleLog.load(self._layout, name)
                    memory.target = None
                    memory.save(self._layout, name)
                    raise
                if tries == 1:
                    raise

    def _last(self, name: str) -> PlannedBatch:
        last = last_batch(self._layout.checkpoint(name))
        if last is None:
            raise RescaleError(f"{name} has not had a batch yet")
        return last

    def _learn(self, name: str, cost: Cost) -> None:
        memory = RescaleLog.load(self._layout, name)
        memory.costs.append(cost)
        memory.save(self._layout, name)

    def _tell(self, kind: str, name: str, **numbers: Any) -> None:
        self.events.append(Event(at=time.time(), kind=kind, operator=name, numbers=numbers))


def state_rows(query: StreamingQuery) -> int:
    """Rows of state after the last batch, as Spark counts them."""
    progress = query.lastProgress
    return sum(each["numRowsTotal"] for each in progress["stateOperators"]) if progress else 0


def _in_words(error: Exception | None) -> str:
    return str(error) if isinstance(error, PenstockError) else " ".join(str(error).splitlines()[:3])
