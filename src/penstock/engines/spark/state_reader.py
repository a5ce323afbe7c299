"""Reads the state of operators from a run directory, while the run is active or afterwards.

The code of the operators is not needed. A running operator keeps replaced files for one more
batch; a reader that is later than that reads again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout, read_json
from penstock.errors import DamagedError, InputError
from penstock.files.text import is_file
from penstock.pipelines.stateful.slice_options import Slicing, state_schemas
from penstock.state.check import StateDamage, check
from penstock.state.handle import State
from penstock.state.keys import same_keys
from penstock.state.layout import make_layout
from penstock.state.mapped_files import LayerCache
from penstock.state.version import Version, file_names
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.embedded.topic import Topic
from penstock.topics.hashing import hash_keys, slice_of

PIPELINE = "pipeline.json"
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReader:
    """The state of one operator after a batch."""

    operator: str
    directory: Path
    batch: int
    version: Version
    #: Columns of the whole key, of the part of it that decides the slice, and of the values.
    key: pa.Schema
    by: tuple[str, ...]
    values: pa.Schema
    #: Whether any slice may hold a key: an input is broadcast to all slices.
    in_any: bool = False

    @property
    def rows(self) -> int:
        """Rows on disk; keys that changed lately count more than once."""
        return sum(file.rows for files in self.version.state_files.values() for file in files)

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        names = file_names(self.version)
        return sum((self.directory / SEGMENTS / name).stat().st_size for name in names)

    def read_key(self, key: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a key, or of the part of it that decides the slice."""
        columns = {
            field.name: pa.array([key[field.name]], field.type)
            for field in self.key
            if field.name in key
        }
        for number in self._find_slices(columns):
            for batch in self.read_slice(number):
                wanted = [value.take(pa.array([0] * batch.num_rows)) for value in columns.values()]
                same = same_keys([batch[name] for name in columns], wanted)
                yield from batch.filter(pa.array(same)).to_pylist()

    def _find_slices(self, key: Mapping[str, pa.Array]) -> Sequence[int]:
        """Return the slices that may hold a key; without deciding columns that is slice 0."""
        if self.in_any:
            return range(self.version.slices)
        if not self.by:
            return [0]
        numbers: list[int] = slice_of(
            hash_keys([key[name] for name in self.by]), self.version.slices
        ).tolist()
        return numbers

    def read_slice(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a slice."""
        columns = make_layout(self.key, self.values)
        layers = LayerCache(self.directory, columns).open(self.version.of(number))
        mark = self.version.watermark
        yield from State.open(self.key, self.values, layers, slice=number, watermark=mark).scan()

    def check(self) -> list[StateDamage]:
        """Read every byte; return the damage."""
        columns = make_layout(self.key, self.values)
        return check(self.directory, columns, self.version, self.by, in_any=self.in_any)


def find_states(run: Path) -> list[StateReader]:
    """Return readers of the present state of all operators of a run."""
    path = run / PIPELINE
    if not is_file(path):
        hint = "a run is a directory that penstock run has made"
        raise InputError("RUN", f"there is no {PIPELINE}", hint, str(run))
    operators = (read_json(path) or {}).get("operators", {})
    readers = [
        _open_reader(RunLayout(run), n, op) for n, op in operators.items() if op.get("slicing")
    ]
    if not readers:
        raise InputError("RUN", "no operator of it has state", where=str(run))
    return [reader for reader in readers if reader is not None]


def _open_reader(layout: RunLayout, name: str, declared: Mapping[str, Any]) -> StateReader | None:
    record = BatchLog(layout.batches(name)).last()
    if record is None or record.state is None:
        return None
    state = declared["slicing"]
    keys = {topic: tuple(columns) for topic, columns in state["keys"].items()}
    slicing = Slicing(
        keys=keys,
        slices=state["slices"],
        time=state["time"],
        state=state["state"],
        state_key=state["state_key"],
    )
    schemas = {topic: Topic.open(layout.topic(topic)).schema for topic in keys}
    key, values = state_schemas(slicing, schemas)
    return StateReader(
        operator=name,
        directory=layout.state(name),
        batch=record.batch,
        version=record.state,
        key=key,
        by=next(iter(keys.values())),
        values=values,
        in_any=set(declared["reads"]) > set(keys),
    )


def lookup(run: Path, operator: str, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the state rows of a key; reads again if files were just replaced."""
    for left in range(_TRIES - 1, -1, -1):
        reader = next(state for state in find_states(run) if state.operator == operator)
        try:
            return list(reader.read_key(key))
        except DamagedError:
            if not left:
                raise
    raise AssertionError
