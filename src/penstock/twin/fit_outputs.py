"""Fits the output of operators, and its delay, to their batches in runs.

There are two models of an operator with state. Either it emits a share of its rows after some
first rows, or it emits the last row of each key, as sessions do. The model with the smaller error
is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.control.loop import Tick
from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.port import Batch
from penstock.engines.simulator.batches.session_output import expected_session_ends
from penstock.pipelines.kinds.kind import find_kind
from penstock.twin.calibration_runs import CalibrationRun, DeclaredOperator
from penstock.twin.least_squares import Fit, FloatArray, fit_middle, fit_ratio

#: An output row that is later than this has waited for event time to pass.
_LATER_S = 3.0
#: A queue is short if the operator processes it within this time.
_SHORT_QUEUE_S = 2.0
#: New keys per row: bounds and iterations of the binary search.
_MIN_KEYS, _MAX_KEYS, _HALVINGS = 1e-6, 1.0, 50
_NOT_FITTED = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFit:
    """The delay of output rows, and the model of which rows are emitted."""

    delay: Fit
    #: First rows without output, and the output rows per row after them.
    first_rows: int = 0
    share: Fit = _NOT_FITTED
    #: New keys per row, if the operator emits the last row of each key.
    new_keys: Fit = _NOT_FITTED


def fit_outputs(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> OutputFit:
    """Fit the output of an operator."""
    delay = _out_delay(runs, part)
    first = _first_rows(runs, part, delay.value)
    share = _selectivity(runs, part, delay.value, first)
    by_share = OutputFit(delay=delay, first_rows=first, share=share)
    if not delay.value:
        return by_share
    keys = _new_keys(runs, part, delay.value)
    by_keys = OutputFit(delay=delay, new_keys=keys)
    if keys.is_fitted and _mean_error(runs, part, by_keys) < _mean_error(runs, part, by_share):
        return by_keys
    return by_share


# --- delay


def _out_delay(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit the event time until rows appear in the output of an operator with state.

    Rows in a long queue are late, too. So only ticks with a short queue count, and only if the
    first output row came late.
    """
    if not find_kind(part.kind).reduces_rows or not part.upstream:
        return _NOT_FITTED
    later = [s for run in runs for tick in run.ticks if (s := _later_s(tick, part)) is not None]
    batches = [batch for run in runs for batch in run.batches.get(part.name, ())]
    times = [b.committed_s - b.planned_s for b in batches]
    firsts = [run.first_out_s[part.name] for run in runs if part.name in run.first_out_s]
    if not times or not firsts or min(firsts) < _LATER_S or len(later) < 8:
        return Fit(0.0, 0.0, 0.0, len(times), is_fitted=bool(firsts))
    hop_s = 1.5 * float(np.mean(times))  # one batch, and on average half a batch until it starts
    fit = fit_middle(max(0.0, s - hop_s) for s in later)
    return fit if fit.value > _LATER_S else Fit(0.0, 0.0, 0.0, fit.count)


def _later_s(tick: Tick, part: DeclaredOperator) -> float | None:
    """Return the added age of rows after an operator; None unless its queue is short."""
    if tick.snapshot is None or part.name not in tick.snapshot.operators:
        return None
    operators = tick.snapshot.operators
    op = operators[part.name]
    if op.queue is None or not op.input_rate or op.queue > _SHORT_QUEUE_S * op.input_rate:
        return None
    own = _measure(op, "latency_p50_s")
    before = [_measure(operators.get(up), "latency_p50_s") for up in part.upstream]
    known = [s for s in before if s is not None]
    return own - max(known) if own is not None and known else None


def _measure(op: OperatorSnapshot | None, name: str) -> float | None:
    value = op.extra.get(name) if op is not None else None
    return float(value) if isinstance(value, int | float) else None


# --- a share of the rows


def _first_rows(runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float) -> int:
    """Return the number of first rows without output: the minimum over all runs."""
    if not find_kind(part.kind).reduces_rows:
        return 0
    counts = []
    for run in runs:
        if part.name in run.first_out_s:
            batches = run.all_batches[part.name]
            until_s = run.first_out_s[part.name] - delay_s
            counts.append(sum(b.rows_in for b in batches if b.committed_s < until_s))
    return min(counts, default=0)


def _selectivity(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float, first_rows: int
) -> Fit:
    """Fit the output rows per input row, after the first rows without output."""
    tops, bottoms = [], []
    for run in runs:
        batches, taken = run.all_batches.get(part.name, ()), 0
        # the output of the last rows is still to come
        end_s = batches[-1].planned_s - delay_s if batches else 0.0
        for b in batches:
            effective = min(b.rows_in, max(0, taken + b.rows_in - first_rows))
            taken += b.rows_in
            tops.append(float(b.rows_out))
            bottoms.append(float(effective) if b.planned_s <= end_s else 0.0)
    return fit_ratio(np.array(tops), np.array(bottoms))


# --- the last rows of keys


def _new_keys(runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float) -> Fit:
    """Fit the new keys per row to the number of output rows, with a Poisson interval."""
    series = [run.all_batches[part.name] for run in runs if part.name in run.all_batches]
    count = sum(b.rows_out for batches in series for b in batches)
    if not count:
        return _NOT_FITTED

    def keys_for(rows: float) -> float:
        low, high = _MIN_KEYS, _MAX_KEYS
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            expected = sum(
                float(_expected_outputs(batches, delay_s, middle).sum()) for batches in series
            )
            low, high = (middle, high) if expected < rows else (low, middle)
        return low

    margin = 1.96 * count**0.5
    low, value, high = (
        keys_for(max(0.0, rows)) for rows in (count - margin, count, count + margin)
    )
    return Fit(value, low, high, sum(map(len, series)), is_fitted=value < 0.99 * _MAX_KEYS)


def _expected_outputs(batches: Sequence[Batch], delay_s: float, new_keys: float) -> FloatArray:
    """Return the expected output rows of each batch until the end of the run."""
    due, counts = np.array([b.planned_s for b in batches]), np.array([b.rows_in for b in batches])
    expected = expected_session_ends(due, counts, delay_s, new_keys, 0)
    return np.where(due <= due[-1] - delay_s, expected, 0.0)


def _mean_error(runs: Sequence[CalibrationRun], part: DeclaredOperator, fit: OutputFit) -> float:
    """Return the mean absolute error of the cumulated output over all batches."""
    errors: list[float] = []
    for run in runs:
        batches = run.all_batches.get(part.name, ())
        if not batches:
            continue
        due, counts = (
            np.array([b.planned_s for b in batches]),
            np.array([b.rows_in for b in batches]),
        )
        if fit.new_keys.is_fitted:
            expected = _expected_outputs(batches, fit.delay.value, fit.new_keys.value)
        else:
            reached = np.maximum(0, np.cumsum(counts) - fit.first_rows)
            expected = fit.share.value * np.diff(reached, prepend=0)
        shown_at = np.searchsorted(due + fit.delay.value, [b.committed_s for b in batches], "right")
        should = np.concatenate(([0.0], np.cumsum(expected)))[shown_at]
        errors += np.abs(np.cumsum([b.rows_out for b in batches]) - should).tolist()
    return float(np.mean(errors)) if errors else 0.0
