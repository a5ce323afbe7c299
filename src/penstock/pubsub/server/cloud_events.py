"""CloudEvents 1.0 in JSON as publications: structured mode, and batches of events."""

from collections.abc import Mapping
from typing import Any

from penstock.errors import InputError

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_VERSION = "1.0"
_REQUIRED = ("id", "source", "type")
#: Members that are not attributes of the context.
_DATA = ("data", "data_base64")


def check_cloud_event(event: Mapping[str, Any]) -> None:
    """Refuse what is no CloudEvent.

    An event is published as it is: a predicate names `type`, `source` or `data.price`.

    >>> check_cloud_event({"specversion": "1.0", "id": "1", "source": "/a"})
    Traceback (most recent call last):
    penstock.errors.InputError: type: must be a text that is not empty
    hint: CloudEvents 1.0 requires specversion, id, source and type
    """
    if event.get("specversion") != _VERSION:
        raise InputError("specversion", f"must be '{_VERSION}', got {event.get('specversion')!r}")
    hint = "CloudEvents 1.0 requires specversion, id, source and type"
    for name in _REQUIRED:
        if not isinstance(event.get(name), str) or not event[name]:
            raise InputError(name, "must be a text that is not empty", hint)
    if all(name in event for name in _DATA):
        raise InputError("data", "must not stand beside data_base64")
    if not isinstance(event.get("data_base64", ""), str):
        raise InputError("data_base64", "must be a text")
    for name, value in event.items():
        if name in _DATA:
            continue
        if not (name.isascii() and name.isalnum() and name == name.lower()):
            raise InputError(name[:80], "is no name of an attribute: use a-z and 0-9")
        if not isinstance(value, str | bool | int) and value is not None:
            raise InputError(name, "must be a text, a boolean or a whole number")
