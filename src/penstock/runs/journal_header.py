"""The header of a journal: the spec and the resolved defaults, enough to ask the policy again.

A simulated run is prepared again from its spec (`runs/simulated_run.py`). For a run on Spark the
header is the only source of its resolved parameters and guards.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule
from penstock.control.registry import find_policy
from penstock.core.frozen_dict import thaw
from penstock.core.guards import Guards
from penstock.errors import InputError

SIMULATOR, SPARK = "simulator", "spark"


def make_header(
    spec: Mapping[str, Any],
    decider: Decider,
    schedule: LoopSchedule,
    *,
    engine_kind: str = SIMULATOR,
    objective_s: float | None = None,
) -> dict[str, Any]:
    """Return what was asked, and what the policy, its parameters and its guards came to."""
    guards = asdict(decider.guards) if decider.guards is not None else {}
    return {
        # journals of simulated runs never had it
        **({} if engine_kind == SIMULATOR else {"engine_kind": engine_kind}),
        "spec": thaw(spec),
        "policy": decider.policy.name,
        "params": thaw(asdict(decider.params)),
        "guards": {name: value for name, value in guards.items() if value is not None},
        "duration_s": schedule.duration_s,
        "interval_s": schedule.interval_s,
        "objective_s": objective_s,
    }


def engine_kind(header: Mapping[str, Any]) -> str:
    """Return what kind of engine ran; older journals know of one only.

    >>> engine_kind({}), engine_kind({"engine_kind": "spark"})
    ('simulator', 'spark')
    """
    kind: str = header.get("engine_kind", SIMULATOR)
    return kind


def policy_asked(header: Mapping[str, Any]) -> str:
    """Return the policy as it was asked for: a name, or a file."""
    policy = header.get("spec", {}).get("policy", header.get("policy"))
    if not isinstance(policy, str):
        raise InputError("run.policy", "missing in the header of the journal")
    return policy


def decider_of(
    header: Mapping[str, Any],
    policy: str = "",
    params: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
) -> Decider:
    """Return the decider of a recorded run, or another policy with the guards of that run.

    Parameters of the run stay with its policy; those given here come in addition.
    """
    ran = policy_asked(header)
    found = find_policy(policy or ran)
    kept = header.get("params", {}) if policy in ("", ran) else {}
    return Decider(
        found,
        found.params.parse({**kept, **(params or {})}, f"parameter of {found.name}"),
        Guards.parse({**header.get("guards", {}), **(guards or {})}, "guard"),
    )
