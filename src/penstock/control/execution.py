"""Applies decisions to an engine and retries changes that fail.

A change fails if the engine refuses it or if it does not run by its deadline. It is retried with
exponential back-off until it runs or a newer decision about the operator replaces it. While a
change is in progress its operator gets no other: a policy that steps from the running replicas
would revert part of it. Moves of slices are not retried: their policy decides again.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.control.failures import describe_error
from penstock.control.requests import ControlState
from penstock.core.decision import Decision, Move, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.engines.events import Event, FailedEvent, GaveUpEvent, RetriedEvent
from penstock.engines.port import Engine, Plan, Status
from penstock.errors import RescaleError

_LOG = logging.getLogger(__name__)
DRY_RUN = "dry run"
IN_PROGRESS = "is in progress"
#: Ticks are not on time to the millisecond; what is due this soon is not put off for an interval.
SLACK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a change may take, and how long to wait before a failed one is tried again."""

    deadline_s: float = 120.0
    first_pause_s: float = 15.0
    longest_pause_s: float = 600.0

    def pause_s(self, tries: int) -> float:
        """Seconds between the failure of a try and the next one.

        >>> [Patience().pause_s(tries) for tries in (1, 2, 3, 99)]
        [15.0, 30.0, 60.0, 600.0]
        """
        # the exponent is bounded too, for 2.0**1024 is too large for a number
        return min(self.longest_pause_s, self.first_pause_s * 2.0 ** min(tries - 1, 30))


class Attempt(NamedTuple):
    """A requested change of one operator that does not run yet."""

    wanted: int
    tries: int
    has_failed: bool
    #: Time of the next try; while it is in progress, its deadline.
    until_s: float

    def is_due(self, at: float) -> bool:
        """Whether its pause or its deadline is over."""
        return at >= self.until_s - SLACK_S

    def describe(self, name: str) -> str:
        """Say why it is not requested now."""
        when = f"is retried at {self.until_s:g} s" if self.has_failed else IN_PROGRESS
        return f"{name} {self.wanted} {when}"


class ApplyResult(NamedTuple):
    """The result of one tick's decision; `plan` is what the engine accepted."""

    applied: bool = False
    error: str = ""
    plan: Mapping[str, int] = FrozenDict()


NOTHING = ApplyResult()


def waiting_operators(error: str) -> set[str]:
    """Return the operators of a tick's error whose earlier change is in progress.

    >>> waiting_operators("work 3 is in progress, read 2 is retried at 75 s")
    {'work'}
    """
    return {part.split()[0] for part in error.split(", ") if part.endswith(IN_PROGRESS)}


