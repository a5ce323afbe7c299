"""Options of runs as keyword arguments: the fields of specs that have no argument of their own."""

from collections.abc import Mapping
from typing import Any, TypedDict

from penstock.core.policy import Policy
from penstock.runs.preparation import RunObjects
from penstock.workloads.workload import Workload

#: The name of a workload or policy in a spec that a Python program gave as an object.
CUSTOM = "custom"


class CommonOptions(TypedDict, total=False):
    """Options of every run."""

    params: Mapping[str, Any]
    guards: Mapping[str, Any]
    workload_params: Mapping[str, Any]
    minutes: float
    seed: int
    objective_s: float
    interval_s: float
    initial: Mapping[str, int] | int


class SimulationOptions(CommonOptions, total=False):
    """Options of a simulated run; see `penstock simulate --help`."""

    engine: str
    profile: Mapping[str, Any]
    mode: str


class RunOptions(CommonOptions, total=False):
    """Options of a run on Spark; see `penstock run --help`."""

    speed_up: float
    rate_scale: float
    dry_run: bool
    batch_s: float
    master: str
    executors: str
    journal_mb: float
    retry_minutes: float


def spec_fields(
    workload: str | Workload | None, policy: str | Policy | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a spec; an object is written by its name."""
    load = CUSTOM if isinstance(workload, Workload) else workload
    chosen = policy.name if isinstance(policy, Policy) else policy
    fields = {"workload": load, "policy": chosen, **options}
    return {name: value for name, value in fields.items() if value is not None}


def run_objects(workload: str | Workload | None, policy: str | Policy | None) -> RunObjects:
    """Return those of the arguments that are objects, not names."""
    return RunObjects(
        workload=workload if isinstance(workload, Workload) else None,
        policy=policy if isinstance(policy, Policy) else None,
    )
