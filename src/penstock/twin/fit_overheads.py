"""What batches take besides their work, by their times in real runs."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from penstock.engines.port import Batch
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.spark.operator_config import min_interval_for
from penstock.twin.calibration_runs import WARM_S, CalibrationRun
from penstock.twin.least_squares import Fit, FloatArray, fit_line, fit_mean, fit_sigma

#: How often producers write, which no journal tells.
_WRITE_S = Batches().write_s
#: A plan that comes so many times later than most was held back.
_HELD = 3.0
#: Batches that are enough to tell something by.
_ENOUGH = 30
#: Times in which the beginning may fade, as tried.
_FADES_S = tuple(float(s) for s in np.geomspace(2, 30, 25).round(2))
_NOTHING = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


def fit_overheads(runs: Sequence[CalibrationRun]) -> dict[str, Fit]:
    """Fit the numbers of `Batches`, by their names."""
    pairs = [
        (batch, others)
        for run in runs
        for name, some in run.batches.items()
        for batch, others in zip(some, run.others[name], strict=True)
    ]
    late = [pair for pair in pairs if pair[0].planned_s > WARM_S]
    columns, lost_s = _lost(late if len(late) > _ENOUGH else pairs)
    floor, replica, other = fit_line(columns, lost_s)
    factors = np.array([floor.value, replica.value, other.value])
    expected_s = columns @ factors
    good = (lost_s > 0) & (expected_s > 0)
    cold, cold_s = _cold([pair for run in runs for pair in run.early], factors)
    return {
        "fixed_s": floor,
        "per_replica_s": replica,
        "per_other_s": other,
        "between_s": fit_mean(_usual(list(_between(runs)))),
        "poll_s": fit_mean(np.array(list(_polls(runs)))),
        "look_s": fit_mean(np.array(list(_looks(runs)))),
        "cold": cold,
        "cold_s": cold_s,
        "noise": fit_sigma(np.log(lost_s[good] / expected_s[good])),
    }


def _lost(pairs: Sequence[tuple[Batch, int]]) -> tuple[FloatArray, FloatArray]:
    """Return what overheads depend on, and the overheads."""
    columns = np.array([[1.0, b.replicas, others] for b, others in pairs]).reshape(-1, 3)
    lost_s = [max(0.0, b.committed_s - b.planned_s - b.longest_s) for b, _ in pairs]
    return columns, np.array(lost_s)


def _cold(early: Sequence[tuple[Batch, int]], factors: FloatArray) -> tuple[Fit, Fit]:
    """Fit by how much overheads are larger when a run begins, and how long that takes to fade."""
    columns, lost_s = _lost(early)
    expected_s = columns @ factors
    good = expected_s > 0
    if good.sum() < _ENOUGH:
        return _NOTHING, _NOTHING
    more = lost_s[good] / expected_s[good] - 1
    at_s = np.array([b.planned_s for b, _ in early])[good]
    tried = {}
    for cold_s in _FADES_S:
        fading = np.exp(-at_s / cold_s)
        fit = fit_line(fading[:, None], more)[0]
        tried[cold_s] = (float(np.abs(more - fit.value * fading).mean()), fit)
    best = min(tried, key=lambda cold_s: tried[cold_s][0])
    near = [cold_s for cold_s, (off, _) in tried.items() if off < 1.01 * tried[best][0]]
    return tried[best][1], Fit(best, min(near), max(near), int(good.sum()))


def _between(runs: Sequence[CalibrationRun]) -> Iterator[float]:
    """Seconds from a commit to the plan of a batch whose rows waited already."""
    for one, two, gap_s in _neighbours(runs):
        more = one.waiting is not None and one.waiting > one.rows_in
        if more and one.committed_s > one.planned_s + gap_s:
            yield two.planned_s - one.committed_s


def _usual(seconds: Sequence[float]) -> FloatArray:
    """Leave out what is far above the middle: there, a full queue behind held the operator."""
    found = np.array(seconds)
    return found[found <= _HELD * np.median(found)] if len(found) else found


def _polls(runs: Sequence[CalibrationRun]) -> Iterator[float]:
    """Seconds behind the least gap after which a source that was early is asked again."""
    for one, two, gap_s in _neighbours(runs):
        late_s = two.planned_s - one.planned_s - gap_s
        if one.committed_s < one.planned_s + 0.7 * gap_s and -0.05 < late_s < 0.15:
            yield max(0.0, late_s)


def _looks(runs: Sequence[CalibrationRun]) -> Iterator[float]:
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


def _neighbours(runs: Sequence[CalibrationRun]) -> Iterator[tuple[Batch, Batch, float]]:
    """Yield a batch, the next one, and the least time between their plans."""
    for run in runs:
        for some in run.batches.values():
            yield from ((one, two, min_interval_for(run.batch_s)) for one, two in pairwise(some))
