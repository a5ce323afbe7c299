"""The latency along paths: what an operator adds anyway, and what a backlog adds."""

from collections.abc import Mapping, Sequence

from penstock.core.numbers import ratio
from penstock.core.policies.slo.capacity import SATURATED
from penstock.core.snapshot import Snapshot

#: Snapshots over which the usual wait is looked for.
RECENT = 20
#: The part of the objective that queues may fill; the rest is for what no queue shows.
USABLE = 0.8
#: The least part of the objective that is left to backlogs, if the usual waits take all of it.
MIN_PART = 0.1


def measure_floors(history: Sequence[Snapshot]) -> dict[str, float]:
    """Return the usual seconds in front of each operator: the median of late.

    By Little's law the wait is queue / rate; a batch that must fill up is part of it. While an
    operator is saturated, records wait for it in front of others, too, which is not usual.
    """
    usual = [snapshot for snapshot in history[-RECENT:] if not _is_saturated(snapshot)]
    floors = {}
    for name in history[-1].operators:
        waits = sorted(
            wait
            for snapshot in usual
            if (op := snapshot.operators.get(name)) is not None
            and op.queue is not None
            and op.input_rate
            and (wait := ratio(op.queue, op.input_rate)) is not None
        )
        floors[name] = waits[len(waits) // 2] if waits else 0.0
    return floors


def _is_saturated(snapshot: Snapshot) -> bool:
    return any(op.busy is not None and op.busy >= SATURATED for op in snapshot.operators.values())


def share_objective(
    snapshot: Snapshot, objective_s: float, floors: Mapping[str, float]
) -> dict[str, float]:
    """Return the seconds that a backlog may add on the longest path through each operator.

    It is not divided among the operators of a path: records that wait in front of one arrive at
    the next no faster than the slowest lets them, so a path waits as long as its bottleneck does.
    """
    order = snapshot.topology.order
    above = _find_longest(floors, order, _feeders(snapshot))
    below = _find_longest(floors, order[::-1], _readers(snapshot))
    waits = {}
    for name in order:
        usual_s = above[name] + below[name] - floors[name]
        waits[name] = max(USABLE * objective_s - usual_s, MIN_PART * objective_s)
    return waits


def _find_longest(
    floors: Mapping[str, float],
    order: Sequence[str],
    before: Mapping[str, Sequence[str]],
) -> dict[str, float]:
    """Return, for each operator, the longest usual wait up to it."""
    longest: dict[str, float] = {}
    for name in order:
        wait_s = max((longest[other] for other in before[name]), default=0.0)
        longest[name] = wait_s + floors[name]
    return longest


def _feeders(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    return {name: op.upstream for name, op in snapshot.operators.items()}


def _readers(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    readers: dict[str, list[str]] = {name: [] for name in snapshot.operators}
    for name, op in snapshot.operators.items():
        for feeder in op.upstream:
            readers[feeder].append(name)
    return readers
