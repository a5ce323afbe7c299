"""Tracks the files of one source: those that arrive, those that wait, and the rows of a file. Pure.

Spark's file source says how many rows a batch has read, and nothing of what waits. A listing of its
directory does, also in the middle of a long batch. Its log says which files belong to a batch.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.core.frozen_dict import FrozenDict

#: The rows of a file are those of the batches in this share of a window: files may grow.
_RECENT_SHARE = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileListing:
    """What one listing of a source's directory has found."""

    #: Wall clock of the listing.
    at: float
    #: Files that belong to batches, finished or not, and files that belong to none.
    read: int
    waiting: float
    #: Files of the newest batches, by their number in the log of the source.
    by_batch: Mapping[int, int] = field(default_factory=FrozenDict)

    def count(self, after: int, until: int) -> int | None:
        """Return the files of the batches (after, until]; None if the listing is older."""
        if not self.by_batch or until > max(self.by_batch):
            return None
        return sum(files for batch, files in self.by_batch.items() if after < batch <= until)

    def count_after(self, batch: int) -> int:
        """Return the files of the batches behind one."""
        return sum(files for number, files in self.by_batch.items() if number > batch)


#: Returns the newest listing of a source; None if its files cannot be listed.
FileCounter = Callable[[], FileListing | None]


class _FinishedBatch(NamedTuple):
    """A batch, by the numbers in the log of the source."""

    at: float
    after: int
    until: int
    rows: int
    #: None until a listing knows them.
    files: int | None


@dataclass(slots=True, kw_only=True)
class FileBacklog:
    """The files of a source since it is tracked."""

    list_files: FileCounter
    window_s: float
    listing: FileListing | None = None
    #: None before the first batch whose files are known.
    rows_per_file: float | None = None
    _last: int = -1
    _batches: deque[_FinishedBatch] = field(default_factory=deque)

    def take(self, start: Any, end: Any, rows: int, at: float) -> None:
        """Note a finished batch by its offsets; `refresh` uses it."""
        after, until = _read_number(start), _read_number(end)
        if until > after:
            self._last = until
            self._batches.append(_FinishedBatch(at, after, until, rows, None))
            while self._batches[0].at < at - self.window_s * _RECENT_SHARE:
                self._batches.popleft()

    def refresh(self) -> FileListing | None:
        """List the files; None if that is impossible."""
        self.listing = listing = self.list_files()
        if listing is None:
            return None
        for number, batch in enumerate(self._batches):
            if batch.files is None:
                files = listing.count(batch.after, batch.until)
                self._batches[number] = batch._replace(files=files)
        known = [(batch.rows, batch.files) for batch in self._batches if batch.files]
        if known:
            self.rows_per_file = sum(rows for rows, _ in known) / sum(files for _, files in known)
        return listing

    @property
    def arrived(self) -> float:
        """Files that have arrived, including those before the source was tracked."""
        return 0.0 if self.listing is None else self.listing.read + self.listing.waiting

    @property
    def unfinished(self) -> float:
        """Files that no finished batch has read: those of the running one, and those that wait."""
        if self.listing is None:
            return 0.0
        return self.listing.waiting + self.listing.count_after(self._last)


def _read_number(offset: Any) -> int:
    """Return the number of a batch in the log of the source; -1 before the first."""
    number = offset.get("logOffset") if isinstance(offset, Mapping) else None
    return number if isinstance(number, int) else -1
