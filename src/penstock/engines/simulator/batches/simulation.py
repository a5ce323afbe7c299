"""Discrete-event simulation of a pipeline in micro-batches.

Operators run independently. Each plans a batch, runs its tasks and commits it; the rows then appear
in its output topics. It plans the next batch after the commit and the minimum interval, or when
rows arrive.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from penstock.engines.events import RescaledEvent
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.dealing import compute_cuts
from penstock.engines.simulator.batches.binned_topic import BinnedRows, BinnedTopic
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.simulator.batches.station import BatchStation
from penstock.engines.simulator.batches.station_network import build_stations
from penstock.engines.simulator.batches.task_times import lognormal
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Rescaling

#: Minimum seconds until an operator under back-pressure plans again.
_MIN_RETRY_S = 0.01


class BatchSimulator:
    """Runs scheduled events in order of time. `feeds` yield the rows of each write, by topic."""

    def __init__(
        self,
        pipeline: SimulatedPipeline,
        rules: Batches,
        rescaling: Rescaling,
        feeds: Mapping[str, Iterator[BinnedRows]],
        seed: int,
    ) -> None:
        self.pipeline, self._rules, self._rescaling = pipeline, rules, rescaling
        self.now_s = 0.0
        self._feeds = dict(feeds)
        self._topics = {name: BinnedTopic() for name in feeds}
        seeds = np.random.SeedSequence(seed).spawn(len(pipeline.operators))
        self.stations = build_stations(pipeline, rules, self._topics, seeds)
        self._readers = {
            name: [station for station in self.stations.values() if name in station.topics]
            for name in {topic for station in self.stations.values() for topic in station.topics}
        }
        #: Seconds during which all operators were paused.
        self.pause_s = 0.0
        self.events: list[RescaledEvent] = []
        #: Operators that pause for a change: their new replicas, and the time of the request.
        self._pending_changes: dict[str, tuple[int, float]] = {}
        self._halts: list[_Halt] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()
        self._writes = 0
        self._schedule(self._rules.write_s, self._write)

    # --- interface

    def advance(self, until_s: float) -> None:
        """Run all events up to a time."""
        while self._queue and self._queue[0][0] <= until_s:
            self.now_s, _, action = heapq.heappop(self._queue)
            action()
        self.now_s = until_s

    @property
    def is_drained(self) -> bool:
        """Whether the input has ended and all rows are processed."""
        stations = self.stations.values()
        return self.is_input_done and all(station.has_no_work for station in stations)

    @property
    def is_input_done(self) -> bool:
        """Whether the producers have written all rows."""
        return not self._feeds

    @property
    def is_paused(self) -> bool:
        """Whether all operators are paused."""
        stations = self.stations.values()
        return all(station.is_paused and station.current is None for station in stations)

    def is_changing(self, name: str) -> bool:
        """Whether an operator is paused for a change, or will be."""
        return name in self._pending_changes

    def request(self, name: str, replicas: int) -> None:
        """Change the replicas of an operator from its next batch on, or after a pause."""
        station = self.stations[name]
        delay_s = self._rescaling.delay_s
        if name in self.pausing_operators:
            is_under_way = name in self._pending_changes
            self._pending_changes[name] = (replicas, self.now_s)
            if not is_under_way:
                self._schedule(self.now_s + delay_s, lambda: self._halt(station))
        elif delay_s:
            self._schedule(self.now_s + delay_s, lambda: station.change(replicas, self.now_s))
        else:
            station.change(replicas, self.now_s)

    @property
    def pausing_operators(self) -> frozenset[str]:
        """Operators that pause when their replicas change."""
        scope = self._rescaling.scope
        native = {op.name for op in self.pipeline.operators if op.native}
        everyone = set(self.stations)
        return frozenset({"nobody": set(), "native": native}.get(scope, everyone))

    # --- events

    def _schedule(self, time_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time_s, next(self._sequence), action))

    def _write(self) -> None:
        """Write the rows that became due, and schedule the next write."""
        for name, feed in list(self._feeds.items()):
            rows = next(feed, None)
            if rows is None:
                del self._feeds[name]
            elif rows.total:
                self._append(name, self._topics[name], rows)
        self._writes += 1
        if self._feeds:
            self._schedule((self._writes + 1) * self._rules.write_s, self._write)

    def _append(self, name: str, topic: BinnedTopic, rows: BinnedRows) -> None:
        topic.append(rows)
        for reader in self._readers.get(name, ()):
            if reader.is_idle and reader.current is None:
                reader.is_idle = False
                self._schedule_plan(reader, self.now_s + self._poll_delay_s(reader))

    def _schedule_plan(self, station: BatchStation, time_s: float) -> None:
        self._schedule(max(time_s, station.next_plan_s), lambda: self._plan(station))

    def _overhead_factor(self, station: BatchStation) -> float:
        """Return the random factor on an overhead, including the cold start."""
        return self._rules.slower(self.now_s) * lognormal(station.draw, self._rules.noise)

    def _poll_delay_s(self, station: BatchStation) -> float:
        return self._rules.poll_s * self._overhead_factor(station)

    def _plan(self, station: BatchStation) -> None:
        if station.is_paused or station.current is not None:
            return
        rules = self._rules
        readers = [reader for out in station.outputs for reader in self._readers.get(out.name, ())]
        is_full = any(reader.is_full for reader in readers)
        station.count_backpressure(self.now_s, is_full=is_full)
        if is_full:
            self._schedule_plan(
                station, self.now_s + max(_MIN_RETRY_S, self._poll_delay_s(station))
            )
            return
        look_s = rules.look_s * self._overhead_factor(station)
        longest_s = station.plan(self.now_s, look_s, rules.batch_s, self._rescaling)
        if longest_s is None:
            return
        others = sum(other.current is not None for other in self.stations.values()) - 1
        overhead_s = rules.overhead_s(station.replicas, others) * self._overhead_factor(station)
        station.next_plan_s = self.now_s + rules.gap_s + self._poll_delay_s(station)
        done_s = self.now_s + look_s + overhead_s + longest_s
        self._schedule(done_s, lambda: self._commit(station))

    def _commit(self, station: BatchStation) -> None:
        assert station.current is not None
        record, taken = station.current
        station.position = dict(record.end)
        station.current = None
        rows = station.next_output(taken)
        outs = [output.scale_rows(rows) for output in station.outputs]
        shown = max(outs, key=lambda out: out.total) if outs else rows
        station.records.append(_complete_record(record, shown, self.now_s))
        for name, topic in station.topics.items():
            topic.forget(min(reader.position[name] for reader in self._readers[name]))
        for output, out in zip(station.outputs, outs, strict=True):
            if out.total:
                self._append(output.name, output.topic, out)
        for halt in self._halts:
            self._pause(halt)
        # `look_s` is part of `between_s`, and `_plan` adds it again
        between_s = max(0.0, self._rules.between_s - self._rules.look_s)
        self._schedule_plan(station, self.now_s + between_s * self._overhead_factor(station))

    # --- changes that pause operators

    def _halt(self, station: BatchStation) -> None:
        """Keep an operator, or all of them, from starting further batches."""
        is_job = self._rescaling.scope == "job"
        if is_job and self._halts:  # the change in progress also applies later requests
            return
        halt = _Halt([*self.stations.values()] if is_job else [station])
        for member in halt.stations:
            member.is_paused = True
        self._halts.append(halt)
        self._pause(halt)

    def _pause(self, halt: "_Halt") -> None:
        """Start the pause once the running batches have committed."""
        if halt.has_begun or any(member.current is not None for member in halt.stations):
            return
        halt.has_begun = True
        state_mb = {op.name: op.state_mb for op in self.pipeline.operators}
        state_gb = sum(state_mb[member.name] for member in halt.stations) / 1000
        length_s = self._rescaling.pause_s + self._rescaling.pause_s_per_gb * state_gb
        self._schedule(self.now_s + length_s, lambda: self._resume(halt, length_s))

    def _resume(self, halt: "_Halt", length_s: float) -> None:
        if self.is_paused:
            self.pause_s += length_s
        self._halts.remove(halt)
        for station in halt.stations:
            station.is_paused = False
            if station.name in self._pending_changes:
                self._finish_change(station, length_s)
            self._schedule_plan(station, self.now_s)

    def _finish_change(self, station: BatchStation, pause_s: float) -> None:
        replicas, requested_s = self._pending_changes.pop(station.name)
        event = RescaledEvent(
            at=self.now_s,
            operator=station.name,
            replicas=replicas,
            before=station.replicas,
            pause_s=round(pause_s, 3),
            after_s=round(self.now_s - requested_s, 3),
        )
        self.events.append(event)
        station.change(replicas, self.now_s)


@dataclass(slots=True, eq=False)
class _Halt:
    """Operators that pause together for a change."""

    stations: list[BatchStation]
    has_begun: bool = False


def _complete_record(record: BatchRecord, out: BinnedRows, now_s: float) -> BatchRecord:
    """Return the record of a committed batch, with the rows that it wrote."""
    edges = compute_cuts([float(task.rows_in) for task in record.tasks], out.total)
    tasks = tuple(
        replace(task, rows_out=high - low, began=now_s - task.busy_s, ended=now_s)
        for task, low, high in zip(record.tasks, edges, edges[1:], strict=False)
    )
    return replace(record, committed_at=now_s, tasks=tasks, events=out.events())
