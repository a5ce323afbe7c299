"""The parameters of a calibration as a table: value, interval, and the runs they come from."""

from penstock.core.numbers import pretty
from penstock.reports.tables import Table
from penstock.twin.calibration import Calibration, Estimate


def as_table(calibration: Calibration) -> Table:
    """Return one row per parameter."""
    shown = [
        e for e in calibration.estimates if e.fit is not None or e.path[0] in ("batches", "monitor")
    ]
    notes = [f"{_where(e)} {e.label}: {e.source}" for e in shown if e.fit and not e.is_fitted]
    sources = dict.fromkeys(e.source for e in shown if e.is_fitted)
    return Table(
        columns=("", "parameter", "value", "95 % interval", "from"),
        words=2,
        rows=tuple(_row(e) for e in shown),
        notes=("", *notes, *(f"from: {source}" for source in sources)),
    )


def _row(estimate: Estimate) -> tuple[str, ...]:
    fit = estimate.fit if estimate.is_fitted else None
    between = f"{pretty(fit.low)} to {pretty(fit.high)}" if fit else ""
    count = pretty(fit.count) if fit else "not fitted" if estimate.fit else "given"
    return _where(estimate), estimate.label, pretty(estimate.value), between, count


def _where(estimate: Estimate) -> str:
    if estimate.path[0] != "pipelines":
        return "engine"
    is_whole = estimate.path[2] != "operators"
    return estimate.path[1] if is_whole else f"{estimate.path[1]} {estimate.path[3]}"
