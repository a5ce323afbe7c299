"""Ticks as JSON objects of the journal, and back. Empty values are left out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from penstock.control.loop import Tick
from penstock.core.decision import Decision
from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import Histogram
from penstock.core.snapshot_json import parse_snapshot, snapshot_to_json
from penstock.engines.event_json import event_from_json, event_to_json
from penstock.engines.port import Batch, IngestStatus, Status
from penstock.errors import InputError

_Value = TypeVar("_Value")


def tick_to_json(tick: Tick) -> dict[str, Any]:
    """Write a tick as plain dictionaries."""
    status = tick.status
    data: dict[str, Any] = {
        "at": tick.at,
        "running": dict(status.running),
        "requested": dict(status.requested),
        "records": {
            "offered": status.offered_records,
            "processed": status.processed_records,
            "dropped": status.dropped_records,
            "backlog": status.backlog_records,
        },
        "replica_s": {name: round(s, 3) for name, s in status.replica_s.items()},
    }
    if status.executors is not None:
        data["executors"] = status.executors
        data["executors_requested"] = status.executors_requested
        data["executor_s"] = status.executor_s
    if status.age_s is not None:
        data["age_s"] = round(status.age_s, 6)
    if status.pause_s:
        data["pause_s"] = status.pause_s
    if status.is_over:
        data["over"] = True
    if status.latency:
        data["latency"] = {path: h.to_json() for path, h in status.latency.items()}
    if status.events:
        data["events"] = [event_to_json(event) for event in status.events]
    if status.queues:
        data["queues"] = dict(status.queues)
    if status.ingests:
        data["ingests"] = {name: ingest._asdict() for name, ingest in status.ingests.items()}
    if status.late:
        data["late"] = dict(status.late)
    if status.batches:
        data["batches"] = {
            name: list(map(list, batches)) for name, batches in status.batches.items()
        }
    if tick.snapshot is not None:
        data["snapshot"] = snapshot_to_json(tick.snapshot)
    if tick.decision is not None:
        data["decision"] = tick.decision.to_json(with_numbers=True)
        data["applied"] = tick.applied
        if tick.decision.is_change and tick.snapshot is not None:
            data["expected"] = _expected(tick)
    if tick.plan != _whole_plan(tick.decision, tick.applied):
        data["plan"] = dict(tick.plan)
    if tick.error:
        data["error"] = tick.error
    return data


def tick_from_json(data: Mapping[str, Any]) -> Tick:
    """Read what `tick_to_json` wrote."""
    records = data["records"]
    status = Status(
        at=data["at"],
        requested=FrozenDict(data["requested"]),
        running=FrozenDict(data["running"]),
        executors=data.get("executors"),
        executors_requested=data.get("executors_requested"),
        executor_s=data.get("executor_s"),
        latency=FrozenDict(
            {path: Histogram.from_json(h) for path, h in data.get("latency", {}).items()}
        ),
        age_s=data.get("age_s"),
        pause_s=data.get("pause_s", 0.0),
        replica_s=FrozenDict(data["replica_s"]),
        events=tuple(event_from_json(event) for event in data.get("events", ())),
        batches=FrozenDict(
            {
                name: tuple(Batch(*values) for values in batches)
                for name, batches in data.get("batches", {}).items()
            }
        ),
        ingests=FrozenDict(
            {name: IngestStatus(**ingest) for name, ingest in data.get("ingests", {}).items()}
        ),
        late=FrozenDict(data.get("late", {})),
        offered_records=records["offered"],
        processed_records=records["processed"],
        dropped_records=records["dropped"],
        backlog_records=records["backlog"],
        queues=FrozenDict(data.get("queues", {})),
        is_over=data.get("over", False),
    )
    decision = Decision.from_json(data["decision"]) if "decision" in data else None
    applied = data.get("applied", False)
    if not isinstance(applied, bool):
        raise InputError("applied", f"must be true or false, got {applied!r}")
    return Tick(
        at=data["at"],
        status=status,
        snapshot=parse_snapshot(data["snapshot"]) if "snapshot" in data else None,
        decision=decision,
        applied=applied,
        error=data.get("error", ""),
        plan=FrozenDict(data["plan"] if "plan" in data else _whole_plan(decision, applied)),
    )


def operators_of(ticks: Iterable[Tick]) -> list[str]:
    """List every operator of all ticks; a resumed run may have others than before."""
    return list(dict.fromkeys(name for tick in ticks for name in tick.status.running))


def rename_operators(tick: Tick, names: Mapping[str, str]) -> Tick:
    """Return a tick whose replica counts are under the present names of operators."""
    status = tick.status
    renamed = replace(
        status,
        requested=_renamed(status.requested, names),
        running=_renamed(status.running, names),
        replica_s=_renamed(status.replica_s, names),
    )
    return replace(tick, status=renamed)


def _renamed(
    by_operator: Mapping[str, _Value], names: Mapping[str, str]
) -> FrozenDict[str, _Value]:
    return FrozenDict({names.get(name, name): value for name, value in by_operator.items()})


def _whole_plan(decision: Decision | None, applied: bool) -> Mapping[str, int]:
    """Return the plan of a decision that was applied unchanged."""
    return decision.changes if decision is not None and applied else FrozenDict()


def _expected(tick: Tick) -> dict[str, float]:
    """Return the expected capacity of each changed operator in records/s, where it is known."""
    expected = {}
    if tick.decision is not None and tick.snapshot is not None:
        for name, wanted in tick.decision.changes.items():
            capacity = tick.snapshot.operators[name].replica_capacity
            if capacity is not None:
                expected[name] = round(capacity * wanted, 3)
    return expected


def add_spent(tick: Tick, before: Tick | None) -> Tick:
    """Add the replica- and executor-seconds from before the run was resumed."""
    if before is None:
        return tick
    replica_s = dict(before.status.replica_s)  # includes operators that were removed
    for name, spent_s in tick.status.replica_s.items():
        replica_s[name] = spent_s + replica_s.get(name, 0.0)
    executor_s = tick.status.executor_s
    if executor_s is not None:
        executor_s = round(executor_s + (before.status.executor_s or 0.0), 3)
    status = replace(tick.status, replica_s=FrozenDict(replica_s), executor_s=executor_s)
    return replace(tick, status=status)
