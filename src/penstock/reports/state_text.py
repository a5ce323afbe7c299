"""The state of operators as text and JSON: sizes, rows of a key, damage."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.core.numbers import pretty
from penstock.engines.spark.state_reader import StateReader
from penstock.reports.tables import Table, as_text
from penstock.state.check import StateDamage
from penstock.state.version import file_names


def list_text(found: Sequence[StateReader]) -> str:
    """Return one line per operator."""
    head = ("operator", "key", "rows", "MB", "slices", "files", "watermark", "batch")
    rows = [
        (
            memory.operator,
            ", ".join(memory.key.names),
            f"{memory.rows:,}",
            pretty(memory.bytes / 1e6),
            f"{len(memory.version.state_files)} of {memory.version.slices}",
            str(len(file_names(memory.version))),
            _time(memory.version.watermark),
            str(memory.batch),
        )
        for memory in found
    ]
    return as_text(Table(columns=head, rows=tuple(rows), words=2))


def to_json(memory: StateReader) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "operator": memory.operator,
        "key": memory.key.names,
        "values": memory.values.names,
        "rows": memory.rows,
        "bytes": memory.bytes,
        "slices": memory.version.slices,
        "files": len(file_names(memory.version)),
        "watermark_us": memory.version.watermark,
        "batch": memory.batch,
    }


def rows_text(rows: Sequence[Mapping[str, Any]], memory: StateReader) -> str:
    """Return rows as a table."""
    if not rows:
        return f"{memory.operator} has no state for that key as of batch {memory.batch}"
    head = tuple(rows[0])
    cells = tuple(tuple(str(row[name]) for name in head) for row in rows)
    return as_text(Table(columns=head, rows=cells, words=len(memory.key)))


def damage_text(found: Mapping[str, Sequence[StateDamage]]) -> str:
    """Return all damage, or that there is none."""
    lines = [
        f"{operator}: {each.file} {each.problem}{_slices_text(each.slices)}"
        for operator, damages in found.items()
        for each in damages
    ]
    return "\n".join(lines) or f"no damage: {', '.join(found)}"


def damage_json(found: Mapping[str, Sequence[StateDamage]]) -> list[dict[str, Any]]:
    """Return the same as JSON."""
    return [
        {
            "operator": operator,
            "file": each.file,
            "problem": each.problem,
            "slices": list(each.slices),
        }
        for operator, damages in found.items()
        for each in damages
    ]


def _slices_text(slices: Sequence[int]) -> str:
    return f" (slices {', '.join(map(str, slices))})" if slices else ""


def _time(micros: int | None) -> str:
    return "-" if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).isoformat(" ")
