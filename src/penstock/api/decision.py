"""Asks a policy what it decides for given snapshots."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.control.decider import Decider
from penstock.control.registry import find_policy
from penstock.core.decision import Decision
from penstock.core.guards import Guards
from penstock.core.policy import Policy
from penstock.core.snapshot import Snapshot
from penstock.core.snapshot_json import parse_snapshot
from penstock.errors import InputError


def decide(
    snapshots: Snapshot | Mapping[str, Any] | Iterable[Snapshot | Mapping[str, Any]],
    policy: str | Policy,
    params: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
) -> list[Decision]:
    """Return the decision of a policy for each snapshot, oldest first.

    A snapshot is a `Snapshot` or the same as parsed JSON. Without `guards` a decision is the
    policy's proposal. With them, even empty ones, the bounds of the operators apply as well;
    guards with memory (cool-downs) assume that every decision is carried out.

    >>> parse = {"parallelism": 4, "input_rate": 400, "output_rate": 400, "busy": 1.0}
    >>> now = {"at": 30, "offered": {"parse": 700}, "operators": {"parse": parse}}
    >>> [decision] = decide(now, policy="ds2", guards={"overprovision": 1.2})
    >>> decision.targets["parse"].wanted, decision.targets["parse"].why[-28:]
    (9, 'wanted = ceil(700 / 100) = 7')
    """
    chosen = policy if isinstance(policy, Policy) else find_policy(policy)
    decider = Decider(
        chosen,
        chosen.params.parse(dict(params or {}), f"parameter of {chosen.name}"),
        None if guards is None else Guards.parse(dict(guards), "guard"),
    )
    given = [snapshots] if isinstance(snapshots, Snapshot | Mapping) else snapshots
    return [_decide(decider, snapshot, place) for place, snapshot in enumerate(given)]


def _decide(decider: Decider, given: Snapshot | Mapping[str, Any], place: int) -> Decision:
    try:
        snapshot = given if isinstance(given, Snapshot) else parse_snapshot(given)
        decision = decider.decide(snapshot)
    except InputError as error:
        raise error.at(f"snapshots[{place}]") from None
    if decision.is_change:
        decider.note_applied(decision)
    return decision
