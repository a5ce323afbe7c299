"""What clients put into requests and read from notifications, in plain and encrypted spaces."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.errors import InputError
from penstock.pubsub.payload import decrypt_payload, encrypt_payload
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.space_key import SpaceKey
from penstock.pubsub.spaces.wire import encode_tests, encode_vectors

Fields = dict[str, Any]


class ClientContent(Protocol):
    """How events and predicates look in requests and notifications of a space."""

    def make_publications(self, events: Sequence[Mapping[str, Any]]) -> list[Fields]:
        """Return the bodies for events."""

    def make_publication(self, event: Mapping[str, Any]) -> Fields:
        """Return the body for one event."""

    def make_subscription(self, predicate: str) -> Fields:
        """Return the body for a predicate, without an id."""

    def read_event(self, notification: Mapping[str, Any]) -> Fields:
        """Return the event of a notification."""


class PlainContent:
    """Events and predicates as they are; the server checks them."""

    def make_publications(self, events: Sequence[Mapping[str, Any]]) -> list[Fields]:
        """Return the events."""
        return [dict(event) for event in events]

    def make_publication(self, event: Mapping[str, Any]) -> Fields:
        """Return the event."""
        return dict(event)

    def make_subscription(self, predicate: str) -> Fields:
        """Return the predicate."""
        return {"predicate": predicate}

    def read_event(self, notification: Mapping[str, Any]) -> Fields:
        """Return the event of a notification."""
        return dict(notification["event"])


class EncryptedContent:
    """Attributes as vectors, events as AES-GCM payloads; the key stays here."""

    def __init__(self, key: SpaceKey) -> None:
        encoder = key.make_encoder()
        if not isinstance(encoder, AspeEncoder):
            raise InputError("key", "is for a plain space")
        self._key, self._encoder = key, encoder

    def make_publications(self, events: Sequence[Mapping[str, Any]]) -> list[Fields]:
        """Encrypt events; a value that is not on its grid is refused here."""
        vectors = encode_vectors(self._encoder.encode_publications(events))
        return [
            {"vector": _encode(vector), "payload": _encode(self._encrypt(event))}
            for vector, event in zip(vectors, events, strict=True)
        ]

    def make_publication(self, event: Mapping[str, Any]) -> Fields:
        """Encrypt one event."""
        return self.make_publications([event])[0]

    def make_subscription(self, predicate: str) -> Fields:
        """Encrypt the tests of a predicate; a mistake is found here, with its place."""
        return {"tests": _encode(encode_tests(self._encoder.encode_subscription(predicate)))}

    def read_event(self, notification: Mapping[str, Any]) -> Fields:
        """Decrypt the event of a notification."""
        sealed = base64.b64decode(notification["payload"])
        return dict(json.loads(decrypt_payload(self._key.payload_key, sealed)))

    def _encrypt(self, event: Mapping[str, Any]) -> bytes:
        try:
            text = json.dumps(event, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError("event", f"cannot be written as JSON: {error}") from None
        return encrypt_payload(self._key.payload_key, text.encode())


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
