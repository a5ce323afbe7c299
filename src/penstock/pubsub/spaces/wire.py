"""Encrypted vectors and tests as bytes, and the checks of bytes from outside.

A vector is its components, a subscription the components of all tests of its boxes, as doubles,
little-endian. There is no header: the space says how many attributes there are, and so how long
both are.
"""

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pubsub.arrays import Doubles
from penstock.pubsub.kernels.half_spaces import check_unit_vectors, vector_size
from penstock.pubsub.language.boxes import MAX_BOXES

_DOUBLE_BYTES = 8


def vector_bytes(attributes: int) -> int:
    """Return the length of an encrypted publication.

    >>> vector_bytes(4), box_bytes(4)
    (64, 512)
    """
    return _DOUBLE_BYTES * vector_size(attributes)


def box_bytes(attributes: int) -> int:
    """Return the length of one box of an encrypted subscription."""
    return 2 * attributes * vector_bytes(attributes)


def encode_vectors(publications: pa.RecordBatch) -> list[bytes]:
    """Return each vector of encrypted publications, as an encoder made them."""
    column = publications.column(0)
    points = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return [point.astype("<f8").tobytes() for point in points]


def encode_tests(tests: Doubles) -> bytes:
    """Return an encrypted subscription: boxes, tests, components."""
    return tests.astype("<f8").tobytes()


def decode_vector(content: bytes, attributes: int) -> Doubles:
    """Return an encrypted publication; `InputError` if no client can have made it."""
    if len(content) != vector_bytes(attributes):
        problem = f"is no encrypted vector: must be {vector_bytes(attributes)} bytes"
        raise InputError("publication", f"{problem}, got {len(content)}")
    vector = np.frombuffer(content, "<f8")
    check_unit_vectors(vector, "publication")
    return vector


def decode_tests(content: bytes, attributes: int) -> Doubles:
    """Return an encrypted subscription; `InputError` if no client can have made it."""
    size = box_bytes(attributes)
    if not content or len(content) % size or len(content) > MAX_BOXES * size:
        problem = f"is no encrypted subscription: must be 1 to {MAX_BOXES} boxes of {size} bytes"
        raise InputError("subscription", f"{problem}, got {len(content)} bytes")
    tests = np.frombuffer(content, "<f8").reshape(-1, 2 * attributes, vector_size(attributes))
    check_unit_vectors(tests, "subscription")
    return tests
