"""The port of operator kinds on Spark, and their registry.

A built-in kind is the module of its name in this folder. `register_spark_kind` adds another one;
it reaches other processes with the operator's bundle and config.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_totals import TotalsRules
from penstock.engines.spark.io.plans import BatchPlan, load_plan
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, PenstockError, nearest
from penstock.pipelines.kinds.kind import BUILT_IN
from penstock.pipelines.operator import Operator
from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge, Version

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.engines.spark.io.outputs import TaskOutputs
    from penstock.engines.spark.operator_bundle import OperatorBundle
    from penstock.engines.spark.queries.builder import QueryContext


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRules:
    """The rules of a kind for the source of its operators; saved as JSON."""

    #: Whether Spark gets one row per task, and the task reads its rows inside the sink.
    passes_tasks: bool = False
    #: Whether source batches are only read as a whole.
    needs_whole_batches: bool = False
    #: Whether the sink runs the tasks that the source has planned.
    saves_plan: bool = True
    #: Whether the source times its batches, because they have no records.
    times_batches: bool = False
    #: Whether Spark's offset log must be on disk before a batch runs.
    syncs_offsets: bool = False
    #: Whether Spark's commit log must be on disk before rows are released.
    syncs_commits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParts:
    """The writer of a query, and the Spark settings for its start."""

    writer: "DataStreamWriter"
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The record of a task, and the state that it wrote."""

    task: TaskRecord
    state_files: tuple[StateFile, ...] = ()
    merged: tuple[FileMerge, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SparkKind(ABC):
    """How Spark runs all operators of one kind."""

    name: str
    source: SourceRules = SourceRules()
    totals: TotalsRules = TotalsRules()
    #: Whether Spark keeps its state, so that a change of replicas stops its query.
    has_spark_state: bool = False
    #: Whether its batches have records; otherwise only Spark's checkpoint proves them.
    has_records: bool = True
    #: Whether it reads a source outside of the pipeline.
    reads_outside: bool = False
    #: Whether a record is not sufficient: Spark's checkpoint must be on disk before it.
    syncs_checkpoint: bool = False

    @abstractmethod
    def make_query(self, query: "QueryContext") -> QueryParts:
        """Call the function and return the query of an operator."""

    @abstractmethod
    def run_task(
        self,
        layout: RunLayout,
        bundle: "OperatorBundle",
        rows: Iterator[pa.RecordBatch],
        outputs: "TaskOutputs",
    ) -> TaskResult:
        """Run one task inside the sink."""

    def planned_input(self, layout: RunLayout, operator: str, batch: int) -> BatchPlan:  # noqa: ARG002
        """Return the input of a batch; `OSError` or `InputError` if it is not planned."""
        return load_plan(layout.plan(operator))

    def record_input(
        self, layout: RunLayout, operator: str, batch: int, tasks: Sequence[TaskRecord]
    ) -> tuple[BatchPlan, tuple[TaskRecord, ...]]:
        """Return the input of a finished batch, and its tasks with their rows."""
        plan = self.planned_input(layout, operator, batch)
        if len(plan.tasks) != len(tasks):
            problem = f"{operator}: {len(plan.tasks)} replicas became {len(tasks)} tasks"
            raise PenstockError(
                f"{problem}\nhint: a frame operator keeps its partitions: no repartition, coalesce,"
                " limit or aggregation in it"
            )
        return plan, tuple(tasks)

    def state_after(
        self,
        layout: RunLayout,  # noqa: ARG002
        operator: Operator,  # noqa: ARG002
        results: Sequence[TaskResult],  # noqa: ARG002
        plan: BatchPlan,  # noqa: ARG002
    ) -> Version | None:
        """Return the version of the state after a batch."""
        return None

    def latest_times(self, operator: Operator, plan: BatchPlan) -> dict[str, int | None]:  # noqa: ARG002
        """Return the latest event time of each input that advances the watermark."""
        return {}

    def slices(self, operator: Operator) -> int:  # noqa: ARG002
        """Return the number of slices of an operator; 0 without slices."""
        return 0

    def config_fields(self, operator: Operator) -> Mapping[str, Any]:  # noqa: ARG002
        """Return fields of `OperatorConfig` that only this kind has."""
        return {}

    def watermark_us(
        self,
        layout: RunLayout,  # noqa: ARG002
        operator: str,  # noqa: ARG002
        record: BatchRecord | None,
    ) -> int | None:
        """Return the watermark of the last batch, whose record is `record`."""
        return record.state.watermark if record is not None and record.state is not None else None

    def is_quiet(self, query: "StreamingQuery") -> bool:
        """Whether no batch of a query runs now."""
        return not query.isActive or not query.status["isTriggerActive"]


_KINDS: dict[str, SparkKind] = {}


def register_spark_kind(kind: SparkKind) -> None:
    """Add a kind; `InputError` if there is another one of its name."""
    if kind.name in BUILT_IN or _KINDS.get(kind.name, kind) != kind:
        raise InputError("kind", f"there is a kind {kind.name!r} already")
    _KINDS[kind.name] = kind


def find_spark_kind(name: str) -> SparkKind:
    """Return how Spark runs a kind, or raise `InputError`."""
    if name not in _KINDS:
        if name not in BUILT_IN:
            hint = nearest(name, (*BUILT_IN, *_KINDS))
            raise InputError("kind", f"Spark cannot run kind {name!r}", hint)
        _KINDS[name] = import_module(f"{__package__}.{name}").KIND
    return _KINDS[name]


def import_built_in() -> None:
    """Load all built-in kinds, so that workers need not."""
    for name in BUILT_IN:
        find_spark_kind(name)
