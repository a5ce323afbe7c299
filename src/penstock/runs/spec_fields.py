"""Checks the fields of a spec that people write: names, numbers, tables."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.errors import InputError, nearest

#: Fields that are tables of parameters.
TABLES = ("params", "guards", "workload_params", "profile", "build_args", "conf")
#: Earlier names of fields, which old files have.
EARLIER_NAMES = {"numbers": "build_args"}


def check_field(field: str, value: Any, where: str) -> None:
    """Refuse a value that does not have the form of its field.

    Fields of other specs than those of runs have no form here; their specs check them.
    """
    words, fits = _FORMS.get(field, ("", lambda _: True))
    if not fits(value):
        raise InputError(where, f"must be {words}, got {value!r}")


def refuse_unknown(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse a key that is not known, naming the nearest one that is."""
    names = tuple(known)
    for key in table:
        if key not in names:
            hint = "seeds = ... belongs into [grid]" if key == "seed" else nearest(key, names)
            raise InputError(f"{where}.{key}" if where else key, "unknown field", hint)


def with_current_names(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec of an earlier version with the present names of its fields.

    >>> with_current_names({"pipeline": "q1", "numbers": {"service_s": 0.2}})
    {'pipeline': 'q1', 'build_args': {'service_s': 0.2}}
    """
    return {EARLIER_NAMES.get(key, key): value for key, value in spec.items()}


def by_first_name(
    table: Mapping[str, Any], aliases: Mapping[str, str], where: str
) -> dict[str, Any]:
    """Return a table in which each field has its first name.

    >>> by_first_name({"pipeline": "q1", "minutes": 3}, {"pipeline": "query"}, "base")
    {'query': 'q1', 'minutes': 3}
    """
    for other, first in aliases.items():
        if other in table and first in table:
            raise InputError(f"{where}.{other}", f"is another name of {first}: say one of them")
    return {aliases.get(key, key): value for key, value in table.items()}


def entries(field: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table sets; changes of a profile are named `section.field`.

    >>> entries("profile", {"monitor": {"busy_sees": 1.0}, "queues.hop_s": 0.1})
    {'monitor.busy_sees': 1.0, 'queues.hop_s': 0.1}
    """
    if field != "profile":
        return dict(table)
    joined: dict[str, Any] = {}
    for key, value in table.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        joined |= {f"{key}.{name}": number for name, number in inner} or {key: value}
    return joined


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < float("inf")


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 1


def _is_not_negative(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _is_initial(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(_is_count(number) for number in value.values())
    return _is_count(value)


_FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        (
            *("query", "pipeline", "workload", "policy", "engine", "mode", "master", "executors"),
            *("topics", "topics_properties"),
        ),
        ("a name", _is_name),
    ),
    **dict.fromkeys(TABLES, ("a table such as { target = 0.7 }", _is_table)),
    **dict.fromkeys(
        ("objective_s", "interval_s", "batch_s"), ("a number of seconds above 0", _is_positive)
    ),
    **dict.fromkeys(
        ("minutes", "speed_up", "rate_scale", "journal_mb"),
        ("a number above 0", _is_positive),
    ),
    "chain": ('"on" or "off"', lambda value: value in (None, "on", "off")),
    "controller": ('"loop" or "none"', lambda value: value in (None, "loop", "none")),
    "retry_minutes": ("a number of at least 0", _is_not_negative),
    "overhead_share": ("a share above 0 and at most 1", _is_share),
    "seed": ("a whole number", lambda value: type(value) is int),
    "dry_run": ("true or false", lambda value: isinstance(value, bool)),
    "initial": ("a number of replicas, or a table of them by operator", _is_initial),
}
