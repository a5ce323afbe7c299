"""The pipeline at one moment as JSON: operators with replicas and shares, edges with rates."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.loop import Tick
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.topology import Topology
from penstock.engines.port import HOSTS
from penstock.errors import InputError
from penstock.reports.bottleneck_marks import mark_bottlenecks
from penstock.reports.chain_text import members_of


def draw_graph(
    tick: Tick, measured: Tick | None, upstream: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return nodes in layers and edges; measures are those of `measured`, replicas of `tick`."""
    snapshot = measured.snapshot if measured is not None else None
    names = list(dict.fromkeys([*tick.status.running, *(snapshot.operators if snapshot else ())]))
    decision = tick.decision
    slow = mark_bottlenecks(snapshot) if snapshot is not None else frozenset()
    layers = layer_operators(names, upstream)
    nodes = []
    for name in names:
        shown = snapshot.operators.get(name) if snapshot is not None else None
        target = decision.targets.get(name) if decision is not None else None
        nodes.append(
            {
                "name": name,
                "layer": layers[name],
                "running": tick.status.running.get(name),
                "requested": tick.status.requested.get(name),
                "wanted": target.wanted if target is not None else _wanted_hosts(tick, name),
                "is_bottleneck": name in slow,
                **_members(shown),
                **_measures(shown, tick.status.queues.get(name)),
            }
        )
    edges = [
        {"from": feeder, "to": name, "rate": _edge_rate(snapshot, feeder, name)}
        for name in names
        for feeder in upstream.get(name, ())
        if feeder in layers
    ]
    return {
        "nodes": nodes,
        "edges": edges,
        "offered": dict(snapshot.offered) if snapshot is not None else {},
        "measured_at": measured.at if measured is not None else None,
    }


def _wanted_hosts(tick: Tick, name: str) -> int | None:
    placement = tick.decision.placement if tick.decision is not None else None
    return placement.wanted if placement is not None and name == HOSTS else None


def layer_operators(names: Sequence[str], upstream: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the longest way from a source to each operator.

    >>> layer_operators(["a", "b", "c"], {"b": ["a"], "c": ["a", "b"]})
    {'a': 0, 'b': 1, 'c': 2}
    """
    known = {name: tuple(f for f in upstream.get(name, ()) if f in names) for name in names}
    layers: dict[str, int] = {}
    try:
        order = Topology.of(known).order
    except InputError:  # a damaged journal may have a cycle
        return dict.fromkeys(names, 0)
    for name in order:
        layers[name] = max((layers[feeder] + 1 for feeder in known[name]), default=0)
    return {name: layers[name] for name in names}


def _members(operator: OperatorSnapshot | None) -> dict[str, Any]:
    """Return what the members of a chain do; nothing for an operator alone."""
    members = members_of(operator) if operator is not None else ()
    return {"members": [dict(member) for member in members]} if members else {}


def _measures(operator: OperatorSnapshot | None, queue: int | None) -> dict[str, Any]:
    if operator is None:
        return {"queue": queue}
    return {
        "input_rate": operator.input_rate,
        "output_rate": operator.output_rate,
        "busy": operator.busy,
        "idle": operator.idle,
        "backpressured": operator.backpressured,
        "queue": operator.queue,
        "queue_growth": operator.queue_growth,
        "max": operator.max_parallelism,
    }


def _edge_rate(snapshot: Snapshot | None, feeder: str, name: str) -> float | None:
    if snapshot is None or feeder not in snapshot.operators:
        return None
    return snapshot.sent_rate(feeder, name)
