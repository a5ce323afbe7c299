"""The latency along paths: what an operator adds anyway, and what a backlog adds."""

from collections.abc import Mapping, Sequence

from penstock.core.numbers import ratio
from penstock.core.snapshot import Snapshot

#: Snapshots over which the usual wait is looked for.
RECENT = 20
#: The part of the objective that queues may fill; the rest is for what no queue shows.
USABLE = 0.5
#: The least part of the objective that is left to backlogs, if the usual waits take all of it.
MIN_PART = 0.1


def measure_floors(history: Sequence[Snapshot]) -> dict[str, float]:
    """Return the usual seconds in front of each operator: the median of late.

    By Little's law the wait is queue / rate; a batch that must fill up is part of it.
    """
    floors = {}
    for name in history[-1].operators:
        waits = sorted(
            wait
            for snapshot in history[-RECENT:]
            if (op := snapshot.operators.get(name)) is not None
            and op.queue is not None
            and op.input_rate
            and (wait := ratio(op.queue, op.input_rate)) is not None
        )
        floors[name] = waits[len(waits) // 2] if waits else 0.0
    return floors


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


def capacity_for(
    *, rate: float, backlog: float, present: float, start_s: float, end_s: float, wait_s: float
) -> float:
    """Return the records/s with which a backlog makes records wait no longer than `wait_s`.

    Until `start_s` the `present` capacity works, from then to `end_s` the new one; what is left
    then must be gone within `wait_s`.

    >>> capacity_for(rate=120, backlog=0, present=0, start_s=0, end_s=20, wait_s=4)
    100.0
    >>> capacity_for(rate=120, backlog=240, present=100, start_s=5, end_s=20, wait_s=4)
    112.63157894736842
    """
    left = max(0.0, backlog + (rate - present) * start_s)
    return (left + rate * (end_s - start_s)) / (end_s - start_s + wait_s)
