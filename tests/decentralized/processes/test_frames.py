"""Frames: what is written is read again, in any pieces; anything else is refused."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decentralized.processes.frames import (
    MAX_FRAME_BYTES,
    FrameError,
    FrameReader,
    encode_frame,
)

BODIES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read_frames(pieces: list[bytes], max_bytes: int = MAX_FRAME_BYTES) -> list[Any]:
    """Feed pieces of a stream to a reader, and read until its end."""

    async def read() -> list[Any]:
        stream = asyncio.StreamReader()
        reader, bodies = FrameReader(stream, max_bytes), []

        async def feed() -> None:
            for piece in pieces:
                stream.feed_data(piece)
                await asyncio.sleep(0)
            stream.feed_eof()

        feeder = asyncio.create_task(feed())
        try:
            while True:
                bodies.append(await reader.read())
        except EOFError:
            return bodies
        finally:
            await feeder

    return asyncio.run(read())


@given(st.lists(BODIES, max_size=5), st.data())
def test_frames_are_read_as_written_however_the_stream_is_cut(
    bodies: list[Any], data: st.DataObject
) -> None:
    stream = b"".join(map(encode_frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert read_frames(pieces) == bodies


@given(BODIES, st.data())
def test_a_stream_that_ends_within_a_frame_is_refused(body: Any, data: st.DataObject) -> None:
    frame = encode_frame(body)
    size = data.draw(st.integers(1, len(frame) - 1))
    with pytest.raises(FrameError, match="ends"):
        read_frames([frame[:size]])


@given(st.binary(min_size=7, max_size=40))
def test_foreign_bytes_are_refused_or_are_a_frame(data: bytes) -> None:
    try:
        bodies = read_frames([data])
    except FrameError:
        return
    assert b"".join(data for data in map(encode_frame, bodies))[:2] == data[:2]


def test_the_layout_of_a_frame() -> None:
    frame = encode_frame({"a": [1]})
    assert frame[:2] == b"PD"
    assert frame[2] == 1
    assert int.from_bytes(frame[3:7], "big") == len(frame) - 7
    assert json.loads(frame[7:]) == {"a": [1]}


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (b"HT\x01\x00\x00\x00\x02{}", "begins with"),
        (b"PD\x02\x00\x00\x00\x02{}", "version 2"),
        (b"PD\x01\x00\x00\x00\x02{]", "no JSON"),
        (b"PD\x01\x00\x00\x00\x02\xff\xff", "no JSON"),
        (b"PD\x01\xff\xff\xff\xff", "longer than"),
        (b"PD\x01\x00\x01\x00\x00" + b"[" * 65_536, "no JSON"),
    ],
)
def test_a_wrong_frame_is_named(frame: bytes, problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        read_frames([frame])


def test_a_reader_with_a_limit_refuses_a_longer_frame_before_it_is_there() -> None:
    head = encode_frame("x" * 100)[:7]
    with pytest.raises(FrameError, match="102 bytes is longer than 64"):
        read_frames([head], max_bytes=64)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(FrameError, match="longer than"):
        encode_frame("x" * MAX_FRAME_BYTES)
