"""Changes the number of partitions of a query: stop, repartition, start, verify, or restore. Pure.

The state of a query always has the old or the new number of partitions. A batch that was planned
and did not end belongs to the number that it was planned with: it must end before the state can be
repartitioned. So a query is started and verified first if its last batch did not end.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.engines.attached.restart.restart_log import (
    CHANGED,
    FAILED,
    REQUESTED,
    RESTORED,
    STOPPED,
)
from penstock.engines.events import Event, FailedEvent, StepEvent
from penstock.engines.query_events import (
    PartitionsChangedEvent,
    PartitionsRequestedEvent,
    PartitionsRestoredEvent,
)
from penstock.errors import RescaleError

WAIT, REPARTITION, RESTART, VERIFY = STEPS = ("wait", "repartition", "restart", "verify")
#: Starts after which a change is given up: one for an open batch, one for another number that the
#: factory has set, and one with the right number.
MAX_STARTS = 3


class StateFacts(NamedTuple):
    """The state of a query in its checkpoint."""

    #: Partitions of the last batch that was planned, and whether this batch was committed.
    partitions: int
    is_committed: bool
    #: Whether the last batch is a repartition that was interrupted.
    is_interrupted: bool = False


class RestartHost(Protocol):
    """Calls to Spark about one query; see `spark_restart_host.SparkRestartHost`."""

    def is_stopped(self) -> bool:
        """Whether the user has stopped the query for good."""

    def stop(self) -> None:
        """Stop the query between two batches, if it runs."""

    def start(self, partitions: int) -> int:
        """Call the factory; return the number of shuffle partitions that it has set."""

    def verify(self) -> None:
        """Wait for a committed batch; `RescaleError` if the query fails or takes too long."""

    def read_state(self) -> StateFacts | None:
        """Return the state; None for a query without state."""

    def repartition(self, partitions: int) -> None:
        """Repartition the state of the stopped query."""

    def count_state_rows(self) -> int | None:
        """Return the rows of state after the last batch; None for a query without state."""


class Log(Protocol):
    """See `restart_log.RestartLog`."""

    def write(self, query: str, step: str, before: int, partitions: int) -> None:
        """Write a step of a change."""


@dataclass(slots=True)
class _Change:
    before: int
    partitions: int
    seconds: dict[str, float] = field(default_factory=dict)


class QueryRestarter:
    """Changes one query, one change after the other. Event times are wall-clock times."""

    def __init__(
        self,
        name: str,
        host: RestartHost,
        log: Log,
        shuffle: Mapping[int, int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`shuffle` are the shuffle partitions that the factory has set for k partitions so far."""
        self._name, self._host, self._log, self._clock = name, host, log, clock
        self._shuffle = dict(shuffle)
        self._change = _Change(0, 0)
        #: Whether the application is left alone soon, so that no change begins.
        self.is_leaving = False
        #: Events, oldest first; the reader removes them.
        self.events: deque[Event] = deque()

    def change(self, before: int, wanted: int) -> int:
        """Change the number of partitions; return the number that runs then, 0 if none does."""
        self._change, began = _Change(before, wanted), self._clock()
        rows = self._host.count_state_rows()
        self._write(REQUESTED)
        event = PartitionsRequestedEvent(
            at=began, operator=self._name, before=before, partitions=wanted
        )
        self.events.append(event)
        try:
            self._stop()
            self._settle(wanted)
        except Exception as error:  # any kind: the query must run again
            if self._host.is_stopped():
                self._write(STOPPED)
                return 0
            return self._restore(began, error)
        self._write(CHANGED)
        self._report_changed(began, rows)
        return wanted

    def adopt(self, started: int, bounds: tuple[int, int]) -> int:
        """Verify the first start; return the number of partitions to continue with.

        The state of an earlier run may have another number, or an interrupted repartition, which
        is completed with the same number: nothing else is possible.
        """
        try:
            self._host.verify()
        except RescaleError:
            state = self._host.read_state()
            if state is None or not state.is_interrupted:
                raise
        state = self._host.read_state()
        if state is None or state.partitions == self._find_shuffle(started):
            return started
        if self.is_leaving:
            return started
        low, high = bounds
        wanted = min(high, max(low, state.partitions))
        running = self.change(started, wanted)
        if not running:
            raise RescaleError(f"{self._name} could not be started with {wanted} partitions")
        return running

    # --- steps

    def _stop(self) -> None:
        with self._step(WAIT):
            self._host.stop()

    def _settle(self, partitions: int) -> None:
        """Start the stopped query, and start it again until its state has the right number."""
        remaining = 0
        for _ in range(MAX_STARTS):
            self._repartition(self._find_shuffle(partitions))
            with self._step(RESTART):
                self._shuffle[partitions] = self._host.start(partitions)
            with self._step(VERIFY):
                self._host.verify()
            state, wanted = self._host.read_state(), self._find_shuffle(partitions)
            if state is None or state.partitions == wanted:
                return
            remaining = state.partitions
            self._stop()
        raise RescaleError(f"the state of {self._name} keeps {remaining} partitions")

    def _repartition(self, wanted: int) -> None:
        """Repartition the state if that is possible now."""
        state = self._host.read_state()
        if state is not None and state.is_interrupted:
            with self._step(REPARTITION):
                self._host.repartition(state.partitions)
            state = self._host.read_state()
        if state is not None and state.is_committed and state.partitions != wanted:
            with self._step(REPARTITION):
                self._host.repartition(wanted)

    def _restore(self, began: float, error: Exception) -> int:
        """Start the query with the previous number; return it, or 0 if that fails, too."""
        before, wanted = self._change.before, self._change.partitions
        try:
            self._stop()
            self._settle(before)
        except Exception as second:
            text = f"{self._name} could not be started with {wanted} partitions ({_first(error)})"
            text = f"{text}, nor with {before} again: {_first(second)}"
            self._write(FAILED)
            self.events.append(FailedEvent(at=self._clock(), operator=self._name, error=text))
            return 0
        self._write(RESTORED)
        event = PartitionsRestoredEvent(
            at=self._clock(),
            operator=self._name,
            partitions=before,
            wanted=wanted,
            pause_s=round(self._clock() - began, 3),
            error=_first(error),
        )
        self.events.append(event)
        return before

    def _find_shuffle(self, partitions: int) -> int:
        """Return the shuffle partitions of a start: what the factory has set, or k itself."""
        return self._shuffle.get(partitions, partitions)

    @contextmanager
    def _step(self, step: str) -> Iterator[None]:
        """Log a step before it is done, and report its seconds."""
        self._write(step)
        began, seconds = self._clock(), self._change.seconds
        try:
            yield
        finally:
            took_s = self._clock() - began
            seconds[step] = seconds.get(step, 0.0) + took_s
            event = StepEvent(
                at=self._clock(), operator=self._name, step=step, duration_s=round(took_s, 3)
            )
            self.events.append(event)

    def _write(self, step: str) -> None:
        self._log.write(self._name, step, self._change.before, self._change.partitions)

    def _report_changed(self, began: float, state_rows: int | None) -> None:
        seconds = {step: round(s, 3) for step, s in self._change.seconds.items()}
        event = PartitionsChangedEvent(
            at=self._clock(),
            operator=self._name,
            before=self._change.before,
            partitions=self._change.partitions,
            state_rows=state_rows,
            pause_s=round(self._clock() - began, 3),
            wait_s=seconds.get(WAIT),
            repartition_s=seconds.get(REPARTITION),
            restart_s=seconds.get(RESTART),
            verify_s=seconds.get(VERIFY),
        )
        self.events.append(event)


def _first(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
