"""The spec of a run, simulated or on Spark: everything that decides its outcome."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from penstock.control.registry import DEFAULT_POLICY, DEFAULT_SIMULATED_POLICY, alone_policy
from penstock.core.frozen_dict import FrozenDict, freeze, thaw
from penstock.errors import InputError, nearest
from penstock.runs.run_directory import SPEC_FILE
from penstock.runs.spec_fields import check_field, with_current_names
from penstock.workloads.pattern import SEED

#: Who decides: the control loop, or every replica alone.
LOOP, ALONE = CONTROLLERS = ("loop", "none")
#: Whether neighbouring operators run as one query where they can.
CHAIN_ON, CHAIN_OFF = "on", "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Fields that every run has. Times are those of the workload, before it is sped up."""

    #: What messages call such a run, its fields in the order of files, and a hint for others.
    _title: ClassVar[str] = "a run"
    _order: ClassVar[tuple[str, ...]] = ()
    _hint: ClassVar[str] = ""

    workload: str | None = None
    policy: str = DEFAULT_SIMULATED_POLICY
    params: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    workload_params: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Length of the workload; None: the default of the workload, or of the engine.
    minutes: float | None = None
    seed: int = SEED
    objective_s: float | None = None
    interval_s: float | None = None
    #: Replicas at the start: a number for all operators, or by name.
    initial: Mapping[str, int] | int | None = None

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries, without fields that are not set."""
        values = asdict(self)
        data = {name: thaw(values[name]) for name in (*self._order, *values)}
        return {name: value for name, value in data.items() if value not in (None, {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; `InputError` names a field that is unknown or malformed."""
        known = [item.name for item in fields(cls)]
        data = with_current_names(data)
        for name, value in data.items():
            if name not in known:
                hint = cls._hint or nearest(name, known)
                raise InputError(name, f"unknown field of {cls._title}", hint)
            check_field(name, value, name)
        return cls(**freeze(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSpec(RunSpec):
    """The spec of a simulated run."""

    _order: ClassVar[tuple[str, ...]] = (
        *("query", "workload", "policy", "engine", "minutes", "seed", "params", "guards"),
        *("workload_params", "profile", "initial", "mode", "objective_s", "interval_s"),
    )

    query: str = "q1"
    workload: str = "cosine"
    engine: str = "flink"
    #: Changes of the engine's profile, such as {"monitor.busy_sees": 1.0}.
    profile: Mapping[str, Any] = field(default_factory=FrozenDict)
    mode: str = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSpec(RunSpec):
    """The spec of a run on Spark. Without a workload, a pipeline with topics to fill gets one."""

    _title: ClassVar[str] = "a run on Spark"
    _hint: ClassVar[str] = "only runs that penstock run has begun can be resumed"
    _order: ClassVar[tuple[str, ...]] = (
        *("pipeline", "workload", "policy", "params", "guards", "workload_params", "speed_up"),
        *("rate_scale", "minutes", "seed", "objective_s", "interval_s", "build_args", "initial"),
        *("controller", "dry_run", "batch_s", "master", "executors", "journal_mb", "retry_minutes"),
        *("overhead_share", "conf", "chain", "topics", "topics_properties"),
    )

    pipeline: str
    policy: str = DEFAULT_POLICY
    #: "none": replicas decide alone; None: the control loop decides, also written "loop".
    controller: str | None = None
    speed_up: float = 1.0
    rate_scale: float = 1.0
    #: Arguments of the pipeline's function `build`.
    build_args: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Decide, but change nothing.
    dry_run: bool = False
    #: Length of a batch; it is never sped up.
    batch_s: float = 1.0
    #: Where Spark runs: spark://HOST:PORT, local-cluster[4,1,1024], local[8]; None: one process
    #: with room for all replicas.
    master: str | None = None
    #: The fewest and the most executors, 1:4; None: one up to all workers, if there are any.
    executors: str | None = None
    #: Size limit of the journal; None: the default.
    journal_mb: float | None = None
    #: Minutes for which an operator that fails without the user's fault is restarted; None:
    #: for ever, or for a few minutes if the pipeline produces its rows itself.
    retry_minutes: float | None = None
    #: The share of the machine that batches may take beside their rows, while they follow each
    #: other as closely as they can; None: two batches a second at most.
    overhead_share: float | None = None
    #: Settings of Spark on a cluster that exists, such as {"spark.executor.cores": "2"}.
    conf: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: "on": neighbouring operators run as one query where they can; None: each has its own, also
    #: written "off".
    chain: str | None = None
    #: kafka://host:port/prefix: the rows between operators are in Kafka; None: the pipeline says
    #: it, or they are in the run directory. And a file with settings of Kafka's clients.
    topics: str | None = None
    topics_properties: str | None = None

    def __post_init__(self) -> None:
        # the default is left out of files, which earlier versions read, too
        if self.controller == LOOP:
            object.__setattr__(self, "controller", None)
        if self.chain == CHAIN_OFF:
            object.__setattr__(self, "chain", None)

    @property
    def is_controlled(self) -> bool:
        """Whether the control loop decides."""
        return self.controller is None


def default_policy(controller: str | None) -> str:
    """Return the policy of a run on Spark that names none.

    >>> default_policy("none") == alone_policy(), default_policy(None) == DEFAULT_POLICY
    (True, True)
    """
    return alone_policy() if controller == ALONE else DEFAULT_POLICY


def read_spec(directory: Path) -> SparkSpec:
    """Read the spec of the run in a directory."""
    path = directory / SPEC_FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))["spec"]
    except OSError:
        hint = "a run is a directory that penstock run has made"
        raise InputError("--resume", f"there is no {SPEC_FILE}", hint, str(directory)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
        raise InputError("", f"cannot be read: {error}", where=str(path)) from None
    try:
        return SparkSpec.from_json(data)
    except InputError as wrong:
        raise wrong.at(str(path)) from None
