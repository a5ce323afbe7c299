"""Plans the next batch of an operator: its rows, and the share of each task."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.microbatch.admission import Throughput, WaitingRows, count_dropped
from penstock.engines.microbatch.dealing import (
    OffsetRange,
    compute_cuts,
    deal,
    split_by_speed,
    subtract_ranges,
)
from penstock.engines.microbatch.event_time import find_slowest_times
from penstock.engines.microbatch.operator_votes import VoteReader
from penstock.engines.microbatch.slice_assignment import (
    SliceAssignment,
    assign_slices,
    compute_watermark,
    update_loads,
)
from penstock.engines.spark.io.batch_begin import BatchBegin
from penstock.engines.spark.io.batch_ends import BatchEnds, find_first_after
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import Command, read_command
from penstock.engines.spark.io.input_progress import InputProgress
from penstock.engines.spark.io.plans import BatchPlan, InputPart, TaskInput, find_plan, save_plan
from penstock.engines.spark.io.state_versions import find_record_before, has_timers
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.recovery.checkpoints import COMMITS, OFFSETS, sync_newest
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka.cluster import find_cluster

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
        self.batch_ends = BatchEnds(self.config, self.topics, self.progress)
        self.speed = Throughput()
        #: Where replicas decide alone, their votes replace the replicas of the command.
        is_even = self.config.key is None and not self.config.slices
        self.votes = VoteReader(operator, self.config.voting, is_even=is_even)
        self.seen: dict[str, int] = {}
        #: The command of the next batch.
        self.command: Command | None = None
        self.planned: tuple[Offset, Offset, BatchPlan] | None = None
        #: The batch that runs, if only its source can time it.
        self.untimed: BatchPlan | None = None
        #: Rows that waited at the last check.
        self.waiting: int | None = None
        self.batch_begin = BatchBegin(layout, self.config)
        #: Whether a batch that runs again has the same tasks: those in Kafka have receipts.
        self.keeps_plans = find_cluster(layout.topics) is not None
        #: The load of each slice, in seconds per batch.
        self.loads = [0.0] * self.config.slices

    def first(self) -> dict[str, int]:
        return {name: topic.first for name, topic in self.topics.items()}

    def ends(self) -> dict[str, int]:
        return {name: topic.refresh() for name, topic in self.topics.items()}

    def next_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the end of the next batch; the start if there is none yet."""
        self._time_batch(start["at"])
        command = read_command(self.layout, self.config.name)
        if not self.batch_begin.is_allowed(command):
            return start
        self.command = command = self._read_command()
        waiting = {name: self._find_waiting(name, start) for name in self.topics}
        live_rows = {name: queue.live_rows for name, queue in waiting.items()}
        self.waiting = sum(live_rows.values())
        rows = self.speed.allot(
            live_rows, command.replicas, self.config.batch_s, self._open_inputs(start["at"])
        )
        if self.batch_begin.is_early and all(rows[name] >= live_rows[name] for name in rows):
            return start
        ends = {
            name: self.batch_ends.align(name, queue, queue.find_end(rows[name]))
            for name, queue in waiting.items()
        }
        mark = start.get("mark", 0)
        if all(ends[name] == waiting[name].start for name in ends):
            is_vote_due = self._is_idle_vote_due(command.replicas)
            if not self._has_new_watermark(start["at"]) and not is_vote_due:
                return start
            mark += 1
        self.batch_begin.begin()
        skips = {name: [list(skip) for skip in queue.skips] for name, queue in waiting.items()}
        kept = {name: ranges for name, ranges in skips.items() if ranges}
        return {"at": ends, "skips": kept, **({"mark": mark} if mark else {})}

    def _read_command(self) -> Command:
        """Read new records; return the command of the next batch."""
        for record in self.log.read_new():
            self.speed = self.speed.after(record)
            if self.loads:
                self.loads = update_loads(self.loads, record)
            self.votes.add(record)
        command = read_command(self.layout, self.config.name)
        return replace(command, replicas=self.votes.replicas(command.replicas))

    def _time_batch(self, start: Mapping[str, int]) -> None:
        """Learn from a batch without a record; Spark asks for the next one when it has ended."""
        if self.untimed is None or self.untimed.end != start:
            return
        plan, self.untimed = self.untimed, None
        rows = sum(plan.end.values()) - sum(plan.start.values())
        self.speed = self.speed.after_unrecorded(rows, len(plan.tasks), self.batch_begin.age_s)

    def _is_idle_vote_due(self, replicas: int) -> bool:
        """Whether a batch without rows shall let replicas decide that have nothing to do."""
        age_s = self.batch_begin.age_s
        return not self.waiting and self.votes.is_idle_due(replicas, age_s)

    def _open_inputs(self, start: Mapping[str, int]) -> Collection[str]:
        """Return the topics whose last source batch is read in part."""
        if not self.config.keeps_batches or len(self.topics) < 2:
            return ()
        return [name for name in self.topics if self.progress.at(name, start.get(name, 0)).is_open]

    def _has_new_watermark(self, start: Mapping[str, int]) -> bool:
        """Whether the last batch advanced the watermark, so that timers may be due."""
        if not self.loads:
            return False
        before = find_record_before(self.log, start)
        if before is None or before.state is None:
            return False
        mark = compute_watermark(before, self.config.delay_us, self.progress.idle_inputs(start))
        if mark == before.state.watermark:
            return False
        return has_timers(self.layout.state(self.config.name), before.state)

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
            queue = queue.drop_expired(find_first_after(topic, begin, queue.end, oldest))
        return queue

    def plan(self, start: Offset, end: Offset) -> BatchPlan:
        """Deal the rows between two offsets; repeated calls return the same plan."""
        if self.planned and self.planned[:2] == (start, end):
            return self.planned[2]
        config = self.config
        earlier = find_plan(self.layout.plan(config.name), start, end) if self.keeps_plans else None
        if earlier is not None:  # tasks of this batch may have written to Kafka already
            return self._use_plan(start, end, earlier)
        command = self.command
        if command is None:  # a killed source has planned it; the votes before it still count
            votes = config.voting is not None
            command = self._read_command() if votes else read_command(self.layout, config.name)
        replicas = command.replicas
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
        assignments = self._assign_slices(start, end, command, idle)
        dropped, planned_at = count_dropped(skips), time.time()
        views = self.votes.views(
            replicas,
            planned_at=planned_at,
            rows=sum(part.rows for part in line),
            dropped=sum(dropped.values()),
            waiting=self.waiting,
        )
        tasks = tuple(
            TaskInput(
                index=index,
                replicas=replicas,
                parts=self._find_parts(ranges),
                given_up=lost if index == 0 else (),
                key=config.key,
                assignment=assignment,
                host=command.hosts[index] if index < len(command.hosts) else "",
                share=command.share,
                view=view,
            )
            for index, (ranges, assignment, view) in enumerate(
                zip(dealt, assignments, views, strict=True)
            )
        )
        plan = BatchPlan(
            start=dict(start["at"]),
            end=dict(end["at"]),
            planned_at=planned_at,
            tasks=tasks,
            dropped=dropped,
            waiting=self.waiting,
            progress={name: state.progress for name, state in inputs.items()},
            event_times=find_slowest_times(
                {n: state.progress for n, state in inputs.items()}, idle
            ),
            open_inputs=tuple(name for name, state in inputs.items() if state.is_open),
            offsets=(start, end) if self.keeps_plans else None,
        )
        if config.source.syncs_offsets:  # rows written outside must belong to a durable batch
            sync_newest(self.layout.checkpoint(config.name), OFFSETS)
        if config.source.saves_plan:
            save_plan(self.layout.plan(config.name), plan)
        return self._use_plan(start, end, plan)

    def _use_plan(self, start: Offset, end: Offset, plan: BatchPlan) -> BatchPlan:
        self.planned = (start, end, plan)
        self.untimed = plan if self.config.source.times_batches else None
        return plan

    def _find_begin(self, name: str, start: Offset) -> int:
        # a new input begins with its first row
        begin: int = start["at"].get(name, self.topics[name].first)
        return begin

    def _assign_slices(
        self, start: Offset, end: Offset, command: Command, idle: Collection[str]
    ) -> Sequence[SliceAssignment | None]:
        if not self.loads:
            return [None] * command.replicas
        before = find_record_before(self.log, start["at"])
        watermark = compute_watermark(before, self.config.delay_us, idle)
        return assign_slices(
            before,
            command.replicas,
            self.loads,
            watermark=watermark,
            pins=command.pins,
            starts=FrozenDict({name: self._find_begin(name, start) for name in end["at"]}),
            ends=FrozenDict(end["at"]),
        )

    def _deal(self, line: Sequence[OffsetRange], replicas: int) -> Sequence[Sequence[OffsetRange]]:
        if self.config.key is not None or self.loads:
            return [line] * replicas  # each task selects its rows from all
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
