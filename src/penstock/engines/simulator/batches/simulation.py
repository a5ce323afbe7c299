"""A pipeline batch by batch in simulated time: what happens next, and when.

Each operator goes its own way: it is asked for a plan, its tasks work, the batch is committed and
its rows show in the topics behind it. The next plan follows when the last commit and the least gap
are over, or when rows come in.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from penstock.engines.events import RescaledEvent
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.dealing import cuts
from penstock.engines.simulator.batches.binned_topic import BinnedRows, BinnedTopic
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.simulator.batches.station import BatchStation
from penstock.engines.simulator.batches.station_network import build_stations
from penstock.engines.simulator.batches.task_times import lognormal
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Rescaling

#: Seconds until an operator that is held is asked again, at least.
_MIN_S = 0.01


class BatchSimulator:
    """Walks from event to event. `feeds` are the rows of each write, by topic."""

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
            name: [one for one in self.stations.values() if name in one.topics]
            for name in {topic for one in self.stations.values() for topic in one.topics}
        }
        #: Seconds in which all stood still.
        self.pause_s = 0.0
        self.events: list[RescaledEvent] = []
        #: Replicas that those have who stand still for a change, when they go on, and since when.
        self._pending_changes: dict[str, tuple[int, float]] = {}
        self._halts: list[_Halt] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._writes = 0
        self._at(self._rules.write_s, self._write)

    # --- from outside

    def advance(self, until_s: float) -> None:
        """Let everything happen up to a time."""
        while self._queue and self._queue[0][0] <= until_s:
            self.now_s, _, happen = heapq.heappop(self._queue)
            happen()
        self.now_s = until_s

    @property
    def is_drained(self) -> bool:
        """Whether nothing will come, waits or is in work."""
        stations = self.stations.values()
        idle = all(one.current is None and not any(one.waiting().values()) for one in stations)
        return idle and self.is_fed

    @property
    def is_fed(self) -> bool:
        """Whether nothing more will come."""
        return not self._feeds

    @property
    def is_standing(self) -> bool:
        """Whether all operators stand still."""
        return all(one.is_held and one.current is None for one in self.stations.values())

    def is_changing(self, name: str) -> bool:
        """Whether an operator stands still for a change, or soon will."""
        return name in self._pending_changes

    def order(self, name: str, replicas: int) -> None:
        """Let an operator have other replicas from its next batch on, or after a pause."""
        station = self.stations[name]
        delay_s = self._rescaling.delay_s
        if name in self.pausing_operators:
            is_under_way = name in self._pending_changes
            self._pending_changes[name] = (replicas, self.now_s)
            if not is_under_way:
                self._at(self.now_s + delay_s, lambda: self._halt(station))
        elif delay_s:
            self._at(self.now_s + delay_s, lambda: station.change(replicas, self.now_s))
        else:
            station.change(replicas, self.now_s)

    @property
    def pausing_operators(self) -> frozenset[str]:
        """Operators that stand still when their replicas change."""
        scope = self._rescaling.scope
        native = {op.name for op in self.pipeline.operators if op.native}
        everyone = set(self.stations)
        return frozenset({"nobody": set(), "native": native}.get(scope, everyone))

    # --- what happens

    def _at(self, time_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time_s, next(self._numbers), happen))

    def _write(self) -> None:
        """Producers write what became due."""
        for name, feed in list(self._feeds.items()):
            rows = next(feed, None)
            if rows is None:
                del self._feeds[name]
            elif rows.total:
                self._append(name, self._topics[name], rows)
        self._writes += 1
        if self._feeds:
            self._at((self._writes + 1) * self._rules.write_s, self._write)

    def _append(self, name: str, topic: BinnedTopic, rows: BinnedRows) -> None:
        topic.append(rows)
        for reader in self._readers.get(name, ()):
            if reader.is_idle and reader.current is None:
                reader.is_idle = False
                self._ask(reader, self.now_s + self._soon_s(reader))

    def _ask(self, station: BatchStation, time_s: float) -> None:
        self._at(max(time_s, station.free_s), lambda: self._plan(station))

    def _factor(self, station: BatchStation) -> float:
        """Return by how much an overhead differs from what it usually is."""
        return self._rules.slower(self.now_s) * lognormal(station.draw, self._rules.noise)

    def _soon_s(self, station: BatchStation) -> float:
        return self._rules.poll_s * self._factor(station)

    def _plan(self, station: BatchStation) -> None:
        if station.is_held or station.current is not None:
            return
        rules = self._rules
        behind = [one for out in station.outputs for one in self._readers.get(out.name, ())]
        is_full = any(one.is_full for one in behind)
        station.hold(self.now_s, is_full=is_full)
        if is_full:
            self._ask(station, self.now_s + max(_MIN_S, self._soon_s(station)))
            return
        look_s = rules.look_s * self._factor(station)
        longest_s = station.plan(self.now_s, look_s, rules.batch_s, self._rescaling)
        if longest_s is None:
            return
        others = sum(one.current is not None for one in self.stations.values()) - 1
        overhead_s = rules.overhead_s(station.order, others) * self._factor(station)
        station.free_s = self.now_s + rules.gap_s + self._soon_s(station)
        done_s = self.now_s + look_s + overhead_s + longest_s
        self._at(done_s, lambda: self._commit(station))

    def _commit(self, station: BatchStation) -> None:
        assert station.current is not None
        record, taken = station.current
        station.position = dict(record.end)
        station.current = None
        rows = station.next_output(taken)
        outs = [output.thinned(rows) for output in station.outputs]
        shown = max(outs, key=lambda out: out.total) if outs else rows
        station.records.append(_done(record, shown, self.now_s))
        for name, topic in station.topics.items():
            topic.forget(min(one.position[name] for one in self._readers[name]))
        for output, out in zip(station.outputs, outs, strict=True):
            if out.total:
                self._append(output.name, output.topic, out)
        for halt in self._halts:
            self._pause(halt)
        # the look is a part of what lies between a commit and the next plan
        between_s = max(0.0, self._rules.between_s - self._rules.look_s)
        self._ask(station, self.now_s + between_s * self._factor(station))

    # --- changes that stop operators

    def _halt(self, station: BatchStation) -> None:
        """Let an operator, or all of them, begin no more batches."""
        is_job = self._rescaling.scope == "job"
        if is_job and self._halts:  # one change at a time: it takes up what is asked for meanwhile
            return
        halt = _Halt([*self.stations.values()] if is_job else [station])
        for one in halt.stations:
            one.is_held = True
        self._halts.append(halt)
        self._pause(halt)

    def _pause(self, halt: "_Halt") -> None:
        """Once their batches are done, let the pause begin."""
        if halt.has_begun or any(one.current is not None for one in halt.stations):
            return
        halt.has_begun = True
        state_mb = {op.name: op.state_mb for op in self.pipeline.operators}
        state_gb = sum(state_mb[one.name] for one in halt.stations) / 1000
        length_s = self._rescaling.pause_s + self._rescaling.pause_s_per_gb * state_gb
        self._at(self.now_s + length_s, lambda: self._resume(halt, length_s))

    def _resume(self, halt: "_Halt", length_s: float) -> None:
        if self.is_standing:
            self.pause_s += length_s
        self._halts.remove(halt)
        for one in halt.stations:
            one.is_held = False
            if one.name in self._pending_changes:
                self._report_change(one, length_s)
            self._ask(one, self.now_s)

    def _report_change(self, station: BatchStation, pause_s: float) -> None:
        replicas, asked_s = self._pending_changes.pop(station.name)
        event = RescaledEvent(
            at=self.now_s,
            operator=station.name,
            replicas=replicas,
            before=station.order,
            pause_s=round(pause_s, 3),
            after_s=round(self.now_s - asked_s, 3),
        )
        self.events.append(event)
        station.change(replicas, self.now_s)


@dataclass(slots=True, eq=False)
class _Halt:
    """Operators that stand still together for a change."""

    stations: list[BatchStation]
    has_begun: bool = False


def _done(record: BatchRecord, out: BinnedRows, now_s: float) -> BatchRecord:
    """Return a batch with what it wrote."""
    edges = cuts([float(task.rows_in) for task in record.tasks], out.total)
    tasks = tuple(
        replace(task, rows_out=high - low, began=now_s - task.busy_s, ended=now_s)
        for task, low, high in zip(record.tasks, edges, edges[1:], strict=False)
    )
    return replace(record, committed_at=now_s, tasks=tasks, events=out.events())
