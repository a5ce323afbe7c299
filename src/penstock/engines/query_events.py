"""Events of runs that follow queries of another application."""

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.engines.base_event import BaseEvent

#: The unit of a change where a replica is a partition of a query.
PARTITIONS = "partitions"


class QueryEvent(BaseEvent):
    """An event of a query that another application has started."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStartedEvent(QueryEvent):
    """A query is followed from now on."""

    KIND: ClassVar[str] = "query-started"
    query_id: str
    #: How the backlog is known, such as "offsets", or what stands in for it.
    backlog: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEndedEvent(QueryEvent):
    """A query is not followed any more, because it ended."""

    KIND: ClassVar[str] = "query-ended"
    #: Why it failed; "" if it was stopped.
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorEffectEvent(QueryEvent):
    """The effect of another number of executors on a query, judged after some batches."""

    KIND: ClassVar[str] = "executor-effect"
    before: int
    executors: int
    #: Rows/s while batches worked, before the change and now.
    speed_before: float = field(metadata={"key": "rows_per_s_before"})
    speed: float = field(metadata={"key": "rows_per_s"})
    batches: int
    #: What was changed, if not executors.
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvent(QueryEvent):
    """More executors will not help this query; `culprit` is the cause."""

    KIND: ClassVar[str] = "verdict"
    culprit: str
    evidence: str
    advice: str
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRequestedEvent(QueryEvent):
    """A query is stopped, to be started with another number of partitions."""

    KIND: ClassVar[str] = "partitions-requested"
    before: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsChangedEvent(QueryEvent):
    """A query runs with another number of partitions; no batch ended for `pause_s`."""

    KIND: ClassVar[str] = "partitions-changed"
    before: int
    partitions: int
    #: Rows of state that were repartitioned; None for a query without state.
    state_rows: int | None = None
    pause_s: float
    #: Seconds of each step.
    wait_s: float | None = None
    repartition_s: float | None = None
    restart_s: float | None = None
    verify_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRestoredEvent(QueryEvent):
    """A query did not run with `wanted` partitions, and runs with the previous number again."""

    KIND: ClassVar[str] = "partitions-restored"
    partitions: int
    wanted: int
    pause_s: float
    error: str
