"""Figures of the timeline of a run, for claims about the plots of papers.

Scores rate a whole run; these figures describe its behaviour over time: the queues, the most
frequent number of replicas, the correlation of replicas and load, the effect of changes. There is
one sample per tick.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.engines.events import RestartEvent
from penstock.lab.papers.host_timeline import HostTimeline
from penstock.runs.scores import percentile

#: Intervals with fewer records are left out of ratios and worst means.
MIN_RECORDS = 10


class RunTimeline:
    """Collects ticks; claims read its `result` as `course`."""

    def __init__(self) -> None:
        self._replicas: list[int] = []
        self._queues: dict[str, list[float]] = {}
        self._latency: dict[str, Histogram] = {}
        self._worst: dict[str, float] = {}
        self._flows: list[tuple[int, int, int]] = [(0, 0, 0)]
        self._changed: list[bool] = []
        self._restarts, self._pause_s = 0, 0.0
        self._hosts = HostTimeline()

    def add(self, tick: Tick) -> None:
        """Add one tick."""
        status = tick.status
        self._replicas.append(sum(status.requested.values()))
        records = (status.offered_records, status.processed_records, status.backlog_records)
        self._flows.append(records)
        self._changed.append(tick.applied)
        self._hosts.add(tick)
        if tick.snapshot is not None:
            for name, op in tick.snapshot.operators.items():
                self._queues.setdefault(name, []).append(op.queue or 0.0)
        for path, histogram in status.latency.items():
            self._add_latency(path.rpartition(" > ")[2], histogram)
        for event in status.events:
            if isinstance(event, RestartEvent):
                self._restarts += 1
                self._pause_s += event.pause_s

    def _add_latency(self, sink: str, histogram: Histogram) -> None:
        self._latency.setdefault(sink, Histogram()).merge(histogram)
        if histogram.count >= MIN_RECORDS:
            self._worst[sink] = max(self._worst.get(sink, 0.0), histogram.mean)

    def result(self) -> dict[str, Any]:
        """Return the figures of the run so far; None for an unknown ratio."""
        offered = [now[0] - before[0] for before, now in pairwise(self._flows)]
        processed = [now[1] - before[1] for before, now in pairwise(self._flows)]
        usual, times = Counter(self._replicas).most_common(1)[0]
        return {
            "replicas": {
                "min": min(self._replicas),
                "usual": usual,
                "usual_share": times / len(self._replicas),
                "follow": correlation(offered, self._replicas),
            },
            "throughput": {
                "cv": _cv(self._while_busy(processed)),
                "follows": correlation(offered, processed),
                "catch_up": max(_ratios(offered, processed), default=None),
                "worst_gap": max((abs(1 - r) for r in _ratios(offered, processed)), default=None),
                "after_change": self._after_change(offered, processed),
            },
            "queue": {name: _spread(values) for name, values in self._queues.items()},
            "latency_s": {sink: self._latency_of(sink) for sink in self._latency},
            "backlog": {"max": max(flow[2] for flow in self._flows)},
            "restarts": {"count": self._restarts, "pause_s": self._pause_s},
            **self._hosts.result(),
        }

    def _while_busy(self, processed: Sequence[int]) -> list[int]:
        """Return the records processed in intervals that start with at least as large a backlog."""
        backlogs = [flow[2] for flow in self._flows]
        return [
            done for done, begin in zip(processed, backlogs[:-1], strict=True) if begin >= done > 0
        ]

    def _after_change(self, offered: Sequence[int], processed: Sequence[int]) -> float | None:
        """Return the processed share in intervals after a change, divided by that of the others."""
        after: tuple[list[float], list[float]] = ([], [])
        for changed, came, done in zip(self._changed, offered[1:], processed[1:], strict=False):
            if came >= MIN_RECORDS:
                after[changed].append(done / came)
        others, changes = after
        return _mean(changes) / _mean(others) if changes and others and _mean(others) else None

    def _latency_of(self, sink: str) -> dict[str, float]:
        histogram = self._latency[sink]
        return {
            "avg": histogram.mean,
            "p50": histogram.percentile(50),
            "p95": histogram.percentile(95),
            "max": histogram.max,
            "worst": self._worst.get(sink, histogram.mean),
        }


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if one of the series is constant.

    >>> round(correlation([1, 2, 3], [2, 4, 6]), 6), correlation([1, 2, 3], [5, 5, 5])
    (1.0, None)
    """
    a, b = np.array(first, float), np.array(second, float)
    if len(a) < 2 or not a.std() or not b.std():
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _ratios(offered: Sequence[int], processed: Sequence[int]) -> list[float]:
    return [
        done / came for came, done in zip(offered, processed, strict=True) if came >= MIN_RECORDS
    ]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "avg": _mean(values),
        "p50": percentile(values, 50),
        "p95": percentile(values, 95),
        "max": max(values),
    }


def _cv(values: Sequence[float]) -> float | None:
    mean = _mean(values) if values else 0.0
    return float(np.std(values)) / mean if mean else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
