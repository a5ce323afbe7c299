"""Writes numbered rows as JSON files into a directory, one file after the other, in a thread."""

import json
import math
import os
import threading
import time
from pathlib import Path

#: Seconds between two files, unless a test asks for others.
EVERY_S = 0.5


class FileSource:
    """Rows {"id": n, "text": ...} at a steady rate, or one that goes up and down."""

    def __init__(
        self,
        directory: Path,
        rate: float,
        *,
        wave: float = 0.0,
        wave_s: float = 60.0,
        every_s: float = EVERY_S,
    ) -> None:
        """With `wave` the rate goes up and down by that share, once in `wave_s` seconds."""
        self.directory, self._rate = directory, rate
        self._wave, self._wave_s, self._every_s = wave, wave_s, every_s
        #: Rows written so far: their ids are 0 to `rows` - 1.
        self.rows = 0
        self._files = 0
        self._stop = threading.Event()
        directory.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(self._every_s):
            self._write(int(self._due(time.monotonic() - began)))

    def _due(self, second: float) -> float:
        """Rows that are due by a second: the integral of the rate."""
        turn = 2 * math.pi / self._wave_s
        return self._rate * (second + self._wave / turn * (1 - math.cos(turn * second)))

    def _write(self, end: int) -> None:
        rows = [{"id": i, "text": f"n{i % 13}"} for i in range(self.rows, end)]
        aside = self.directory / ".next.tmp"
        aside.write_text("\n".join(map(json.dumps, rows)))
        # Spark reads files in the order of their times, which may be equal by the clock
        self._files += 1
        os.utime(aside, (1e9 + self._files, 1e9 + self._files))
        aside.rename(self.directory / f"{self._files:06d}.json")
        self.rows = end

    def stop(self) -> int:
        """Stop writing; return how many rows there are."""
        self._stop.set()
        self._thread.join()
        return self.rows
