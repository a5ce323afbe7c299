"""Writes the rows of a workload to a topic at the times they are due."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schedule import schedule_of
from penstock.topics.schema import EVENT
from penstock.topics.steady_clock import SteadyClock
from penstock.workloads.pattern import SEED, ArrivalName
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.workload import Workload

#: The largest commit, in rows.
MAX_ROWS = 1 << 16


class RowCount(Protocol):
    """The rows of a topic."""

    def refresh(self) -> int:
        """Return how many rows of the workload exist."""


class RowWriter(Protocol):
    """What a producer needs of a topic: a directory or Kafka."""

    @property
    def topic(self) -> RowCount:
        """The topic that is written."""

    def append(self, rows: pa.Table) -> object:
        """Write rows after the existing ones."""


class Producer:
    """Follows a workload: writes every row when it is due, never earlier.

    `make(first_id, due)` gets the id of the first record and the due times of it and the following
    ones; it returns one row for each. The due time is their `_event`, however late they are
    written.
    """

    def __init__(
        self,
        writer: RowWriter,
        make: Callable[[int, pa.Array], pa.Table],
        load: Workload,
        *,
        arrivals: ArrivalName = "deterministic",
        seed: int = SEED,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        step_s: float = 0.05,
    ) -> None:
        self._writer, self._make, self._load = writer, make, load
        self._arrivals, self._seed = arrivals, seed
        # a steady clock: the wall clock may be set back
        self._clock, self._sleep, self._step_s = clock or SteadyClock(), sleep, step_s
        #: Rows written by this producer.
        self.produced = 0
        #: Delay of the oldest row of the last commit, and the largest delay so far.
        self.lag_s = self.worst_lag_s = 0.0

    def run(
        self,
        until: float | None = None,
        stop: threading.Event | None = None,
        *,
        begin_at: float | None = None,
        watch: Callable[["Producer"], None] | None = None,
    ) -> None:
        """Produce up to second `until` of the workload, or to its end, or until `stop` is set.

        The workload starts now. If the topic already has n rows, they are the first n of the
        workload and the next one is due now, unless `begin_at` gives the start of the workload.
        `watch` is called after every commit.
        """
        end_s = self._load.duration_s if until is None else until
        existing = self._writer.topic.refresh()
        schedule = schedule_of(self._load, self._arrivals, self._seed)
        schedule.skip(existing)
        if begin_at is None:
            # rows missed while no producer was running are not produced later
            begin_at = self._clock() - (schedule.next_s() if existing else 0.0)
        first = existing
        while schedule.has_more(end_s) and not (stop and stop.is_set()):
            now = self._clock()
            due_s = min(now - begin_at, end_s)
            while len(times_s := schedule.take(due_s, MAX_ROWS)):
                self._write(first, begin_at + times_s)
                first += len(times_s)
                if watch:
                    watch(self)
                if stop and stop.is_set():
                    return
            spent_s = self._clock() - now
            if spent_s < self._step_s and schedule.has_more(end_s):
                self._sleep(self._step_s - spent_s)

    def _write(self, first: int, due_s: FloatArray) -> None:
        due = pa.array(np.floor(due_s * 1e6).astype(np.int64)).cast(TIMESTAMP)
        rows = self._make(first, due)
        if not isinstance(rows, pa.Table):
            raise InputError("rows", f"must be a pa.Table, got {type(rows).__name__}")
        if len(rows) != len(due):
            problem = f"must be one for each record that is due: {len(due)}, got {len(rows)}"
            raise InputError("rows", problem)
        if EVENT in rows.column_names:
            raise InputError(
                "rows", f"have a column {EVENT!r}", "leave it out: the producer adds it"
            )
        self._writer.append(rows.append_column(EVENT, due))
        self.produced += len(due)
        self.lag_s = max(0.0, self._clock() - float(due_s[0]))
        self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
