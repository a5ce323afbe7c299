"""One operator of the batch-level simulator: its queue, its state and its batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from penstock.core.placement import place
from penstock.engines.microbatch.admission import Throughput
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.dealing import take
from penstock.engines.microbatch.slice_assignment import read_homes, update_loads
from penstock.engines.simulator.batches.binned_topic import (
    NO_ROWS,
    BinnedRows,
    BinnedTopic,
    join_rows,
    whole_rows,
)
from penstock.engines.simulator.batches.model import Costs
from penstock.engines.simulator.batches.session_output import expected_session_ends
from penstock.engines.simulator.batches.task_times import even_tasks, lognormal, sliced_tasks
from penstock.engines.simulator.profile import Rescaling

#: Times of the empty batch with which every operator starts, as a query on Spark does.
_FIRST_S = (-0.5, -0.4)


@dataclass(slots=True, kw_only=True)
class Output:
    """An output topic of an operator, with the rows written for each row read."""

    name: str
    topic: BinnedTopic
    share: float
    #: Fraction of a row to carry over to the next batch.
    remainder: float = 0.0

    def scale_rows(self, rows: BinnedRows) -> BinnedRows:
        """Return the rows to write for the rows read."""
        if self.share == 1.0:
            return rows
        scaled, self.remainder = whole_rows(rows.due, rows.counts * self.share, self.remainder)
        return scaled


@dataclass(slots=True, kw_only=True)
class BatchStation:
    """State of one operator: what its source and sink remember on Spark, and its progress."""

    name: str
    costs: Costs
    scv: float
    #: Share of each slice in the rows.
    shares: tuple[float, ...]
    topics: Mapping[str, BinnedTopic]
    outputs: tuple[Output, ...]
    draw: Generator
    #: Replicas of the next batch.
    replicas: int
    position: dict[str, int] = field(default_factory=dict)
    records: list[BatchRecord] = field(default_factory=list)
    speed: Throughput = field(default_factory=Throughput)
    loads: list[float] = field(default_factory=list)
    #: The running batch, without its outputs, and the rows that it reads.
    current: tuple[BatchRecord, BinnedRows] | None = None
    #: Whether no rows were waiting at the last plan.
    is_idle: bool = True
    #: The earliest time of the next plan.
    next_plan_s: float = 0.0
    #: Waiting rows above which upstream operators are held back.
    queue_limit: int | None = None
    #: Seconds under back-pressure from a full downstream queue; start of the current period.
    backpressure_s: float = 0.0
    backpressure_since_s: float | None = None
    #: Whether it is paused for a change; it plans no batch meanwhile.
    is_paused: bool = False
    #: Replicas before the last change, and the time of that change.
    replicas_before: int = 0
    changed_s: float = float("-inf")
    #: Rows that wait for event time to pass, and the latest due time of earlier batches.
    pending: BinnedRows = NO_ROWS
    latest_s: float = float("-inf")
    #: Rows still to be read that produce no output.
    rows_without_output: int = 0
    #: Sessions: rows whose output is decided, and the fraction of a row to carry over.
    settled_rows: int = 0
    remainder: float = 0.0
    #: Number of `records` that `speed` and `loads` include.
    learned_records: int = 0

    def begin(self) -> None:
        """Start in the state of a query after its first batch."""
        self.position = dict.fromkeys(self.topics, 0)
        self.loads = [0.0] * self.costs.slices
        self.replicas_before, self.rows_without_output = self.replicas, self.costs.first_rows
        empty = TaskRecord(rows_in=0, rows_out=0, busy_s=0.0, cpu_s=0.0, began=0.0, ended=0.0)
        planned_at, committed_at = _FIRST_S
        first = BatchRecord(
            batch=0,
            planned_at=planned_at,
            committed_at=committed_at,
            start=dict(self.position),
            end=dict(self.position),
            tasks=(empty,) * self.replicas,
        )
        self.records.append(first)

    @property
    def has_no_work(self) -> bool:
        """Whether no batch runs and no rows wait."""
        return self.current is None and not any(self.waiting().values())

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting rows by topic."""
        return {name: topic.end - self.position[name] for name, topic in self.topics.items()}

    @property
    def is_full(self) -> bool:
        """Whether more rows wait than the limit of its queue."""
        return self.queue_limit is not None and sum(self.waiting().values()) > self.queue_limit

    def count_backpressure(self, now_s: float, *, is_full: bool) -> None:
        """Add up the time during which a downstream queue is full, as the source does on Spark."""
        if self.backpressure_since_s is not None:
            self.backpressure_s += now_s - self.backpressure_since_s
        self.backpressure_since_s = now_s if is_full else None

    def plan(
        self, now_s: float, look_s: float, batch_s: float, rescaling: Rescaling
    ) -> float | None:
        """Assign waiting rows to tasks; return the time of the slowest task, None without rows.

        The batch contains the rows that wait now; its plan is dated `look_s` later. This mirrors
        `next_offset` and `plan` of the source on Spark.
        """
        for record in self.records[self.learned_records :]:
            self.speed = self.speed.after(record)
            if self.loads:
                self.loads = update_loads(self.loads, record)
        self.learned_records = len(self.records)
        waiting = self.waiting()
        rows = take(waiting, self.speed.limit(self.replicas, batch_s))
        if not any(rows.values()):
            self.is_idle = True
            return None
        end = {name: self.position[name] + rows[name] for name in rows}
        parts = [
            part
            for name, topic in self.topics.items()
            for part in topic.read(self.position[name], end[name])
        ]
        speeds = self._speeds(now_s, rescaling)
        tasks = self._tasks([part.total for part in parts], speeds)
        record = BatchRecord(
            batch=len(self.records),
            start=dict(self.position),
            end=end,
            planned_at=now_s + look_s,
            committed_at=now_s + look_s,
            tasks=tuple(tasks),
            waiting=sum(waiting.values()),
        )
        self.current, self.is_idle = (record, join_rows(parts)), False
        return max(task.busy_s for task in tasks)

    def _tasks(self, commits: list[int], speeds: list[float]) -> list[TaskRecord]:
        # replicas share the machine, so a disturbance affects all tasks of a batch
        costs = self.costs
        factor = lognormal(self.draw, costs.noise)
        speeds = [speed / factor for speed in speeds]
        if not costs.slices:
            return even_tasks(costs, self.scv, commits, speeds, self.draw)
        homes = place(self.loads, len(speeds), read_homes(self.records[-1]))
        return sliced_tasks(costs, self.scv, sum(commits), self.shares, homes, speeds, self.draw)

    def _speeds(self, now_s: float, rescaling: Rescaling) -> list[float]:
        """Return the speed of each replica: added replicas may have to warm up."""
        age_s = now_s - self.changed_s
        if self.replicas <= self.replicas_before or age_s >= rescaling.warmup_s:
            return [1.0] * self.replicas
        slow = rescaling.warmup_speed
        warm = slow + (1 - slow) * age_s / rescaling.warmup_s
        return [1.0] * self.replicas_before + [warm] * (self.replicas - self.replicas_before)

    def change(self, replicas: int, now_s: float) -> None:
        """Change the replicas from the next batch on."""
        if replicas != self.replicas:
            self.replicas_before, self.replicas, self.changed_s = self.replicas, replicas, now_s

    def next_output(self, taken: BinnedRows) -> BinnedRows:
        """Return the rows that a batch outputs: its own, or older ones that were pending."""
        rows = taken
        if self.rows_without_output:  # the state has to fill before it yields output
            first, self.rows_without_output = (
                min(self.rows_without_output, rows.total),
                max(0, self.rows_without_output - rows.total),
            )
            rows = rows.between(first, rows.total)
        if not self.costs.out_delay_s:
            return rows
        # earlier batches determine what a batch may close, as with a watermark
        until_s = self.latest_s - self.costs.out_delay_s
        together = join_rows([self.pending, rows])
        out = together.due <= until_s
        self.pending = BinnedRows(together.due[~out], together.counts[~out])
        if len(taken.due):
            self.latest_s = max(self.latest_s, float(taken.due.max()))
        if not self.costs.new_keys:
            return BinnedRows(together.due[out], together.counts[out])
        return self._session_rows(together, int(np.count_nonzero(out)))

    def _session_rows(self, rows: BinnedRows, settled_bins: int) -> BinnedRows:
        """Return the oldest rows that end a session: their keys did not occur again in time."""
        by_due = np.argsort(rows.due, kind="stable")
        due, counts, costs = rows.due[by_due], rows.counts[by_due], self.costs
        lasts = expected_session_ends(
            due, counts, costs.out_delay_s, costs.new_keys, self.settled_rows
        )
        self.settled_rows += int(counts[:settled_bins].sum())
        shown, self.remainder = whole_rows(due[:settled_bins], lasts[:settled_bins], self.remainder)
        return shown
