"""The handshake of a connection: both sides prove that they know the token of the run.

The token never crosses the connection. Each side sends a random number, and proves itself with a
keyed hash (HMAC) over both numbers and both names. So a stranger on the same machine can neither
join a run, nor repeat what it has seen, nor take the place of a node that has ended.
"""

import asyncio
import hmac
import secrets
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from typing import Any

from penstock.decentralized.processes.frames import (
    MAX_FRAME_BYTES,
    MAX_STRANGER_BYTES,
    FrameError,
    FrameReader,
    encode_frame,
)
from penstock.errors import PenstockError

#: Nodes and launcher listen on this machine only.
LOOPBACK = "127.0.0.1"
_TIMEOUT_S = 20.0
_NONCE_BYTES = 16


class StrangerError(PenstockError):
    """The other side of a connection does not know the token, or is not who it should be."""


async def accept_peer(
    stream: StreamReader, writer: StreamWriter, token: str, name: str
) -> tuple[str, FrameReader]:
    """Challenge a new connection; return the name of the peer and the reader of its frames."""
    reader, challenge = FrameReader(stream, MAX_STRANGER_BYTES), secrets.token_hex(_NONCE_BYTES)
    await _send(writer, {"name": name, "nonce": challenge})
    answer = await _read(reader, "name", "nonce", "proof")
    parts = (challenge, answer["nonce"], name, answer["name"])
    _check(_prove(token, "client", *parts), answer["proof"], answer["name"])
    await _send(writer, {"proof": _prove(token, "server", *parts)})
    reader.max_bytes = MAX_FRAME_BYTES
    return answer["name"], reader


async def introduce(
    stream: StreamReader, writer: StreamWriter, token: str, name: str, peer: str
) -> FrameReader:
    """Answer the challenge of a peer, and check that it is the expected one."""
    reader, nonce = FrameReader(stream, MAX_STRANGER_BYTES), secrets.token_hex(_NONCE_BYTES)
    greeting = await _read(reader, "name", "nonce")
    parts = (greeting["nonce"], nonce, peer, name)
    await _send(writer, {"name": name, "nonce": nonce, "proof": _prove(token, "client", *parts)})
    answer = await _read(reader, "proof")
    _check(_prove(token, "server", *parts), answer["proof"], peer)
    reader.max_bytes = MAX_FRAME_BYTES
    return reader


async def dial(port: int, token: str, name: str, peer: str) -> tuple[FrameReader, StreamWriter]:
    """Connect to a port of this machine and introduce oneself to the peer there."""
    stream, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        return await introduce(stream, writer, token, name, peer), writer
    except BaseException:
        writer.close()
        raise


def _prove(token: str, side: str, *parts: str) -> str:
    return hmac.new(token.encode(), "\n".join((side, *parts)).encode(), "sha256").hexdigest()


def _check(expected: str, proof: str, peer: str) -> None:
    if not hmac.compare_digest(expected.encode(), proof.encode()):
        raise StrangerError(f"{peer!r} does not know the token of this run")


async def _send(writer: StreamWriter, body: Mapping[str, str]) -> None:
    writer.write(encode_frame(body))
    await writer.drain()


async def _read(reader: FrameReader, *fields: str) -> dict[str, str]:
    """Read a message of these texts; anything else, or silence, is a stranger."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            body: Any = await reader.read()
    except (EOFError, OSError, FrameError, TimeoutError) as error:
        raise StrangerError(f"no handshake: {error or 'the peer is silent'}") from None
    known = isinstance(body, dict) and set(body) == set(fields)
    if not known or not all(isinstance(value, str) for value in body.values()):
        raise StrangerError("no handshake: the peer sent another message")
    return dict(body)
