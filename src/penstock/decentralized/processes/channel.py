"""A channel to one peer: reliable and first in, first out, with an injected delay."""

import asyncio
from asyncio import StreamWriter
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from penstock.decentralized.processes.frames import encode_frame

#: Opens the connection when the first message is sent.
Connect = Callable[[], Awaitable[StreamWriter]]


class Channel:
    """Sends messages in their order; each leaves after a delay, and never before its predecessor.

    There is one connection for each direction of a pair of nodes, so records and messages of the
    protocol cannot overtake each other.
    """

    def __init__(self, connect: Connect, draw_delay_s: Callable[[], float]) -> None:
        self._connect, self._draw_delay_s = connect, draw_delay_s
        #: Frames with the time at which they leave.
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._release_s = 0.0
        self._has_news = asyncio.Event()
        self._is_closing = False
        #: Ends when the channel was closed and all is sent, or with the error of the connection.
        self.task = asyncio.create_task(self._pump())

    def send(self, body: Any) -> None:
        """Queue a message; never blocks."""
        now = asyncio.get_running_loop().time()
        self._release_s = max(self._release_s, now + self._draw_delay_s())
        self._waiting.append((self._release_s, encode_frame(body)))
        self._has_news.set()

    def finish(self) -> None:
        """Close the connection when every message is sent."""
        self._is_closing = True
        self._has_news.set()

    async def close(self) -> None:
        """Close the connection, and wait until every message is sent."""
        self.finish()
        await self.task

    async def _pump(self) -> None:
        writer: StreamWriter | None = None
        try:
            while await self._wait():
                writer = writer or await self._connect()
                await self._flush(writer)
        finally:
            if writer is not None:
                writer.close()
        if writer is not None:
            with suppress(OSError):  # a peer that has stopped may have closed it first
                await writer.wait_closed()

    async def _wait(self) -> bool:
        """Wait for the next message; False if there will be none."""
        while not self._waiting:
            if self._is_closing:
                return False
            self._has_news.clear()
            await self._has_news.wait()
        return True

    async def _flush(self, writer: StreamWriter) -> None:
        """Send what is due, after waiting for the first one."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._waiting[0][0] - clock())
        now = clock()
        while self._waiting and self._waiting[0][0] <= now:
            writer.write(self._waiting.popleft()[1])
        await writer.drain()
