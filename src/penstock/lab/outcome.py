"""What a run on Spark was worth: its scores, and what only a real engine can tell.

How long changes took, what the batches themselves cost, and what a deployment for the peak
would have needed by the service times that were measured.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from penstock.control.loop import Tick
from penstock.control.scores import Scores
from penstock.core.numbers import ceil
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.port import Event
from penstock.engines.spark.places import Places
from penstock.engines.spark.records import BatchLog
from penstock.lab.counting import Counts
from penstock.pipelines.pipeline import Pipeline


class Outcome:
    """Adds up ticks, one after the other."""

    def __init__(
        self, objective_s: float | None = None, readers: Sequence[Sequence[str]] = ()
    ) -> None:
        """`readers` are the operators that read the same topic at the beginning."""
        self._scores = Scores(objective_s)
        self._readers = readers
        self._service_s: defaultdict[str, list[float]] = defaultdict(list)
        self._floor_s: defaultdict[str, list[float]] = defaultdict(list)
        #: Sums over ticks, to relate what an operator takes to what is offered.
        self._taken: defaultdict[str, float] = defaultdict(float)
        self._offered, self._peak = 0.0, 0.0
        #: Seconds and batches from a decision until it ran.
        self._change_s: list[float] = []
        self._change_batches: list[float] = []
        self._executors = _Executors()
        self._graph: Topology | None = None
        self._at = 0.0

    def add(self, tick: Tick) -> None:
        """Count one tick."""
        self._scores.add(tick)
        self._at = tick.at
        for event in tick.status.events:
            if event.kind == "running" and "after_s" in event.numbers:
                self._change_s.append(event.numbers["after_s"])
                self._change_batches.append(event.numbers["batches"])
            elif event.kind == "executors":
                self._executors.add(event)
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
                self._service_s[name].append(op.service_time_s)
            floor_s = op.extra.get("floor_s")
            if isinstance(floor_s, int | float):
                self._floor_s[name].append(float(floor_s))

    def result(self, peak_rate: float | None = None) -> dict[str, Any]:
        """The figures of the run so far; the peak is the measured one if none is given."""
        return {
            "seconds": self._at,
            **self._scores.result(),
            "static_peak": self._static_peak(self._peak if peak_rate is None else peak_rate),
            "floor_s": self._longest_floor_s(),
            "change_s": _spread(self._change_s),
            "change_batches": _spread(self._change_batches),
            "executor_changes": self._executors.result(),
        }

    def _static_peak(self, peak_rate: float) -> dict[str, Any]:
        """Replicas that carry the peak all the time."""
        needed = {}
        for name, times in self._service_s.items():
            visits = self._taken[name] / self._offered if self._offered else 1.0
            needed[name] = max(1, ceil(peak_rate * visits * median(times)))
        return {"peak_rate": peak_rate, "replicas": sum(needed.values()), "operators": needed}

    def _longest_floor_s(self) -> float | None:
        """What batches take without any work, along the path on which that is most."""
        graph = self._graph
        if graph is None or not self._floor_s:
            return None
        until: dict[str, float] = {}
        for name in graph.order:
            own = median(self._floor_s.get(name, [0.0]))
            until[name] = own + max((until[up] for up in graph.upstream[name]), default=0.0)
        return round(max(until.values()), 3)


class _Executors:
    """How many were bought and returned, and how long that took."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._bought_s: list[float] = []
        self._returned_s: list[float] = []

    def add(self, event: Event) -> None:
        """Count what was asked for, and what is there."""
        if "before" in event.numbers:
            self._steps.append(event.numbers["asked"] - event.numbers["before"])
        elif "after_s" in event.numbers and self._steps:
            times = self._bought_s if self._steps[-1] > 0 else self._returned_s
            times.append(event.numbers["after_s"])

    def result(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "bought": sum(step for step in self._steps if step > 0),
            "returned": -sum(step for step in self._steps if step < 0),
            "bought_s": _spread(self._bought_s),
            "returned_s": _spread(self._returned_s),
        }


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
    counts: Counts, dropped: int, *, is_drained: bool, leave_out: Sequence[str]
) -> dict[str, Any]:
    """Say what became of the records: `lost` is None where nobody can know it.

    What is missing was dropped on purpose, put aside, left out by a function, or lost; it may
    also still wait, unless everything was worked off.
    """
    missing = counts.missing
    gone = None if missing is None else max(0, missing - dropped - counts.put_aside)
    certain = is_drained and (gone == 0 or not leave_out)
    return {
        **counts.to_json(),
        "dropped": dropped,
        "lost": gone if certain else None,
        "drained": is_drained,
        "leave_out": list(leave_out),
    }


def who_leaves_out(pipeline: Pipeline, places: Places) -> list[str]:
    """Operators whose functions have returned fewer rows than they got.

    Records count nothing here; they only tell whether a row that is not there may be missing
    because somebody's function left it out.
    """
    return [
        name
        for name, operator in pipeline.operators.items()
        if operator.reads and _leaves_out(BatchLog(places.batches(name)))
    ]


def _leaves_out(log: BatchLog) -> bool:
    return any(task.rows_out < task.rows_in for record in log.news() for task in record.tasks)


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"median": None, "max": None}
    return {"median": round(median(values), 3), "max": round(max(values), 3)}
