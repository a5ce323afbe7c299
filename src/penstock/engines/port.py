"""The port behind which every engine stands: observe it, change it, ask how it is.

Time is advanced by the harness: a simulator jumps, a real engine waits.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can be asked for; more is refused before a run, not during it."""

    moves_slices: bool = False
    has_executors: bool = False
    #: Operators that stop for a moment when their parallelism changes.
    pauses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be carried out: only what changes is named."""

    replicas: Mapping[str, int] = field(default_factory=FrozenDict)
    moves: tuple[Move, ...] = ()
    #: Executors follow the sum of replicas by themselves; so many there shall be at least.
    executors: int | None = None


class Batch(NamedTuple):
    """One batch of an operator that works in batches; times are those of the run."""

    planned_s: float
    committed_s: float
    replicas: int
    rows_in: int
    rows_out: int
    #: Seconds that the operator's function worked, over all replicas, and on the slowest of them.
    busy_s: float
    longest_s: float
    #: Rows that waited when it was planned, its own among them; None if nobody has looked.
    waiting: int | None = None


class IngestStatus(NamedTuple):
    """How an operator that reads from outside is, and what waits in front of it."""

    #: Rows that it brought since the run began, and in the last window.
    rows: int
    rows_per_s: float | None = None
    #: What waits outside, in its unit (offsets, files, bytes); None where the source cannot tell.
    backlog: float | None = None
    unit: str = ""
    #: The same in rows, as far as the batches so far tell.
    backlog_rows: int | None = None
    #: Whether the backlog has been growing for a while.
    is_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How an engine is, apart from what policies may know."""

    at: float
    #: Replicas that were asked for, and those that are there.
    requested: Mapping[str, int]
    running: Mapping[str, int]
    #: Executors that are there, those that were asked for, and executor-seconds since the run
    #: began; None where an engine has none.
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
    #: Since the last call, oldest first.
    events: tuple[Event, ...] = ()
    #: Batches since the last call by operator, oldest first; empty where there are none.
    batches: Mapping[str, tuple[Batch, ...]] = field(default_factory=FrozenDict)
    #: Operators that read from outside.
    ingests: Mapping[str, IngestStatus] = field(default_factory=FrozenDict)
    #: Records since the run began that came after the watermark, by operator; none without any.
    late: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Records since the run began.
    offered_records: int = 0
    processed_records: int = 0
    dropped_records: int = 0
    #: Waiting or in work; where an engine cannot tell records apart behind its sources, in front
    #: of them only, and then `processed` counts what sources have taken.
    backlog_records: int = 0
    #: Rows that wait for each operator now, where an engine knows them before any measure.
    queues: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Nothing runs any more: all operators stopped or are done.
    over: bool = False


class Engine(Protocol):
    """A running pipeline that can be observed and rescaled."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can be asked for."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass. A real engine may come back early if it is stopped meanwhile."""
        ...

    def observe(self) -> Snapshot:
        """What the monitor shows now; `NotReadyError` while there is nothing to show."""
        ...

    def apply(self, plan: Plan) -> None:
        """Begin to carry out a plan; `RescaleError` if it cannot be."""
        ...

    def status(self) -> Status:
        """Where requested and running replicas stand, and what happened since the last call."""
        ...


def check_plan(
    plan: Plan,
    operators: Mapping[str, int | None],
    able: Capabilities,
    least: Mapping[str, int] = FrozenDict(),
) -> None:
    """Refuse a plan that names what is not there or asks for what the engine cannot do.

    `operators` maps each name to its maximum, None for no maximum; `least` to its minimum,
    where that is not 1.
    """
    for name, wanted in plan.replicas.items():
        if name not in operators:
            raise InputError(f"replicas.{name}", "unknown operator", nearest(name, operators))
        minimum, maximum = least.get(name, 1), operators[name]
        if wanted < minimum or (maximum is not None and wanted > maximum):
            at_least = f"at least {minimum}"
            bound = at_least if maximum is None else f"from {minimum} to {maximum}"
            raise InputError(f"replicas.{name}", f"must be {bound}, got {wanted}")
    if plan.moves and not able.moves_slices:
        raise InputError("moves", "this engine cannot move slices")
    if plan.executors is not None and not able.has_executors:
        raise InputError("executors", "this engine has no executors to scale")
