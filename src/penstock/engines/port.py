"""The interface of every engine: observe it, rescale it, read its status.

The caller advances time: a simulator jumps, a real engine waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.core.decision import Move
from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import Histogram
from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.errors import InputError, nearest

#: The name under which an engine that scales hosts, not operators, counts them.
HOSTS = "hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine supports. Requests beyond it are refused before a run starts."""

    moves_slices: bool = False
    has_executors: bool = False
    #: Operators that pause when their parallelism changes.
    pauses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change for an engine to carry out; it names only what changes."""

    replicas: Mapping[str, int] = field(default_factory=FrozenDict)
    moves: tuple[Move, ...] = ()
    #: The minimum number of executors; above it they follow the sum of replicas.
    executors: int | None = None


class Batch(NamedTuple):
    """One micro-batch of an operator; times are seconds of the run."""

    planned_s: float
    committed_s: float
    replicas: int
    rows_in: int
    rows_out: int
    #: Seconds in the operator's function: the sum over all replicas, and the slowest replica.
    busy_s: float
    longest_s: float
    #: Rows that waited when it was planned, including its own; None if unknown.
    waiting: int | None = None


class IngestStatus(NamedTuple):
    """Status of an operator that reads from outside, and its backlog."""

    #: Rows read since the run began, and the rate of the last window.
    rows: int
    rows_per_s: float | None = None
    #: The backlog in its unit (offsets, files, bytes); None where the source does not report it.
    backlog: float | None = None
    unit: str = ""
    #: The backlog in rows, estimated from the batches so far.
    backlog_rows: int | None = None
    #: Whether the backlog keeps growing.
    is_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Status of an engine: what reports, journal and loop need beyond the snapshot of policies."""

    at: float
    #: Requested and running replicas.
    requested: Mapping[str, int]
    running: Mapping[str, int]
    #: Running and requested executors, and executor-seconds since the run began; None for an
    #: engine without executors.
    executors: int | None = None
    executors_requested: int | None = None
    executor_s: float | None = None
    #: End-to-end latency in seconds since the last call, by path ("source > map > sink").
    latency: Mapping[str, Histogram] = field(default_factory=FrozenDict)
    #: Mean age of records when sources took them, since the last call; None if none was taken.
    age_s: float | None = None
    #: Seconds since the run began during which nothing was processed because of a change.
    pause_s: float = 0.0
    #: Replica-seconds of each operator since the run began.
    replica_s: Mapping[str, float] = field(default_factory=FrozenDict)
    #: Events since the last call, oldest first.
    events: tuple[Event, ...] = ()
    #: Batches since the last call by operator, oldest first; empty for engines without batches.
    batches: Mapping[str, tuple[Batch, ...]] = field(default_factory=FrozenDict)
    #: Operators that read from outside.
    ingests: Mapping[str, IngestStatus] = field(default_factory=FrozenDict)
    #: Records since the run began that arrived after the watermark, by operator.
    late: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Records since the run began.
    offered_records: int = 0
    processed_records: int = 0
    dropped_records: int = 0
    #: Records that wait or are in progress. An engine that cannot count records behind its sources
    #: counts only those in front of them; `processed_records` then counts what sources have read.
    backlog_records: int = 0
    #: Rows that wait for each operator now, for engines that know them before the first snapshot.
    queues: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Whether all operators stopped or are done.
    is_over: bool = False


class Engine(Protocol):
    """A running pipeline that can be observed and rescaled."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine supports."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass. A real engine may return early when it is stopped."""
        ...

    def observe(self) -> Snapshot:
        """Return the present measurements; `NotReadyError` while there are none."""
        ...

    def apply(self, plan: Plan) -> None:
        """Start to carry out a plan; `RescaleError` if that is impossible now."""
        ...

    def status(self) -> Status:
        """Return replicas and counts, and the events since the last call."""
        ...


def check_plan(
    plan: Plan,
    operators: Mapping[str, int | None],
    capabilities: Capabilities,
    minimums: Mapping[str, int] = FrozenDict(),
) -> None:
    """Raise `InputError` if a plan names unknown operators or exceeds bounds or capabilities.

    `operators` maps each name to its maximum, None for no maximum; `minimums` to its minimum,
    where that is not 1.
    """
    for name, wanted in plan.replicas.items():
        if name not in operators:
            raise InputError(f"replicas.{name}", "unknown operator", nearest(name, operators))
        minimum, maximum = minimums.get(name, 1), operators[name]
        if wanted < minimum or (maximum is not None and wanted > maximum):
            at_least = f"at least {minimum}"
            bound = at_least if maximum is None else f"from {minimum} to {maximum}"
            raise InputError(f"replicas.{name}", f"must be {bound}, got {wanted}")
    if plan.moves and not capabilities.moves_slices:
        raise InputError("moves", "this engine cannot move slices")
    if plan.executors is not None and not capabilities.has_executors:
        raise InputError("executors", "this engine has no executors to scale")
