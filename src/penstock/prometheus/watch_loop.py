"""Decides on metrics from Prometheus in a loop, and keeps a run directory of it."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.control.clock import run_clock
from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.control.registry import find_policy
from penstock.control.requests import ControlRequest, ControlSource, NoRequests, constrain
from penstock.core.decision import Decision
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards
from penstock.core.policy import RunFacts
from penstock.core.snapshot import Snapshot
from penstock.files.lock import Lock
from penstock.prometheus.metric_map import MetricMap
from penstock.prometheus.metric_snapshot import read_snapshot
from penstock.prometheus.query_client import PrometheusClient
from penstock.prometheus.watched_engine import WatchedEngine, Webhook
from penstock.runs.control_file import ControlFile
from penstock.runs.journal_header import make_header
from penstock.runs.preparation import parse_params
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, begin_run, finish_run
from penstock.runs.scores import Scores

PROMETHEUS = "prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSpec:
    """Everything that decides what a watch does."""

    url: str
    mapped: MetricMap
    policy: str
    params: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    interval_s: float = 15.0
    duration_s: float = math.inf
    objective_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries, for run.toml and the journal."""
        data = {
            "query": self.mapped.name,
            "engine": PROMETHEUS,
            "prometheus": re.sub(r"//[^/@]*@", "//", self.url),  # without a password
            "interval_s": self.interval_s,
            "policy": self.policy,
            "params": dict(self.params),
            "guards": dict(self.guards),
            "objective_s": self.objective_s,
        }
        return {key: value for key, value in data.items() if value not in (None, {})}


class RecordingDecider(Decider):
    """A decider that keeps its last decision, and the snapshot that it is about."""

    last: tuple[Decision, Snapshot] | None = None

    def decide(self, snapshot: Snapshot) -> Decision:
        """Return the decision for a snapshot."""
        decision = super().decide(snapshot)
        self.last = decision, snapshot
        return decision


class TickDecision:
    """The decision of the present tick as the loop applies it, for messages to a webhook.

    The requests of people pass through here, because the loop applies them after all guards.
    """

    def __init__(self, decider: RecordingDecider, requests: ControlSource) -> None:
        self._decider, self._requests = decider, requests
        self.state = requests.state

    def read_new(self) -> Sequence[tuple[int, ControlRequest]]:
        """Return the new requests; every tick begins with this call, without a decision."""
        self._decider.last = None
        requests = self._requests.read_new()
        for _, request in requests:
            self.state = self.state.after(request)
        return requests

    def to_json(self) -> dict[str, Any] | None:
        """Write the decision; None if this tick has none, as when a failed request is retried."""
        if self._decider.last is None:
            return None
        decision, snapshot = self._decider.last
        return constrain(decision, snapshot, self.state).to_json(with_numbers=True)


def make_decider(spec: WatchSpec) -> RecordingDecider:
    """Return the policy with its parameters and guards."""
    policy = find_policy(spec.policy)
    defaults = policy.params_for(RunFacts(objective_s=spec.objective_s))
    params = parse_params(policy, defaults, spec.params)
    return RecordingDecider(policy, params, Guards.parse(dict(spec.guards), "guard"))


def watch(
    spec: WatchSpec,
    directory: Path | None,
    webhook: Webhook | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Tick]:
    """Yield ticks until the time is up or `stop` returns True; without a webhook, a dry run."""
    decider, clock, client = make_decider(spec), run_clock(), PrometheusClient(spec.url)
    schedule = LoopSchedule(duration_s=spec.duration_s, interval_s=spec.interval_s)

    def observe(at: float) -> Snapshot:
        return read_snapshot(client, spec.mapped, at)

    requests = ControlFile(directory) if directory is not None else NoRequests()
    decision = TickDecision(decider, requests)

    def send(message: Mapping[str, Any]) -> None:
        assert webhook is not None  # else nothing is sent
        webhook.send({**message, "decision": decision.to_json()})

    engine = WatchedEngine(observe, clock, send if webhook else None, stop=stop)
    header = make_header(
        spec.to_json(), decider, schedule, engine_kind=PROMETHEUS, objective_s=spec.objective_s
    )
    scores = Scores(spec.objective_s)
    with ExitStack() as stack:
        journal = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            stack.enter_context(Lock(directory / LOCK))
            journal = stack.enter_context(begin_run(directory, spec.to_json(), header))
            journal.carry = scores.to_json
        for tick in run_loop(
            engine,
            decider,
            schedule,
            clock=clock,
            patience=Patience(),
            dry_run=webhook is None,
            stop=stop,
            controls=decision,
        ):
            scores.add(tick)
            if journal is not None:
                journal.write(tick)
            yield tick
        if directory is not None:
            finish_run(directory, RunResult(spec=spec.to_json(), scores=scores.result()))
