"""A producer: rows appended to a topic exactly as a workload asks for them."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schedule import schedule_of
from penstock.topics.schema import EVENT
from penstock.topics.steady_clock import SteadyClock
from penstock.workloads.pattern import SEED, ArrivalName
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.workload import Workload

#: Rows of one commit, at most.
MAX_ROWS = 1 << 16


class Producer:
    """Follows a workload: no row before it is due, and every row that is due.

    `make(first_id, due)` gets the number of a record and when it and the ones behind it are
    due; it returns one row for each. That time is their `_event`, however late they are written.
    """

    def __init__(
        self,
        writer: TopicWriter,
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
        # the wall clock may be set back, and the workload goes on all the same
        self._clock, self._sleep, self._step_s = clock or SteadyClock(), sleep, step_s
        #: Rows written so far, without those that the topic held before.
        self.produced = 0
        #: How long after it was due the oldest row of the last commit was written; and the worst.
        self.lag_s = self.worst_lag_s = 0.0

    def run(
        self,
        until: float | None = None,
        stop: threading.Event | None = None,
        *,
        begin_at: float | None = None,
        watch: Callable[["Producer"], None] | None = None,
    ) -> None:
        """Produce up to second `until` of the workload, or to its end, or until told to stop.

        The workload begins now. If the topic holds n rows already, these are the first n of the
        workload, and the next one is due now; unless `begin_at` says when the workload began.
        `watch` is called after every commit.
        """
        end_s = self._load.duration_s if until is None else until
        held = self._writer.topic.refresh()
        schedule = schedule_of(self._load, self._arrivals, self._seed)
        schedule.skip(held)
        if begin_at is None:
            # what was missed while nobody produced is not made up for
            begin_at = self._clock() - (schedule.next_s() if held else 0.0)
        first = held
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
            raise InputError("rows", f"have a column {EVENT!r}", "leave it out: it is put in")
        self._writer.append(rows.append_column(EVENT, due))
        self.produced += len(due)
        self.lag_s = max(0.0, self._clock() - float(due_s[0]))
        self.worst_lag_s = max(self.worst_lag_s, self.lag_s)
