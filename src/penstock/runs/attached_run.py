"""A run that follows the queries of another application: spec, checks, loop, run directory."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.control.clock import run_clock
from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.limits import call_within
from penstock.control.loop import LoopSchedule, run_loop
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards
from penstock.core.policy import Policy, RunFacts
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.port import Engine
from penstock.errors import InputError
from penstock.files.lock import Lock
from penstock.runs.control_file import ControlFile
from penstock.runs.journal import JournalWriter
from penstock.runs.journal_header import JournalHeader, make_header
from penstock.runs.observer import StopRequest
from penstock.runs.preparation import check_positive, find_policy_for, parse_params
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, begin_run, default_place, finish_run
from penstock.runs.run_stop import stop_requests
from penstock.runs.scores import Scores, rescales_possible
from penstock.runs.spark_preparation import COOLDOWNS, DRAIN_SHARE

#: The kind of engine in the header of a journal, and the engine in a spec.
ATTACHED = "attached"
DRY_RUN, EXECUTORS, RESTART = MODES = ("dry-run", "executors", "restart")
#: Time between decisions; a snapshot looks back on some of them, and on this many seconds.
INTERVAL_S, WINDOW_INTERVALS, MIN_WINDOW_S = 15.0, 4, 10.0


class FollowingEngine(Engine, Protocol):
    """An engine that can be left while it waits."""

    def wake(self) -> None:
        """Let `advance` return at once."""

    def leave(self) -> None:
        """Complete what was begun, and leave the application alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachSpec:
    """Everything that decides what an attached run does."""

    #: The name of the application, its master, and the names of queries; none: all of them.
    application: str
    master: str
    queries: tuple[str, ...] = ()
    policy: str
    params: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    freshness_s: float
    #: The fewest and the most executors; None if partitions change in place of them.
    executors: tuple[int, int] | None = None
    #: The fewest and the most partitions of queries that may be started again.
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=FrozenDict)
    mode: str = EXECUTORS
    #: Why it only advises although it was asked to act; "" if it acts, or was not asked to.
    note: str = ""
    interval_s: float = INTERVAL_S

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries, for run.toml and the journal."""
        data = {
            "query": self.application,
            "engine": ATTACHED,
            "master": self.master,
            "queries": list(self.queries),
            "policy": self.policy,
            "params": dict(self.params),
            "guards": dict(self.guards),
            "objective_s": self.freshness_s,
            "executors": _range(self.executors) if self.executors else "",
            "partitions": {name: _range(bounds) for name, bounds in self.partitions.items()},
            "mode": self.mode,
            "note": self.note,
            "interval_s": self.interval_s,
        }
        return {key: value for key, value in data.items() if value not in ("", {}, [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAttachment:
    """An attached run, loaded and checked, not yet started."""

    spec: AttachSpec
    decider: Decider
    schedule: LoopSchedule

    @property
    def window_s(self) -> float:
        """What a snapshot looks back on."""
        return max(MIN_WINDOW_S, WINDOW_INTERVALS * self.spec.interval_s)

    def header(self) -> JournalHeader:
        """Return the header of its journal: the spec and the resolved defaults."""
        return make_header(
            self.spec.to_json(),
            self.decider,
            self.schedule,
            engine_kind=ATTACHED,
            objective_s=self.spec.freshness_s,
        )


def prepare_attachment(spec: AttachSpec, given: Policy | None = None) -> PreparedAttachment:
    """Load and check policy, parameters, guards and times; `InputError` names what is wrong."""
    check_positive({"freshness": spec.freshness_s, "interval_s": spec.interval_s})
    check_mode(spec.mode)
    policy = find_policy_for("operators", spec.policy, given)
    defaults = policy.params_for(RunFacts(objective_s=spec.freshness_s))
    params = parse_params(policy, defaults, spec.params)
    guards = Guards.parse(_add_defaults(spec), "guard")
    _ask_once(Decider(policy, params, guards), spec)
    return PreparedAttachment(
        spec=spec,
        decider=Decider(policy, params, guards, call_within(spec.interval_s)),
        schedule=LoopSchedule(duration_s=math.inf, interval_s=spec.interval_s),
    )


def check_mode(mode: str) -> None:
    """Refuse an unknown mode."""
    if mode not in MODES:
        raise InputError("mode", f"must be one of {', '.join(MODES)}, got {mode!r}")


def _add_defaults(spec: AttachSpec) -> Mapping[str, Any]:
    cooldowns = {} if any(name.startswith("cooldown") for name in spec.guards) else COOLDOWNS
    draining = {"hold_while_draining": DRAIN_SHARE * spec.freshness_s}
    budget = {"budget": spec.executors[1]} if spec.executors else {}
    return {**budget, **draining, **cooldowns, **spec.guards}


def _range(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]}:{bounds[1]}"


def _ask_once(decider: Decider, spec: AttachSpec) -> None:
    """Ask the policy about a query that shows nothing yet: some mistakes show only then."""
    names = spec.queries or ("query",)
    operators = {name: OperatorSnapshot(name=name, parallelism=1) for name in names}
    try:
        decider.decide(Snapshot(at=0.0, operators=FrozenDict(operators)))
    except InputError:
        raise
    except Exception:  # a policy that needs measures; the loop records such an error
        return


def default_directory(spec: AttachSpec) -> Path:
    """Return the directory of a run by default, named after application and policy."""
    parts = ("attach", spec.application, spec.policy)
    return default_place(parts, time.strftime("%Y%m%d-%H%M%S"), Path("runs"))


def follow_application(
    prepared: PreparedAttachment,
    engine: FollowingEngine,
    directory: Path,
    stop: StopRequest,
    on_begin: Callable[[], None] = lambda: None,
) -> None:
    """Decide about the queries of an application until it is over or asked to stop.

    `on_begin` is called when the run directory can be read. `penstock stop` on the directory
    detaches, too, and does not end the application.
    """
    spec, scores = prepared.spec, Scores(prepared.spec.freshness_s)
    with ExitStack() as stack:
        directory.mkdir(parents=True, exist_ok=True)
        stack.enter_context(Lock(directory / LOCK))
        journal = stack.enter_context(open_directory(prepared, directory))
        journal.carry = scores.to_json
        stack.enter_context(stop_requests(directory, stop))
        stack.callback(engine.leave)
        on_begin()
        for tick in run_loop(
            engine,
            prepared.decider,
            prepared.schedule,
            clock=run_clock(),
            patience=Patience(),
            dry_run=spec.mode == DRY_RUN,
            stop=lambda: stop.is_asked,
            controls=ControlFile(directory),
        ):
            scores.add(tick)
            journal.write(tick)
        finish_run(directory, _result(prepared, scores))


def _result(prepared: PreparedAttachment, scores: Scores) -> RunResult:
    spec, guards = prepared.spec, prepared.decider.guards
    seconds = scores.last.at if scores.last is not None else 0.0
    possible = rescales_possible(seconds, spec.interval_s, guards or Guards()) if seconds else 0
    return RunResult(spec=spec.to_json(), scores=scores.result(), rescales_possible=possible)


def open_directory(prepared: PreparedAttachment, directory: Path) -> JournalWriter:
    """Begin the run directory; `InputError` if it holds anything."""
    try:
        return begin_run(directory, prepared.spec.to_json(), prepared.header())
    except InputError as error:
        if error.hint:
            raise InputError("out", error.problem, "choose another", error.where) from None
        raise
