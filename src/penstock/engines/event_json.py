"""Events as JSON objects of the journal, and back."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from penstock.core.frozen_dict import FrozenDict, freeze, thaw
from penstock.engines.base_event import BaseEvent
from penstock.engines.events import (
    DroppedEvent,
    Event,
    KnownEvent,
    UnknownEvent,
    kind_of,
)
from penstock.errors import InputError

#: Python types that a field of some type may have in JSON.
_JSON_TYPES: Mapping[Any, tuple[type, ...]] = {
    float: (float, int),
    int: (int,),
    str: (str,),
    bool: (bool,),
    NoneType: (NoneType,),
}


def event_to_json(event: Event) -> dict[str, Any]:
    """Write an event as one object."""
    operator = {"operator": event.operator} if event.operator else {}
    return {"at": event.at, "kind": kind_of(event)} | operator | event_fields(event)


def event_fields(event: Event) -> dict[str, Any]:
    """Return the fields that only this kind of event has, under the keys of the journal."""
    return _own_fields(event) | dict(thaw(event.extra))


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read an event; one that fits no class becomes an `UnknownEvent`."""
    at, kind = _common(data, "at", (float, int)), _common(data, "kind", (str,))
    operator = _common(data, "operator", (str,)) if "operator" in data else ""
    own = {key: value for key, value in data.items() if key not in ("at", "kind", "operator")}
    for event_class in _BY_KIND.get(kind, ()):
        values = _read_fields(event_class, own)
        if values is not None:
            return event_class(at=at, operator=operator, **values)
    return UnknownEvent(at=at, operator=operator, kind=kind, extra=freeze(own))


def _common(data: Mapping[str, Any], name: str, types: tuple[type, ...]) -> Any:
    if name not in data:
        raise InputError(f"events.{name}", "missing")
    if type(data[name]) not in types:
        raise InputError(f"events.{name}", f"has a wrong form: {data[name]!r}")
    return data[name]


class _JsonField(NamedTuple):
    """How a field of an event is written."""

    name: str
    key: str
    types: tuple[type, ...]
    is_required: bool
    #: Whether None is written as null, instead of leaving the key out.
    is_nullable: bool


def _own_fields(event: Event) -> dict[str, Any]:
    if isinstance(event, UnknownEvent):
        return {}
    if isinstance(event, DroppedEvent):
        return ({} if event.records is None else {"records": event.records}) | dict(event.causes)
    values = ((entry, getattr(event, entry.name)) for entry in _FIELDS[type(event)])
    return {entry.key: value for entry, value in values if value is not None or entry.is_nullable}


def _read_fields(event_class: type[KnownEvent], own: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a class; None if a field is missing or has another type."""
    if event_class is DroppedEvent:
        return _read_causes(own)
    known = _FIELDS[event_class]
    values = {entry.name: own[entry.key] for entry in known if entry.key in own}
    for entry in known:
        is_missing = entry.name not in values
        if entry.is_required if is_missing else type(values[entry.name]) not in entry.types:
            return None
    keys = {entry.key for entry in known}
    return values | _extra({key: own[key] for key in own if key not in keys})


def _read_causes(own: Mapping[str, Any]) -> dict[str, Any]:
    counts = {key: value for key, value in own.items() if type(value) is int}
    records = counts.pop("records", None)
    extra = {key: value for key, value in own.items() if type(value) is not int}
    return {"causes": FrozenDict(counts), "records": records} | _extra(extra)


def _extra(unknown: Mapping[str, Any]) -> dict[str, Any]:
    return {"extra": freeze(unknown)} if unknown else {}


def _json_field(declared: Field[Any], hint: Any) -> _JsonField:
    types = tuple(kind for option in get_args(hint) or (hint,) for kind in _JSON_TYPES[option])
    key = declared.metadata.get("key", declared.name)
    is_nullable = declared.metadata.get("is_nullable", False)
    return _JsonField(declared.name, key, types, declared.default is MISSING, is_nullable)


def _json_fields(event_class: type[KnownEvent]) -> tuple[_JsonField, ...]:
    hints = get_type_hints(event_class)
    common = {declared.name for declared in fields(BaseEvent)}
    own = [declared for declared in fields(event_class) if declared.name not in common]
    return tuple(_json_field(declared, hints[declared.name]) for declared in own)


_CLASSES: tuple[type[KnownEvent], ...] = get_args(KnownEvent)
#: The classes of each kind, in the order in which they are tried.
_BY_KIND = {
    kind: tuple(event_class for event_class in _CLASSES if kind == event_class.KIND)
    for kind in dict.fromkeys(event_class.KIND for event_class in _CLASSES)
}
_FIELDS = {
    event_class: _json_fields(event_class)
    for event_class in _CLASSES
    if event_class is not DroppedEvent
}
