"""Batch plans: the rows that each task of a batch reads, as files and ranges, or by key.

The source resolves offsets to files once; tasks need no index of a topic.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engines.microbatch.event_time import EventTimeProgress
from penstock.engines.microbatch.replica_vote import ReplicaView
from penstock.engines.microbatch.slice_assignment import SliceAssignment
from penstock.errors import InputError
from penstock.files.atomic import replace
from penstock.topics.port import RowPiece

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True)
class InputPart:
    """Rows of one segment, and the offset in its topic of the first of them."""

    topic: str
    offset: int
    piece: RowPiece

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.piece.to_row - self.piece.from_row

    def read(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read its rows."""
        return self.piece.read(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInput:
    """What one task of a batch reads."""

    index: int
    replicas: int
    parts: tuple[InputPart, ...]
    #: Dropped rows that the task copies to the topic for them.
    given_up: tuple[InputPart, ...] = ()
    #: With a key, a task keeps the rows whose keys belong to it.
    key: str | None = None
    #: The slices of an operator with state; `parts` are then the same for all tasks.
    assignment: SliceAssignment | None = None
    #: The host that it runs on, and the share of a core that the host has; empty without hosts.
    host: str = ""
    share: float = 1.0
    #: Without a controller: what the replica decides by.
    view: ReplicaView | None = None

    @property
    def own_rows(self) -> int:
        """The number of rows of this task."""
        if self.key is None:
            return sum(part.rows for part in self.parts)
        return sum(batch.num_rows for _, _, batch in self.batches([self.key]))

    def batches(
        self, columns: list[str] | None = None
    ) -> Iterator[tuple[InputPart, int, pa.RecordBatch]]:
        """Yield (part, rows of the part before, batch), in the order of the topics."""
        if columns is not None and self.key is not None:
            columns = [*columns, self.key]
        for part in self.parts:
            passed = 0
            for batch in part.read(columns):
                size = batch.num_rows
                if self.key is not None:
                    batch = batch.filter(mask_key(batch[self.key], self.index, self.replicas))
                yield part, passed, batch
                passed += size


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """One batch before it runs."""

    start: Mapping[str, int]
    end: Mapping[str, int]
    planned_at: float
    tasks: tuple[TaskInput, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    #: Rows that waited when it was planned, including its own; None if unknown.
    waiting: int | None = None
    #: The progress of each input after this batch, by timestamp column, and of all together.
    progress: Mapping[str, EventTimeProgress] = field(default_factory=dict)
    event_times: Mapping[str, int | None] = field(default_factory=dict)
    #: Inputs whose last source batch is not read completely after this batch.
    open_inputs: tuple[str, ...] = ()
    #: Spark's offsets, if a batch that runs again must have the same tasks.
    offsets: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None


def save_plan(path: Path, plan: BatchPlan) -> None:
    """Replace the present plan atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, pickle.dumps(plan))


def load_plan(path: Path) -> BatchPlan:
    """Read the present plan."""
    plan = load_pickle(path)
    assert isinstance(plan, BatchPlan)
    return plan


def find_plan(path: Path, start: Mapping[str, Any], end: Mapping[str, Any]) -> BatchPlan | None:
    """Return the saved plan if it is that of the batch between two offsets; else None."""
    try:
        plan = load_plan(path)
    except FileNotFoundError:
        return None
    return plan if plan.offsets == (start, end) else None


def load_pickle(path: Path) -> object:
    """Read an object that a process of this run has written; every start rewrites them."""
    try:
        return pickle.loads(path.read_bytes())
    except (pickle.UnpicklingError, EOFError) as error:
        hint = "stop the run and start it with --resume, which writes it anew"
        raise InputError(str(path), f"is empty or damaged: {error}", hint) from None


def mask_key(column: pa.Array, index: int, replicas: int) -> pa.Array:
    """Return which rows belong to replica `index` of `replicas`."""
    return pa.array(assign_replicas(column, replicas) == index)


def assign_replicas(column: pa.Array, replicas: int) -> NDArray[np.int64]:
    """Return the replica of each row; a missing key belongs to replica 0.

    >>> assign_replicas(pa.array(["a", "b", "a", None]), 4).tolist()
    [3, 1, 3, 0]
    """
    if pa.types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
        hashed = (values * _MIX) >> _SHIFT
    else:
        encoded = column.dictionary_encode()
        hashes = [
            0 if v is None else crc32(str(v).encode()) for v in encoded.dictionary.to_pylist()
        ]
        table = np.array([*hashes, 0], dtype=np.uint64)
        places = encoded.indices.fill_null(len(hashes)).to_numpy(zero_copy_only=False)
        hashed = table[places]
    chosen: NDArray[np.int64] = (hashed % np.uint64(replicas)).astype(np.int64)
    return chosen
