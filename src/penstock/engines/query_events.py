"""Events of runs that follow queries of another application."""

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.engines.base_event import BaseEvent


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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvent(QueryEvent):
    """More executors will not help this query; `culprit` is the cause."""

    KIND: ClassVar[str] = "verdict"
    culprit: str
    evidence: str
    advice: str
