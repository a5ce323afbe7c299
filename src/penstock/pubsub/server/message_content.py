"""What clients send, checked against the space and turned into requests for the engine.

Plain space: a publication is any JSON object, a subscription a predicate. Encrypted space: both are
bytes in base64 that only clients can make, and nothing else is accepted.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError, nearest
from penstock.pubsub.broker import PublishRequest
from penstock.pubsub.server.json_body import dump_json
from penstock.pubsub.spaces.encoder import compile_for_space
from penstock.pubsub.spaces.space import ASPE, Space
from penstock.pubsub.spaces.wire import decode_tests, decode_vector

_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_ENCRYPTED_HINT = "this space is encrypted: a client with the key file makes vector and payload"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubscription:
    """A checked subscription; without an id the server chooses one."""

    id: str | None
    content: bytes


def make_publication(space: Space, fields: Mapping[str, Any]) -> PublishRequest:
    """Return the request for a publication; `InputError` says what is wrong."""
    if space.scheme != ASPE:
        event = dump_json(fields)
        return PublishRequest(content=event, payload=event)
    _refuse_others(fields, ("vector", "payload"), _ENCRYPTED_HINT)
    vector = _read_base64(fields, "vector")
    payload = _read_base64(fields, "payload")
    try:
        decode_vector(vector, len(space.paths))
    except InputError as error:
        raise InputError("vector", error.problem) from None
    return PublishRequest(content=vector, payload=payload)


def parse_subscription(space: Space, fields: Mapping[str, Any]) -> NewSubscription:
    """Check a subscription; a mistake in a predicate is a `PredicateError` with its place."""
    is_encrypted = space.scheme == ASPE
    name = "tests" if is_encrypted else "predicate"
    if is_encrypted and "predicate" in fields:
        raise InputError("predicate", "must not be sent in plaintext", _ENCRYPTED_HINT)
    _refuse_others(fields, ("id", name))
    id = fields.get("id")
    if id is not None and (not isinstance(id, str) or not _ID.fullmatch(id)):
        hint = "up to 128 letters, digits and . _ ~ -"
        raise InputError("id", "is not allowed", hint)
    if is_encrypted:
        content = _read_base64(fields, "tests")
        try:
            decode_tests(content, len(space.paths))
        except InputError as error:
            raise InputError("tests", error.problem) from None
        return NewSubscription(id=id, content=content)
    text = fields.get("predicate")
    if not isinstance(text, str):
        raise InputError("predicate", "must be a text", "such as \"price > 3 AND symbol = 'A'\"")
    compile_for_space(text, space)
    try:
        return NewSubscription(id=id, content=text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InputError("predicate", "has half of a surrogate pair") from None


def _refuse_others(fields: Mapping[str, Any], known: tuple[str, ...], hint: str = "") -> None:
    for name in fields:
        if name not in known:
            problem = "plaintext is refused" if hint else "is not known"
            raise InputError(str(name)[:80], problem, hint or nearest(name, known))


def _read_base64(fields: Mapping[str, Any], name: str) -> bytes:
    value = fields.get(name)
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise InputError(name, "must be bytes in base64, at least one", _ENCRYPTED_HINT)
    return data
