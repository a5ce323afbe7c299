"""Plans the next batch of an operator: its rows, and the share of state task."""

import time
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from penstock.engines.microbatch.admission import Throughput, WaitingRows, count_dropped
from penstock.engines.microbatch.dealing import (
    OffsetRange,
    compute_cuts,
    deal,
    split_by_speed,
    subtract_ranges,
    take_open_first,
)
from penstock.engines.microbatch.event_time import find_slowest_times
from penstock.engines.microbatch.slice_assignment import (
    SliceAssignment,
    assign_slices,
    compute_watermark,
    update_loads,
)
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import read_command
from penstock.engines.spark.io.input_progress import InputProgress
from penstock.engines.spark.io.plans import BatchPlan, InputPart, TaskInput, save_plan
from penstock.engines.spark.io.state_versions import find_record_before
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.recovery.checkpoints import COMMITS, OFFSETS, sync_newest
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.readers import positions, save_position
from penstock.topics.embedded.topic import Topic

#: {"at": {topic: offset}, "skips": {topic: [[low, high, cause]]}, "mark": batches without rows}
Offset = Mapping[str, Any]


class BatchPlanner:
    """The planner of one operator, in the process of its source."""

    def __init__(self, layout: RunLayout, operator: str, topic: str | None = None) -> None:
        self.layout, self.config = layout, OperatorConfig.load(layout, operator)
        reads = self.config.reads if topic is None else (topic,)
        self.topics = {name: Topic.open(layout.topic(name)) for name in reads}
        self.log = BatchLog(layout.batches(operator))
        self.progress = InputProgress(self.topics, self.log, self.config.idle_s)
        self.speed = Throughput()
        self.seen: dict[str, int] = {}
        self.replicas: int | None = None
        self.planned: tuple[Offset, Offset, BatchPlan] | None = None
        #: Rows that waited at the last check.
        self.waiting: int | None = None
        #: Monotonic clock at the last plan; the wall clock may be set back.
        self.began = -inf
        self.behind: Topic | None = None
        self.backpressure_s, self.over_limit_since = 0.0, -inf
        #: The last version of moves that was applied; moves before this start count as applied.
        self.moves_version = read_command(layout, operator).version
        #: The load of state slice, in seconds per batch.
        self.loads = [0.0] * self.config.slices

    def first(self) -> dict[str, int]:
        return {name: topic.first for name, topic in self.topics.items()}

    def ends(self) -> dict[str, int]:
        return {name: topic.refresh() for name, topic in self.topics.items()}

    def next_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        command = read_command(self.layout, self.config.name)
        is_early = time.monotonic() < self.began + self.config.min_interval_s
        if command.hold or is_early or self._is_over_limit():
            return start
        for record in self.log.read_new():
            self.speed = self.speed.after(record)
            if self.loads:
                self.loads = update_loads(self.loads, record)
        self.replicas = command.replicas
        waiting = {name: self._find_waiting(name, start) for name in self.topics}
        limit = self.speed.limit(command.replicas, self.config.batch_s)
        live_rows = {name: queue.live_rows for name, queue in waiting.items()}
        self.waiting = sum(live_rows.values())
        rows = take_open_first(live_rows, limit, self._open_inputs(start["at"]))
        ends = {
            name: self._align(name, queue, queue.find_end(rows[name]))
            for name, queue in waiting.items()
        }
        mark = start.get("mark", 0)
        if all(ends[name] == waiting[name].start for name in ends):
            if not self._has_new_watermark(start["at"]):
                return start
            mark += 1
        self.began = time.monotonic()
        skips = {name: [list(skip) for skip in queue.skips] for name, queue in waiting.items()}
        kept = {name: ranges for name, ranges in skips.items() if ranges}
        return {"at": ends, "skips": kept, **({"mark": mark} if mark else {})}

    def _open_inputs(self, start: Mapping[str, int]) -> Collection[str]:
        """Return the topics whose last source batch is read in part."""
        if not self.config.keeps_batches or len(self.topics) < 2:
            return ()
        return [name for name in self.topics if self.progress.at(name, start.get(name, 0)).is_open]

    def _align(self, name: str, queue: WaitingRows, end: int) -> int:
        """Move the end of a batch to the end of a source batch, if downstream operators need it.

        Spark's own state needs whole source batches: Spark would take the newest time of a
        part for that of the whole.
        """
        if not self.config.keeps_batches or queue.skips:
            return end
        whole = self.progress.find_whole_end(name, queue.start, end)
        if whole is None and self.config.source.needs_whole_batches:
            return self.progress.find_next_whole_end(name, queue.start, queue.end)
        return end if whole is None else whole

    def _has_new_watermark(self, start: Mapping[str, int]) -> bool:
        """Whether the last batch advanced the watermark, so that windows may close."""
        if not self.loads:
            return False
        before = find_record_before(self.log, start)
        if before is None or before.state is None:
            return False
        mark = compute_watermark(before, self.config.delay_us, self.progress.idle_inputs(start))
        return mark != before.state.watermark

    def _find_waiting(self, name: str, start: Offset) -> WaitingRows:
        """Return the waiting rows of a topic, with rows dropped that are too old or do not fit."""
        topic, config = self.topics[name], self.config
        begin = self._find_begin(name, start)
        skips = tuple(tuple(skip) for skip in start["skips"].get(name, ()) if skip[1] > begin)
        queue = WaitingRows(
            start=begin, end=topic.refresh(), seen=self.seen.get(name, 0), skips=skips
        )
        queue = queue.drop_overflow(config.queue_size)
        self.seen[name] = queue.seen
        if config.timeout_s is not None:
            oldest = time.time() - config.timeout_s
            queue = queue.drop_expired(_find_first_after(topic, begin, queue.end, oldest))
        return queue

    def _is_over_limit(self) -> bool:
        """Whether too many rows wait downstream; counts the seconds of back-pressure."""
        config, now = self.config, time.monotonic()
        if not config.limits or config.writes is None:
            return False
        if self.behind is None:
            self.behind = Topic.open(self.layout.topic(config.writes))
        read, end = positions(self.behind.directory), self.behind.refresh()
        waiting = {name: end - read.get(name, self.behind.first) for name in config.limits}
        full = any(waiting[name] > limit for name, limit in config.limits.items())
        if self.over_limit_since > -inf:
            self.backpressure_s += now - self.over_limit_since
            self.layout.backpressure_file(config.name).write_text(f"{self.backpressure_s:.3f}")
        self.over_limit_since = now if full else -inf
        return full

    def plan(self, start: Offset, end: Offset) -> BatchPlan:
        """Deal the rows between two offsets; repeated calls return the same plan."""
        if self.planned and self.planned[:2] == (start, end):
            return self.planned[2]
        config = self.config
        replicas = self.replicas or read_command(self.layout, config.name).replicas
        line, given_up = [], []
        skips: dict[str, list[tuple[int, int, str]]] = {}
        for name, topic in self.topics.items():
            if name not in end["at"]:
                continue
            low, high = self._find_begin(name, start), end["at"][name]
            topic.refresh()
            skips[name] = [
                (max(a, low), min(b, high), cause)
                for a, b, cause in end["skips"].get(name, ())
                if b > low and a < high
            ]
            line += subtract_ranges(
                OffsetRange(name, low, high), [(a, b) for a, b, _ in skips[name]]
            )
            given_up += [OffsetRange(name, a, b) for a, b, _ in skips[name]]
        dealt = self._deal(line, replicas)
        lost = self._find_parts(given_up) if config.dropped_to else ()
        inputs = {
            name: self.progress.read(name, self._find_begin(name, start), end["at"][name])
            for name in skips
        }
        idle = self.progress.idle_inputs(end["at"])
        assignments = self._assign_slices(start["at"], replicas, idle)
        tasks = tuple(
            TaskInput(
                index=index,
                replicas=replicas,
                parts=self._find_parts(ranges),
                given_up=lost if index == 0 else (),
                key=config.key,
                assignment=assignment,
            )
            for index, (ranges, assignment) in enumerate(zip(dealt, assignments, strict=True))
        )
        plan = BatchPlan(
            start=dict(start["at"]),
            end=dict(end["at"]),
            planned_at=time.time(),
            tasks=tasks,
            dropped=count_dropped(skips),
            waiting=self.waiting,
            progress={name: state.progress for name, state in inputs.items()},
            event_times=find_slowest_times(
                {n: state.progress for n, state in inputs.items()}, idle
            ),
            open_inputs=tuple(name for name, state in inputs.items() if state.is_open),
        )
        if config.source.syncs_offsets:  # rows written outside must belong to a durable batch
            sync_newest(self.layout.checkpoint(config.name), OFFSETS)
        if config.source.saves_plan:
            save_plan(self.layout.plan(config.name), plan)
        self.planned = (start, end, plan)
        return plan

    def _find_begin(self, name: str, start: Offset) -> int:
        # a new input begins with its first row
        begin: int = start["at"].get(name, self.topics[name].first)
        return begin

    def _assign_slices(
        self, start: Mapping[str, int], replicas: int, idle: Collection[str]
    ) -> Sequence[SliceAssignment | None]:
        if not self.loads:
            return [None] * replicas
        before = find_record_before(self.log, start)
        command = read_command(self.layout, self.config.name)
        moves = command.moves if command.version > self.moves_version else {}
        self.moves_version = command.version
        watermark = compute_watermark(before, self.config.delay_us, idle)
        return assign_slices(before, replicas, self.loads, watermark=watermark, moves=moves)

    def _deal(self, line: Sequence[OffsetRange], replicas: int) -> Sequence[Sequence[OffsetRange]]:
        if self.config.key is not None or self.loads:
            return [line] * replicas  # state task selects its rows from all
        rows = sum(part.rows for part in line)
        weights = [1.0] * replicas
        if self.config.grouping == "load":
            known = self.speed.replicas
            speeds = [known[i] if i < len(known) else None for i in range(replicas)]
            # between two batches no replica has rows left
            weights = split_by_speed(speeds, [0.0] * replicas, rows)
        return deal(line, compute_cuts(weights, rows))

    def _find_parts(self, ranges: Sequence[OffsetRange]) -> tuple[InputPart, ...]:
        parts = []
        for part in ranges:
            offset = part.start
            for piece in self.topics[part.topic].pieces(part.start, part.end):
                parts.append(InputPart(part.topic, offset, piece))
                offset += piece.to_row - piece.from_row
        return tuple(parts)

    def release(self, end: Offset) -> None:
        if self.config.source.syncs_commits:
            # a repeated batch needs its rows: they are released after its commit is on disk
            sync_newest(self.layout.checkpoint(self.config.name), COMMITS)
        for name, offset in end["at"].items():
            save_position(self.layout.topic(name), self.config.name, offset)


def _find_first_after(topic: Topic, start: int, end: int, at: float) -> int:
    """Return the offset of the first row that was committed after a time."""
    for commit in topic.commits(start, end):
        if commit.at > at:
            return max(start, commit.first)
    return end
