"""What batches take besides their work, by their times in real runs."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from penstock.engines.port import Batch
from penstock.engines.simulator.batch_model import Batches
from penstock.engines.spark.duty import GAP_S
from penstock.lab.calibrating_runs import Evidence
from penstock.lab.robust import Fit, FloatArray, fit_line, fit_mean, fit_sigma

#: How often producers write, which no journal tells.
_WRITE_S = Batches().write_s
#: A plan that comes so many times later than most was held back.
_HELD = 3.0


def fitted(runs: Sequence[Evidence]) -> dict[str, Fit]:
    """Fit the numbers of `Batches`, by their names."""
    pairs = [
        (batch, others)
        for run in runs
        for name, some in run.batches.items()
        for batch, others in zip(some, run.others[name], strict=True)
    ]
    columns = np.array([[1.0, b.replicas, others] for b, others in pairs]).reshape(-1, 3)
    lost_s = np.array([max(0.0, b.committed_s - b.planned_s - b.longest_s) for b, _ in pairs])
    floor, replica, other = fit_line(columns, lost_s)
    expected_s = columns @ np.array([floor.value, replica.value, other.value])
    good = (lost_s > 0) & (expected_s > 0)
    return {
        "fixed_s": floor,
        "per_replica_s": replica,
        "per_other_s": other,
        "between_s": fit_mean(_usual(list(_between(runs)))),
        "poll_s": fit_mean(np.array(list(_polls(runs)))),
        "look_s": fit_mean(np.array(list(_looks(runs)))),
        "noise": fit_sigma(np.log(lost_s[good] / expected_s[good])),
    }


def _between(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds from a commit to the plan of a batch whose rows waited already."""
    for one, two in _neighbours(runs):
        more = one.waiting is not None and one.waiting > one.rows_in
        if more and one.committed_s > one.planned_s + GAP_S:
            yield two.planned_s - one.committed_s


def _usual(seconds: Sequence[float]) -> FloatArray:
    """Leave out what is far above the middle: there, a full queue behind held the operator."""
    found = np.array(seconds)
    return found[found <= _HELD * np.median(found)] if len(found) else found


def _polls(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds behind the least gap after which a source that was early is asked again."""
    for one, two in _neighbours(runs):
        late_s = two.planned_s - one.planned_s - GAP_S
        if one.committed_s < one.planned_s + 0.7 * GAP_S and -0.05 < late_s < 0.3 * GAP_S:
            yield max(0.0, late_s)


def _looks(runs: Sequence[Evidence]) -> Iterator[float]:
    """Seconds that rows are older in the plans of sources than the time between plans makes them.

    Of a source that leaves nothing behind, rows are half of the time between two plans old on
    average, and half of that between two writes; what they are older passed after the look.
    """
    for run in runs:
        sources = [name for name, part in run.parts.items() if not part.upstream]
        last: dict[str, Batch] = {}
        for tick in run.ticks:
            ages = []
            for name in sources:
                fresh = [b for b in tick.status.batches.get(name, ()) if b.rows_in]
                if fresh and name in last:
                    ages.append(_half_gap_s([last[name], *fresh]))
                last |= {name: fresh[-1]} if fresh else {}
            known = [age for age in ages if age is not None]
            if tick.status.age_s is not None and len(known) == len(sources):
                yield tick.status.age_s - sum(known) / len(known) - _WRITE_S / 2


def _half_gap_s(batches: Sequence[Batch]) -> float | None:
    """Half of the time between plans, by rows; None if rows were left behind."""
    if any(b.waiting is None or b.waiting > b.rows_in for b in batches):
        return None
    rows = [b.rows_in for b in batches[1:]]
    gaps = [two.planned_s - one.planned_s for one, two in pairwise(batches)]
    return sum(n * gap for n, gap in zip(rows, gaps, strict=True)) / sum(rows) / 2


def _neighbours(runs: Sequence[Evidence]) -> Iterator[tuple[Batch, Batch]]:
    for run in runs:
        for some in run.batches.values():
            yield from pairwise(some)
