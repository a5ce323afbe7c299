"""Simulated pipelines: operators with the capacity of one replica, and their edges.

The built-in ones are TOML files in `pipelines/`, which give the source of each number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot_json import MAX_REPLICAS
from penstock.core.topology import Topology
from penstock.engines.simulator.batches.model import Costs
from penstock.errors import InputError, nearest

#: Maximum of records/s of a replica and of records sent per record; the inverse is the minimum.
MAX_RATE = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOperator:
    """One operator of a simulated pipeline."""

    name: str
    upstream: tuple[str, ...] = ()
    #: Records/s that one replica processes when it is never idle.
    capacity_rate: float
    #: Records sent to each downstream operator per record processed; 1 where absent.
    sent: Mapping[str, float] = field(default_factory=FrozenDict)
    replicas: int = 1
    min_replicas: int = 1
    max_replicas: int | None = None
    #: State that has to move when parallelism changes, in megabytes.
    state_mb: float = 0.0
    #: Whether it is a native stateful operator of Spark, which stops for every change.
    native: bool = False
    #: Distribution of service times; used at resolution records.
    distribution: str = "exponential"
    scv: float | None = None
    #: Share of the offered load that this source gets; ignored elsewhere.
    share: float = 1.0
    #: Waiting records above which upstream operators are held back; used at resolution batches.
    queue_limit: int | None = None
    #: Costs of its batches, used at resolution batches; None: derived from `capacity_rate`.
    costs: Costs | None = None
    #: Share of each slice in the rows, if keys are not evenly distributed.
    slice_shares: tuple[float, ...] = ()
    #: Slices that move between hosts, and whether each of them gets every record; used, like the
    #: seconds of a move and their coefficient of variation, at resolution hosts.
    slices: int = 0
    to_all: bool = False
    move_s: float | None = None
    move_cv: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.capacity_rate < float("inf"):
            problem = f"must be above 0 and finite, got {self.capacity_rate}"
            raise InputError(f"{self.name}.capacity_rate", problem)
        if not 1 / MAX_RATE <= self.capacity_rate <= MAX_RATE:
            problem = f"must be from {1 / MAX_RATE:g} to {MAX_RATE:g}, got {self.capacity_rate:g}"
            raise InputError(f"{self.name}.capacity_rate", problem)
        if self.replicas > MAX_REPLICAS:
            problem = f"must be at most {MAX_REPLICAS:,}, got {self.replicas:g}"
            raise InputError(f"{self.name}.replicas", problem)
        for target, share in self.sent.items():
            if type(share) not in (int, float) or not 0 <= share <= MAX_RATE:
                problem = f"must be a number from 0 to {MAX_RATE:g}, got {share!r}"
                raise InputError(f"{self.name}.sent.{target}", problem)
        for name, least in (("slices", 0), ("move_s", 0.0), ("move_cv", 0.0)):
            value = getattr(self, name)
            if value is not None and not least <= value <= MAX_REPLICAS:
                problem = f"must be from {least} to {MAX_REPLICAS:,}, got {value:g}"
                raise InputError(f"{self.name}.{name}", problem)
        if self.replicas < 1 or (self.max_replicas or self.replicas) < self.replicas:
            raise InputError(f"{self.name}.replicas", f"must fit its bounds, got {self.replicas}")

    @property
    def topic(self) -> str:
        """The topic that it reads as a source."""
        return self.costs.topic if self.costs and self.costs.topic else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPipeline:
    """Operators and the edges between them."""

    name: str
    operators: tuple[SimulatedOperator, ...]
    #: Objective for the end-to-end latency of a record.
    objective_s: float | None = None
    #: The `--set` values of the real pipeline that it was measured with.
    build_args: Mapping[str, str] = field(default_factory=FrozenDict)
    #: Overrides of the profile's `batches` section for this pipeline: how much its operators slow
    #: each other down depends on their work. Used at resolution batches.
    batches: Mapping[str, float] = field(default_factory=FrozenDict)
    #: Hosts at the start; used at resolution hosts.
    hosts: int = 1
    topology: Topology = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        graph = Topology.of({op.name: op.upstream for op in self.operators})
        object.__setattr__(self, "topology", graph)
        for op in self.operators:
            for target in op.sent:
                if target not in graph.downstream[op.name]:
                    known = graph.downstream[op.name]
                    problem = f"{target!r} is not downstream of {op.name!r}"
                    raise InputError(f"{op.name}.sent", problem, nearest(target, known))

    def visits(self) -> dict[str, float]:
        """Return the records that reach each operator per record offered to the pipeline."""
        by_name = {op.name: op for op in self.operators}
        visits: dict[str, float] = {}
        for name in self.topology.order:
            op = by_name[name]
            visits[name] = op.share if not op.upstream else 0.0
            visits[name] += sum(visits[up] * by_name[up].sent.get(name, 1.0) for up in op.upstream)
        return visits

    def starting_with(self, replicas: Mapping[str, int] | int) -> "SimulatedPipeline":
        """Return the pipeline with other initial replicas, for all operators or some by name."""
        wanted = replicas if isinstance(replicas, Mapping) else dict.fromkeys(self.names, replicas)
        for name in wanted:
            if name not in self.names:
                hint = nearest(name, self.names)
                raise InputError(f"initial.{name}", "unknown operator", hint)
        changed = (replace(op, replicas=wanted.get(op.name, op.replicas)) for op in self.operators)
        return replace(self, operators=tuple(changed))

    def starting_on(self, hosts: Mapping[str, int] | int) -> "SimulatedPipeline":
        """Return the pipeline with other initial hosts, given as a number or as `hosts`."""
        given = hosts if isinstance(hosts, Mapping) else {"hosts": hosts}
        for name in given:
            if name != "hosts":
                hint = "this engine has hosts: initial.hosts"
                raise InputError(f"initial.{name}", "unknown", hint)
        slices = sum(operator.slices for operator in self.operators)
        if not 1 <= given["hosts"] <= slices:
            problem = f"must be from 1 to the number of slices ({slices}), got {given['hosts']}"
            raise InputError("initial.hosts", problem)
        return replace(self, hosts=given["hosts"])

    @property
    def names(self) -> tuple[str, ...]:
        """Operators in the order they were declared."""
        return tuple(op.name for op in self.operators)

    def as_one_job(self) -> "SimulatedPipeline":
        """Return the pipeline as Flink's reactive mode sees it: one slot count for all operators.

        Every slot runs all operators on one processor, so the cost of a record is the sum of its
        costs at all operators.
        """
        visits = self.visits()
        cost_s = sum(visits[op.name] / op.capacity_rate for op in self.operators)
        job = SimulatedOperator(
            name="job",
            capacity_rate=1 / cost_s,
            replicas=max(op.replicas for op in self.operators),
            max_replicas=None,
            state_mb=sum(op.state_mb for op in self.operators),
            native=any(op.native for op in self.operators),
        )
        return replace(self, operators=(job,))
