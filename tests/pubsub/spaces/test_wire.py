"""Encrypted vectors and tests as bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pubsub.factories import draw_ranges, make_encoder

from penstock.errors import InputError
from penstock.pubsub.kernels.half_spaces import vector_size
from penstock.pubsub.spaces.wire import (
    box_bytes,
    decode_tests,
    decode_vector,
    encode_tests,
    encode_vectors,
    vector_bytes,
)


@given(st.integers(1, 8), st.integers(1, 16), st.integers(0, 1000))
def test_what_clients_encode_is_decoded(attributes: int, boxes: int, seed: int) -> None:
    encoder = make_encoder(attributes, 1000, seed)
    tests = encoder.encrypt_ranges(draw_ranges(boxes, attributes, 1000, seed))
    assert np.array_equal(decode_tests(encode_tests(tests), attributes), tests)
    cells = np.random.default_rng(seed).integers(0, 1000, (boxes, attributes))
    points = encoder.encrypt_cells(cells)
    contents = encode_vectors(encoder.make_batch(points))
    assert [decode_vector(c, attributes).tolist() for c in contents] == points.tolist()


@given(st.integers(1, 8), st.binary(max_size=2000))
def test_random_bytes_are_refused(attributes: int, content: bytes) -> None:
    for decode in (decode_vector, decode_tests):
        with pytest.raises(InputError, match="no encrypted"):
            decode(content, attributes)


@given(st.sampled_from([np.nan, np.inf, -np.inf, 1e200, 0.9]), st.integers(0, 7))
def test_vectors_with_another_length_are_refused(number: float, place: int) -> None:
    encoder = make_encoder(4, 100)
    tests = encoder.encrypt_ranges(draw_ranges(2, 4, 100))
    content = bytearray(encode_tests(tests))
    content[8 * place : 8 * place + 8] = struct.pack("<d", number)
    with pytest.raises(InputError, match="length must be 1"):
        decode_tests(bytes(content), 4)
    with pytest.raises(InputError, match="length must be 1"):
        decode_vector(bytes(content[: vector_bytes(4)]), 4)


def test_lengths_are_those_of_the_space() -> None:
    content = np.zeros(17 * 8 * vector_size(4)).tobytes()
    assert len(content) == 17 * box_bytes(4)
    for part, problem in (
        (content, "1 to 16 boxes of 512 bytes, got 8704"),
        (content[:511], "got 511"),
        (b"", "got 0"),
    ):
        with pytest.raises(InputError, match=problem):
            decode_tests(part, 4)
    with pytest.raises(InputError, match="must be 64 bytes, got 72"):
        decode_vector(bytes(72), 4)
