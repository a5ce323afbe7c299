"""State files: layers on disk.

A file holds the changes of one task in one batch, for all slices of the task.

A `StateFile` locates the layer of one slice in a file. The bookkeeping columns `_gone`, `_timer`
and `_seen` exist only in files that need them; files with timers have `_order`, which sorts the
rows of each record batch by timer. Files have unique names and never change. A file that no
committed version lists is ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.files.atomic import sync_directory
from penstock.state.chunk import Chunk, is_same, join
from penstock.state.layout import GONE, HASH, NEVER, ORDER, SEEN, TIMER, StateLayout
from penstock.state.sorted_layer import SortedLayer
from penstock.topics.embedded.segment import SEGMENTS, FileSegmentWriter, Segment

#: Limits of a record batch, so that layers can be merged batch by batch.
MAX_CHUNK_ROWS = 1 << 16
MAX_CHUNK_BYTES = 1 << 21

_EXTRA_TYPES = {GONE: pa.bool_(), TIMER: pa.int64(), ORDER: pa.uint32(), SEEN: pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """The layer of one slice in a file."""

    segment: Segment
    slice: int
    #: The first of its record batches in the file, and how many there are.
    first: int
    batches: int
    rows: int
    #: Bytes in memory, about the same as on disk.
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
    """Writes the layers of slices into one file of a state's directory."""

    def __init__(self, directory: Path, layout: StateLayout, extras: Iterable[str]) -> None:
        self._folder = directory / SEGMENTS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._extras = [name for name in _EXTRA_TYPES if name in set(extras)]
        self._schema = pa.schema(
            [
                pa.field(HASH, pa.uint64(), nullable=False),
                *layout.stored,
                *(pa.field(name, _EXTRA_TYPES[name], nullable=False) for name in self._extras),
            ]
        )
        self._writer = FileSegmentWriter(directory, self._schema)
        self._batches = 0
        self._entries: list[dict[str, Any]] = []

    def write(self, slice: int, chunks: Iterable[Chunk], at: int | None = None) -> None:
        """Add the layer of a slice, chunks sorted by hash; a layer without rows is not stored."""
        first, rows, size = self._batches, 0, 0
        for chunk in _cut(chunks):
            batch = self._batch(chunk)
            self._writer.write(batch)
            self._batches += 1
            rows, size = rows + len(chunk), size + batch.nbytes
        if rows:
            entry = {
                "slice": slice,
                "first": first,
                "batches": self._batches - first,
                "at": at,
            }
            self._entries.append(entry | {"rows": rows, "bytes": size})

    def close(self) -> tuple[StateFile, ...]:
        """Sync the file and return one entry for each slice that has rows."""
        segment = self._writer.close()
        if segment is None:
            return ()
        sync_directory(self._folder)
        return tuple(StateFile(segment=segment, **entry) for entry in self._entries)

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


def write_layers(
    directory: Path, layout: StateLayout, layers: Mapping[int, SortedLayer]
) -> tuple[StateFile, ...]:
    """Write what a batch changed in each slice."""
    writer = StateFileWriter(directory, layout, extras_of(layers.values()))
    try:
        for slice, layer in layers.items():
            writer.write(slice, layer.chunks, layer.at)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


@lru_cache(maxsize=4096)
def holds_timers(path: Path) -> bool:
    """Whether a state file has rows with timers; a file never changes."""
    with pa.memory_map(str(path)) as source:
        return TIMER in pa.ipc.open_file(source).schema.names


def extras_of(layers: Iterable[SortedLayer]) -> set[str]:
    """Return the bookkeeping columns that these layers need."""
    extras = set()
    for layer in layers:
        for chunk in layer.chunks:
            extras |= {GONE} if _differs(chunk.gone, False) else set()
            extras |= {TIMER, ORDER} if _differs(chunk.timers, NEVER) else set()
            extras |= {SEEN} if _differs(chunk.seen, NEVER) else set()
    return extras


def _differs(column: Any, value: Any) -> bool:
    return not is_same(column) or bool(column[0] != value)


def _cut(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Split large chunks and join small ones; rows with equal hashes stay together."""
    waiting: list[Chunk] = []
    rows = size = 0
    for chunk in chunks:
        for part in _parts(chunk):
            part_size = part.rows.nbytes + part.hashes.nbytes
            if waiting and (
                rows + len(part) > MAX_CHUNK_ROWS or size + part_size > MAX_CHUNK_BYTES
            ):
                yield join(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + len(part), size + part_size
    if waiting:
        yield join(waiting)


def _parts(chunk: Chunk) -> Iterator[Chunk]:
    size = chunk.rows.nbytes + chunk.hashes.nbytes
    number = max(-(-len(chunk) // MAX_CHUNK_ROWS), -(-size // MAX_CHUNK_BYTES), 1)
    step = -(-len(chunk) // number)
    start = 0
    while start < len(chunk):
        last = chunk.hashes[min(start + step, len(chunk)) - 1]
        end = int(np.searchsorted(chunk.hashes, last, side="right"))
        yield chunk.slice(start, end)
        start = end
