"""What the operators of a pipeline cost, by their batches in real runs."""

from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np

from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.port import Batch
from penstock.engines.simulator.batches.model import Costs
from penstock.twin.calibration_runs import CalibrationRun, DeclaredOperator
from penstock.twin.least_squares import Fit, FloatArray, fit_line, fit_middle, fit_sigma

#: A model with one more number must be off by less than this share of what the plain one is.
_MUCH_BETTER = 0.7
_NOTHING = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


def work(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, clump: float = 1.0
) -> dict[str, Fit]:
    """Fit the seconds of a task, of a slice and of a row."""
    some = _batches(runs, part)
    rows = np.array([float(b.rows_in) for b in some])
    busy = np.array([b.busy_s for b in some])
    replicas = np.array([float(b.replicas) for b in some])
    if part.slices:
        called = part.slices * (1 - (1 - 1 / part.slices) ** (rows / clump))
        return _sliced_work(rows, replicas, called, busy)
    row, call = fit_line(np.column_stack((rows, np.minimum(replicas, rows))), busy)
    return {"row_s": row, "call_s": call}


def fit_batch_noise(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, costs: Costs, scv: float
) -> Fit:
    """Fit how the work of whole batches varies beyond what their rows do."""
    logs, by_rows = [], []
    for b in _batches(runs, part):
        called = part.slices and part.slices * (1 - (1 - 1 / part.slices) ** b.rows_in)
        each_s = costs.slice_s + costs.crowd_s * (b.replicas - 1)
        tasks = b.replicas if part.slices else min(b.replicas, b.rows_in)
        expected_s = b.rows_in * costs.row_s + tasks * costs.call_s + called * each_s
        if expected_s > 0 and b.busy_s > 0:
            logs.append(np.log(b.busy_s / expected_s))
            by_rows.append(scv / b.rows_in)
    found = fit_sigma(np.array(logs))
    if not found.is_fitted:
        return found
    own = float(np.median(by_rows))
    value, low, high = (max(0.0, s * s - own) ** 0.5 for s in (found.value, found.low, found.high))
    return Fit(value, low, high, found.count)


def _sliced_work(
    rows: FloatArray, replicas: FloatArray, called: FloatArray, busy: FloatArray
) -> dict[str, Fit]:
    """Let slices take longer with more replicas only if that explains much: it bends the rest."""
    plain = np.column_stack((rows, replicas, called))
    crowded = np.column_stack((plain, called * (replicas - 1)))
    simple, full = fit_line(plain, busy), fit_line(crowded, busy)
    if _off(crowded, full, busy) > _MUCH_BETTER * _off(plain, simple, busy):
        full = [*simple, Fit(0.0, 0.0, 0.0, len(busy))]
    return dict(zip(("row_s", "call_s", "slice_s", "crowd_s"), full, strict=True))


def _off(columns: FloatArray, fits: Sequence[Fit], values: FloatArray) -> float:
    """How far off a fit is in the middle of the data."""
    return float(np.median(np.abs(values - columns @ np.array([fit.value for fit in fits]))))


def clump(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit how many rows fall into a slice together, by how uneven tasks are.

    If n rows fall in clumps of c, the longest of k tasks is above the mean by about the largest
    of k normal draws times the square root of c k / n.
    """
    over, expected = [], []
    for b in _batches(runs, part) if part.slices else ():
        if b.rows_in >= b.replicas > 1 and b.busy_s > 0:
            over.append(b.longest_s * b.replicas / b.busy_s - 1)
            expected.append(_largest(b.replicas) * np.sqrt(b.replicas / b.rows_in))
    if len(over) < 8:
        return _NOTHING
    root = fit_line(np.array(expected)[:, None], np.array(over))[0]
    value, low, high = (max(1.0, v * v) for v in (root.value, root.low, root.high))
    return Fit(value, low, high, root.count)


def _batches(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> list[Batch]:
    return [batch for run in runs for batch in run.batches.get(part.name, ())]


def _largest(number: int) -> float:
    """What the largest of some normal draws is expected to be, nearly."""
    return NormalDist().inv_cdf((number - 0.375) / (number + 0.25))


def spread(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, row_s: float, call_s: float
) -> Fit:
    """Fit how tasks of the same size differ, by how much the longest exceeds what it should take.

    The logarithm of the largest of k lognormal times is expected at sigma times what the largest
    of k normal ones is.
    """
    if part.slices:
        return _NOTHING
    logs, expected = [], []
    for b in _batches(runs, part):
        plain_s = call_s + -(-b.rows_in // b.replicas) * row_s
        if b.rows_in >= b.replicas > 1 and plain_s > 0 and b.longest_s > 0:
            logs.append(np.log(b.longest_s / plain_s))
            expected.append(_largest(b.replicas))
    if len(logs) < 8:
        return _NOTHING
    return fit_line(np.array(expected)[:, None], np.array(logs))[0]


def fit_service_scv(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit the scv of service times, as snapshots tell it."""
    return fit_middle(op.service_scv for op in _snapshots(runs, part))


def cpu(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit the share of the work in which a processor is used."""
    shares = []
    for op in _snapshots(runs, part):
        each = op.extra.get("replicas")
        busy = [float(one["busy"]) for one in each] if isinstance(each, tuple | list) else []
        if op.cpu is not None and busy and sum(busy) > 0.05 * len(busy):
            shares.append(op.cpu * len(busy) / sum(busy))
    return fit_middle(shares)


def measure_slice_shares(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> list[float]:
    """Return the share of each slice in the work; empty if nothing tells it."""
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
