"""The record-level simulator behind the engine port, with an exact monitor.

All measures are exact means over the interval since the last call of `observe`.
"""

from collections.abc import Mapping

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.events import DroppedEvent, Event, RestartEvent
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.simulator.records.model import RecordOperator
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.engines.simulator.records.totals import Totals
from penstock.errors import NotReadyError


class RecordEngine:
    """A `RecordSimulator` that can be observed and rescaled.

    >>> from penstock.engines.simulator.records.model import RecordPipeline
    >>> from penstock.engines.simulator.records.service import ServiceTime
    >>> work = ServiceTime(distribution="deterministic", mean_s=0.5)
    >>> pipeline = RecordPipeline(operators=(RecordOperator(name="map", service=work),))
    >>> engine = RecordEngine(RecordSimulator(pipeline, {"map": range(100)}, seed=1))
    >>> engine.advance(60)
    >>> engine.observe().operators["map"].busy
    0.5
    """

    def __init__(self, simulator: RecordSimulator) -> None:
        self._simulator = simulator
        self._models = {model.name: model for model in simulator.pipeline.operators}
        self._observed_s, self._observed_totals = simulator.now_s, simulator.totals()
        self._snapshot: Snapshot | None = None
        self._status_totals = self._observed_totals
        self._pause_s = 0.0

    @property
    def capabilities(self) -> Capabilities:
        """Changes of replicas only; if they restart the pipeline, every operator pauses."""
        restarts = self._simulator.pipeline.rules.restart_s is not None
        return Capabilities(pauses=frozenset(self._models if restarts else ()))

    def advance(self, seconds: float) -> None:
        """Advance simulated time."""
        self._simulator.advance(self._simulator.now_s + seconds)

    def observe(self) -> Snapshot:
        """Return the measures since the last call; the same snapshot while no time passes."""
        now_s, resume_s = self._simulator.now_s, self._simulator.resume_s
        if resume_s is not None:
            raise NotReadyError(f"the pipeline restarts until {resume_s:g} s")
        if now_s > self._observed_s:
            totals = self._simulator.totals()
            self._snapshot = self._build_snapshot(totals, now_s)
            self._observed_s, self._observed_totals = now_s, totals
        if self._snapshot is None:
            raise NotReadyError("no time has passed yet")
        return self._snapshot

    def apply(self, plan: Plan) -> None:
        """Request replicas; `RescaleError` while the pipeline restarts."""
        max_replicas = {name: model.max_replicas for name, model in self._models.items()}
        check_plan(plan, max_replicas, self.capabilities)
        self._simulator.rescale(plan.replicas)

    def status(self) -> Status:
        """Return replicas, latency, events and counts; filtered records count as processed."""
        totals, tally = self._simulator.totals(), self._simulator.tally()
        events = self._events(totals)
        self._status_totals = totals
        self._pause_s += sum(e.pause_s for e in events if isinstance(e, RestartEvent))
        return Status(
            at=self._simulator.now_s,
            requested=FrozenDict({name: now.requested for name, now in totals.items()}),
            running=FrozenDict({name: now.running for name, now in totals.items()}),
            latency=FrozenDict(self._simulator.take_latency()),
            replica_s=FrozenDict({name: now.replica_s for name, now in totals.items()}),
            pause_s=self._pause_s,
            events=events,
            offered_records=tally.offered,
            processed_records=tally.delivered + tally.filtered,
            dropped_records=tally.dropped,
            backlog_records=tally.in_flight,
        )

    def _build_snapshot(self, totals: Mapping[str, Totals], now_s: float) -> Snapshot:
        seconds = now_s - self._observed_s
        operators = {
            name: _operator_snapshot(model, self._observed_totals[name], totals[name], seconds)
            for name, model in self._models.items()
        }
        offered = {
            name: (totals[name].arrived - self._observed_totals[name].arrived) / seconds
            for name in self._simulator.pipeline.topology.sources
        }
        return Snapshot(at=now_s, offered=FrozenDict(offered), operators=FrozenDict(operators))

    def _events(self, totals: Mapping[str, Totals]) -> tuple[Event, ...]:
        changes: list[Event] = [*self._simulator.take_changes()]
        for name, now in totals.items():
            before = self._status_totals[name].dropped
            new_drops = {cause: n - before[cause] for cause, n in now.dropped.items()}
            if causes := {cause: n for cause, n in new_drops.items() if n}:
                at_s = self._simulator.now_s
                changes.append(DroppedEvent(at=at_s, operator=name, causes=FrozenDict(causes)))
        return tuple(changes)


def _operator_snapshot(
    model: RecordOperator, before: Totals, now: Totals, seconds: float
) -> OperatorSnapshot:
    completed = now.completed - before.completed
    service_s = now.service_s - before.service_s
    sent = {target: (n - before.sent[target]) / seconds for target, n in now.sent.items()}
    busy = _share(now.busy_s - before.busy_s, now.replica_s - before.replica_s)
    size = model.queue_size
    return OperatorSnapshot(
        name=model.name,
        upstream=model.upstream,
        parallelism=now.running,
        max_parallelism=model.max_replicas,
        requested=now.requested,
        input_rate=(now.started - before.started) / seconds,
        # the output of a sink is what it completes
        output_rate=sum(sent.values()) if sent else completed / seconds,
        sent=FrozenDict(sent),
        busy=busy,
        idle=None if busy is None else 1 - busy,
        backpressured=0.0,
        cpu=busy,
        queue=float(now.waiting),
        queue_growth=(now.waiting - before.waiting) / seconds,
        input_buffer=now.waiting / size if size else None,
        service_time_s=service_s / completed if completed else None,
        service_scv=_scv(completed, service_s, now.service_squares - before.service_squares),
        arrival_scv=_scv(
            now.gaps - before.gaps, now.gap_s - before.gap_s, now.gap_squares - before.gap_squares
        ),
    )


def _share(busy_s: float, replica_s: float) -> float | None:
    # a released replica still completes its record: busy time without replica time
    return min(1.0, max(0.0, busy_s / replica_s)) if replica_s > 0 else None


def _scv(count: int, total: float, squares: float) -> float | None:
    """Return the squared coefficient of variation of a sample; None if it is too small."""
    if count < 2 or total <= 0:
        return None
    mean = total / count
    return max(0.0, (squares - total * mean) / (count - 1)) / mean**2
