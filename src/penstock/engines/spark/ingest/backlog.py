"""The backlog of an ingest, from the progress of its query. Pure, apart from listing files.

Spark reports the offsets that a source has read and, for many sources, the latest available ones.
Its file source reports neither, so unread files are counted here.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: Metrics of sources that report a backlog, with their units.
_METRICS = (("numFilesOutstanding", "files"), ("numBytesOutstanding", "bytes"))
_FILES = re.compile(r"FileStreamSource\[file:(.+)\]")
#: The largest share of time that listing a directory may take.
_MAX_LISTING_SHARE = 0.02
_MIN_LISTING_S = 2.0
#: The newest batches whose files are counted.
_MAX_BATCHES = 64

Progress = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Input that an ingest has not read yet."""

    amount: float
    #: files, bytes, or offsets of the source, which are rows for Kafka and sockets.
    unit: str
    #: The same in rows, estimated from earlier batches; None before the first row.
    rows: float | None = None


def measure_distance(low: object, high: object) -> float | None:
    """Return the distance of two offsets, summed over partitions; None if it is not numeric.

    >>> measure_distance({"bids": {"0": 5, "1": 7}}, {"bids": {"0": 9, "1": 7}})
    4.0
    >>> measure_distance(3, 8), measure_distance(None, 8)
    (5.0, None)
    """
    if isinstance(low, Mapping) and isinstance(high, Mapping):
        parts = [measure_distance(low.get(key, 0), value) for key, value in high.items()]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None
    numbers = (int, float)
    if isinstance(low, numbers) and isinstance(high, numbers):
        return max(0.0, float(high) - float(low))
    return None


def parse_offset(text: object) -> object:
    """Parse an offset from a progress report: JSON in a string, or null."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None


def read_backlog(source: Progress) -> Backlog | None:
    """Return the backlog that a source reports; None if it reports none."""
    metrics = source.get("metrics") or {}
    for name, unit in _METRICS:
        if name in metrics:
            return Backlog(amount=float(metrics[name]), unit=unit)
    latest, end = parse_offset(source.get("latestOffset")), parse_offset(source.get("endOffset"))
    behind = measure_distance(end, latest)
    return None if behind is None else Backlog(amount=behind, unit="offsets")


def count_offsets(source: Progress) -> float | None:
    """Return the number of offsets that the last batch read; None if not numeric."""
    start, end = parse_offset(source.get("startOffset")), parse_offset(source.get("endOffset"))
    return measure_distance(start, end)


def find_directory(source: Progress) -> Path | None:
    """Return the local directory, or pattern, that a file source reads; None for other sources."""
    match = _FILES.match(str(source.get("description", "")))
    return Path(unquote(urlsplit(match[1]).path)) if match else None


@dataclass(slots=True)
class FileCount:
    """Counts the files of a directory that a file source has not read, by its log."""

    directory: Path
    #: Spark's log of the files of each batch: CHECKPOINT/sources/N.
    log: Path
    #: Files of the newest batches, by their number in the log, and wall clock of the last listing.
    by_batch: dict[int, int] = field(default_factory=dict)
    listed_at: float = 0.0
    _read: set[str] = field(default_factory=set)
    _logs: set[str] = field(default_factory=set)
    _waiting: float | None = None
    _next: float = 0.0

    @property
    def files_read(self) -> int:
        """Files that the source has read so far."""
        return len(self._read)

    def count(self) -> float | None:
        """Return the number of unread files; slow listings are repeated less often."""
        now = time.monotonic()
        if now >= self._next:
            self.listed_at = time.time()
            self._waiting = self._count_unread()
            took_s = time.monotonic() - now
            self._next = now + max(_MIN_LISTING_S, took_s / _MAX_LISTING_SHARE)
        return self._waiting

    def _count_unread(self) -> float:
        self._read_log()
        # ignore other files, such as a README
        suffixes = {_find_suffix(name) for name in self._read}
        names = (name for name in _list_files(self.directory) if name not in self._read)
        return float(sum(not suffixes or _find_suffix(name) in suffixes for name in names))

    def _read_log(self) -> None:
        for path in self.log.glob("[0-9]*"):
            if path.name in self._logs:
                continue
            try:
                lines = path.read_text(encoding="utf-8").splitlines()[1:]
                files = [(_read_path(entry), entry["batchId"]) for entry in map(json.loads, lines)]
            except (OSError, ValueError, KeyError):  # being written, or just removed
                continue
            for name, batch in files:
                if name not in self._read:
                    self.by_batch[batch] = self.by_batch.get(batch, 0) + 1
            self._read.update(name for name, _ in files)
            self._logs.add(path.name)
        for batch in sorted(self.by_batch)[:-_MAX_BATCHES]:
            del self.by_batch[batch]


def _read_path(entry: Mapping[str, Any]) -> str:
    return unquote(urlsplit(entry["path"]).path)


def _find_suffix(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[2]


def _list_files(place: Path) -> Iterator[str]:
    """Yield the files below a directory or pattern; Spark skips hidden ones."""
    roots: Sequence[Path] = [place]
    if any(letter in str(place) for letter in "*?["):
        roots = list(Path(place.anchor).glob(str(place.relative_to(place.anchor))))
    for root in roots:
        if root.is_file():
            yield str(root)
        for folder, inner, names in os.walk(root):
            inner[:] = [name for name in inner if name[0] not in "._"]
            yield from (f"{folder}/{name}" for name in names if name[0] not in "._")
