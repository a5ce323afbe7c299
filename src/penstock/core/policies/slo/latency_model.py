"""The latency along paths: what an operator adds anyway, and what a backlog adds."""

import math
from collections.abc import Mapping, Sequence

from penstock.core.numbers import ratio
from penstock.core.snapshot import Snapshot

#: Snapshots over which the usual wait is looked for.
RECENT = 20
#: The part of the objective that forecasts of waits may fill; the rest is for their errors.
USABLE = 0.8
#: The least part of the objective that is left to backlogs, if the usual waits take all of it.
MIN_PART = 0.1


def measure_floors(history: Sequence[Snapshot]) -> dict[str, float]:
    """Return the usual seconds in front of each operator: its shortest waits of late.

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
        floors[name] = waits[len(waits) // 4] if waits else 0.0
    return floors


def share_objective(
    snapshot: Snapshot, objective_s: float, floors: Mapping[str, float]
) -> dict[str, float]:
    """Return the seconds that a backlog may add in front of each operator.

    What the usual waits on the longest path through an operator leave of the objective is divided
    by the number of operators on that path.
    """
    order = snapshot.topology.order
    above = _find_longest(floors, order, _feeders(snapshot))
    below = _find_longest(floors, order[::-1], _readers(snapshot))
    parts = {}
    for name in order:
        usual_s = above[name][0] + below[name][0] - floors[name]
        operators = above[name][1] + below[name][1] - 1
        left_s = max(USABLE * objective_s - usual_s, MIN_PART * objective_s)
        parts[name] = left_s / operators
    return parts


def _find_longest(
    floors: Mapping[str, float],
    order: Sequence[str],
    before: Mapping[str, Sequence[str]],
) -> dict[str, tuple[float, int]]:
    """Return, for each operator, the longest usual wait up to it, and the most operators."""
    longest: dict[str, tuple[float, int]] = {}
    for name in order:
        waits = [longest[other] for other in before[name]]
        wait_s = max((wait for wait, _ in waits), default=0.0)
        operators = max((number for _, number in waits), default=0)
        longest[name] = (wait_s + floors[name], operators + 1)
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
    *, mean: float, upper: float, backlog: float, horizon_s: float, drain_s: float, wait_s: float
) -> float:
    """Return the records/s that keep the wait behind a backlog within `wait_s`.

    Three conditions: what is expected flows off; the upper rate over the horizon, until another
    decision can take effect, builds no longer wait; and a backlog that is there is reduced to that
    wait within `drain_s`.

    >>> capacity_for(mean=100, upper=120, backlog=0, horizon_s=20, drain_s=10, wait_s=4)
    100.0
    >>> capacity_for(mean=100, upper=150, backlog=0, horizon_s=20, drain_s=10, wait_s=4)
    125.0
    >>> capacity_for(mean=100, upper=100, backlog=1800, horizon_s=20, drain_s=10, wait_s=4)
    200.0
    """
    flow = upper * horizon_s / (horizon_s + wait_s)
    drain = (backlog + mean * drain_s) / (drain_s + wait_s)
    return float(max(mean, flow, drain))


def missed_load_s(pause_s: float, objective_s: float, drain_s: float) -> float:
    """Return the seconds of load whose records miss the objective because of one pause.

    Records of the last `objective_s` of the pause need not miss it; those that arrive while the
    backlog is reduced do.

    >>> missed_load_s(2, 10, 15), missed_load_s(28, 10, 15)
    (0.0, 33.0)
    """
    return 0.0 if pause_s <= objective_s else math.fsum((pause_s - objective_s, drain_s))
