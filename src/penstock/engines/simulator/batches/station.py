"""One operator of the batch-level simulator: what waits for it, what it knows, what it has done."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from penstock.core.placement import place
from penstock.engines.microbatch.admission import Throughput
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.dealing import take
from penstock.engines.microbatch.slice_assignment import homes_of, loads_after
from penstock.engines.simulator.batches.binned_topic import (
    NOTHING,
    BinnedRows,
    BinnedTopic,
    join_rows,
    whole_rows,
)
from penstock.engines.simulator.batches.model import Costs
from penstock.engines.simulator.batches.session_output import expected_session_ends
from penstock.engines.simulator.batches.task_times import even_tasks, lognormal, sliced_tasks
from penstock.engines.simulator.profile import Rescaling

#: Before the run began, each operator had an empty batch, as a query on Spark has.
_FIRST_S = (-0.5, -0.4)


@dataclass(slots=True, kw_only=True)
class Output:
    """A topic that an operator fills, with its rows for each row taken."""

    name: str
    topic: BinnedTopic
    share: float
    #: What is left of rows that are not whole yet.
    rest: float = 0.0

    def thinned(self, rows: BinnedRows) -> BinnedRows:
        """Return as many rows as come out for those that went in."""
        if self.share == 1.0:
            return rows
        thin, self.rest = whole_rows(rows.due, rows.counts * self.share, self.rest)
        return thin


@dataclass(slots=True, kw_only=True)
class BatchStation:
    """What an operator's source and sink remember on Spark, and where it stands."""

    name: str
    costs: Costs
    scv: float
    #: Share of each slice in the rows.
    shares: tuple[float, ...]
    topics: Mapping[str, BinnedTopic]
    outputs: tuple[Output, ...]
    draw: Generator
    #: Replicas of the next batch.
    order: int
    position: dict[str, int] = field(default_factory=dict)
    records: list[BatchRecord] = field(default_factory=list)
    speed: Throughput = field(default_factory=Throughput)
    loads: list[float] = field(default_factory=list)
    #: The batch under way, without its outputs, and the rows that it took.
    current: tuple[BatchRecord, BinnedRows] | None = None
    #: Nothing waited when it was last asked.
    is_idle: bool = True
    #: When a plan may be made at the earliest.
    free_s: float = 0.0
    #: Rows that may wait before those who fill its queue are held.
    queue_limit: int | None = None
    #: Seconds that it was held because a queue behind it was full, and since when it is.
    held_s: float = 0.0
    held_since_s: float | None = None
    #: Plans are made only while it does not stand still for a change.
    is_held: bool = False
    #: Replicas before the last change, and since when there are others.
    before: int = 0
    changed_s: float = float("-inf")
    #: Rows that wait for event time to pass, and the latest due time of the batches before.
    kept: BinnedRows = NOTHING
    latest_s: float = float("-inf")
    #: Rows still to come that leave nothing behind.
    barren: int = 0
    #: Of sessions: rows of which it is known whether they show, and the part of a row that is left.
    settled: int = 0
    rest: float = 0.0
    #: How many of `records` the source has learnt from.
    learnt: int = 0

    def begin(self) -> None:
        """Stand where a query stands after its first batch."""
        self.position = dict.fromkeys(self.topics, 0)
        self.loads = [0.0] * self.costs.slices
        self.before, self.barren = self.order, self.costs.first_rows
        empty = TaskRecord(rows_in=0, rows_out=0, busy_s=0.0, cpu_s=0.0, began=0.0, ended=0.0)
        planned_at, committed_at = _FIRST_S
        first = BatchRecord(
            batch=0,
            planned_at=planned_at,
            committed_at=committed_at,
            start=dict(self.position),
            end=dict(self.position),
            tasks=(empty,) * self.order,
        )
        self.records.append(first)

    def waiting(self) -> dict[str, int]:
        """Rows that wait in each topic."""
        return {name: topic.end - self.position[name] for name, topic in self.topics.items()}

    @property
    def is_full(self) -> bool:
        """Whether more rows wait than may."""
        return self.queue_limit is not None and sum(self.waiting().values()) > self.queue_limit

    def hold(self, now_s: float, *, is_full: bool) -> None:
        """Count the time for which a queue behind it is full; as the source does on Spark."""
        if self.held_since_s is not None:
            self.held_s += now_s - self.held_since_s
        self.held_since_s = now_s if is_full else None

    def plan(
        self, now_s: float, look_s: float, batch_s: float, rescaling: Rescaling
    ) -> float | None:
        """Take rows and deal them to tasks; return how long the slowest takes, None without rows.

        What waits now is in the plan, which is made a little later.

        As `next_offset` and `plan` of the source do on Spark.
        """
        for record in self.records[self.learnt :]:
            self.speed = self.speed.after(record)
            if self.loads:
                self.loads = loads_after(self.loads, record)
        self.learnt = len(self.records)
        waiting = self.waiting()
        rows = take(waiting, self.speed.limit(self.order, batch_s))
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
        # what disturbs one replica disturbs those beside it, which share the machine
        costs = self.costs
        factor = lognormal(self.draw, costs.noise)
        speeds = [speed / factor for speed in speeds]
        if not costs.slices:
            return even_tasks(costs, self.scv, commits, speeds, self.draw)
        homes = place(self.loads, len(speeds), homes_of(self.records[-1]))
        return sliced_tasks(costs, self.scv, sum(commits), self.shares, homes, speeds, self.draw)

    def _speeds(self, now_s: float, rescaling: Rescaling) -> list[float]:
        """How fast each replica is: those that were added may have to warm up."""
        age_s = now_s - self.changed_s
        if self.order <= self.before or age_s >= rescaling.warmup_s:
            return [1.0] * self.order
        slow = rescaling.warmup_speed
        warm = slow + (1 - slow) * age_s / rescaling.warmup_s
        return [1.0] * self.before + [warm] * (self.order - self.before)

    def change(self, replicas: int, now_s: float) -> None:
        """Have other replicas from the next batch on."""
        if replicas != self.order:
            self.before, self.order, self.changed_s = self.order, replicas, now_s

    def next_output(self, taken: BinnedRows) -> BinnedRows:
        """Return what the rows of a batch let out: themselves, or older ones that waited."""
        rows = taken
        if self.barren:  # the state has to fill before anything comes of it
            first, self.barren = min(self.barren, rows.total), max(0, self.barren - rows.total)
            rows = rows.between(first, rows.total)
        if not self.costs.out_delay_s:
            return rows
        # what a batch may close is decided by the batches before it, as with a watermark
        until_s = self.latest_s - self.costs.out_delay_s
        together = join_rows([self.kept, rows])
        out = together.due <= until_s
        self.kept = BinnedRows(together.due[~out], together.counts[~out])
        if len(taken.due):
            self.latest_s = max(self.latest_s, float(taken.due.max()))
        if not self.costs.new_keys:
            return BinnedRows(together.due[out], together.counts[out])
        return self._session_rows(together, int(np.count_nonzero(out)))

    def _session_rows(self, rows: BinnedRows, settled: int) -> BinnedRows:
        """Return those of the oldest rows whose keys did not come again."""
        order = np.argsort(rows.due, kind="stable")
        due, counts, costs = rows.due[order], rows.counts[order], self.costs
        lasts = expected_session_ends(due, counts, costs.out_delay_s, costs.new_keys, self.settled)
        self.settled += int(counts[:settled].sum())
        shown, self.rest = whole_rows(due[:settled], lasts[:settled], self.rest)
        return shown
