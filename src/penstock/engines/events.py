"""Events of a run: one class per kind.

`event_json` writes the fields of a class in their order, under their names or the `key` in their
metadata. A field that is None is left out, unless its metadata say `is_nullable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from penstock.engines.base_event import BaseEvent
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    PartitionsChangedEvent,
    PartitionsRequestedEvent,
    PartitionsRestoredEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningEvent(BaseEvent):
    """The operator has `replicas` running replicas from now on."""

    KIND: ClassVar[str] = "running"
    replicas: int
    before: int | None = None
    #: Seconds and batches since these replicas were requested.
    after_s: float | None = None
    batches: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartEvent(BaseEvent):
    """The whole pipeline stops for `pause_s` and loses records."""

    KIND: ClassVar[str] = "restart"
    pause_s: float
    dropped_records: int = field(metadata={"key": "dropped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedEvent(BaseEvent):
    """The pipeline processes records again, `after_s` after the decision that paused it."""

    KIND: ClassVar[str] = "resumed"
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedEvent(BaseEvent):
    """The operator lost records. In JSON each cause is a key."""

    KIND: ClassVar[str] = "dropped"
    #: Records by cause, such as "retention" or "queue-full".
    causes: Mapping[str, int]
    #: The sum over all causes, which only micro-batch engines write.
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedEvent(BaseEvent):
    """The operator stopped for good, or a change of it failed; without operator, the engine."""

    KIND: ClassVar[str] = "failed"
    error: str
    tries: int | None = None
    #: Whether the user's function is the cause, and the rows on which it fails.
    is_users: bool | None = None
    topic: str | None = None
    first_offset: int | None = field(default=None, metadata={"key": "first"})
    end_offset: int | None = field(default=None, metadata={"key": "end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEvent(BaseEvent):
    """The operator waits because of back-pressure."""

    KIND: ClassVar[str] = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartingEvent(BaseEvent):
    """The operator stopped because of `error` and starts again in `delay_s`."""

    KIND: ClassVar[str] = "restarting"
    tries: int
    delay_s: float = 0.0
    #: Seconds since the first failure, and for how long restarts are tried; None: without end.
    since_s: float = 0.0
    retry_for_s: float | None = field(default=None, metadata={"is_nullable": True})
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevivedEvent(BaseEvent):
    """The operator was restarted. Only journals of earlier versions have this event."""

    KIND: ClassVar[str] = "revived"
    tries: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBatchEvent(BaseEvent):
    """A batch has run for `duration_s` and is not done; `usual_s` is usual."""

    KIND: ClassVar[str] = "slow-batch"
    batch: int
    duration_s: float = field(metadata={"key": "seconds"})
    usual_s: float
    #: The rows that the batch processes now, if they are known.
    topic: str | None = None
    first_offset: int | None = field(default=None, metadata={"key": "first"})
    end_offset: int | None = field(default=None, metadata={"key": "end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent(BaseEvent):
    """One step of a change that stops the operator took `duration_s`."""

    KIND: ClassVar[str] = "step"
    step: str
    duration_s: float = field(metadata={"key": "seconds"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaledEvent(BaseEvent):
    """A change that stopped the operator for `pause_s` is complete."""

    KIND: ClassVar[str] = "rescaled"
    replicas: int
    before: int
    state_rows: int | None = None
    pause_s: float
    #: Seconds since the change was requested; only a simulator writes it.
    after_s: float | None = None
    #: Seconds of each step; only Spark writes them.
    hold_s: float | None = None
    wait_s: float | None = None
    stop_s: float | None = None
    repartition_s: float | None = None
    restart_s: float | None = None
    verify_s: float | None = None
    resume_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorsRequestedEvent(BaseEvent):
    """Another number of executors was requested; `alive` executors run at that moment."""

    KIND: ClassVar[str] = "executors"
    alive: int
    requested: int = field(metadata={"key": "asked"})
    before: int
    reason: str = field(metadata={"key": "why"})
    #: Queries that share the executors, and what each one needs; only attached runs have it.
    needs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorsReadyEvent(BaseEvent):
    """As many executors run as were requested `after_s` ago."""

    KIND: ClassVar[str] = "executors"
    alive: int
    requested: int = field(metadata={"key": "asked"})
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLostEvent(BaseEvent):
    """An executor died; Spark starts another one."""

    KIND: ClassVar[str] = "executors"
    alive: int
    requested: int = field(metadata={"key": "asked"})
    reason: str = field(default="lost", metadata={"key": "why"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindEvent(BaseEvent):
    """The backlog in front of an ingest keeps growing."""

    KIND: ClassVar[str] = "behind"
    backlog: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUpEvent(BaseEvent):
    """The backlog in front of an ingest is gone."""

    KIND: ClassVar[str] = "caught-up"
    backlog: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LateEvent(BaseEvent):
    """Records arrived after the watermark."""

    KIND: ClassVar[str] = "late"
    records: int
    #: Late records of the run so far.
    total: int
    #: The topic that keeps them; "" if they are only counted.
    late_topic: str = field(default="", metadata={"key": "kept_in"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedEvent(BaseEvent):
    """The loop requested the same replicas again, for the `tries`th time."""

    KIND: ClassVar[str] = "retried"
    replicas: int
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUpEvent(BaseEvent):
    """The loop stopped to request `replicas`, since a newer decision wants another number."""

    KIND: ClassVar[str] = "gave-up"
    replicas: int
    tries: int
    wanted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LateTickEvent(BaseEvent):
    """The loop was late and skipped ticks."""

    KIND: ClassVar[str] = "late-tick"
    missed_ticks: int = field(metadata={"key": "missed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedRunEvent(BaseEvent):
    """The run was resumed from its directory."""

    KIND: ClassVar[str] = "resumed-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEvent(BaseEvent):
    """A person asked the loop for something; it takes effect with this tick."""

    KIND: ClassVar[str] = "control"
    #: pause, resume, pin, unpin, bounds, dry-run-on or dry-run-off.
    action: str
    who: str
    #: When, in seconds since 1970, and which line of control.jsonl.
    asked_at: float
    number: int
    replicas: int | None = None
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(BaseEvent):
    """An event of another version; all its fields are `extra`."""

    kind: str


KnownEvent: TypeAlias = (
    RunningEvent | RestartEvent | ResumedEvent | DroppedEvent | FailedEvent | HeldEvent
    | RestartingEvent | RevivedEvent | SlowBatchEvent | StepEvent | RescaledEvent
    | ExecutorsRequestedEvent | ExecutorsReadyEvent | ExecutorLostEvent | BehindEvent
    | CaughtUpEvent | LateEvent | RetriedEvent | GaveUpEvent | LateTickEvent | ResumedRunEvent
    | ControlEvent | QueryStartedEvent | QueryEndedEvent | ExecutorEffectEvent | VerdictEvent
    | PartitionsRequestedEvent | PartitionsChangedEvent | PartitionsRestoredEvent
)  # fmt: skip
Event: TypeAlias = KnownEvent | UnknownEvent


def kind_of(event: Event) -> str:
    """Return the name of an event's kind in the journal."""
    return event.kind if isinstance(event, UnknownEvent) else event.KIND
