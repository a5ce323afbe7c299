"""One run that the dashboard shows: its index and its columns, read as the journal grows.

Requests come from several threads; a lock lets one at a time read on. Reading on is bounded in
time and stops as soon as a request waits, so that a page of a long run is there at once and
follows its slider: until all ticks are read, `columns_now` gives an evenly spread sample of them.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.files.lock import find_holder
from penstock.runs.decimation import evenly
from penstock.runs.journal_index import JournalIndex
from penstock.runs.result import RunResult
from penstock.runs.run_columns import RunColumns
from penstock.runs.run_directory import (
    JOURNAL,
    LOCK,
    RESULT,
    SPEC_FILE,
    read_result,
    read_spec_file,
)

#: Ticks that are read between two looks at the clock, and those of a sample.
_STEP, SAMPLE = 250, 1000
#: Numbers that are kept as columns, four bytes each: over a million ticks of three operators.
MAX_NUMBERS = 50_000_000
#: A journal without a lock that was written this recently belongs to a live simulation.
_FRESH_S = 20.0


class RunReader:
    """Reads one run directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.spec, self.versions = read_spec_file(directory / SPEC_FILE)
        self._lock = threading.RLock()
        #: One entry for each thread that waits for the lock; appending is atomic.
        self._queue: list[None] = []
        self._index = JournalIndex(directory / JOURNAL)
        self._columns, self._generation = RunColumns(), 0
        self._sample: RunColumns | None = None
        self._sample_of = (0, 0)
        self._result: tuple[float, RunResult | None] = (0.0, None)

    @contextmanager
    def open(self) -> Iterator["RunReader"]:
        """Use the index and the columns while no other thread changes them."""
        self._queue.append(None)
        with self._lock:
            self._queue.pop()
            yield self

    @property
    def index(self) -> JournalIndex:
        """Where the ticks are; use it within `open`."""
        return self._index

    @property
    def columns(self) -> RunColumns:
        """The ticks that were read so far; use it within `open`."""
        return self._columns

    @property
    def is_complete(self) -> bool:
        """Whether all ticks were read, or as many as the memory may hold."""
        return len(self._columns) >= len(self._index) or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether later ticks are left out because the columns are too large."""
        return len(self._columns) * len(self._columns.names) >= MAX_NUMBERS

    def update(self, budget_s: float = 0.1) -> bool:
        """Read new ticks for at most so long; whether there was anything new.

        It reads on at least a little, and stops early if another thread waits.
        """
        with self.open():
            is_new = self._index.refresh()
            if self._index.generation != self._generation:
                self._generation = self._index.generation
                self._columns, self._sample = RunColumns(), None
                is_new = True
            until = time.monotonic() + budget_s
            while not self.is_complete:
                first = len(self._columns)
                self._columns.extend(self._index.read(first, first + _STEP))
                is_new = True
                if self._queue or time.monotonic() >= until:
                    break
            if self.is_complete:
                self._sample = None
            return is_new

    @property
    def end_s(self) -> float:
        """The time of the last tick; use it within `open`."""
        return self._index.end_s

    def columns_now(self) -> RunColumns:
        """Return all ticks if they are read, else a sample of them; use it within `open`."""
        if self.is_complete or len(self._index) <= SAMPLE:
            return self._columns
        key = (self._generation, len(self._index) // SAMPLE)
        if self._sample is None or self._sample_of != key:
            sample = RunColumns()
            sample.extend(self._index.data(n) for n in evenly(len(self._index), SAMPLE))
            self._sample, self._sample_of = sample, key
        return self._sample

    @property
    def result(self) -> RunResult | None:
        """The result; None while the run lasts, or if it is damaged."""
        path = self.directory / RESULT
        try:
            written = path.stat().st_mtime
            if self._result[0] != written:
                self._result = (written, read_result(path))
        except (OSError, InputError):
            return None
        return self._result[1]

    @property
    def state(self) -> str:
        """Whether it runs, and else how it ended."""
        return read_state(self.directory, self.result)

    @property
    def is_live(self) -> bool:
        """Whether a loop runs that reads requests."""
        holder = find_holder(self.directory / LOCK)
        return holder is not None and holder.is_alive

    def facts(self) -> Mapping[str, Any]:
        """Return how far it was read, for live updates."""
        with self.open():
            return {
                "ticks": len(self._index),
                "read": len(self._index) if self.is_complete else len(self._columns),
                "end_s": self.end_s,
                "generation": self._generation,
                "state": self.state,
            }


def read_state(directory: Path, result: RunResult | None = None) -> str:
    """Return whether a run runs, and else how it ended."""
    holder = find_holder(directory / LOCK)
    if holder is not None:
        return "running" if holder.is_alive else "ending"
    if result is None:
        try:
            result = read_result(directory / RESULT)
        except InputError:
            result = None
    if result is not None:
        return result.spark.ended if result.spark is not None else "finished"
    try:
        age_s = time.time() - (directory / JOURNAL).stat().st_mtime
    except OSError:
        return "starting"
    has_lock = (directory / LOCK).exists()
    return "running" if age_s < _FRESH_S and not has_lock else "killed"
