"""Memory-mapped state files: a slice may be larger than the memory."""

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import DamagedStateError, InputError
from penstock.state.chunk import Chunk, same
from penstock.state.layout import GONE, HASH, NEVER, ORDER, SEEN, TIMER, StateLayout
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile
from penstock.topics.ddl import kind_text
from penstock.topics.embedded.segment import SEGMENTS, Segment

#: Files up to this size are verified when a process first opens them. Larger ones would delay a
#: replica that takes over a slice; `check` verifies all.
MAX_VERIFIED_BYTES = 1 << 25


class LayerCache:
    """Caches the layers of a state's directory that this process has opened.

    The file name is the cache key. Names are unique, so a file of a failed attempt is never
    confused with another one.
    """

    def __init__(self, directory: Path, layout: StateLayout) -> None:
        self._directory, self._layout = directory, layout
        self._files: dict[str, Any] = {}
        self._layers: dict[tuple[str, int], SortedLayer] = {}

    def open(self, state_files: Iterable[StateFile]) -> list[SortedLayer]:
        """Return the layers of these runs, in their order."""
        return [self._layer(state_file) for state_file in state_files]

    def keep(self, files: Iterable[str]) -> None:
        """Close all other files; layers in use stay readable."""
        kept = set(files)
        self._files = {name: file for name, file in self._files.items() if name in kept}
        self._layers = {place: lv for place, lv in self._layers.items() if place[0] in kept}

    def _layer(self, state_file: StateFile) -> SortedLayer:
        place = (state_file.file, state_file.first)
        if place not in self._layers:
            self._layers[place] = open_layer(
                self._file(state_file.segment), state_file, self._directory
            )
        return self._layers[place]

    def _file(self, segment: Segment) -> Any:
        if segment.file not in self._files:
            reader = open_file(
                self._directory, segment, checked=segment.bytes <= MAX_VERIFIED_BYTES
            )
            same_columns(self._layout, reader.schema)
            self._files[segment.file] = reader
        return self._files[segment.file]


def open_file(directory: Path, segment: Segment, *, checked: bool) -> Any:
    """Map a file; its size is always checked, because a short map would crash later."""
    try:
        with pa.memory_map(str(directory / SEGMENTS / segment.file)) as source:
            content = source.read_buffer()  # stays mapped after the descriptor is closed
    except FileNotFoundError:
        raise _damaged(directory, segment, "missing") from None
    if content.size != segment.bytes:
        problem = f"has {content.size} bytes, expected {segment.bytes}"
        raise _damaged(directory, segment, problem)
    if checked and (checksum := zlib.crc32(content)) != segment.crc:
        problem = f"was altered: checksum {checksum:08x}, expected {segment.crc:08x}"
        raise _damaged(directory, segment, problem)
    try:
        return pa.ipc.open_file(pa.BufferReader(content))
    except pa.ArrowInvalid as error:
        raise _damaged(directory, segment, f"is no Arrow file: {error}") from None


def open_layer(reader: Any, state_file: StateFile, directory: Path) -> SortedLayer:
    """Return the layer of a run in a file that is open."""
    end = state_file.first + state_file.batches
    if end > reader.num_record_batches:
        problem = f"has {reader.num_record_batches} record batches, expected {end}"
        raise _damaged(directory, state_file.segment, problem)
    try:
        batches = [reader.get_batch(number) for number in range(state_file.first, end)]
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(directory, state_file.segment, f"is no Arrow file: {error}") from None
    layer = SortedLayer([_chunk(batch) for batch in batches], state_file.at)
    if len(layer) != state_file.rows:
        problem = f"has {len(layer)} rows of slice {state_file.slice}, expected {state_file.rows}"
        raise _damaged(directory, state_file.segment, problem)
    return layer


def same_columns(layout: StateLayout, stored: pa.Schema) -> None:
    """Raise `InputError` if the state was written with other columns than are declared now."""
    columns = [field for field in stored if field.name not in (HASH, GONE, TIMER, ORDER, SEEN)]
    for have, want in zip(columns, layout.stored, strict=False):
        if not have.equals(want):
            problem = f"the state has {have.name!r} ({kind_text(have)}), but "
            problem += f"{want.name!r} ({kind_text(want)}) is declared"
            raise InputError("state", problem, _HINT)
    if len(columns) != len(layout.stored):
        problem = f"the state has {len(columns)} columns, but {len(layout.stored)} are declared"
        raise InputError("state", problem, _HINT)


_HINT = "declare the columns as they were, or begin in a new directory"


def _chunk(batch: pa.RecordBatch) -> Chunk:
    names = [n for n in batch.schema.names if n not in (HASH, GONE, TIMER, ORDER, SEEN)]
    return Chunk(
        hashes=_numbers(batch, HASH, 0),
        rows=batch.select(names),
        gone=_numbers(batch, GONE, False),
        timers=_numbers(batch, TIMER, NEVER),
        seen=_numbers(batch, SEEN, NEVER),
        order=_numbers(batch, ORDER, 0) if ORDER in batch.schema.names else None,
    )


def _numbers(batch: pa.RecordBatch, name: str, otherwise: Any) -> NDArray[Any]:
    if name not in batch.schema.names:
        return same(otherwise, len(batch))
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=name != GONE))


def _damaged(directory: Path, segment: Segment, problem: str) -> DamagedStateError:
    return DamagedStateError(directory.name, f"{SEGMENTS}/{segment.file}", problem)
