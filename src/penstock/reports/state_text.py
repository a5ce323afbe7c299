"""The state of operators as text and JSON: sizes, rows of a key, damage."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.core.numbers import pretty
from penstock.engines.spark.state_reader import StateReader
from penstock.reports.tables import Table, as_text
from penstock.state.check import StateDamage
from penstock.state.version import file_names


def list_text(states: Sequence[StateReader]) -> str:
    """Return one line per operator."""
    head = ("operator", "key", "rows", "MB", "slices", "files", "watermark", "batch")
    rows = [
        (
            state.operator,
            ", ".join(state.key.names),
            f"{state.rows:,}",
            pretty(state.bytes / 1e6),
            f"{len(state.version.state_files)} of {state.version.slices}",
            str(len(file_names(state.version))),
            _time(state.version.watermark),
            str(state.batch),
        )
        for state in states
    ]
    return as_text(Table(columns=head, rows=tuple(rows), words=2))


def to_json(state: StateReader) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "operator": state.operator,
        "key": state.key.names,
        "values": state.values.names,
        "rows": state.rows,
        "bytes": state.bytes,
        "slices": state.version.slices,
        "files": len(file_names(state.version)),
        "watermark_us": state.version.watermark,
        "batch": state.batch,
    }


def rows_text(rows: Sequence[Mapping[str, Any]], state: StateReader) -> str:
    """Return rows as a table."""
    if not rows:
        return f"{state.operator} has no state for that key as of batch {state.batch}"
    head = tuple(rows[0])
    cells = tuple(tuple(str(row[name]) for name in head) for row in rows)
    return as_text(Table(columns=head, rows=cells, words=len(state.key)))


def damage_text(damage: Mapping[str, Sequence[StateDamage]]) -> str:
    """Return all damage, or that there is none."""
    lines = [
        f"{operator}: {each.file} {each.problem}{_slices_text(each.slices)}"
        for operator, damages in damage.items()
        for each in damages
    ]
    return "\n".join(lines) or f"no damage: {', '.join(damage)}"


def damage_json(damage: Mapping[str, Sequence[StateDamage]]) -> list[dict[str, Any]]:
    """Return the same as JSON."""
    return [
        {
            "operator": operator,
            "file": each.file,
            "problem": each.problem,
            "slices": list(each.slices),
        }
        for operator, damages in damage.items()
        for each in damages
    ]


def _slices_text(slices: Sequence[int]) -> str:
    return f" (slices {', '.join(map(str, slices))})" if slices else ""


def _time(micros: int | None) -> str:
    return "-" if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).isoformat(" ")
