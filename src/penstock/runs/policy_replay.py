"""Replays a recorded run with another policy: open loop on its snapshots, or simulated again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from penstock.control.decider import Decider
from penstock.errors import InputError
from penstock.runs.journal_header import SIMULATOR, decider_of, engine_kind, policy_asked
from penstock.runs.replay import ReplayAnswer, replay
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RESULT, RunDirectory
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReplay:
    """A recorded run, and the same run with another policy."""

    run: RunDirectory
    recorded_policy: str
    other_policy: str
    #: What decided the recorded run and what decides the other: policy, parameters, guards.
    recorded: Mapping[str, Any]
    other: Mapping[str, Any]
    decider: Decider
    #: Simulates the run with the other policy; None for a run that was not simulated.
    simulate: Callable[[], RunResult] | None = None

    @property
    def directory(self) -> Path:
        """The directory of the recorded run."""
        return self.run.directory

    def open_loop(self) -> Sequence[ReplayAnswer]:
        """Let the other policy decide on the recorded snapshots; nothing is applied."""
        answers = tuple(replay(self.run.journal.ticks, self.decider))
        if not answers:
            raise InputError("", "contains no snapshot to replay", where=str(self.directory))
        return answers

    def closed_loop(self) -> "ClosedLoop":
        """Simulate the same load with the other policy."""
        where = str(self.directory)
        if self.simulate is None:
            hint = "omit --closed-loop"
            raise InputError("--closed-loop", "this run was not simulated", hint, where)
        if self.run.result is None:
            hint = "simulate it again, or omit --closed-loop"
            raise InputError("", f"has no {RESULT}: the run did not finish", hint, where)
        return ClosedLoop(self.run.result, self.simulate())


class ClosedLoop(NamedTuple):
    """The recorded result, and that of the simulation with the other policy."""

    recorded: RunResult
    other: RunResult


def prepare_replay(
    run: RunDirectory,
    policy: str = "",
    params: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
) -> PolicyReplay:
    """Prepare a replay; the policy is by default the recorded one, guards come in addition."""
    simulated = engine_kind(run.journal.run) == SIMULATOR
    prepare = _prepare_simulated if simulated else _prepare_real
    return prepare(run, policy, params or {}, guards or {})


def _prepare_simulated(
    run: RunDirectory, policy: str, params: Mapping[str, Any], guards: Mapping[str, Any]
) -> PolicyReplay:
    """Prepare a simulated run again with the other policy."""
    recorded = SimulationSpec.from_json(run.spec)
    prepared = prepare_simulation(with_policy(recorded, policy or recorded.policy, params, guards))
    return PolicyReplay(
        run=run,
        recorded_policy=recorded.policy,
        other_policy=prepared.spec.policy,
        recorded=recorded.to_json(),
        other=prepared.spec.to_json(),
        decider=prepared.decider(),
        simulate=prepared.run,
    )


def _prepare_real(
    run: RunDirectory, policy: str, params: Mapping[str, Any], guards: Mapping[str, Any]
) -> PolicyReplay:
    """Take policy and guards of any other run from the header of its journal."""
    header = run.journal.run
    before = policy_asked(header)
    other, own_guards = policy or before, header.get("guards", {})
    decider = decider_of(header, other, params, guards)
    own_params = header.get("params", {})
    kept = own_params if other == before else {}
    return PolicyReplay(
        run=run,
        recorded_policy=before,
        other_policy=other,
        recorded={"policy": before, "params": own_params, "guards": own_guards},
        other={
            "policy": other,
            "params": {**kept, **params},
            "guards": {**own_guards, **guards},
        },
        decider=decider,
    )


def with_policy(
    spec: SimulationSpec, policy: str, params: Mapping[str, Any], guards: Mapping[str, Any]
) -> SimulationSpec:
    """Return the same run with another policy; parameters stay with their policy."""
    kept = spec.params if policy == spec.policy else {}
    return replace(spec, policy=policy, params={**kept, **params}, guards={**spec.guards, **guards})
