"""What comes out of operators, and when, by their batches in real runs.

Of an operator with state two things may be true: a share of the rows shows, once some have been
taken; or rows show that are the last of their key, as with sessions. Who fits the batches better
is believed.
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

#: A row that shows later than this behind its batch has waited for event time to pass.
_LATER_S = 3.0
#: Little waits if it is taken within so many seconds.
_LITTLE_S = 2.0
#: Keys that a row may add: bounds of the search, and how often it halves them.
_MIN_KEYS, _MAX_KEYS, _HALVINGS = 1e-6, 1.0, 50
_NOTHING = Fit(0.0, 0.0, 0.0, 0, is_fitted=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFit:
    """When rows show, and which."""

    delay: Fit
    #: Rows that leave nothing behind at first, and the share of the others that shows.
    first_rows: int = 0
    share: Fit = _NOTHING
    #: Keys that a row adds, if the last rows of keys show instead.
    new_keys: Fit = _NOTHING


def fit_outputs(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> OutputFit:
    """Fit what comes out."""
    delay = _out_delay(runs, part)
    first = _first_rows(runs, part, delay.value)
    share = _selectivity(runs, part, delay.value, first)
    by_share = OutputFit(delay=delay, first_rows=first, share=share)
    if not delay.value:
        return by_share
    keys = _new_keys(runs, part, delay.value)
    by_keys = OutputFit(delay=delay, new_keys=keys)
    if keys.is_fitted and _off(runs, part, by_keys) < _off(runs, part, by_share):
        return by_keys
    return by_share


# --- when


def _out_delay(runs: Sequence[CalibrationRun], part: DeclaredOperator) -> Fit:
    """Fit how much event time passes until rows show in the output of an operator with state.

    Rows that wait because there is too much to do are late, too. So only times count at which
    little waits, and no more than what passed until the very first row came out.
    """
    if not find_kind(part.kind).reduces_rows or not part.upstream:
        return _NOTHING
    later = [s for run in runs for tick in run.ticks if (s := _later_s(tick, part)) is not None]
    some = [batch for run in runs for batch in run.batches.get(part.name, ())]
    times = [b.committed_s - b.planned_s for b in some]
    firsts = [run.first_out_s[part.name] for run in runs if part.name in run.first_out_s]
    if not times or not firsts or min(firsts) < _LATER_S or len(later) < 8:
        return Fit(0.0, 0.0, 0.0, len(times), is_fitted=bool(firsts))
    hop_s = 1.5 * float(np.mean(times))  # a batch, and half of one until it begins
    found = fit_middle(max(0.0, s - hop_s) for s in later)
    return found if found.value > _LATER_S else Fit(0.0, 0.0, 0.0, found.count)


def _later_s(tick: Tick, part: DeclaredOperator) -> float | None:
    """Seconds that rows were older behind an operator than before it, if little waited."""
    if tick.snapshot is None or part.name not in tick.snapshot.operators:
        return None
    seen = tick.snapshot.operators
    op = seen[part.name]
    if op.queue is None or not op.input_rate or op.queue > _LITTLE_S * op.input_rate:
        return None
    own = _seen(op, "latency_p50_s")
    before = [_seen(seen.get(up), "latency_p50_s") for up in part.upstream]
    known = [s for s in before if s is not None]
    return own - max(known) if own is not None and known else None


def _seen(op: OperatorSnapshot | None, name: str) -> float | None:
    value = op.extra.get(name) if op is not None else None
    return float(value) if isinstance(value, int | float) else None


# --- a share of the rows


def _first_rows(runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float) -> int:
    """Return how many rows leave nothing behind while the state fills: the fewest of any run."""
    if not find_kind(part.kind).reduces_rows:
        return 0
    found = []
    for run in runs:
        if part.name in run.first_out_s:
            some = run.all_batches[part.name]
            until_s = run.first_out_s[part.name] - delay_s
            found.append(sum(b.rows_in for b in some if b.committed_s < until_s))
    return min(found, default=0)


def _selectivity(
    runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float, barren: int
) -> Fit:
    """Fit the rows that come out for each that goes in, once some come out."""
    tops, bottoms = [], []
    for run in runs:
        some, taken = run.all_batches.get(part.name, ()), 0
        # what went in last has not come out yet
        end_s = some[-1].planned_s - delay_s if some else 0.0
        for b in some:
            fruitful = min(b.rows_in, max(0, taken + b.rows_in - barren))
            taken += b.rows_in
            tops.append(float(b.rows_out))
            bottoms.append(float(fruitful) if b.planned_s <= end_s else 0.0)
    return fit_ratio(np.array(tops), np.array(bottoms))


# --- the last rows of keys


def _new_keys(runs: Sequence[CalibrationRun], part: DeclaredOperator, delay_s: float) -> Fit:
    """Find the keys that a row adds by how many rows come out; these vary as counts do."""
    found = [run.all_batches[part.name] for run in runs if part.name in run.all_batches]
    count = sum(b.rows_out for some in found for b in some)
    if not count:
        return _NOTHING

    def keys_for(rows: float) -> float:
        low, high = _MIN_KEYS, _MAX_KEYS
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            expected = sum(float(_lasts(some, delay_s, middle).sum()) for some in found)
            low, high = (middle, high) if expected < rows else (low, middle)
        return low

    off = 1.96 * count**0.5
    low, value, high = (keys_for(max(0.0, rows)) for rows in (count - off, count, count + off))
    return Fit(value, low, high, sum(map(len, found)), is_fitted=value < 0.99 * _MAX_KEYS)


def _lasts(some: Sequence[Batch], delay_s: float, new_keys: float) -> FloatArray:
    """Rows of each batch that are expected to come out until the end."""
    due, counts = np.array([b.planned_s for b in some]), np.array([b.rows_in for b in some])
    expected = expected_session_ends(due, counts, delay_s, new_keys, 0)
    return np.where(due <= due[-1] - delay_s, expected, 0.0)


def _off(runs: Sequence[CalibrationRun], part: DeclaredOperator, fit: OutputFit) -> float:
    """How far what has come out is from what should have, on average over the run's batches."""
    errors: list[float] = []
    for run in runs:
        some = run.all_batches.get(part.name, ())
        if not some:
            continue
        due, counts = np.array([b.planned_s for b in some]), np.array([b.rows_in for b in some])
        if fit.new_keys.is_fitted:
            expected = _lasts(some, fit.delay.value, fit.new_keys.value)
        else:
            reached = np.maximum(0, np.cumsum(counts) - fit.first_rows)
            expected = fit.share.value * np.diff(reached, prepend=0)
        shown_at = np.searchsorted(due + fit.delay.value, [b.committed_s for b in some], "right")
        should = np.concatenate(([0.0], np.cumsum(expected)))[shown_at]
        errors += np.abs(np.cumsum([b.rows_out for b in some]) - should).tolist()
    return float(np.mean(errors)) if errors else 0.0
