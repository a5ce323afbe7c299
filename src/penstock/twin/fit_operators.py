"""Fits the costs of operators to their batches in runs."""

from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np

from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.port import Batch
from penstock.engines.simulator.batches.model import Costs
from penstock.twin.calibration_runs import CalibrationRun, DeclaredOperator
from penstock.twin.least_squares import Fit, FloatArray, fit_line, fit_middle, fit_sigma

#: A model with one more parameter must reduce the error to this share of the simpler one.
_MAX_ERROR_SHARE = 0.7
_NOT_FITTED = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


def fit_work(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, clump: float = 1.0
) -> dict[str, Fit]:
    """Fit the seconds per task, per slice and per row."""
    batches = _batches(runs, part)
    rows = np.array([float(b.rows_in) for b in batches])
    busy = np.array([b.busy_s for b in batches])
    replicas = np.array([float(b.replicas) for b in batches])
    if part.slices:
        called = part.slices * (1 - (1 - 1 / part.slices) ** (rows / clump))
        return _sliced_work(rows, replicas, called, busy)
    row, call = fit_line(np.column_stack((rows, np.minimum(replicas, rows))), busy)
    return {"row_s": row, "call_s": call}


def fit_batch_noise(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, costs: Costs, scv: float
) -> Fit:
    """Fit the variation of the work of batches beyond the variation of their rows."""
    logs, by_rows = [], []
    for b in _batches(runs, part):
        called = part.slices and part.slices * (1 - (1 - 1 / part.slices) ** b.rows_in)
        each_s = costs.slice_s + costs.crowd_s * (b.replicas - 1)
        tasks = b.replicas if part.slices else min(b.replicas, b.rows_in)
        expected_s = b.rows_in * costs.row_s + tasks * costs.call_s + called * each_s
        if expected_s > 0 and b.busy_s > 0:
            logs.append(np.log(b.busy_s / expected_s))
            by_rows.append(scv / b.rows_in)
    fit = fit_sigma(np.array(logs))
    if not fit.is_fitted:
        return fit
    own = float(np.median(by_rows))
    value, low, high = (max(0.0, s * s - own) ** 0.5 for s in (fit.value, fit.low, fit.high))
    return Fit(value, low, high, fit.count)


def _sliced_work(
    rows: FloatArray, replicas: FloatArray, called: FloatArray, busy: FloatArray
) -> dict[str, Fit]:
    """Fit the work with slices; interference between replicas only if it improves the fit much."""
    plain = np.column_stack((rows, replicas, called))
    crowded = np.column_stack((plain, called * (replicas - 1)))
    simple, full = fit_line(plain, busy), fit_line(crowded, busy)
    if _median_error(crowded, full, busy) > _MAX_ERROR_SHARE * _median_error(plain, simple, busy):
        full = [*simple, Fit(0.0, 0.0, 0.0, len(busy))]
    return dict(zip(("row_s", "call_s", "slice_s", "crowd_s"), full, strict=True))


def _median_error(columns: FloatArray, fits: Sequence[Fit], values: FloatArray) -> float:
    """Return the median absolute error of a fit."""
    return float(np.median(np.abs(values - columns @ np.array([fit.value for fit in fits]))))


def fit_clump(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit how many rows reach a slice together, from the imbalance of tasks.

    If n rows come in clumps of c, the longest of k tasks is above the mean by about the largest
    of k normal draws times the square root of c k / n.
    """
    over, expected = [], []
    for b in _batches(runs, part) if part.slices else ():
        if b.rows_in >= b.replicas > 1 and b.busy_s > 0:
            over.append(b.longest_s * b.replicas / b.busy_s - 1)
            expected.append(_expected_maximum(b.replicas) * np.sqrt(b.replicas / b.rows_in))
    if len(over) < 8:
        return _NOT_FITTED
    root = fit_line(np.array(expected)[:, None], np.array(over))[0]
    value, low, high = (max(1.0, v * v) for v in (root.value, root.low, root.high))
    return Fit(value, low, high, root.count)


def _batches(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> list[Batch]:
    return [batch for run in runs for batch in run.batches.get(part.name, ())]


def _expected_maximum(number: int) -> float:
    """Return the approximate expected maximum of some standard normal numbers."""
    return NormalDist().inv_cdf((number - 0.375) / (number + 0.25))


def fit_task_noise(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, row_s: float, call_s: float
) -> Fit:
    """Fit the noise of tasks of equal size, from the excess of the longest task.

    The expected logarithm of the largest of k lognormal times is sigma times the expected maximum
    of k standard normal numbers.
    """
    if part.slices:
        return _NOT_FITTED
    logs, expected = [], []
    for b in _batches(runs, part):
        plain_s = call_s + -(-b.rows_in // b.replicas) * row_s
        if b.rows_in >= b.replicas > 1 and plain_s > 0 and b.longest_s > 0:
            logs.append(np.log(b.longest_s / plain_s))
            expected.append(_expected_maximum(b.replicas))
    if len(logs) < 8:
        return _NOT_FITTED
    return fit_line(np.array(expected)[:, None], np.array(logs))[0]


def fit_service_scv(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit the squared coefficient of variation of service times, from snapshots."""
    return fit_middle(op.service_scv for op in _snapshots(runs, part))


def fit_cpu_share(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit the share of the work that uses a processor."""
    shares = []
    for op in _snapshots(runs, part):
        replicas = op.extra.get("replicas")
        known = replicas if isinstance(replicas, tuple | list) else ()
        busy = [float(replica["busy"]) for replica in known]
        if op.cpu is not None and busy and sum(busy) > 0.05 * len(busy):
            shares.append(op.cpu * len(busy) / sum(busy))
    return fit_middle(shares)


def measure_slice_shares(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> list[float]:
    """Return the share of each slice in the work; empty if snapshots do not have it."""
    total: FloatArray = np.zeros(part.slices)
    for op in _snapshots(runs, part):
        loads = op.extra.get("slices")
        if isinstance(loads, tuple | list) and len(loads) <= part.slices:
            total[: len(loads)] += np.array(loads, dtype=float)
    whole = float(total.sum())
    return [round(float(share), 5) for share in total / whole] if whole else []


def _snapshots(
    runs: Sequence[CalibrationRun], part: DeclaredOperator
) -> Iterable[OperatorSnapshot]:
    for run in runs:
        for tick in run.ticks:
            if tick.snapshot is not None and part.name in tick.snapshot.operators:
                yield tick.snapshot.operators[part.name]
