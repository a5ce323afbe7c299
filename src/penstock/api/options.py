"""Options of runs as keyword arguments: the fields of specs without a separate argument."""

from collections.abc import Mapping
from typing import Any, TypedDict

from penstock.core.policy import Policy
from penstock.runs.preparation import RunObjects
from penstock.workloads.workload import Workload

#: The name of a workload or policy in a spec that a Python program gave as an object.
CUSTOM = "custom"


class CommonOptions(TypedDict, total=False):
    """Options of every run."""

    #: Parameters of the policy, such as {"memory_s": 600}.
    params: Mapping[str, Any]
    #: Guards, such as {"overprovision": 1.2, "cooldown_s": "off"}.
    guards: Mapping[str, Any]
    #: Parameters of a workload that is given by its name.
    workload_params: Mapping[str, Any]
    #: Length of the workload, or of a run without one.
    minutes: float
    #: Seed of everything that is drawn at random.
    seed: int
    #: Latency that the run should stay below.
    objective_s: float
    #: Time between two decisions.
    interval_s: float
    #: Replicas at the start: one number for all operators, or a number by operator.
    initial: Mapping[str, int] | int


class SimulationOptions(CommonOptions, total=False):
    """Options of a simulated run; see `penstock simulate --help`."""

    #: Profile of the simulated engine: its name, or a .toml file.
    engine: str
    #: Changes of the profile, such as {"monitor.lag_slope": "regression"}.
    profile: Mapping[str, Any]
    #: "operator": replicas by operator; "reactive": one parallelism for all operators.
    mode: str


class RunOptions(CommonOptions, total=False):
    """Options of a run on Spark; see `penstock run --help`."""

    #: "none": each replica decides alone, without a control loop; default: "loop".
    controller: str
    #: Divides all times of workload, policy and guards; rates stay.
    speed_up: float
    #: Multiplies all rates of the workload.
    rate_scale: float
    #: Decide, but change nothing.
    dry_run: bool
    #: Target length of a batch; a speed-up does not divide it.
    batch_s: float
    #: "spark://HOST:PORT", "local-cluster[WORKERS,CORES,MB]", or "local[N]"; default: one process.
    master: str
    #: The fewest and the most executors, such as "1:4".
    executors: str
    #: Size limit of the journal.
    journal_mb: float
    #: For how long an operator that fails is restarted.
    retry_minutes: float
    #: Batches follow each other at once while they take less than this share of the machine beside
    #: their rows, such as 0.2; default: two batches a second at most.
    overhead_share: float
    #: Settings of Spark for a cluster that exists, such as {"spark.executor.cores": "2"}.
    conf: Mapping[str, str]
    #: "on": neighbouring operators run as one query where they can; default: "off".
    chain: str
    #: "kafka://host:port/prefix": the rows between operators are in Kafka; default: the pipeline's,
    #: or the run directory.
    topics: str
    #: A file with settings of Kafka's clients, such as passwords.
    topics_properties: str


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
