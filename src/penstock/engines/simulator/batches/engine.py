"""The batch-level simulator behind the engine port; the monitor is that of Spark.

Its batches leave the same records as those on Spark, so snapshots, latency and replica-seconds
come about by the very same functions.
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

#: Replicas at most where nobody says.
_MOST = 1 << 16


class BatchEngine:
    """A `BatchSimulator` that can be observed and rescaled."""

    def __init__(
        self,
        walk: BatchSimulator,
        *,
        batch_s: float,
        window_s: float,
        max_replicas: int | None = None,
    ) -> None:
        self._walk, self._window_s = walk, window_s
        self._models = {op.name: op for op in walk.pipeline.operators}
        self._topology = walk.pipeline.topology
        self._filled = {out.name for one in walk.stations.values() for out in one.outputs}
        self._most = {n: op.max_replicas or max_replicas for n, op in self._models.items()}
        self._followed = {
            name: self._follow(self._models[name], batch_s) for name in self._topology.order
        }
        self._snapshot: Snapshot | None = None
        self._events: list[Event] = []
        self._looked_s = 0.0

    def _follow(self, model: SimulatedOperator, batch_s: float) -> OperatorTracker:
        station = self._walk.stations[model.name]
        one = OperatorTracker(
            name=model.name,
            upstream=model.upstream,
            min_replicas=model.min_replicas,
            max_replicas=self._most[model.name] or _MOST,
            log=_Log(station.records),
            topics=dict(station.topics),
            batch_s=batch_s,
            queue_limit=model.queue_limit,
            requested=model.replicas,
            running=model.replicas,
        )
        one.begin()
        return one

    # --- the port

    @property
    def capabilities(self) -> Capabilities:
        """Replicas only; who pauses for a change depends on the profile."""
        return Capabilities(pauses=self._walk.pausing_operators)

    def advance(self, seconds: float) -> None:
        """Let simulated time pass, with a look at records and queues as often as on Spark."""
        until_s = self._walk.now_s + seconds
        while self._walk.now_s < until_s:
            self._walk.advance(min(until_s, self._walk.now_s + LOOK_S))
            self._look()
        self._snapshot = None

    def _look(self) -> None:
        now_s = self._walk.now_s
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        for one in self._followed.values():
            one.is_changing = self._walk.is_changing(one.name)
            one.replica_s += one.running * passed_s
            self._events += one.update(now_s, self._window_s, self._held_s(one.name))
        self._events += self._walk.events
        self._walk.events.clear()

    def _held_s(self, name: str) -> float | None:
        is_limited = any(op.queue_limit is not None for op in self._models.values())
        return self._walk.stations[name].held_s if is_limited else None

    def observe(self) -> Snapshot:
        """What was measured over the last window; `NotReadyError` while everything stands still."""
        if self._snapshot is None:
            self._snapshot = self._observe()
        return self._snapshot

    def _observe(self) -> Snapshot:
        if self._walk.is_standing:
            raise NotReadyError("the pipeline restarts")
        now_s = self._walk.now_s
        seen = build_snapshot(
            self._followed, now=now_s, began=0.0, window_s=self._window_s, at=now_s
        )
        operators = {name: self._with_parts(op) for name, op in seen.operators.items()}
        return replace(seen, operators=FrozenDict(operators))

    def _with_parts(self, op: OperatorSnapshot) -> OperatorSnapshot:
        """Say how much goes where, if not all goes everywhere; and bounds only where they are."""
        sent = self._models[op.name].sent
        shares = {name: sent.get(name, 1.0) for name in self._topology.downstream[op.name]}
        parts: Mapping[str, float] | None = None
        if len(set(shares.values())) > 1 and op.output_rate is not None:
            most = max(shares.values())
            rates = {name: op.output_rate * share / most for name, share in shares.items()}
            parts = FrozenDict(rates)
        return replace(op, sent=parts, max_parallelism=self._most[op.name])

    def apply(self, plan: Plan) -> None:
        """Order replicas; they run from each operator's next batch on."""
        least = {name: op.min_replicas for name, op in self._models.items()}
        check_plan(plan, self._most, self.capabilities, least)
        if self._walk.is_standing:
            raise RescaleError("the last change is still being carried out")
        for name, replicas in plan.replicas.items():
            self._followed[name].request(replicas, self._walk.now_s)
            self._walk.order(name, replicas)

    def status(self) -> Status:
        """Where things stand, and what happened since the last call."""
        events, self._events = tuple(sorted(self._events, key=lambda event: event.at)), []
        now_s = self._walk.now_s
        status = build_status(
            self._followed, self._topology, self._filled, at=now_s, second=_to_millis
        )
        for operator in self._followed.values():
            operator.clear_new()
        events = tuple(replace(event, at=_to_millis(event.at)) for event in events)
        return replace(status, events=events, pause_s=self._walk.pause_s)

    # --- for those who wait for its end

    @property
    def at(self) -> float:
        """Seconds since the run began."""
        return self._walk.now_s

    @property
    def is_done(self) -> bool:
        """Whether nothing more will be offered."""
        return self._walk.is_fed

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits or is in work."""
        return self._walk.is_drained

    @property
    def operator_errors(self) -> Mapping[str, str]:
        """Operators that stopped: none ever does."""
        return FrozenDict()

    @property
    def error(self) -> None:
        """What ended its producers before their time: nothing does."""
        return


def _to_millis(second: float) -> float:
    return round(max(0.0, second), 3)


class _Log:
    """The records of a station, read one after the other."""

    def __init__(self, records: list[BatchRecord]) -> None:
        self._records, self.next = records, 0

    def read_new(self) -> list[BatchRecord]:
        """Return those that came since the last call."""
        found = self._records[self.next :]
        self.next += len(found)
        return found
