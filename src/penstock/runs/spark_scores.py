"""Scores a run on Spark: those of every run, and what only a real engine measures.

The latter are the time of changes, the overhead of batches, and the replicas that a deployment for
the peak would need by the measured service times.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from penstock.control.loop import Tick
from penstock.core.numbers import ceil
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.events import (
    Event,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
    RunningEvent,
)
from penstock.runs.record_counts import RecordCounts
from penstock.runs.result_parts import RunScores
from penstock.runs.sample import Sample
from penstock.runs.scores import Scores
from penstock.runs.spark_result import (
    ExecutorChanges,
    OperatorAccount,
    RecordBalance,
    SparkMeasures,
    Spread,
    StaticPeak,
)


class SparkScores:
    """Adds up ticks, one after the other."""

    def __init__(
        self, objective_s: float | None = None, readers: Sequence[Sequence[str]] = ()
    ) -> None:
        """`readers` are the operators that read the same topic at the beginning."""
        self._objective_s = objective_s
        self._scores = Scores(objective_s)
        self._readers = readers
        self._service_s: defaultdict[str, Sample] = defaultdict(Sample)
        self._floor_s: defaultdict[str, Sample] = defaultdict(Sample)
        #: Sums over ticks, to relate what an operator takes to what is offered.
        self._taken: defaultdict[str, float] = defaultdict(float)
        self._offered, self._peak = 0.0, 0.0
        #: Seconds and batches from a decision until it ran.
        self._change_s = Sample()
        self._change_batches = Sample()
        self._executors = _Executors()
        self._graph: Topology | None = None
        self._at = 0.0

    def add(self, tick: Tick) -> None:
        """Count one tick."""
        self._scores.add(tick)
        self._at = tick.at
        for event in tick.status.events:
            self._executors.add(event)
            match event:
                case RunningEvent(after_s=float() | int() as after_s, batches=int() as batches):
                    self._change_s.add(after_s)
                    self._change_batches.add(batches)
        if tick.snapshot is not None:
            self._measure(tick.snapshot)

    def _measure(self, snapshot: Snapshot) -> None:
        self._graph = snapshot.topology
        offered = offered_rate(snapshot, self._readers)
        self._offered += offered
        self._peak = max(self._peak, offered)
        for name, op in snapshot.operators.items():
            self._taken[name] += op.input_rate or 0.0
            if op.service_time_s:
                self._service_s[name].add(op.service_time_s)
            floor_s = op.extra.get("floor_s")
            if isinstance(floor_s, int | float):
                self._floor_s[name].add(float(floor_s))

    def scores(self) -> RunScores | None:
        """Return the figures that every run has; None before its first tick."""
        return self._scores.result()

    def measures(self, peak_rate: float | None = None) -> SparkMeasures:
        """Return the figures of Spark so far; the peak is the measured one if none is given."""
        return SparkMeasures(
            seconds=self._at,
            static_peak=self._static_peak(self._peak if peak_rate is None else peak_rate),
            floor_s=self._longest_floor_s(),
            change_s=_spread(self._change_s),
            change_batches=_spread(self._change_batches),
            executor_changes=self._executors.result(),
        )

    @property
    def last(self) -> Tick | None:
        """The last tick that was counted."""
        return self._scores.last

    def to_json(self) -> dict[str, Any]:
        """Write everything that was added up, for a journal that forgets its oldest ticks."""
        return {
            "scores": self._scores.to_json(),
            "service_s": {name: times.to_json() for name, times in self._service_s.items()},
            "floor_s": {name: times.to_json() for name, times in self._floor_s.items()},
            "taken": dict(self._taken),
            "offered": self._offered,
            "peak": self._peak,
            "change_s": self._change_s.to_json(),
            "change_batches": self._change_batches.to_json(),
            "executors": self._executors.to_json(),
            "upstream": {n: list(up) for n, up in self._graph.upstream.items()}
            if self._graph
            else None,
            "at": self._at,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on with what `to_json` wrote."""
        self._scores = Scores.from_json(data["scores"], self._objective_s)
        for kept, times in ((self._service_s, "service_s"), (self._floor_s, "floor_s")):
            kept.update({name: Sample.from_json(each) for name, each in data[times].items()})
        self._taken.update(data["taken"])
        self._offered, self._peak, self._at = data["offered"], data["peak"], data["at"]
        self._change_s = Sample.from_json(data["change_s"])
        self._change_batches = Sample.from_json(data["change_batches"])
        self._executors = _Executors.from_json(data["executors"])
        self._graph = Topology.of(data["upstream"]) if data["upstream"] is not None else None

    def _static_peak(self, peak_rate: float) -> StaticPeak:
        """Replicas that carry the peak all the time."""
        needed = {}
        for name, times in self._service_s.items():
            visits = self._taken[name] / self._offered if self._offered else 1.0
            needed[name] = max(1, ceil(peak_rate * visits * median(times.values)))
        return StaticPeak(peak_rate=peak_rate, replicas=sum(needed.values()), operators=needed)

    def _longest_floor_s(self) -> float | None:
        """What batches take without any work, along the path on which that is most."""
        graph = self._graph
        if graph is None or not self._floor_s:
            return None
        until: dict[str, float] = {}
        for name in graph.order:
            own = median(self._floor_s[name].values) if name in self._floor_s else 0.0
            until[name] = own + max((until[up] for up in graph.upstream[name]), default=0.0)
        return round(max(until.values()), 3)


