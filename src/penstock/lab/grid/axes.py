"""The axes of a grid, each with its choices."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from penstock.errors import InputError
from penstock.lab.grid.backend import RunBackend
from penstock.runs.spec_fields import TABLES, by_first_name, check_field, entries, refuse_unknown

#: Axes that define the load; only runs with the same load are compared.
LOAD_AXES = (
    *("query", "build_args", "workload", "workload_params"),
    *("minutes", "speed_up", "rate_scale"),
)
#: Axes whose values are clear without the name of the axis.
_AXES_WITHOUT_PREFIX = ("query", "workload", "policy", "engine", "mode", "master")


class Choice(NamedTuple):
    """One value of an axis: its text, and the fields that it sets."""

    words: str
    changes: Mapping[str, Any]


def list_choices(axis: str, value: Any, backend: RunBackend[Any]) -> Iterator[Choice]:
    """Yield all choices of one axis."""
    where = f"grid.{axis}"
    if axis in TABLES:
        yield from _combinations(axis, {axis: value}, where)
        return
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError(where, "must have at least one value, got none")
    for index, item in enumerate(values):
        place = f"{where}[{index}]" if len(values) > 1 else where
        if isinstance(item, Mapping):
            yield from _choices_of_table(axis, item, place, backend)
        else:
            check_field(axis, item, place)
            yield Choice(_choice_text(axis, item), {axis: item})


def _choices_of_table(
    axis: str, given: Mapping[str, Any], where: str, backend: RunBackend[Any]
) -> Iterator[Choice]:
    refuse_unknown(given, (*backend.fields, "label"), where)
    table = by_first_name(given, backend.aliases, where)
    if axis not in table:
        raise InputError(where, f"must say {axis} = ..., got {dict(table)}")
    label = table.get("label", "")
    if not isinstance(label, str):
        raise InputError(f"{where}.label", f"must be a text, got {label!r}")
    fields = {key: value for key, value in table.items() if key != "label"}
    yield from _combinations(axis, fields, where, label.strip())


def _combinations(
    axis: str, fields: Mapping[str, Any], where: str, label: str = ""
) -> Iterator[Choice]:
    """Yield one choice per combination of the values of all lists within tables.

    The text of a choice names all fields that it sets. With a label, it is the label and the
    values from lists.
    """
    for key, value in fields.items():
        check_field(key, value, where if key == axis else f"{where}.{key}")
    plain = {key: value for key, value in fields.items() if key not in TABLES}
    words = [_choice_text(key, plain[key]) for key in sorted(plain, key=lambda key: key != axis)]
    head = [label] if label else words
    given = [(t, k, v) for t in fields if t in TABLES for k, v in entries(t, fields[t]).items()]
    for _, key, values in given:
        if values == []:
            raise InputError(f"{where}.{key}", "must have at least one value, got none")
    for taken in product(*(v if isinstance(v, list) else [v] for _, _, v in given)):
        changes: dict[str, Any] = dict(plain)
        tail = []
        for (table, key, values), value in zip(given, taken, strict=True):
            changes.setdefault(table, {})[key] = value
            if isinstance(values, list) or not (label or axis in TABLES):
                tail.append(f"{key}={_value_text(value)}")
        yield Choice(" ".join([*head, *tail]), changes)


def _choice_text(axis: str, value: Any) -> str:
    return str(value) if axis in _AXES_WITHOUT_PREFIX else f"{axis}={_value_text(value)}"


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{_value_text(inner)}" for key, inner in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def refuse_conflicts(axes: Mapping[str, Sequence[Choice]]) -> None:
    """Refuse two axes that set the same field, and other axes that set the load."""
    owner: dict[str, str] = {}
    for axis, choices in axes.items():
        for path in dict.fromkeys(path for choice in choices for path in _paths(choice.changes)):
            if owner.setdefault(path, axis) != axis:
                raise InputError(f"grid.{axis}", f"sets {path}, which grid.{owner[path]} sets too")
            field = path.partition(".")[0]
            if field in LOAD_AXES and axis not in LOAD_AXES:
                hint = "cells are compared where they meet the same load: set it in grid.workload"
                raise InputError(f"grid.{axis}", f"must not set {field}", hint)


def _paths(changes: Mapping[str, Any]) -> Iterator[str]:
    for key, value in changes.items():
        if key in TABLES:
            yield from (f"{key}.{inner}" for inner in value)
        else:
            yield key
