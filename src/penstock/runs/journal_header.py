"""The header of a journal: the spec and the resolved defaults, enough to ask the policy again.

A simulated run is prepared again from its spec (`runs/simulated_run.py`). For a run on Spark the
header is the only source of its resolved parameters and guards.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict, cast

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule
from penstock.control.registry import find_policy
from penstock.core.frozen_dict import thaw
from penstock.core.guards import Guards
from penstock.errors import InputError

SIMULATOR, SPARK = "simulator", "spark"


class JournalHeader(TypedDict, total=False):
    """The header as the journal stores it; earlier journals lack some fields."""

    engine_kind: str
    #: The spec as `to_json` writes it.
    spec: Mapping[str, Any]
    policy: str
    params: Mapping[str, Any]
    guards: Mapping[str, Any]
    #: None for a run without an end.
    duration_s: float | None
    interval_s: float
    objective_s: float | None


#: Fields that must have these types in a file.
_FIELD_TYPES = {"policy": str, "spec": Mapping, "params": Mapping, "guards": Mapping}


def make_header(
    spec: Mapping[str, Any],
    decider: Decider,
    schedule: LoopSchedule,
    *,
    engine_kind: str = SIMULATOR,
    objective_s: float | None = None,
) -> JournalHeader:
    """Return the spec, and the resolved policy, parameters and guards."""
    guards = asdict(decider.guards) if decider.guards is not None else {}
    header = JournalHeader() if engine_kind == SIMULATOR else JournalHeader(engine_kind=engine_kind)
    return header | JournalHeader(
        spec=thaw(spec),
        policy=decider.policy.name,
        params=thaw(asdict(decider.params)),
        guards={name: value for name, value in guards.items() if value is not None},
        duration_s=schedule.duration_s if math.isfinite(schedule.duration_s) else None,
        interval_s=schedule.interval_s,
        objective_s=objective_s,
    )


def check_header(data: Any, where: str) -> JournalHeader:
    """Return the header of a file; `InputError` if a field has a wrong type."""
    if not isinstance(data, Mapping):
        raise InputError("run", "must be an object", where=where)
    for field, field_type in _FIELD_TYPES.items():
        if field in data and not isinstance(data[field], field_type):
            raise InputError(f"run.{field}", f"has a wrong form: {data[field]!r}", where=where)
    return cast(JournalHeader, data)


def engine_kind(header: JournalHeader) -> str:
    """Return the kind of engine; simulated runs and older journals have no such field.

    >>> engine_kind({}), engine_kind({"engine_kind": "spark"})
    ('simulator', 'spark')
    """
    return header.get("engine_kind", SIMULATOR)


def policy_asked(header: JournalHeader) -> str:
    """Return the policy as it was asked for: a name, or a file."""
    policy = header.get("spec", {}).get("policy", header.get("policy"))
    if not isinstance(policy, str):
        raise InputError("run.policy", "missing in the header of the journal")
    return policy


def decider_of(
    header: JournalHeader,
    policy: str = "",
    params: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
) -> Decider:
    """Return the decider of a recorded run, or another policy with the guards of that run.

    Parameters of the run stay with its policy; those given here come in addition.
    """
    ran = policy_asked(header)
    decider_policy = find_policy(policy or ran)
    kept = header.get("params", {}) if policy in ("", ran) else {}
    return Decider(
        decider_policy,
        decider_policy.params.parse(
            {**kept, **(params or {})}, f"parameter of {decider_policy.name}"
        ),
        # what replicas decided alone passed no guard
        None
        if policy in ("", ran) and is_uncontrolled(header) and not guards
        else Guards.parse({**header.get("guards", {}), **(guards or {})}, "guard"),
    )


def is_uncontrolled(header: JournalHeader) -> bool:
    """Whether the replicas of the run decided alone."""
    return header.get("spec", {}).get("controller") == "none"
