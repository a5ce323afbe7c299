"""Observes a run between its ticks, and decides when it is over."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.engines.port import Capabilities, Engine, Plan, Status
from penstock.errors import NotReadyError

#: Seconds between two observations.
POLL_S = 0.5
#: Topics must be empty for this long before a run counts as drained: rows may be between two.
QUIET_S = 1.5
#: Maximum time after the last record; rows that still wait then stay in their topics.
DRAIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The state of a run between two ticks."""

    #: Second of the workload, and how many it has; infinite if it never ends.
    second: float
    duration_s: float
    snapshot: Snapshot | None = None
    #: Records/s that enter the pipeline.
    offered_rate: float | None = None
    #: Rows that wait for each operator, known from the topics before anything is measured.
    queues: Mapping[str, int] = field(default_factory=FrozenDict)
    #: Whether the workload is over and the backlog is being processed.
    is_draining: bool = False
    #: Executors that run, and those requested; None without executors.
    executors: tuple[int, int] | None = None


class RunObserver(Protocol):
    """Gets the progress of a run."""

    def say(self, text: str) -> None:
        """Show a message."""

    def show_progress(self, progress: RunProgress) -> None:
        """Show the state between two ticks."""

    def tick(self, tick: Tick) -> None:
        """Show a tick that has ended."""

    def report(self, event: Event) -> None:
        """Show an event of an operator at once, before the next tick."""


class StopRequest:
    """Whether the run was asked to stop. Plain flags, so that a signal handler may set them."""

    def __init__(self) -> None:
        #: A file that asks for it by being there, where signals do not arrive.
        self.file: Path | None = None
        self._is_asked = False
        #: Whether records are being processed, so that a stop waits for running batches.
        self.is_gentle = False

    @property
    def is_asked(self) -> bool:
        """Whether it shall stop; once asked, always asked."""
        # never assign False: another thread may ask while this one looks for the file
        if self.file is not None and self.file.exists():
            self._is_asked = True
        return self._is_asked

    @is_asked.setter
    def is_asked(self, value: bool) -> None:
        self._is_asked = value


class Drained(Protocol):
    """What the stop condition asks of an engine."""

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits for an operator that lives."""

    @property
    def operator_errors(self) -> object:
        """Truthy if an operator stopped."""


class LoadSource(Protocol):
    """The producers that fill the topics."""

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""

    @property
    def error(self) -> BaseException | None:
        """Why it ended early."""


class BoundedInput(Protocol):
    """What an engine says of input that was bounded at its start."""

    @property
    def is_input_read(self) -> bool:
        """Whether everything that was there at the start has been read."""


class AvailableInput:
    """The input that was there when a run started: done when it has been read."""

    error: BaseException | None = None

    def __init__(self, engine: BoundedInput) -> None:
        self._engine = engine

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return self._engine.is_input_read


class StopCondition:
    """Says when a run is over: it was asked to stop, an operator failed, or all is processed."""

    def __init__(
        self,
        engine: Drained,
        feeding: LoadSource | None,
        stop: StopRequest,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._feeding, self._stop, self._clock = engine, feeding, stop, clock
        self._fed_at: float | None = None
        self._quiet_since: float | None = None
        #: Whether everything was offered and worked off.
        self.is_drained = False

    def __call__(self) -> bool:
        """Whether it is over now."""
        if self._stop.is_asked or self.is_drained or self._engine.operator_errors:
            return True
        if self._feeding is None or not self._feeding.is_done:
            return False
        if self._feeding.error is not None:
            return True
        now = self._clock()
        self._fed_at = self._fed_at or now
        if not self._engine.is_drained:
            self._quiet_since = None
            return now - self._fed_at > DRAIN_S
        self._quiet_since = self._quiet_since or now
        is_quiet = now - self._quiet_since >= QUIET_S
        self.is_drained = is_quiet
        return is_quiet

    @property
    def is_draining(self) -> bool:
        """Whether the workload is over."""
        return self._fed_at is not None


class ObservedEngine:
    """An engine that is observed while time passes, and that stops waiting when the run is over."""

    def __init__(
        self,
        engine: Engine,
        over: Callable[[], bool],
        on_snapshot: Callable[[Snapshot | None], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._over, self._clock = engine, over, clock
        self._on_snapshot = on_snapshot
        self.capabilities: Capabilities = engine.capabilities
        self.observe, self.apply, self.status = engine.observe, engine.apply, engine.status

    observe: Callable[[], Snapshot]
    apply: Callable[[Plan], None]
    status: Callable[[], Status]

    def advance(self, seconds: float) -> None:
        """Let time pass, and pass on a snapshot now and then; None before the first."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._over():
            self._engine.advance(min(POLL_S, left))
            try:
                self._on_snapshot(self._engine.observe())
            except NotReadyError:
                self._on_snapshot(None)
