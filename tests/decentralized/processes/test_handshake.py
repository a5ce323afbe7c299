"""The handshake: only who knows the token gets in, and only the expected peer answers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.decentralized.processes.frames import FrameReader, encode_frame
from penstock.decentralized.processes.handshake import (
    LOOPBACK,
    StrangerError,
    accept_peer,
    dial,
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def meet(visit: Callable[[int], Awaitable[None]]) -> list[str]:
    """Let a visitor connect to a server with the token "right"; return what the server saw."""
    seen: list[str] = []

    async def run() -> None:
        is_over = asyncio.Event()

        async def serve(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                name, _ = await accept_peer(stream, writer, "right", "map-1@1")
                seen.append(f"accepted {name}")
            except StrangerError as error:
                seen.append(f"refused: {error}")
            writer.close()
            is_over.set()

        server = await asyncio.start_server(serve, LOOPBACK, 0)
        try:
            await visit(server.sockets[0].getsockname()[1])
            await is_over.wait()
        finally:
            server.close()

    asyncio.run(run())
    return seen


def test_a_peer_with_the_token_is_accepted_by_its_name() -> None:
    async def visit(port: int) -> None:
        _, writer = await dial(port, "right", "sink-1@2", "map-1@1")
        writer.close()

    assert meet(visit) == ["accepted sink-1@2"]


def test_a_peer_with_another_token_is_refused() -> None:
    async def visit(port: int) -> None:
        with pytest.raises(StrangerError):
            await dial(port, "wrong", "sink-1@2", "map-1@1")

    assert meet(visit) == ["refused: 'sink-1@2' does not know the token of this run"]


def test_a_server_that_is_not_the_expected_one_is_refused() -> None:
    async def visit(port: int) -> None:
        with pytest.raises(StrangerError):
            await dial(port, "right", "sink-1@2", "map-7@1")

    assert len(meet(visit)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        encode_frame(["record", [1, 0.0, {}, 1]]),
        encode_frame({"name": "map-1@1", "nonce": "", "proof": "é"}),
        encode_frame({"name": 7, "nonce": [], "proof": {}}),
        encode_frame("x" * 5000),
        b"",
    ],
)
def test_a_stranger_is_refused(data: bytes) -> None:
    async def visit(port: int) -> None:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(data)
        writer.close()

    (seen,) = meet(visit)
    assert seen.startswith("refused")


def test_an_overheard_proof_is_worth_nothing() -> None:
    """The answer of an earlier handshake does not fit the next challenge."""
    overheard: list[dict[str, str]] = []

    async def listen(port: int) -> None:
        async def relay(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner, to_server = await asyncio.open_connection(LOOPBACK, port)
            reader, from_server = FrameReader(stream), FrameReader(inner)
            writer.write(encode_frame(await from_server.read()))
            overheard.append(await reader.read())
            to_server.write(encode_frame(overheard[0]))
            writer.write(encode_frame(await from_server.read()))
            to_server.close()
            writer.close()

        tap = await asyncio.start_server(relay, LOOPBACK, 0)
        _, writer = await dial(tap.sockets[0].getsockname()[1], "right", "sink-1@2", "map-1@1")
        writer.close()
        tap.close()

    async def repeat(port: int) -> None:
        stream, writer = await asyncio.open_connection(LOOPBACK, port)
        await FrameReader(stream).read()
        writer.write(encode_frame(overheard[0]))
        writer.close()

    assert meet(listen) == ["accepted sink-1@2"]
    (seen,) = meet(repeat)
    assert seen.startswith("refused")
