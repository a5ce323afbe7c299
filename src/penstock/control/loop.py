"""The MAPE loop: each tick observes, decides, applies guards, rescales, and reports.

The same loop drives every engine. A simulator jumps from tick to tick; a real engine runs against
a clock, and ticks may come late. An error of a policy or an engine does not end the loop of a
running pipeline: the tick reports it, nothing changes, and the next tick follows. In a simulation
an error of the policy is raised. Where replicas decide alone, the loop observes what they decided.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.control.clock import Clock, missed_between, next_due
from penstock.control.decider import Decider
from penstock.control.execution import Execution, Patience
from penstock.control.failures import describe_error
from penstock.control.observation import Observation
from penstock.control.requests import ControlSource, NoRequests, constrain
from penstock.core.decision import Decision
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import NOISE
from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event, FailedEvent, LateTickEvent
from penstock.engines.port import Engine, Status
from penstock.errors import AnswerError, InputError, NotReadyError, PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick: everything that pictures and a replay of the decision need."""

    at: float
    status: Status
    #: None while the engine is not ready, or while the loop sleeps through a cool-down.
    snapshot: Snapshot | None = None
    #: Also None if the policy failed; then nothing changes, and `error` says why.
    decision: Decision | None = None
    #: Whether the decision was applied; `error` says why it was not, or which part was not.
    applied: bool = False
    error: str = ""
    #: Replicas that were requested and accepted: those of the decision, and retried ones.
    plan: Mapping[str, int] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSchedule:
    """The length of a run and the interval between decisions."""

    #: May be infinite.
    duration_s: float
    interval_s: float
    #: Time after a change without any decision.
    sleep_s: float = 0.0
    #: Time at which a resumed run continues.
    start_s: float = 0.0


def run_loop(
    engine: Engine,
    decider: Decider,
    schedule: LoopSchedule,
    *,
    clock: Clock | None = None,
    patience: Patience | None = None,
    dry_run: bool = False,
    observes_only: bool = False,
    tolerant: bool = True,
    stop: Callable[[], bool] = lambda: False,
    controls: ControlSource | None = None,
) -> Iterator[Tick]:
    """Run until the time is up, the engine is done, or `stop` returns True.

    `stop` is checked between ticks; a final tick records the remaining time and makes no
    decision. `InputError` is raised for a mistake that shows at the first decision only. A policy
    that fails or answers nonsense ends the loop unless it is `tolerant`: a running pipeline must
    continue, a simulation need not. `controls` are requests of people, read at every tick. With
    `observes_only`, decisions report what replicas have changed themselves, none is applied, and
    requests are not read.
    """
    execution = Observation() if observes_only else Execution(engine, patience, dry_run=dry_run)
    requests = NoRequests() if observes_only or controls is None else controls
    ticks = _Ticks(engine, decider, execution, tolerant, requests)
    at, asleep_until = schedule.start_s, 0.0
    while at < schedule.duration_s - NOISE and not stop():
        before, at = at, _wait(engine, schedule, at, clock, stop)
        is_last = stop()
        if is_last and at <= before:
            return
        missed = missed_between(before, at, schedule.interval_s) if clock is not None else 0
        tick = ticks.tick(at, asks=not is_last and at >= asleep_until - NOISE, missed=missed)
        if tick.applied:
            asleep_until = at + schedule.sleep_s
        yield tick
        if is_last or tick.status.is_over:
            return


def _wait(
    engine: Engine, schedule: LoopSchedule, at: float, clock: Clock | None, stop: Callable[[], bool]
) -> float:
    """Advance the engine to the next tick; return the time of that tick."""
    if clock is None:
        seconds = min(schedule.interval_s, schedule.duration_s - at)
        engine.advance(seconds)
        return at + seconds
    due = min(next_due(max(at, clock()), schedule.interval_s), schedule.duration_s)
    engine.advance(max(0.0, due - clock()))
    now = round(clock(), 3)
    return now if stop() else max(now, due)


class _Ticks:
    """Makes ticks: Monitor, Analyse and Plan, Execute."""

    def __init__(
        self,
        engine: Engine,
        decider: Decider,
        execution: Execution | Observation,
        tolerant: bool,
        controls: ControlSource,
    ) -> None:
        self._engine, self._decider, self._execution = engine, decider, execution
        self._tolerant, self._controls, self._control = tolerant, controls, controls.state
        self._follow()
        self._events: list[Event] = []
        #: The last known status, for an engine that fails to report one.
        self._status = Status(at=0.0, requested=FrozenDict(), running=FrozenDict())

    def tick(self, at: float, *, asks: bool, missed: int) -> Tick:
        """Make one tick; without `asks` it records the status only."""
        if missed:
            self._events.append(LateTickEvent(at=at, missed_ticks=missed))
        self._read_requests(at)
        snapshot, error = self._observe(at) if asks else (None, "")
        decision = None
        if snapshot is not None:
            decision, error = self._decide(snapshot)
        if snapshot is not None and decision is not None:
            decision = constrain(decision, snapshot, self._control)
        outcome = self._execution.apply_decision(decision, at)
        if outcome.applied and decision is not None:
            self._decider.note_applied(decision)
        return Tick(
            at=at,
            status=self._read_status(at),
            snapshot=snapshot,
            decision=decision,
            applied=outcome.applied,
            error=error or outcome.error,
            plan=outcome.plan,
        )

    def _read_requests(self, at: float) -> None:
        try:
            requests = self._controls.read_new()
        except Exception as error:  # a damaged line must not end the loop
            self._events.append(FailedEvent(at=at, error=describe_error(error)))
            return
        for number, request in requests:
            self._control = self._control.after(request)
            self._events.append(request.to_event(at, number))
        self._follow()

    def _follow(self) -> None:
        if isinstance(self._execution, Execution):
            self._execution.follow(self._control)

    def _observe(self, at: float) -> tuple[Snapshot | None, str]:
        try:
            return self._engine.observe(), ""
        except NotReadyError as error:
            return None, describe_error(error)
        except Exception as error:
            self._events.append(FailedEvent(at=at, error=describe_error(error)))
            return None, describe_error(error)

    def _decide(self, snapshot: Snapshot) -> tuple[Decision | None, str]:
        try:
            return self._decider.decide(snapshot), ""
        except (AnswerError, PolicyError) as error:
            if not self._tolerant:
                raise
            return None, describe_error(error)
        except Exception as error:
            if isinstance(error, InputError) and not self._decider.has_answered:
                raise
            return None, f"{self._decider.policy.name} failed: {describe_error(error)}"

    def _read_status(self, at: float) -> Status:
        """Return the status of the engine, with the events of the loop added."""
        try:
            status = self._engine.status()
        except Exception as error:
            self._events.append(FailedEvent(at=at, error=describe_error(error)))
            # what was counted since the last call is not known
            status = replace(self._status, at=at, latency=FrozenDict(), age_s=None, events=())
        self._status = status = self._execution.update_status(status, at)
        if self._events:
            status = replace(status, events=(*status.events, *self._events))
            self._events = []
        return status
