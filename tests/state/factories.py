"""States on disk for the tests: batch after batch, as a task of an engine would work on them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.state.compaction import merge_files
from penstock.state.handle import State
from penstock.state.layout import make_layout
from penstock.state.mapped_files import LayerCache
from penstock.state.state_files import StateFile, write_layers
from penstock.state.version import Version, next_version
from penstock.topics.ddl import parse_fields

KEY = pa.schema(parse_fields("word string"))
VALUES = pa.schema(parse_fields("n long"))


class Disk:
    """The state of an operator in a directory; a new one opens everything again."""

    def __init__(
        self,
        directory: Path,
        key: pa.Schema = KEY,
        values: pa.Schema = VALUES,
        *,
        slices: int = 1,
        ttl_us: int | None = None,
    ) -> None:
        self.directory, self.key, self.values = directory, key, values
        self.layout = make_layout(key, values)
        self.ttl_us = ttl_us
        self.version = Version(slices=slices)
        self.layers = LayerCache(directory, self.layout)

    def reopen(self) -> None:
        """Begin again with what a process finds that knows nothing."""
        self.version = Version.from_json(json.loads(json.dumps(self.version.to_json())))
        self.layers = LayerCache(self.directory, self.layout)

    def state(
        self, slice: int = 0, *, watermark: int | None = None, now: int | None = None
    ) -> State:
        """The state of a slice in the next batch."""
        return State.open(
            self.key,
            self.values,
            self.layers.open(self.version.of(slice)),
            slice=slice,
            watermark=watermark,
            before=self.version.watermark,
            now=now,
            ttl_us=self.ttl_us,
        )

    def commit(self, *states: State, merge: Sequence[tuple[StateFile, ...]] = ()) -> None:
        """Write what these states have changed, and merge some files of the version before."""
        watermark = states[0].watermark
        found = {state.slice: layer for state in states if (layer := state.changes())}
        new = write_layers(self.directory, self.layout, found)
        merged = merge_files(
            self.directory,
            self.layout,
            self.layers,
            self.version,
            merge,
            watermark=watermark,
            ttl_us=self.ttl_us,
        )
        self.version = next_version(self.version, new, merged, watermark)

    def batch(self, work: Callable[[State], Any], watermark: int | None = None) -> Any:
        """One batch of slice 0; returns what the work returns."""
        state = self.state(watermark=watermark)
        result = work(state)
        self.commit(state)
        return result

    def rows(self, slice: int = 0) -> list[dict[str, Any]]:
        """Everything in a slice, by hash."""
        state = self.state(slice, watermark=self.version.watermark)
        return [row for batch in state.scan() for row in batch.to_pylist()]


def put(
    rows: dict[str, int], timers: Sequence[int | None] | None = None
) -> Callable[[State], None]:
    """Work that puts words and numbers."""

    def work(state: State) -> None:
        due = None if timers is None else pa.array(timers, pa.int64())
        state.put({"word": list(rows), "n": list(rows.values())}, due)

    return work
