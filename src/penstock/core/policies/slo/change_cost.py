"""The cost of a change, learnt from earlier ones: until it ran, and how long work stopped."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.core.decision import Decision
from penstock.core.snapshot import Snapshot

#: The interval between two snapshots that is assumed while there is only one.
FIRST_INTERVAL_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCost:
    """Seconds between decisions, until a change runs, and during which nothing is processed."""

    interval_s: float
    effective_s: float
    pause_s: float


def measure_change_cost(history: Sequence[Snapshot], applied: Sequence[Decision]) -> ChangeCost:
    """Return what a change costs by the snapshots around earlier ones; at first, one interval.

    An engine that restarts for a change gives no snapshot meanwhile, so a gap is a pause. A pause
    that the engine states itself counts if it is longer.
    """
    times = [snapshot.at for snapshot in history]
    gaps = [after - before for before, after in pairwise(times)]
    interval_s = statistics.median_low(gaps) if gaps else FIRST_INTERVAL_S
    delays, pauses = [], []
    for decision in applied:
        later = [snapshot for snapshot in history if snapshot.at > decision.at]
        if not decision.changes or not later or decision.at < times[0]:
            continue
        pauses.append(max(0.0, later[0].at - decision.at - interval_s))
        if (delay_s := _effective_after(decision, later)) is not None:
            delays.append(delay_s)
    stated = [op.rescale_s for op in history[-1].operators.values() if op.rescale_s]
    return ChangeCost(
        interval_s=interval_s,
        effective_s=statistics.median(delays) if delays else interval_s,
        pause_s=max([*stated, statistics.median(pauses) if pauses else 0.0]),
    )


def _effective_after(decision: Decision, later: Sequence[Snapshot]) -> float | None:
    """Return the seconds until all wanted replicas ran; None if that was never seen."""
    for snapshot in later:
        running = {name: op.parallelism for name, op in snapshot.operators.items()}
        if all(running.get(name) == wanted for name, wanted in decision.changes.items()):
            return snapshot.at - decision.at
    return None
