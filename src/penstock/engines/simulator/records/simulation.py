"""Discrete-event simulation of single records: arrival, waiting, service.

Results are bit-identical however a run is divided into calls of `advance`, because neither these
calls nor reading counters change the state.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.random import SeedSequence, default_rng

from penstock.core.histogram import Histogram
from penstock.engines.events import RestartEvent, RunningEvent
from penstock.engines.simulator.records.flow import RecordFlow
from penstock.engines.simulator.records.model import RecordPipeline
from penstock.engines.simulator.records.service import BLOCK
from penstock.engines.simulator.records.stations import RecordStation, Route, build
from penstock.engines.simulator.records.totals import (
    ServedRecord,
    Tally,
    Totals,
    totals_of,
)
from penstock.errors import InputError, RescaleError, nearest


@dataclass(slots=True)
class _Source:
    station: RecordStation
    route: Route
    times_s: Iterator[float]
    last_s: float = 0.0


class RecordSimulator:
    """A pipeline that runs record by record.

    `arrivals` has the arrival times of each source in seconds, in ascending order: an array or any
    iterable, which is read lazily. With `trace`, every record that an operator completes is
    appended to that list.

    >>> from penstock.engines.simulator.records.model import RecordOperator
    >>> from penstock.engines.simulator.records.service import ServiceTime
    >>> work = ServiceTime(distribution="deterministic", mean_s=1.0)
    >>> pipeline = RecordPipeline(operators=(RecordOperator(name="map", service=work),))
    >>> simulator = RecordSimulator(pipeline, {"map": [0.0, 0.5]}, seed=1)
    >>> simulator.advance(10)
    >>> simulator.totals()["map"].waited_s, simulator.tally().delivered
    (0.5, 2)
    """

    def __init__(
        self,
        pipeline: RecordPipeline,
        arrivals: Mapping[str, Iterable[float]],
        seed: int,
        trace: list[ServedRecord] | None = None,
    ) -> None:
        self.pipeline = pipeline
        #: End of the restart in progress; None if there is none.
        self.resume_s: float | None = None
        self._changes: list[RunningEvent | RestartEvent] = []
        self._flow = RecordFlow(pipeline.rules.timeout_s, trace)
        key_seed, *operator_seeds = SeedSequence(seed).spawn(1 + len(pipeline.operators))
        self._next_key = _keys(pipeline, key_seed).__next__
        self._stations = build(pipeline, operator_seeds)
        for station in self._stations.values():
            for _ in range(station.requested):
                self._flow.take(station.activate())
            station.set_running(0.0, station.active)
        self._sources = [self._open(name, times) for name, times in arrivals.items()]

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._flow.now_s

    def advance(self, until_s: float) -> None:
        """Run all events up to and including a time."""
        if not self.now_s <= until_s < float("inf"):
            raise InputError("until_s", f"must be at least {self.now_s} (now), got {until_s}")
        self._flow.run(until_s)

    def set_replicas(self, name: str, wanted: int) -> None:
        """Request replicas of one operator."""
        self.rescale({name: wanted})

    def rescale(self, replicas: Mapping[str, int]) -> None:
        """Request replicas of several operators in one change.

        Without `restart_s`, new replicas start after `startup_s`. Removed ones stop after their
        current record, and the records in their queues move to the others. With `pause_s`, a
        changed operator starts no record for that time and loses none. With `restart_s`, all
        waiting and running records are dropped, and the whole pipeline is paused for that time.
        """
        for name, wanted in replicas.items():
            if name not in self._stations:
                known = nearest(name, self._stations)
                raise InputError(f"replicas.{name}", "unknown operator", known)
            self._stations[name].model.check_replicas(wanted)
        if self.resume_s is not None:
            raise RescaleError(f"the pipeline restarts until {self.resume_s:g} s")
        changed = [n for n, wanted in replicas.items() if wanted != self._stations[n].requested]
        for name in changed:
            self._stations[name].requested = replicas[name]
        if self.pipeline.rules.restart_s is None:
            for name in changed:
                self._resize(self._stations[name])
        elif changed:
            self._restart(self.pipeline.rules.restart_s)

    def totals(self) -> dict[str, Totals]:
        """Return the counters of every operator since the run began."""
        return {name: totals_of(station, self.now_s) for name, station in self._stations.items()}

    def tally(self) -> Tally:
        """Return the number of delivered, filtered and dropped records since the run began."""
        flow = self._flow
        return Tally(
            offered=flow.offered,
            delivered=flow.delivered,
            filtered=flow.filtered,
            dropped=flow.dropped,
        )

    def take_latency(self) -> dict[str, Histogram]:
        """Return the end-to-end latency by path ("a > b > c") since the last call."""
        latency: dict[str, Histogram] = {}
        for source in self._sources:
            for route in source.route.tree():
                if route.latency.count:
                    latency[route.name], route.latency = route.latency, Histogram()
        return dict(sorted(latency.items()))

    def take_changes(self) -> list[RunningEvent | RestartEvent]:
        """Return changes of running replicas and restarts since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes

    def _open(self, name: str, times: Iterable[float]) -> _Source:
        known = self.pipeline.topology.sources
        if name not in known:
            raise InputError(f"arrivals.{name}", "is not a source", nearest(name, known))
        source = _Source(self._stations[name], Route(name), _to_floats(times))
        self._await_arrival(source)
        return source

    def _await_arrival(self, source: _Source) -> None:
        time_s = next(source.times_s, None)
        if time_s is None:
            return
        if not time_s >= source.last_s:
            problem = f"must not go back in time: {time_s} after {source.last_s}"
            raise InputError(f"arrivals.{source.route.name}", problem)
        source.last_s = time_s
        self._flow.at(time_s, self._offer, source)

    def _offer(self, source: _Source) -> None:
        self._flow.offer(source.station, source.route, self._next_key())
        self._await_arrival(source)

    def _resize(self, station: RecordStation) -> None:
        """Start or remove replicas of one operator; no record is lost."""
        if self.pipeline.rules.pause_s:
            self._pause(station, self.now_s + self.pipeline.rules.pause_s)
        due = station.requested - station.active
        if due < 0:
            station.starting.clear()
            for record in station.deactivate(station.requested):
                self._flow.join(station, record)
            self._note_running(station)
            return
        del station.starting[due:]
        startup_s = self.pipeline.rules.startup_s
        for _ in range(due - len(station.starting)):
            ticket = object()
            station.starting.append(ticket)
            if startup_s:
                self._flow.at(self.now_s + startup_s, self._start_up, (station, ticket))
            else:
                self._start_up((station, ticket))

    def _start_up(self, start: tuple[RecordStation, object]) -> None:
        station, ticket = start
        if ticket not in station.starting:  # no longer wanted
            return
        station.starting.remove(ticket)
        replica = station.activate()
        if replica.record is None:
            self._flow.take(replica)
        self._note_running(station)

    def _pause(self, station: RecordStation, until_s: float) -> None:
        station.paused_until_s = until_s
        station.idle.clear()  # so that records that arrive meanwhile wait
        self._flow.at(until_s, self._end_pause, station)

    def _end_pause(self, station: RecordStation) -> None:
        for replica in station.replicas[: station.active]:
            if replica.record is None and replica not in station.idle:
                self._flow.take(replica)

    def _restart(self, pause_s: float) -> None:
        before = self._flow.dropped
        self._flow.stop(self._stations.values())
        self.resume_s = self.now_s + pause_s
        for station in self._stations.values():
            station.deactivate(0)
            for _ in range(station.requested):
                station.activate()
            station.set_running(self.now_s, 0)
        lost = self._flow.dropped - before
        self._changes.append(RestartEvent(at=self.now_s, pause_s=pause_s, dropped_records=lost))
        self._flow.at(self.resume_s, self._resume, None)

    def _resume(self, _: None) -> None:
        self.resume_s, self._flow.stopped = None, False
        for station in self._stations.values():
            for replica in station.replicas[: station.active]:
                self._flow.take(replica)
            self._note_running(station)

    def _note_running(self, station: RecordStation) -> None:
        station.set_running(self.now_s, station.active)
        name, last = station.model.name, self._changes[-1] if self._changes else None
        # replicas that start at the same time are one change
        if isinstance(last, RunningEvent) and (last.at, last.operator) == (self.now_s, name):
            self._changes.pop()
        self._changes.append(RunningEvent(at=self.now_s, operator=name, replicas=station.active))


def _keys(pipeline: RecordPipeline, seed: SeedSequence) -> Iterator[str]:
    if all(operator.queue != "fields" for operator in pipeline.operators):
        return repeat("")
    rules = pipeline.rules
    likelihood = np.arange(1, rules.keys + 1, dtype=float) ** -rules.key_skew
    below = np.cumsum(likelihood / likelihood.sum())
    rng = default_rng(seed)

    def draw() -> Iterator[str]:
        while True:
            # the last sum may be slightly below 1
            ranks = np.minimum(np.searchsorted(below, rng.random(BLOCK)), rules.keys - 1)
            yield from map(str, ranks.tolist())

    return draw()


def _to_floats(times: Iterable[float]) -> Iterator[float]:
    # NumPy scalars are slow to compare
    if isinstance(times, np.ndarray):
        for start in range(0, len(times), BLOCK):
            yield from times[start : start + BLOCK].tolist()
    else:
        yield from map(float, times)
