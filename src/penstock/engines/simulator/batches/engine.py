"""The batch-level simulator behind the engine port.

Its batches write the same records as batches on Spark, and the same functions compute snapshots,
latency and replica-seconds from them.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.events import Event
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.snapshot_builder import LOOK_S, build_snapshot, build_status
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.simulator.batches.simulation import BatchSimulator
from penstock.engines.simulator.model import SimulatedOperator
from penstock.errors import NotReadyError, RescaleError

#: Maximum of replicas where neither pipeline nor profile sets one.
_UNLIMITED_REPLICAS = 1 << 16


class BatchEngine:
    """A `BatchSimulator` that can be observed and rescaled."""

    def __init__(
        self,
        simulator: BatchSimulator,
        *,
        batch_s: float,
        window_s: float,
        max_replicas: int | None = None,
    ) -> None:
        self._simulator, self._window_s = simulator, window_s
        self._models = {op.name: op for op in simulator.pipeline.operators}
        self._has_limits = any(op.queue_limit is not None for op in self._models.values())
        self._topology = simulator.pipeline.topology
        self._output_topics = {
            out.name for station in simulator.stations.values() for out in station.outputs
        }
        self._max_replicas = {n: op.max_replicas or max_replicas for n, op in self._models.items()}
        self._trackers = {
            name: self._track(self._models[name], batch_s) for name in self._topology.order
        }
        self._snapshot: Snapshot | None = None
        self._events: list[Event] = []
        self._updated_s = 0.0

    def _track(self, model: SimulatedOperator, batch_s: float) -> OperatorTracker:
        station = self._simulator.stations[model.name]
        tracker = OperatorTracker(
            name=model.name,
            upstream=model.upstream,
            min_replicas=model.min_replicas,
            max_replicas=self._max_replicas[model.name] or _UNLIMITED_REPLICAS,
            log=_Log(station.records),
            topics=dict(station.topics),
            batch_s=batch_s,
            queue_limit=model.queue_limit,
            requested=model.replicas,
            running=model.replicas,
        )
        tracker.begin()
        return tracker

    # --- the port

    @property
    def capabilities(self) -> Capabilities:
        """Changes of replicas only; the profile defines which operators pause for a change."""
        return Capabilities(pauses=self._simulator.pausing_operators)

    def advance(self, seconds: float) -> None:
        """Advance simulated time; records and queues are read as often as on Spark."""
        until_s = self._simulator.now_s + seconds
        while self._simulator.now_s < until_s:
            self._simulator.advance(min(until_s, self._simulator.now_s + LOOK_S))
            self._update_trackers()
        self._snapshot = None

    def _update_trackers(self) -> None:
        now_s = self._simulator.now_s
        passed_s, self._updated_s = now_s - self._updated_s, now_s
        for name, tracker in self._trackers.items():
            tracker.is_changing = self._simulator.is_changing(name)
            tracker.replica_s += tracker.running * passed_s
            self._events += tracker.update(now_s, self._window_s, self._backpressure_s(name))
        self._events += self._simulator.events
        self._simulator.events.clear()

    def _backpressure_s(self, name: str) -> float | None:
        return self._simulator.stations[name].backpressure_s if self._has_limits else None

    def observe(self) -> Snapshot:
        """Return the measures of the last window; `NotReadyError` while all operators pause."""
        if self._snapshot is None:
            self._snapshot = self._observe()
        return self._snapshot

    def _observe(self) -> Snapshot:
        if self._simulator.is_paused:
            raise NotReadyError("the pipeline restarts")
        now_s = self._simulator.now_s
        snapshot = build_snapshot(
            self._trackers, now=now_s, began=0.0, window_s=self._window_s, at=now_s
        )
        operators = {name: self._with_edge_rates(op) for name, op in snapshot.operators.items()}
        return replace(snapshot, operators=FrozenDict(operators))

    def _with_edge_rates(self, op: OperatorSnapshot) -> OperatorSnapshot:
        """Add the rate of each edge where edges differ, and the maximum only where there is one."""
        sent = self._models[op.name].sent
        shares = {name: sent.get(name, 1.0) for name in self._topology.downstream[op.name]}
        edge_rates: Mapping[str, float] | None = None
        if len(set(shares.values())) > 1 and op.output_rate is not None:
            largest = max(shares.values())
            rates = {name: op.output_rate * share / largest for name, share in shares.items()}
            edge_rates = FrozenDict(rates)
        return replace(op, sent=edge_rates, max_parallelism=self._max_replicas[op.name])

    def apply(self, plan: Plan) -> None:
        """Request replicas; they run from the next batch of each operator."""
        min_replicas = {name: op.min_replicas for name, op in self._models.items()}
        check_plan(plan, self._max_replicas, self.capabilities, min_replicas)
        if self._simulator.is_paused:
            raise RescaleError("the last change is still being carried out")
        for name, replicas in plan.replicas.items():
            self._trackers[name].request(replicas, self._simulator.now_s)
            self._simulator.request(name, replicas)

    def status(self) -> Status:
        """Return replicas, latency and counts, and the events since the last call."""
        events, self._events = tuple(sorted(self._events, key=lambda event: event.at)), []
        now_s = self._simulator.now_s
        status = build_status(
            self._trackers, self._topology, self._output_topics, at=now_s, second=_to_millis
        )
        for operator in self._trackers.values():
            operator.clear_new()
        events = tuple(replace(event, at=_to_millis(event.at)) for event in events)
        return replace(status, events=events, pause_s=self._simulator.pause_s)

    # --- end of a run

    @property
    def at(self) -> float:
        """Seconds since the run began."""
        return self._simulator.now_s

    @property
    def is_done(self) -> bool:
        """Whether the producers have written all their records."""
        return self._simulator.is_input_done

    @property
    def is_drained(self) -> bool:
        """Whether all records are written and processed."""
        return self._simulator.is_drained

    @property
    def operator_errors(self) -> Mapping[str, str]:
        """Errors of operators by name: simulated operators never fail."""
        return FrozenDict()

    @property
    def error(self) -> None:
        """Error of the producers: simulated producers never fail."""
        return


def _to_millis(second: float) -> float:
    return round(max(0.0, second), 3)


class _Log:
    """Batch records of a station, in the interface of a batch log."""

    def __init__(self, records: list[BatchRecord]) -> None:
        self._records, self.next = records, 0

    def read_new(self) -> list[BatchRecord]:
        """Return the records since the last call."""
        new_records = self._records[self.next :]
        self.next += len(new_records)
        return new_records
