"""Results of Nexmark as text and JSON: generated files, and verified queries."""

from collections.abc import Mapping
from typing import Any

from penstock.core.numbers import pretty, table_number
from penstock.lab.nexmark_verify import MIN_CHANGES, VerifyResult, VerifySpec
from penstock.reports.tables import Table, as_text

#: Rows shown of each difference.
_MAX_ROWS = 5


def verification_json(spec: VerifySpec, result: VerifyResult) -> dict[str, Any]:
    """Return the result as a JSON object."""
    return {
        "query": spec.query,
        "variant": spec.query_variant,
        "events": spec.events,
        "rate": spec.setting.clock.rate,
        "rows": result.rows,
        "missing": len(result.difference.missing),
        "extra": len(result.difference.extra),
        "late": result.late,
        "changes": result.changes,
        "seconds": result.seconds,
        "equal": result.is_right,
    }


def verification_text(spec: VerifySpec, result: VerifyResult) -> str:
    """Return one table row, and the first rows that differ."""
    figures = {
        "query": spec.query,
        "variant": spec.query_variant,
        "events": pretty(spec.events),
        "rows": pretty(result.rows),
        "missing": pretty(len(result.difference.missing)),
        "extra": pretty(len(result.difference.extra)),
        "late": pretty(result.late),
        "changes": pretty(min(result.changes.values())) if spec.rescale else "-",
        "seconds": table_number(result.seconds),
        "verdict": "equal" if result.is_right else "NOT EQUAL",
    }
    lines = [as_text(Table(columns=tuple(figures), rows=(tuple(figures.values()),)))]
    for label, rows in (("missing", result.difference.missing), ("extra", result.difference.extra)):
        lines += [f"  {label}: {row}" for row in rows.slice(0, _MAX_ROWS).to_pylist()]
    lines += [
        f"  too few changes: {name} was rescaled {count} times, at least {MIN_CHANGES} required;"
        " use more --events, because an operator without rows runs no batches"
        for name, count in result.changes.items()
        if spec.rescale and count < MIN_CHANGES
    ]
    return "\n".join(lines)


def generation_text(figures: Mapping[str, Any]) -> str:
    """Return the figures of a generated file as one table row."""
    row = {
        "file": figures["file"],
        "events": pretty(figures["events"]),
        **{name: pretty(count) for name, count in figures["rows"].items()},
        "event time": f"{table_number(figures['event_time_s'])} s",
        "size": f"{table_number(figures['bytes'] / 1e6)} MB",
        "seconds": table_number(figures["seconds"]),
    }
    return as_text(Table(columns=tuple(row), rows=(tuple(row.values()),)))
