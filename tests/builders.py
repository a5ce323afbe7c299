"""Snapshots for tests: two replicas that each take 100 records/s, unless told otherwise."""

from typing import Any

from penstock.core.snapshot import HostSnapshot, OperatorSnapshot, SliceSnapshot, Snapshot


def op(name: str = "map", k: int = 2, **measures: Any) -> OperatorSnapshot:
    """An operator with every measure known: half busy, nothing waiting."""
    rate = measures.setdefault("input_rate", 100.0 * k * 0.5)
    defaults = {
        "output_rate": rate,
        "busy": 0.5,
        "idle": 0.5,
        "backpressured": 0.0,
        "cpu": 0.5,
        "queue": 0.0,
        "queue_growth": 0.0,
        "input_buffer": 0.0,
        "service_time_s": 0.01,
        "service_scv": 1.0,
        "arrival_scv": 1.0,
    }
    return OperatorSnapshot(name=name, parallelism=k, **(defaults | measures))


def bare(name: str = "map", k: int = 2, **measures: Any) -> OperatorSnapshot:
    """An operator of which nothing is known but what is told."""
    return OperatorSnapshot(name=name, parallelism=k, **measures)


def snap(
    *ops: OperatorSnapshot, at: float = 0.0, offered: float | dict[str, float] | None = None
) -> Snapshot:
    """A snapshot; one number offers it to every source."""
    if not isinstance(offered, dict):
        rate = {} if offered is None else {o.name: float(offered) for o in ops if not o.upstream}
    else:
        rate = offered
    return Snapshot(at=at, offered=rate, operators={o.name: o for o in ops})


def host(name: str, **slices: tuple[float, float]) -> HostSnapshot:
    """A host with slices given as name=(cpu, memory); _ stands for : in names."""
    pieces = {n.replace("_", ":"): SliceSnapshot(cpu=c, memory=m) for n, (c, m) in slices.items()}
    return HostSnapshot(name=name, slices=pieces)


def host_snap(*hosts: HostSnapshot, at: float = 0.0) -> Snapshot:
    """A snapshot of hosts."""
    return Snapshot(at=at, hosts={h.name: h for h in hosts})
