"""Levels on disk. One file holds what one task wrote in one batch, for all slices it worked on.

A run says where in a file the level of a slice lies. The bookkeeping columns `_gone`, `_timer`
and `_seen` are only in files that need them; with timers there is `_order`, which sorts the rows
of each record batch by timer. Files have unique names and are never changed: one that no committed
version names does not exist.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.files.atomic import sync_directory
from penstock.state.chunk import Chunk, is_same, join
from penstock.state.layout import GONE, HASH, NEVER, ORDER, SEEN, TIMER, StateLayout
from penstock.state.sorted_layer import SortedLayer
from penstock.topics.embedded.segment import SEGMENTS, Segment, SegmentWriter

#: A record batch is at most about this large, so that a level can be merged piece by piece.
CHUNK_ROWS = 1 << 16
CHUNK_BYTES = 1 << 21

_KINDS = {GONE: pa.bool_(), TIMER: pa.int64(), ORDER: pa.uint32(), SEEN: pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """The level of one slice in a file."""

    segment: Segment
    slice: int
    #: The first of its record batches in the file, and how many there are.
    first: int
    batches: int
    rows: int
    #: Bytes in memory, which are about those on disk.
    bytes: int
    #: See `SortedLayer.at`.
    at: int | None = None

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.segment.file

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {
            "segment": self.segment.to_json(),
            "slice": self.slice,
            "first": self.first,
            "batches": self.batches,
            "rows": self.rows,
            "bytes": self.bytes,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "StateFile":
        """Read what `to_json` wrote."""
        return cls(**{**data, "segment": Segment.from_json(data["segment"])})


class StateFileWriter:
    """Writes the levels of slices into one file of a state's directory."""

    def __init__(self, directory: Path, layout: StateLayout, extras: Iterable[str]) -> None:
        self._folder = directory / SEGMENTS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._extras = [name for name in _KINDS if name in set(extras)]
        self._schema = pa.schema(
            [
                pa.field(HASH, pa.uint64(), nullable=False),
                *layout.stored,
                *(pa.field(name, _KINDS[name], nullable=False) for name in self._extras),
            ]
        )
        self._writer = SegmentWriter(directory, self._schema)
        self._batches = 0
        self._runs: list[dict[str, Any]] = []

    def write(self, slice: int, chunks: Iterable[Chunk], at: int | None = None) -> None:
        """Add the level of a slice, given by hash; no rows are no run."""
        first, rows, size = self._batches, 0, 0
        for chunk in _cut(chunks):
            batch = self._batch(chunk)
            self._writer.write(batch)
            self._batches += 1
            rows, size = rows + len(chunk), size + batch.nbytes
        if rows:
            run = {"slice": slice, "first": first, "batches": self._batches - first, "at": at}
            self._runs.append(run | {"rows": rows, "bytes": size})

    def close(self) -> tuple[StateFile, ...]:
        """Bring everything to disk; one run for each slice that has rows."""
        segment = self._writer.close()
        if segment is None:
            return ()
        sync_directory(self._folder)
        return tuple(StateFile(segment=segment, **run) for run in self._runs)

    def abort(self) -> None:
        """Remove what was written."""
        self._writer.abort()

    def _batch(self, chunk: Chunk) -> pa.RecordBatch:
        columns = {GONE: chunk.gone, TIMER: chunk.timers, SEEN: chunk.seen}
        if ORDER in self._extras:
            columns[ORDER] = np.argsort(chunk.timers, kind="stable").astype(np.uint32)
        extras = [np.ascontiguousarray(columns[name]) for name in self._extras]
        arrays = [pa.array(chunk.hashes), *chunk.rows.columns, *map(pa.array, extras)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def write_levels(
    directory: Path, layout: StateLayout, levels: Mapping[int, SortedLayer]
) -> tuple[StateFile, ...]:
    """Write what a batch changed in each slice."""
    writer = StateFileWriter(directory, layout, extras_of(levels.values()))
    try:
        for slice, level in levels.items():
            writer.write(slice, level.chunks, level.at)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def extras_of(levels: Iterable[SortedLayer]) -> set[str]:
    """Return the bookkeeping columns that these levels need."""
    found = set()
    for level in levels:
        for chunk in level.chunks:
            found |= {GONE} if _differs(chunk.gone, False) else set()
            found |= {TIMER, ORDER} if _differs(chunk.timers, NEVER) else set()
            found |= {SEEN} if _differs(chunk.seen, NEVER) else set()
    return found


def _differs(column: Any, value: Any) -> bool:
    return not is_same(column) or bool(column[0] != value)


def _cut(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Cut what is too large and join what is small; rows with the same hash stay together."""
    waiting: list[Chunk] = []
    rows = size = 0
    for chunk in chunks:
        for part in _parts(chunk):
            part_size = part.rows.nbytes + part.hashes.nbytes
            if waiting and (rows + len(part) > CHUNK_ROWS or size + part_size > CHUNK_BYTES):
                yield join(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + len(part), size + part_size
    if waiting:
        yield join(waiting)


def _parts(chunk: Chunk) -> Iterator[Chunk]:
    size = chunk.rows.nbytes + chunk.hashes.nbytes
    number = max(-(-len(chunk) // CHUNK_ROWS), -(-size // CHUNK_BYTES), 1)
    step = -(-len(chunk) // number)
    start = 0
    while start < len(chunk):
        last = chunk.hashes[min(start + step, len(chunk)) - 1]
        end = int(np.searchsorted(chunk.hashes, last, side="right"))
        yield chunk.slice(start, end)
        start = end
