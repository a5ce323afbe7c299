"""Looks keys up in the state of a run, and checks the state for damage."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engines.spark.recovery.batch_record_check import check_records
from penstock.engines.spark.state_reader import StateReader, find_states
from penstock.errors import InputError, nearest
from penstock.state.check import StateDamage


def find_state(run: Path, operator: str | None = None) -> StateReader:
    """Return the state of an operator, or of the only one that has state."""
    states = find_states(run)
    known = {state.operator: state for state in states}
    if operator is None and len(states) == 1:
        return states[0]
    if operator is None:
        problem = f"{len(states)} operators have state"
        raise InputError("--operator", problem, f"{', '.join(known)}")
    if operator not in known:
        raise InputError("--operator", f"{operator!r} has no state", nearest(operator, known))
    return known[operator]


def check_states(run: Path) -> dict[str, list[StateDamage]]:
    """Read every byte of the state and of the batch records; list damage by operator."""
    records = check_records(run)
    damage = {
        name: [StateDamage(file=each.file, problem=each.problem, slices=()) for each in damages]
        for name, damages in records.items()
    }
    try:
        damage |= {state.operator: state.check() for state in find_states(run)}
    except InputError:
        if not records:  # otherwise damaged records are the reason
            raise
    return damage


def parse_key(text: str, state: StateReader) -> dict[str, Any]:
    """Read a key: its columns in order, at least those that decide on the slice."""
    required = max(1, len(state.by))
    values = _parse_values(text, len(state.by))
    if values is None or not required <= len(values) <= len(state.key):
        problem = f"must be a JSON list for the columns {', '.join(state.key.names)}, got {text!r}"
        raise InputError("KEY", problem, f"at least {', '.join(state.key.names[:required])}")
    key = {}
    for field, value in zip(state.key, values, strict=False):
        try:
            key[field.name] = (
                pa.scalar(value).cast(field.type).as_py() if value is not None else None
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            problem = f"column {field.name!r} is {field.type}, got {value!r}"
            raise InputError("KEY", problem) from None
    return key


def _parse_values(text: str, columns: int) -> Sequence[Any] | None:
    if columns <= 1 and not text.startswith("["):
        return [text]
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return values if isinstance(values, list) else None
