"""How the rows of one batch are dealt to its tasks, with the places where these rows lie.

The source resolves offsets to files once; tasks need no index of a topic.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.engines.microbatch.event_time import EventTimeProgress
from penstock.engines.microbatch.slice_assignment import SliceAssignment
from penstock.engines.spark.io.key_dealing import key_mask
from penstock.errors import InputError
from penstock.files.atomic import replace
from penstock.topics.embedded.topic import Piece


@dataclass(frozen=True, slots=True)
class InputPart:
    """Rows of one segment, and the offset in its topic of the first of them."""

    topic: str
    offset: int
    piece: Piece

    @property
    def rows(self) -> int:
        """How many rows it has."""
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
    #: Rows that were given up and are to be kept in a topic of their own.
    given_up: tuple[InputPart, ...] = ()
    #: With a key, a task keeps those rows whose key falls to it.
    key: str | None = None
    #: For an operator with state; `parts` are then the same for all tasks.
    assignment: SliceAssignment | None = None

    @property
    def own_rows(self) -> int:
        """Rows that fall to this task."""
        if self.key is None:
            return sum(part.rows for part in self.parts)
        return sum(batch.num_rows for _, _, batch in self.batches([self.key]))

    def batches(
        self, columns: list[str] | None = None
    ) -> Iterator[tuple[InputPart, int, pa.RecordBatch]]:
        """Yield (part, rows of it before, batch), in the order of the topics."""
        if columns is not None and self.key is not None:
            columns = [*columns, self.key]
        for part in self.parts:
            passed = 0
            for batch in part.read(columns):
                size = batch.num_rows
                if self.key is not None:
                    batch = batch.filter(key_mask(batch[self.key], self.index, self.replicas))
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
    #: Rows that waited when it was planned, its own among them; None if nobody has looked.
    waiting: int | None = None
    #: How far each input is after this batch, by timestamp column, and all of them together.
    progress: Mapping[str, EventTimeProgress] = field(default_factory=dict)
    event_times: Mapping[str, int | None] = field(default_factory=dict)
    #: Inputs whose last source batch is not read completely after this batch.
    open_inputs: tuple[str, ...] = ()


def save_plan(path: Path, plan: BatchPlan) -> None:
    """Replace the present plan at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, pickle.dumps(plan))


def load_plan(path: Path) -> BatchPlan:
    """Read the present plan."""
    plan = load_pickle(path)
    assert isinstance(plan, BatchPlan)
    return plan


def load_pickle(path: Path) -> object:
    """Read an object that a process of this run has written; a start writes all of them anew."""
    try:
        return pickle.loads(path.read_bytes())
    except (pickle.UnpicklingError, EOFError) as error:
        hint = "stop the run and start it with --resume, which writes it anew"
        raise InputError(str(path), f"is empty or damaged: {error}", hint) from None
