"""The cost of a change, learnt from earlier ones: until it ran, and how long work stopped."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.core.decision import Decision
from penstock.core.snapshot import Snapshot

#: The interval between two snapshots that is assumed while there is only one.
FIRST_INTERVAL_S = 15.0
#: Silence after a change is a pause or a cool-down of the loop; no more of it counts as a pause.
MAX_GUESSED_PAUSE_S = 30.0
#: Changes that are learnt from.
RECENT = 20
#: Intervals for which fewer replicas must have been enough.
HOLD_INTERVALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCost:
    """What a change costs, in seconds."""

    #: Between two snapshots without a change.
    interval_s: float
    #: From the decision until the new replicas run.
    effective_s: float
    #: During which nothing is processed.
    pause_s: float
    #: After a change, beyond one interval, during which nothing is measured or decided.
    silent_s: float = 0.0

    @property
    def horizon_s(self) -> float:
        """Seconds until another decision can take effect."""
        return self.interval_s + self.effective_s + self.silent_s

    def drain_s(self, objective_s: float) -> float:
        """Return the seconds after a pause in which what has waited must be processed."""
        return max(objective_s, self.interval_s, self.pause_s)


def measure_change_cost(history: Sequence[Snapshot], applied: Sequence[Decision]) -> ChangeCost:
    """Return what a change costs by the snapshots around earlier ones; at first, one interval.

    A pause that the engine states itself counts if it is longer than what the silence suggests.
    """
    times = [snapshot.at for snapshot in history]
    changes = [decision for decision in applied if decision.changes and decision.at >= times[0]]
    interval_s = _interval_s(times, [decision.at for decision in changes])
    delays, silences = [], []
    for decision in changes[-RECENT:]:
        later = [snapshot for snapshot in history if snapshot.at > decision.at]
        if not later:
            continue
        silent_s = max(0.0, later[0].at - decision.at - interval_s)
        silences.append(silent_s)
        if (delay_s := _effective_after(decision, later)) is not None:
            # it ran at any time of the interval before the snapshot that shows it
            delays.append(max(0.0, delay_s - silent_s - interval_s))
    silent_s = statistics.median(silences) if silences else 0.0
    # before the first change is seen, it may be as bad as any
    guessed_s = min(silent_s, MAX_GUESSED_PAUSE_S) if silences else MAX_GUESSED_PAUSE_S
    stated = [op.rescale_s for op in history[-1].operators.values() if op.rescale_s]
    return ChangeCost(
        interval_s=interval_s,
        effective_s=statistics.median(delays) if delays else 0.0,
        pause_s=max([*stated, guessed_s]),
        silent_s=silent_s,
    )


def hold_s(cost: ChangeCost, objective_s: float, share: float) -> float:
    """Return the seconds for which fewer replicas must have been enough.

    Without a pause, some intervals, or as long as replicas are paid that do not work yet, for the
    change and for the way back. With one, records miss the objective, and only a share of them may.
    """
    missed_s = missed_load_s(cost.pause_s, objective_s, cost.drain_s(objective_s))
    return max(
        HOLD_INTERVALS * cost.interval_s,
        2 * (cost.effective_s + cost.pause_s),
        missed_s / (1 - share),
    )


def missed_load_s(pause_s: float, objective_s: float, drain_s: float) -> float:
    """Return the seconds of load whose records miss the objective because of one pause.

    Records of the last `objective_s` of the pause need not miss it. Those that arrive while the
    backlog is reduced wait from the whole pause down to nothing.

    >>> missed_load_s(2.0, 10.0, 15.0), missed_load_s(40.0, 10.0, 20.0)
    (0.0, 45.0)
    """
    late_s = max(0.0, pause_s - objective_s)
    return late_s + drain_s * late_s / pause_s if late_s else 0.0


def _interval_s(times: Sequence[float], changed: Sequence[float]) -> float:
    """Return the usual seconds between snapshots, without those around changes if possible."""
    gaps = list(pairwise(times))
    quiet = [b - a for a, b in gaps if not any(a <= at < b for at in changed)]
    if quiet:
        return statistics.median_low(quiet)
    # the first snapshot comes one interval after the start
    known = [gap for gap in (times[0], *(b - a for a, b in gaps)) if gap > 0]
    return min(known, default=FIRST_INTERVAL_S)


def _effective_after(decision: Decision, later: Sequence[Snapshot]) -> float | None:
    """Return the seconds until all wanted replicas ran; None if that was never seen."""
    for snapshot in later:
        running = {name: op.parallelism for name, op in snapshot.operators.items()}
        if all(running.get(name) == wanted for name, wanted in decision.changes.items()):
            return snapshot.at - decision.at
    return None
