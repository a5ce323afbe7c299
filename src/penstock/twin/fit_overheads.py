"""Fits the overheads of batches to their times in runs."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from penstock.engines.port import Batch
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.spark.operator_config import compute_min_interval_s
from penstock.twin.calibration_runs import WARM_S, CalibrationRun
from penstock.twin.least_squares import Fit, FloatArray, fit_line, fit_mean, fit_sigma

#: Interval between writes of producers, which journals do not contain.
_WRITE_S = Batches().write_s
#: A plan later than this multiple of the median was delayed by back-pressure.
_MAX_DELAY_RATIO = 3.0
#: Minimum number of batches for a fit.
_MIN_BATCHES = 30
#: Candidates for the time constant of the start-up overhead.
_FADES_S = tuple(float(s) for s in np.geomspace(2, 30, 25).round(2))
_NOT_FITTED = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


def fit_overheads(runs: Sequence[CalibrationRun]) -> dict[str, Fit]:
    """Fit the overheads in `Batches`, by field name."""
    pairs = [
        (batch, others)
        for run in runs
        for name, batches in run.batches.items()
        for batch, others in zip(batches, run.others[name], strict=True)
    ]
    late = [pair for pair in pairs if pair[0].planned_s > WARM_S]
    columns, overhead_s = _overheads(late if len(late) > _MIN_BATCHES else pairs)
    floor, replica, other = fit_line(columns, overhead_s)
    factors = np.array([floor.value, replica.value, other.value])
    expected_s = columns @ factors
    good = (overhead_s > 0) & (expected_s > 0)
    cold, cold_s = _cold([pair for run in runs for pair in run.early], factors)
    return {
        "fixed_s": floor,
        "per_replica_s": replica,
        "per_other_s": other,
        "between_s": fit_mean(_remove_held(list(_between(runs)))),
        "poll_s": fit_mean(np.array(list(_polls(runs)))),
        "look_s": fit_mean(np.array(list(_looks(runs)))),
        "cold": cold,
        "cold_s": cold_s,
        "noise": fit_sigma(np.log(overhead_s[good] / expected_s[good])),
    }


def _overheads(pairs: Sequence[tuple[Batch, int]]) -> tuple[FloatArray, FloatArray]:
    """Return the regressors of the overheads, and the overheads."""
    columns = np.array([[1.0, b.replicas, others] for b, others in pairs]).reshape(-1, 3)
    overhead_s = [max(0.0, b.committed_s - b.planned_s - b.longest_s) for b, _ in pairs]
    return columns, np.array(overhead_s)


def _cold(early: Sequence[tuple[Batch, int]], factors: FloatArray) -> tuple[Fit, Fit]:
    """Fit the additional overhead at the start of a run, and its time constant."""
    columns, overhead_s = _overheads(early)
    expected_s = columns @ factors
    good = expected_s > 0
    if good.sum() < _MIN_BATCHES:
        return _NOT_FITTED, _NOT_FITTED
    excess = overhead_s[good] / expected_s[good] - 1
    at_s = np.array([b.planned_s for b, _ in early])[good]
    fits = {}
    for cold_s in _FADES_S:
        fading = np.exp(-at_s / cold_s)
        fit = fit_line(fading[:, None], excess)[0]
        fits[cold_s] = (float(np.abs(excess - fit.value * fading).mean()), fit)
    best = min(fits, key=lambda cold_s: fits[cold_s][0])
    near = [cold_s for cold_s, (off, _) in fits.items() if off < 1.01 * fits[best][0]]
    return fits[best][1], Fit(best, min(near), max(near), int(good.sum()))


def _between(runs: Sequence[CalibrationRun]) -> Iterator[float]:
    """Yield the seconds from a commit to the next plan, for batches whose rows already waited."""
    for first, second, gap_s in _neighbours(runs):
        has_backlog = first.waiting is not None and first.waiting > first.rows_in
        if has_backlog and first.committed_s > first.planned_s + gap_s:
            yield second.planned_s - first.committed_s


def _remove_held(seconds: Sequence[float]) -> FloatArray:
    """Remove times far above the median: there, back-pressure delayed the operator."""
    times_s = np.array(seconds)
    return times_s[times_s <= _MAX_DELAY_RATIO * np.median(times_s)] if len(times_s) else times_s


def _polls(runs: Sequence[CalibrationRun]) -> Iterator[float]:
    """Yield the seconds after the minimum interval until an idle source is polled again."""
    for first, second, gap_s in _neighbours(runs):
        late_s = second.planned_s - first.planned_s - gap_s
        if first.committed_s < first.planned_s + 0.7 * gap_s and -0.05 < late_s < 0.15:
            yield max(0.0, late_s)


def _looks(runs: Sequence[CalibrationRun]) -> Iterator[float]:
    """Yield the seconds between the look at a topic and the plan of a batch.

    If a source has no backlog, the mean age of its rows is half the time between two plans plus
    half the time between two writes. The rest of the age passed between look and plan.
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
    """Return half the time between plans, weighted by rows; None if there was a backlog."""
    if any(b.waiting is None or b.waiting > b.rows_in for b in batches):
        return None
    rows = [b.rows_in for b in batches[1:]]
    gaps = [second.planned_s - first.planned_s for first, second in pairwise(batches)]
    return sum(n * gap for n, gap in zip(rows, gaps, strict=True)) / sum(rows) / 2


def _neighbours(runs: Sequence[CalibrationRun]) -> Iterator[tuple[Batch, Batch, float]]:
    """Yield a batch, the next one, and the minimum interval between their plans."""
    for run in runs:
        for batches in run.batches.values():
            yield from ((*pair, compute_min_interval_s(run.batch_s)) for pair in pairwise(batches))
