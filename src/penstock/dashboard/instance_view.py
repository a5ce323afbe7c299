"""The instances of a decentralized run at one moment as JSON: states, votes, messages."""

from collections.abc import Mapping
from typing import Any

from penstock.control.loop import Tick
from penstock.core.snapshot import OperatorSnapshot

#: States of instances that a run of `penstock decentralized` has in its snapshots.
_STATES = ("active", "starting", "stopping", "ideal")


def view_instances(measured: Tick | None) -> dict[str, Any] | None:
    """Return instances, votes and messages; None for a run in which a policy decides."""
    snapshot = measured.snapshot if measured is not None else None
    operators = snapshot.operators.values() if snapshot is not None else ()
    rows = [_view_operator(operator) for operator in operators if _decides_alone(operator)]
    return {"rows": rows} if rows else None


def _decides_alone(operator: OperatorSnapshot) -> bool:
    return operator.votes is not None or "messages" in operator.extra


def _view_operator(operator: OperatorSnapshot) -> dict[str, Any]:
    """Return one operator; what the run does not know is None."""
    states, votes = operator.extra.get("instances"), operator.votes
    known = states if isinstance(states, Mapping) else {"active": operator.parallelism}
    row: dict[str, Any] = {key: _count(known.get(key)) for key in _STATES}
    row |= {"operator": operator.name, "messages": _count(operator.extra.get("messages"))}
    for key in ("voters", "copies", "stops", "load", "capacity", "probability"):
        row[key] = getattr(votes, key) if votes is not None else None
    return row | {"is_fixed": votes is not None and votes.is_fixed}


def _count(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
