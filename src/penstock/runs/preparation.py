"""The preparation that all runs share: policy, parameters, guards and times, loaded and checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.control.decider import Decider
from penstock.control.registry import builtin_policies, find_policy
from penstock.core.guards import Guards
from penstock.core.params import Params
from penstock.core.policy import Policy
from penstock.errors import InputError
from penstock.runs.spec import RunSpec
from penstock.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObjects:
    """Objects that a Python program gives in place of the names in a spec; None: by name."""

    pipeline: "Pipeline | None" = None
    policy: Policy | None = None
    workload: Workload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """How a run is started; none of it changes what the run computes."""

    #: An existing session, which is used and left alone; None: a new one for the run.
    session: "SparkSession | None" = None
    #: Whether the run ends when everything that is there at its start has been processed.
    available_now: bool = False
    #: Operators that may be missing in the pipeline of a resumed run.
    allow_removal: tuple[str, ...] = ()
    #: Whether it waits while another process runs in the directory, and takes over when that dies.
    standby: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run, loaded and checked, not yet started."""

    spec: RunSpec
    #: The load of its sources; None if its rows come from outside.
    load: Workload | None
    policy: Policy
    params: Params
    guards: Guards
    interval_s: float
    #: Length of the run without the time to work off what waits at its end.
    duration_s: float
    objective_s: float | None

    def decider(self) -> Decider:
        """Return a decider without a past."""
        return Decider(self.policy, self.params, self.guards)


#: What an engine scales.
Scaled = Literal["operators", "hosts"]


def find_policy_for(scaled: Scaled, name: str, given: Policy | None = None) -> Policy:
    """Return a policy that decides about what is scaled: the given one, or the one of that name."""
    policy = given or find_policy(name)
    if policy.reads != scaled:
        problem = f"{policy.name} decides about {policy.reads}, but this engine scales {scaled}"
        fitting = [name for name, other in builtin_policies().items() if other.reads == scaled]
        raise InputError("policy", problem, f"policies that do: {', '.join(fitting)}")
    return policy


def parse_params(policy: Policy, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Params:
    """Parse the parameters of a policy; `defaults` are those that the run knows."""
    return policy.params.parse({**defaults, **given}, f"parameter of {policy.name}")


def check_positive(times: Mapping[str, float | None]) -> None:
    """Refuse times that are not above 0 and finite; None is no time."""
    for name, value in times.items():
        if value is not None and not 0 < value < math.inf:
            raise InputError(name, f"must be above 0 and finite, got {value:g}")