class _Executors:
    """How many were bought and returned, and how long that took."""

    def __init__(self) -> None:
        #: The last change that was asked for, and all that were, up and down.
        self._step = self._bought = self._returned = 0
        self._bought_s, self._returned_s = Sample(), Sample()

    def add(self, event: Event) -> None:
        """Count executors that were requested, and how long they took."""
        match event:
            case ExecutorsRequestedEvent():
                self._step = event.requested - event.before
                self._bought += max(0, self._step)
                self._returned += max(0, -self._step)
            case ExecutorsReadyEvent() if self._step:
                times = self._bought_s if self._step > 0 else self._returned_s
                times.add(event.after_s)

    def result(self) -> ExecutorChanges:
        """Return the figures."""
        return ExecutorChanges(
            bought=self._bought,
            returned=self._returned,
            bought_s=_spread(self._bought_s),
            returned_s=_spread(self._returned_s),
        )

    def to_json(self) -> dict[str, Any]:
        """Write everything that was added up."""
        numbers = {"step": self._step, "bought": self._bought, "returned": self._returned}
        times = {"bought_s": self._bought_s.to_json(), "returned_s": self._returned_s.to_json()}
        return {**numbers, **times}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "_Executors":
        """Read what `to_json` wrote."""
        made = cls()
        made._step, made._bought, made._returned = data["step"], data["bought"], data["returned"]
        made._bought_s = Sample.from_json(data["bought_s"])
        made._returned_s = Sample.from_json(data["returned_s"])
        return made


def offered_rate(snapshot: Snapshot, readers: Sequence[Sequence[str]]) -> float:
    """Records/s that come in: what several operators read from one topic came in once.

    >>> now = Snapshot(at=0.0, offered={"resize": 8.0, "thumbnail": 8.0, "count": 1.0})
    >>> offered_rate(now, [("resize", "thumbnail")])
    9.0
    """
    offered = dict(snapshot.offered)
    together = sum(max(offered.pop(name, 0.0) for name in names) for names in readers)
    return together + sum(offered.values())


def records(
    counts: RecordCounts,
    dropped: int,
    accounts: Mapping[str, OperatorAccount],
    *,
    is_drained: bool,
    reducing: Collection[str] = (),
) -> RecordBalance:
    """Say what became of the records.

    Lost is what no batch took, by the offsets of all batches. Where records carry numbers, a
    number that is not there and that nothing accounts for is lost, too, once everything was
    worked off. Numbers say nothing behind `reducing` operators, which keep state, and where a
    function writes ids that were never offered.
    """
    has_numbers = not reducing and not counts.strange
    explained = dropped + counts.put_aside
    explained += sum(account.filtered + account.late for account in accounts.values())
    unexplained = max(0, (counts.missing or 0) - explained)
    by_number = unexplained if is_drained and has_numbers else 0
    expands = any(account.expanded for account in accounts.values()) or not has_numbers
    lost = sum(account.lost for account in accounts.values())
    doubled = sum(account.doubled for account in accounts.values())
    return RecordBalance(
        offered=counts.offered,
        complete=None if counts.strange else counts.complete,
        missing=None if counts.strange else counts.missing,
        doubled=max(doubled, 0 if expands else counts.doubled or 0),
        strange=counts.strange,
        put_aside=counts.put_aside,
        topics={last.topic: last.rows for last in counts.topics},
        dropped=dropped,
        lost=max(lost, by_number),
        drained=is_drained,
        waiting=max(0, unexplained - by_number) if not is_drained else 0,
        operators=accounts,
    )


def _spread(sample: Sample) -> Spread:
    if not sample:
        return Spread()
    return Spread(median=round(median(sample.values), 3), max=round(sample.max, 3))
