"""The metrics of a running loop: takes ticks, gives metric families to a Prometheus client.

It keeps sums and the last tick only, so its size does not grow with the run.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock import __version__
from penstock.control.loop import Tick
from penstock.core.decision import Decision, Target
from penstock.core.histogram import GROWTH, SMALLEST_S, Histogram
from penstock.engines.events import ControlEvent, FailedEvent, LateTickEvent, RunningEvent
from penstock.extras import import_optional
from penstock.prometheus.families import MEASURES, MetricFamily, find_family

#: Upper bounds of the buckets that are exported, in seconds.
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
#: Reasons come from policies; a foreign one could invent a new word at every tick.
MAX_SERIES = 5000
Labels = tuple[str, ...]
Samples = Mapping[Labels, float]


class RunMetrics:
    """Adds up ticks; `collect` is called by a registry of prometheus-client."""

    def __init__(
        self,
        *,
        pipeline: str,
        policy: str,
        objective_s: float | None = None,
        budget: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline, self._policy = pipeline, policy
        self._objective_s, self._budget, self._clock = objective_s, budget, clock
        self._lock = threading.Lock()
        self._last: Tick | None = None
        self._measured: Tick | None = None
        self._decision: Decision | None = None
        self._at = 0.0
        self._latency, self._rescales = Histogram(), Histogram()
        self._missed = 0.0
        self._counters: dict[str, Counter[Labels]] = {}
        self._is_paused = False

    def tick(self, tick: Tick) -> None:
        """Count one tick."""
        with self._lock:
            self._last, self._at = tick, self._clock()
            self._count("penstock_ticks")
            if tick.snapshot is not None:
                self._measured = tick
            else:
                self._count("penstock_unmeasured_ticks")
            for histogram in tick.status.latency.values():
                self._latency.merge(histogram)
                if self._objective_s is not None:
                    self._missed += histogram.share_above(self._objective_s) * histogram.count
            self._count_decision(tick)
            self._count_events(tick)

    def _count(self, name: str, labels: Labels = (), by: float = 1) -> None:
        counter = self._counters.setdefault(name, Counter())
        if labels in counter or len(counter) < MAX_SERIES:
            counter[labels] += by  # type: ignore[assignment]

    def _count_decision(self, tick: Tick) -> None:
        if tick.snapshot is not None and tick.decision is None:
            self._count("penstock_loop_errors", ("unanswered",))
        if tick.decision is None:
            return
        self._decision = tick.decision
        for name, target in tick.decision.targets.items():
            labels = (name, str(target.proposal_reason), _outcome(target))
            self._count("penstock_decisions", labels)
            if name in tick.plan:
                way = "up" if tick.plan[name] > target.current else "down"
                self._count("penstock_changes", (name, way))
        if tick.decision.is_change and not tick.applied:
            self._count("penstock_loop_errors", ("not-applied",))

    def _count_events(self, tick: Tick) -> None:
        for event in tick.status.events:
            match event:
                case RunningEvent() if event.after_s is not None:
                    self._rescales.add(event.after_s)
                case FailedEvent():
                    self._count("penstock_loop_errors", ("failed",))
                case LateTickEvent():
                    self._count("penstock_loop_errors", ("late-tick",))
                case ControlEvent() if event.action in ("pause", "resume"):
                    self._is_paused = event.action == "pause"

    def collect(self) -> Iterator[Any]:
        """Yield all metric families as they are now."""
        with self._lock:
            samples = dict(self._samples())
            latency, rescales = self._latency, self._rescales
            yield _histogram("penstock_latency_seconds", latency)
            yield _histogram("penstock_rescale_seconds", rescales)
        for name, values in samples.items():
            yield _family(find_family(name), values)

    def _samples(self) -> Iterator[tuple[str, Samples]]:
        yield "penstock_run", {(self._pipeline, self._policy, __version__): 1.0}
        yield "penstock_paused_ratio", {(): float(self._is_paused)}
        for name, value in (
            ("objective_seconds", self._objective_s),
            ("budget_replicas", self._budget),
        ):
            if value is not None:
                yield f"penstock_{name}", {(): float(value)}
        for name in ("ticks", "unmeasured_ticks", "decisions", "changes", "loop_errors"):
            yield f"penstock_{name}", dict(self._counters.get(f"penstock_{name}", {}))
        if self._objective_s is not None:
            yield "penstock_objective_missed_records", {(): self._missed}
        if self._last is not None:
            yield "penstock_last_tick_timestamp_seconds", {(): self._at}
            yield from _status_samples(self._last)
        if self._measured is not None:
            yield from _measure_samples(self._measured)
        if self._decision is not None:
            targets = self._decision.targets.items()
            yield "penstock_operator_wanted_replicas", {(n,): float(t.wanted) for n, t in targets}


def _outcome(target: Target) -> str:
    if target.wanted != target.current:
        return "change"
    return "held" if target.proposal != target.current else "keep"


def _status_samples(tick: Tick) -> Iterator[tuple[str, Samples]]:
    status = tick.status
    for name, value in (
        ("offered_records", status.offered_records),
        ("processed_records", status.processed_records),
        ("dropped_records", status.dropped_records),
        ("backlog_records", status.backlog_records),
        ("executors_running", status.executors),
        ("executors_requested", status.executors_requested),
    ):
        if value is not None:
            yield f"penstock_{name}", {(): float(value)}
    for name, replicas in (("running", status.running), ("requested", status.requested)):
        samples: Samples = {(operator,): float(k) for operator, k in replicas.items()}
        yield f"penstock_operator_{name}_replicas", samples


def _measure_samples(tick: Tick) -> Iterator[tuple[str, Samples]]:
    snapshot = tick.snapshot
    assert snapshot is not None  # only measured ticks come here
    operators = snapshot.operators
    for metric, measure in MEASURES.items():
        values = {name: getattr(operator, measure) for name, operator in operators.items()}
        yield metric, {(name,): float(v) for name, v in values.items() if v is not None}
    maxima = {name: operator.max_parallelism for name, operator in operators.items()}
    yield (
        "penstock_operator_max_replicas",
        {(name,): float(most) for name, most in maxima.items() if most is not None},
    )
    offered: Samples = {(name,): float(rate) for name, rate in snapshot.offered.items()}
    yield "penstock_offered_records_per_second", offered
    edges: Samples = {(name, up): 1.0 for name, op in operators.items() for up in op.upstream}
    yield "penstock_edge", edges


def _family(family: MetricFamily, samples: Samples) -> Any:
    core = import_optional("prometheus_client.core", "/metrics")
    if family.type == "info":
        made = core.InfoMetricFamily(family.name, family.doc)
        for labels in samples:
            made.add_metric([], dict(zip(family.labels, labels, strict=True)))
        return made
    kind = core.CounterMetricFamily if family.type == "counter" else core.GaugeMetricFamily
    made = kind(family.name, family.doc, labels=list(family.labels), unit=family.unit)
    for labels, value in samples.items():
        made.add_metric(list(labels), value)
    if family.type == "counter" and not family.labels and not samples:
        made.add_metric([], 0.0)
    return made


def _histogram(name: str, histogram: Histogram) -> Any:
    core = import_optional("prometheus_client.core", "/metrics")
    family = find_family(name)
    made = core.HistogramMetricFamily(family.name, family.doc, unit=family.unit)
    buckets = [(str(bound), count_below(histogram, bound)) for bound in BUCKETS]
    made.add_metric([], buckets=[*buckets, ("+Inf", histogram.count)], sum_value=histogram.total)
    return made


def count_below(histogram: Histogram, bound: float) -> float:
    """Return how many records are in buckets that end at or below a bound.

    >>> count_below(Histogram.of([0.1, 0.4, 3.0]), 0.5)
    2.0
    """
    return sum(
        records
        for bucket, records in histogram.counts.items()
        if SMALLEST_S * GROWTH**bucket <= bound * (1 + 1e-9)
    )