class Execution:
    """Tracks the requested changes of an engine that do not run yet.

    Without patience nothing is awaited or retried: a refused change is left to the next decision.
    """

    def __init__(
        self, engine: Engine, patience: Patience | None = None, *, dry_run: bool = False
    ) -> None:
        self._engine, self._patience, self._started_dry = engine, patience, dry_run
        self._dry_run, self._is_paused = dry_run, False
        self._open: dict[str, Attempt] = {}
        self._events: list[Event] = []

    def follow(self, state: ControlState) -> None:
        """Do as people ask: pause, or switch the dry run on or off."""
        self._is_paused = state.is_paused
        self._dry_run = self._started_dry if state.is_dry_run is None else state.is_dry_run

    def apply_decision(self, decision: Decision | None, at: float) -> ApplyResult:
        """Request the changes of a decision, and retry those that are due."""
        outcome = NOTHING
        if decision is not None:
            self._review(decision, at)
            if decision.is_change:
                outcome = self._begin(decision, at)
        again = {} if self._dry_run or self._is_paused else self._retry_due(at)
        return outcome._replace(plan=FrozenDict({**outcome.plan, **again})) if again else outcome

    def update_status(self, status: Status, at: float) -> Status:
        """Compare requested with running replicas; return the status with the events of that."""
        for name, attempt in list(self._open.items()):
            running = status.running.get(name)
            if running == attempt.wanted:
                del self._open[name]
            elif not attempt.has_failed and attempt.is_due(at):
                error = f"requested {attempt.wanted} replicas, {running} running"
                self._events.append(FailedEvent(at=at, operator=name, error=error))
                self._open[name] = self._attempt(attempt.wanted, attempt.tries, at, has_failed=True)
        if not self._events:
            return status
        events, self._events = (*status.events, *self._events), []
        return replace(status, events=events)

    def _begin(self, decision: Decision, at: float) -> ApplyResult:
        if self._dry_run:
            return ApplyResult(error=DRY_RUN)
        changes = decision.changes
        now = {name: wanted for name, wanted in changes.items() if self._may_try(name, at)}
        later = ", ".join(self._open[name].describe(name) for name in changes if name not in now)
        moves = decision.placement.moves if decision.placement else ()
        if later and not now and not moves:
            return ApplyResult(error=later)
        error = self._request(now, at, moves)
        if error is None:
            return ApplyResult(applied=True, error=later, plan=FrozenDict(now))
        if not isinstance(error, RescaleError):
            self._events.append(FailedEvent(at=at, error=describe_error(error)))
        return ApplyResult(error=describe_error(error))

    def _retry_due(self, at: float) -> dict[str, int]:
        """Request failed changes again, one operator after the other."""
        begun = {}
        for name in [name for name in self._open if self._may_try(name, at)]:
            wanted = self._open[name].wanted
            error = self._request({name: wanted}, at)
            if error is None:
                begun[name] = wanted
            else:
                self._events.append(FailedEvent(at=at, operator=name, error=describe_error(error)))
        return begun

    def _request(
        self, replicas: dict[str, int], at: float, moves: tuple[Move, ...] = ()
    ) -> Exception | None:
        """Request a change of the engine; return the error if it refuses."""
        error = None
        try:
            _LOG.info("rescale at %.1f s: %s, %d moves", at, replicas, len(moves))
            self._engine.apply(Plan(replicas=replicas, moves=moves))
        except Exception as refusal:  # any error: the pipeline still runs, and the loop continues
            _LOG.info("rescale at %.1f s refused: %s", at, refusal)
            error = refusal
        if self._patience is not None:
            for name, wanted in replicas.items():
                tries = self._open[name].tries + 1 if name in self._open else 1
                if tries > 1:
                    event = RetriedEvent(at=at, operator=name, replicas=wanted, tries=tries)
                    self._events.append(event)
                self._open[name] = self._attempt(wanted, tries, at, has_failed=error is not None)
        return error

    def _review(self, decision: Decision, at: float) -> None:
        """Drop attempts that run by now, and failed ones that a newer decision replaces."""
        for name, attempt in list(self._open.items()):
            target = decision.targets.get(name)
            if target is None:
                continue
            if target.current == attempt.wanted:
                del self._open[name]
            elif attempt.has_failed and _replaces_attempt(target, attempt.wanted):
                del self._open[name]
                event = GaveUpEvent(
                    at=at,
                    operator=name,
                    replicas=attempt.wanted,
                    tries=attempt.tries,
                    wanted=target.wanted,
                )
                self._events.append(event)

    def _may_try(self, name: str, at: float) -> bool:
        attempt = self._open.get(name)
        return attempt is None or (attempt.has_failed and attempt.is_due(at))

    def _attempt(self, wanted: int, tries: int, at: float, *, has_failed: bool) -> Attempt:
        patience = self._patience
        assert patience is not None  # attempts exist only with patience
        pause_s = patience.pause_s(tries) if has_failed else patience.deadline_s
        return Attempt(wanted, tries, has_failed, at + pause_s)


def _replaces_attempt(target: Target, wanted: int) -> bool:
    """Return whether a target replaces an attempt at `wanted` replicas.

    A target without measures, or one that a guard stopped, replaces nothing.
    """
    if target.wanted != target.current:
        return target.wanted != wanted
    return not target.steps and not target.is_kept
