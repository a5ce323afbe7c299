"""Snapshots: measures of one interval, and the only input of a policy.

Rates are records per second of the whole operator, not of one replica. Shares (`busy`,
`idle`, `backpressured`, `cpu`, `input_buffer`) are means over the replicas, 0 to 1. A
measure that is not known is `None`, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ratio
from penstock.core.topology import Topology
from penstock.core.vote_count import VoteCount


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSnapshot:
    """One operator over one interval."""

    #: The name of the operator.
    name: str
    #: Operators that feed it; none: it is a source.
    upstream: tuple[str, ...] = ()
    #: Replicas that run.
    parallelism: int
    #: The fewest replicas it may have; None: one.
    min_parallelism: int | None = None
    #: The most replicas it may have; None: no maximum.
    max_parallelism: int | None = None
    #: More replicas than this do not help: one slice of the state keeps a replica busy.
    useful_parallelism: int | None = None
    #: Requested replicas; they may not run yet.
    requested: int | None = None
    #: Records/s taken for processing; what *arrives* is `Snapshot.arrival_rate`.
    input_rate: float | None = None
    #: Records/s put out.
    output_rate: float | None = None
    #: Records/s sent to each downstream operator; where absent, each gets all the output.
    sent: Mapping[str, float] | None = None
    #: Share of the time in which replicas process records, 0 to 1.
    busy: float | None = None
    #: Share of the time in which replicas wait for records.
    idle: float | None = None
    #: Share of the time in which replicas wait for space downstream.
    backpressured: float | None = None
    #: Share of the CPU that replicas use.
    cpu: float | None = None
    #: Records waiting in front of the operator; for a source, its topic's backlog.
    queue: float | None = None
    #: Slope of `queue` in records/s; negative while it drains.
    queue_growth: float | None = None
    #: Share of the input buffers in use.
    input_buffer: float | None = None
    #: Mean seconds that one replica needs for one record.
    service_time_s: float | None = None
    #: Squared coefficient of variation of service times: variance / mean^2.
    service_scv: float | None = None
    #: Squared coefficient of variation of the times between arrivals.
    arrival_scv: float | None = None
    #: Seconds for which a change of its parallelism stops it, by earlier changes; 0 or None if
    #: it keeps running.
    rescale_s: float | None = None
    #: What its replicas have decided themselves since the last snapshot; None if a policy decides.
    votes: VoteCount | None = None
    #: Unknown fields, kept and passed through.
    extra: Mapping[str, object] = field(default_factory=FrozenDict)

    @property
    def is_source(self) -> bool:
        """Whether no other operator feeds this one."""
        return not self.upstream

    @property
    def true_rate(self) -> float | None:
        """Records/s that one replica would take if it were never idle; None while unknown."""
        if not self.busy or not self.input_rate:
            return None
        return ratio(self.input_rate, self.busy * self.parallelism)

    @property
    def replica_capacity(self) -> float | None:
        """Records/s of one replica, from its service time or else from its busy share."""
        return ratio(1, self.service_time_s) if self.service_time_s else self.true_rate

    @property
    def selectivity(self) -> float | None:
        """Records out for each record in; None while nothing comes in."""
        if not self.input_rate or self.output_rate is None:
            return None
        return ratio(self.output_rate, self.input_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSnapshot:
    """One slice of state on a host."""

    #: Share of one host's CPU, 0 to 1.
    cpu: float
    #: What moving it would carry, in the unit of the hosts' `memory_capacity`.
    memory: float
    network: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """One host and the slices on it."""

    name: str
    slices: Mapping[str, SliceSnapshot]
    memory_capacity: float | None = None
    network_capacity: float | None = None
    extra: Mapping[str, object] = field(default_factory=FrozenDict)

    @property
    def load(self) -> float:
        """Share of this host's CPU that its slices use."""
        return sum(piece.cpu for piece in self.slices.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A whole pipeline, or the hosts that carry it, at one instant."""

    #: Seconds since the run began.
    at: float
    #: Records/s that producers put into the topic that each source operator reads.
    offered: Mapping[str, float] = field(default_factory=FrozenDict)
    #: The measures of each operator.
    operators: Mapping[str, OperatorSnapshot] = field(default_factory=FrozenDict)
    #: The hosts and the slices on them, for policies that place slices.
    hosts: Mapping[str, HostSnapshot] = field(default_factory=FrozenDict)
    #: The most hosts that there can be; None without a limit.
    max_hosts: int | None = None
    #: Unknown fields, kept and passed through.
    extra: Mapping[str, object] = field(default_factory=FrozenDict)
    topology: Topology = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # set through object: the only way into a frozen dataclass
        graph = Topology.of({name: op.upstream for name, op in self.operators.items()})
        object.__setattr__(self, "topology", graph)

    def arrival_rate(self, name: str) -> float | None:
        """Records/s that arrive at an operator: offered to it, and sent to it by upstream.

        None as soon as one of the parts is unknown.
        """
        op = self.operators[name]
        offered = self.offered.get(name)
        if op.is_source:
            return offered
        total = offered or 0.0
        for feeder in op.upstream:
            rate = self.sent_rate(feeder, name)
            if rate is None:
                return None
            total += rate
        return total

    def sent_rate(self, feeder: str, name: str) -> float | None:
        """Records/s on one edge: what `sent` says, or else the whole output."""
        upstream = self.operators[feeder]
        if upstream.sent is not None and name in upstream.sent:
            return upstream.sent[name]
        return upstream.output_rate


def expected_arrival_rates(snapshot: Snapshot) -> Mapping[str, float | None]:
    """Return records/s that will arrive at each operator if all upstream operators keep up.

    A source gets the offered rate. Every other operator gets, from each upstream operator,
    that operator's arrivals times the share of processed records that it sends on this edge.
    None where a measure is missing.
    """
    rates: dict[str, float | None] = {}
    for name in snapshot.topology.order:
        op = snapshot.operators[name]
        total = snapshot.offered.get(name, None if op.is_source else 0.0)
        for feeder in op.upstream:
            part = _passed_on(rates[feeder], feeder, name, snapshot)
            total = None if total is None or part is None else total + part
        rates[name] = total
    return rates


def _passed_on(rate: float | None, feeder: str, name: str, snapshot: Snapshot) -> float | None:
    if not rate:
        return rate  # zero stays zero, and unknown stays unknown
    processed = snapshot.operators[feeder].input_rate
    sent = snapshot.sent_rate(feeder, name)
    return None if not processed or sent is None else rate * sent / processed
