"""Records/s that arrived at the sources, interval by interval, at equal distances.

What a source took plus the growth of its queue is what arrived since the last snapshot. The offered
rate says the same, but many monitors average it over a minute, so it shows a step of the load late.
"""

import math
from collections.abc import Sequence

import numpy as np

from penstock.core.snapshot import Snapshot

#: If less than this share of the offered records was seen to arrive, some are lost on the way.
MIN_SEEN = 0.9
#: A gap longer than this many intervals hides what happened meanwhile.
MAX_GAP = 1.5


def measure_arrivals(name: str, history: Sequence[Snapshot], interval_s: float) -> list[float]:
    """Return the rates at which records arrived at a source, one for each interval.

    Snapshots that are missing, because the loop was silent, are interpolated.
    """
    known = [snapshot for snapshot in history if name in snapshot.offered]
    offered = [snapshot.offered[name] for snapshot in known]
    seen = [_seen(name, known, place, interval_s) for place in range(len(known))]
    if math.fsum(seen) < MIN_SEEN * math.fsum(offered):
        seen = offered
    times = [snapshot.at for snapshot in known]
    steps = round((times[-1] - times[0]) / interval_s)
    grid = times[-1] - interval_s * np.arange(steps, -1, -1)
    return [float(rate) for rate in np.interp(grid, times, seen)]


def _seen(name: str, history: Sequence[Snapshot], place: int, interval_s: float) -> float:
    """Return what arrived before one snapshot; the offered rate where that is not known."""
    now = history[place]
    before = history[place - 1].operators.get(name) if place else None
    op = now.operators.get(name)
    if op is None or before is None or op.input_rate is None:
        return now.offered[name]
    gap_s = now.at - history[place - 1].at
    if op.queue is None or before.queue is None or gap_s > MAX_GAP * interval_s:
        return now.offered[name]
    return max(0.0, op.input_rate + (op.queue - before.queue) / gap_s)
