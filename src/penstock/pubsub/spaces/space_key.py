"""The key file of a space, which stays with clients: JSON, readable by its owner only."""

import base64
import binascii
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.files.text import explain_os_error, read_text
from penstock.pubsub.arrays import Doubles
from penstock.pubsub.kernels.half_spaces import vector_size
from penstock.pubsub.payload import KEY_BYTES
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.aspe_key import (
    MAX_SCALE,
    MIN_SCALE,
    SECRET_BYTES,
    AspeKey,
    Entropy,
    make_aspe_key,
)
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import ASPE, Space, parse_space

FORMAT = 1
_OWNER_ONLY = 0o600
#: How far the product of a rotation with its inverse may be from 1.
_MAX_ROTATION_ERROR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceKey:
    """A space with everything secret that its clients need."""

    space: Space
    #: For AES-GCM.
    payload_key: bytes = field(repr=False)
    #: None in plain spaces.
    aspe: AspeKey | None = field(repr=False)

    def make_encoder(self, entropy: Entropy = os.urandom) -> AspeEncoder | PlainEncoder:
        """Return the encoder of the space."""
        if self.aspe is None:
            return PlainEncoder(self.space)
        return AspeEncoder(self.space, self.aspe, entropy)


def make_space_key(space: Space, entropy: Entropy = os.urandom) -> SpaceKey:
    """Draw the keys of a space."""
    is_encrypted = space.scheme == ASPE
    aspe = make_aspe_key(vector_size(len(space.paths)), entropy) if is_encrypted else None
    return SpaceKey(space=space, payload_key=entropy(KEY_BYTES), aspe=aspe)


def write_space_key(path: Path, key: SpaceKey) -> None:
    """Write a new key file; a file that exists is never replaced."""
    text = json.dumps(_to_json(key), indent=2) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except FileExistsError:
        hint = "what was encrypted with a lost key cannot be read again; choose another name"
        raise InputError("--out", f"{str(path)!r} exists already", hint) from None
    except (OSError, ValueError) as error:
        problem = f"{str(path)!r} cannot be written: {explain_os_error(error)}"
        raise InputError("--out", problem) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


def read_space_key(path: Path) -> SpaceKey:
    """Read a key file; messages never show its content."""
    text = read_text(path)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("", "is no key file: not JSON", where=str(path)) from None
    try:
        return _from_json(fields)
    except InputError as error:
        raise error.at(str(path)) from None


def _to_json(key: SpaceKey) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": FORMAT,
        "space": key.space.to_json(),
        "payload_key": _encode(key.payload_key),
    }
    if key.aspe is not None:
        fields["aspe"] = {
            "left": _encode(key.aspe.left.astype("<f8").tobytes()),
            "scales": _encode(key.aspe.scales.astype("<f8").tobytes()),
            "right": _encode(key.aspe.right.astype("<f8").tobytes()),
            "secret": _encode(key.aspe.secret),
        }
    return fields


def _from_json(fields: object) -> SpaceKey:
    if not isinstance(fields, Mapping) or "payload_key" not in fields:
        raise InputError("", "is no key file: it has no payload_key")
    if fields.get("format") != FORMAT:
        raise InputError("format", f"must be {FORMAT}, got {fields.get('format')!r}")
    if not isinstance(fields.get("space"), Mapping):
        raise InputError("space", "must be the declaration of a space")
    try:
        space = parse_space(fields["space"])
    except InputError as error:
        raise error.under("space") from None
    payload_key = _decode(fields, "payload_key", KEY_BYTES)
    aspe = _parse_aspe(fields.get("aspe"), len(space.paths)) if space.scheme == ASPE else None
    return SpaceKey(space=space, payload_key=payload_key, aspe=aspe)


def _parse_aspe(fields: object, attributes: int) -> AspeKey:
    if not isinstance(fields, Mapping):
        raise InputError("aspe", "is missing")
    size = vector_size(attributes)
    try:
        scales = np.frombuffer(_decode(fields, "scales", 8 * size), "<f8")
        # written so that NaN fails, too
        if not np.all((scales >= MIN_SCALE) & (scales <= MAX_SCALE)):
            raise InputError("scales", f"must be from {MIN_SCALE} to {MAX_SCALE}")
        return AspeKey(
            left=_parse_rotation(fields, "left", size),
            scales=scales,
            right=_parse_rotation(fields, "right", size),
            secret=_decode(fields, "secret", SECRET_BYTES),
        )
    except InputError as error:
        raise error.under("aspe") from None


def _parse_rotation(fields: Mapping[str, Any], name: str, size: int) -> Doubles:
    matrix = np.frombuffer(_decode(fields, name, 8 * size * size), "<f8").reshape(size, size)
    if not np.all(np.abs(matrix @ matrix.T - np.eye(size)) <= _MAX_ROTATION_ERROR):
        raise InputError(name, "is no rotation; the file is damaged")
    return matrix


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(fields: Mapping[str, Any], name: str, size: int) -> bytes:
    value = fields.get(name)
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != size:
        raise InputError(name, f"must be {size} bytes in base64")
    return data
