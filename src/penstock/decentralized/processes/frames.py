"""Frames: messages on a TCP connection, each a header with its length, and JSON."""

import json
import struct
from asyncio import IncompleteReadError, StreamReader
from typing import Any

from penstock.errors import PenstockError

MAGIC, VERSION = b"PD", 1
#: The largest payload of a peer that has shown the token, and of a stranger.
MAX_FRAME_BYTES, MAX_STRANGER_BYTES = 1 << 20, 1 << 10
#: Magic bytes, version of the encoding, bytes of the payload.
_HEADER = struct.Struct(">2sBI")


class FrameError(PenstockError):
    """Bytes that are no frame: cut short, too long, of another version, or no JSON."""


def encode_frame(body: Any) -> bytes:
    """Write a JSON value as one frame.

    >>> encode_frame(["ack", 7])
    b'PD\\x01\\x00\\x00\\x00\\t["ack",7]'
    """
    payload = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    if len(payload) > MAX_FRAME_BYTES:
        problem = f"a message of {len(payload):,} bytes is longer than {MAX_FRAME_BYTES:,} bytes"
        raise FrameError(problem)
    return _HEADER.pack(MAGIC, VERSION, len(payload)) + payload


class FrameReader:
    """Reads frames from a stream, one after the other."""

    def __init__(self, stream: StreamReader, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._stream = stream
        #: Longer payloads are refused before they are read.
        self.max_bytes = max_bytes

    async def read(self) -> Any:
        """Return the next message; EOFError if the peer closed the stream between two frames."""
        try:
            header = await self._stream.readexactly(_HEADER.size)
        except IncompleteReadError as error:
            if not error.partial:
                raise EOFError("the peer has closed the connection") from None
            raise FrameError("the stream ends within the header of a frame") from None
        return _decode(await self._read_payload(_payload_bytes(header, self.max_bytes)))

    async def _read_payload(self, size: int) -> bytes:
        try:
            return await self._stream.readexactly(size)
        except IncompleteReadError as error:
            problem = f"the stream ends after {len(error.partial)} of {size} bytes of a frame"
            raise FrameError(problem) from None


def _payload_bytes(header: bytes, max_bytes: int) -> int:
    magic, version, size = _HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError(f"a frame begins with {MAGIC!r}, got {magic!r}")
    if version != VERSION:
        raise FrameError(f"version {version} of the encoding is unknown; this is {VERSION}")
    if size > max_bytes:
        raise FrameError(f"a frame of {size:,} bytes is longer than {max_bytes:,} bytes")
    return int(size)


def _decode(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame holds no JSON: {error}") from None
