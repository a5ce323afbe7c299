"""Checks the content of requests for a space, and turns it into what matchers compare."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.arrays import byte_lengths
from penstock.pubsub.kernels.half_spaces import (
    are_unit_vectors,
    read_doubles,
    vector_size,
)
from penstock.pubsub.language.box_json import encode_boxes
from penstock.pubsub.spaces.encoder import compile_for_space
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import ASPE, Space
from penstock.pubsub.spaces.wire import decode_tests, vector_bytes

PAYLOAD = "payload"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPublications:
    """The publications of some requests that are right, and what is wrong with the others."""

    #: The places of right ones.
    places: pa.Array
    #: One row for each of them: its payload, and what the matcher compares.
    values: pa.RecordBatch
    #: Problems by place.
    problems: dict[int, str]


class ContentCheck(Protocol):
    """Checks what publishers and subscribers sent."""

    def check_subscription(self, content: bytes) -> bytes:
        """Return what the matcher stores; `InputError` says what is wrong."""

    def check_publications(
        self, contents: pa.BinaryArray, payloads: pa.BinaryArray
    ) -> CheckedPublications:
        """Sort publications into right and wrong ones."""


@dataclass(frozen=True, slots=True)
class PlainCheck:
    """Predicates become boxes, JSON objects become columns of values."""

    space: Space

    def check_subscription(self, content: bytes) -> bytes:
        """Return the boxes of a predicate."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("predicate", "must be text in UTF-8") from None
        return encode_boxes(compile_for_space(text, self.space))

    def check_publications(
        self, contents: pa.BinaryArray, payloads: pa.BinaryArray
    ) -> CheckedPublications:
        """Parse JSON objects; one without a payload is its own."""
        places, objects, problems = [], [], {}
        for place, content in enumerate(contents.to_pylist()):
            try:
                objects.append(parse_object(content))
                places.append(place)
            except InputError as error:
                problems[place] = str(error)
        values = _with_signed_codes(PlainEncoder(self.space).encode_publications(objects))
        right = pa.array(places, pa.int64())
        pairs = zip(payloads.to_pylist(), contents.to_pylist(), strict=True)
        sent = pa.array([payload or content for payload, content in pairs], pa.binary()).take(right)
        return CheckedPublications(
            places=right, values=values.append_column(PAYLOAD, sent), problems=problems
        )


@dataclass(frozen=True, slots=True)
class AspeCheck:
    """Vectors have the right length; content is never shown."""

    attributes: int

    def check_subscription(self, content: bytes) -> bytes:
        """Return the tests as they came."""
        decode_tests(content, self.attributes)
        return content

    def check_publications(
        self, contents: pa.BinaryArray, payloads: pa.BinaryArray
    ) -> CheckedPublications:
        """Check lengths: of the bytes, and of the vectors."""
        size = vector_bytes(self.attributes)
        lengths = byte_lengths(contents)
        has_payload = byte_lengths(payloads) > 0
        places = np.flatnonzero((lengths == size) & has_payload)
        points = read_doubles(contents.take(pa.array(places)), vector_size(self.attributes))
        is_unit = are_unit_vectors(points)
        right = pa.array(places[is_unit])
        wrong = np.setdiff1d(np.arange(len(contents)), right.to_numpy())
        problems = {
            int(place): self._explain(lengths[place], has_payload[place]) for place in wrong
        }
        columns = {PAYLOAD: payloads.take(right), "vector": contents.take(right)}
        return CheckedPublications(
            places=right, values=pa.RecordBatch.from_pydict(columns), problems=problems
        )

    def _explain(self, length: int, has_payload: bool) -> str:
        size = vector_bytes(self.attributes)
        if length != size:
            return f"publication: is no encrypted vector: must be {size} bytes, got {length}"
        if not has_payload:
            return "payload: must not be empty in an encrypted space"
        return "publication: is no encrypted vector: its length must be 1"


def make_check(space: Space) -> ContentCheck:
    """Return the check for the scheme of a space."""
    return AspeCheck(len(space.paths)) if space.scheme == ASPE else PlainCheck(space)


def parse_object(content: bytes) -> dict[str, Any]:
    """Return a publication of a plain space; `InputError` says what is wrong."""
    try:
        fields = json.loads(content)
    except UnicodeDecodeError:
        raise InputError("publication", "must be JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg}, at character {error.pos + 1}"
        raise InputError("publication", problem) from None
    except (ValueError, RecursionError):
        raise InputError("publication", "is not JSON: too deep, or a number too long") from None
    if not isinstance(fields, dict):
        raise InputError("publication", "must be a JSON object")
    return fields


def _with_signed_codes(values: pa.RecordBatch) -> pa.RecordBatch:
    """Return values with the types of a topic, which has no unsigned numbers."""
    columns: Sequence[pa.Array] = [
        column.cast(pa.int8()) if column.type == pa.uint8() else column for column in values.columns
    ]
    return pa.record_batch(columns, values.schema.names)
