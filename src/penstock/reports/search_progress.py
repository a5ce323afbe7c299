"""A line on stderr that shows how far a search through states is."""

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from penstock.decentralized.checker.exploration import SearchProgress
from penstock.reports.terminal import can_redraw

#: Seconds between two lines if the stream cannot be redrawn.
INTERVAL_S = 10.0


class SearchLine:
    """Redraws one line on a terminal; elsewhere prints a line every few seconds."""

    def __init__(
        self,
        title: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._stream, self._clock = title, stream or sys.stderr, clock
        self._began_s = self._last_s = clock()
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_drawn:
            print("\r\x1b[K", end="", file=self._stream, flush=True)

    def show(self, progress: SearchProgress) -> None:
        """Show the progress."""
        now_s = self._clock()
        rate = progress.states / max(now_s - self._began_s, 1e-3)
        line = (
            f"{self._title}: {progress.states:,} states, {progress.frontier:,} to explore, "
            f"depth {progress.depth}, {rate:,.0f} states/s"
        )
        if can_redraw(self._stream):
            self._is_drawn = True
            print(f"\r\x1b[K{line}", end="", file=self._stream, flush=True)
        elif now_s - self._last_s >= INTERVAL_S:
            self._last_s = now_s
            print(line, file=self._stream, flush=True)
