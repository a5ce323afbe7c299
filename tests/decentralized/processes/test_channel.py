"""Channels: in order whatever the delays are, nothing lost when they close."""

import asyncio
import random

import pytest

from penstock.decentralized.processes.channel import Channel
from penstock.decentralized.processes.frames import FrameReader
from penstock.decentralized.processes.handshake import LOOPBACK


async def send_all(count: int, delays_s: list[float]) -> tuple[list[int], float]:
    """Send numbers through a channel and close it; return what arrived, and the seconds."""
    arrived: list[int] = []
    is_over = asyncio.Event()

    async def serve(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader = FrameReader(stream)
        try:
            while True:
                arrived.append(await reader.read())
        except EOFError:
            writer.close()
            is_over.set()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]

    async def connect() -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        return writer

    began_s = asyncio.get_running_loop().time()
    draws = iter(delays_s)
    channel = Channel(connect, lambda: next(draws))
    for number in range(count):
        channel.send(number)
    await channel.close()
    await is_over.wait()
    server.close()
    return arrived, asyncio.get_running_loop().time() - began_s


def test_messages_arrive_in_order_whatever_their_delays_are() -> None:
    draws = random.Random(3)
    delays_s = [draws.choice([0.0, 0.001, 0.02]) for _ in range(300)]
    arrived, _ = asyncio.run(send_all(300, delays_s))
    assert arrived == list(range(300))


def test_a_delay_holds_back_its_message_and_the_following_ones() -> None:
    arrived, took_s = asyncio.run(send_all(3, [0.0, 0.2, 0.0]))
    assert arrived == [0, 1, 2]
    assert took_s >= 0.2


def test_a_channel_that_was_never_used_opens_no_connection() -> None:
    async def run() -> None:
        async def connect() -> asyncio.StreamWriter:
            raise AssertionError("no message, no connection")

        await Channel(connect, lambda: 0.0).close()

    asyncio.run(run())


def test_a_peer_that_cannot_be_reached_is_an_error() -> None:
    async def run() -> None:
        async def connect() -> asyncio.StreamWriter:
            raise ConnectionRefusedError("nobody there")

        channel = Channel(connect, lambda: 0.0)
        channel.send("hello")
        with pytest.raises(ConnectionRefusedError):
            await channel.close()

    asyncio.run(run())
