"""The fluid model: counts of records flow through queues. `step` is a pure function.

In one step an operator processes waiting and arriving records, limited by the capacity of its
replicas and by the room downstream. Records without room stay in their queue, so back-pressure
propagates upstream to the source topic. Counts are whole numbers; fractions are carried over to the
next step, so no record is lost or created.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.engines.simulator.model import SimulatedPipeline

UNBOUNDED = 1 << 60


class FluidFlow(NamedTuple):
    """One operator: its queue now, and its counters since the run began."""

    queue: int = 0
    #: Records that arrived, were processed and were dropped since the run began.
    arrived: int = 0
    processed: int = 0
    dropped: int = 0
    #: Replica-seconds of work, and of work that was blocked by full queues downstream.
    busy_s: float = 0.0
    blocked_s: float = 0.0
    #: Fractions of a record: unused capacity, and output of each edge that is not sent yet.
    credit: float = 0.0
    carried: tuple[float, ...] = ()
    #: Records sent on each edge since the run began.
    sent: tuple[int, ...] = ()


class Load(NamedTuple):
    """Input of one operator in a step: offered records, replicas and their speed."""

    offered: int
    replicas: int
    #: 1 at full speed, less while warming up, 0 while paused.
    speed: float


@dataclass(frozen=True, slots=True)
class Network:
    """A pipeline prepared for `step`: operators by index, in topological order."""

    names: tuple[str, ...]
    capacity: tuple[float, ...]
    #: Edges of each operator: (index of the downstream operator, records sent per record).
    edges: tuple[tuple[tuple[int, float], ...], ...]
    feeders: tuple[tuple[int, ...], ...]
    #: Seconds of work that fit into the queue of an operator that is no source; None: unlimited.
    buffer_s: float | None

    @classmethod
    def of(cls, pipeline: SimulatedPipeline, buffer_s: float | None) -> "Network":
        """Build the network of a pipeline."""
        order = pipeline.topology.order
        number = {name: i for i, name in enumerate(order)}
        by_name = {op.name: op for op in pipeline.operators}
        downstream, upstream = pipeline.topology.downstream, pipeline.topology.upstream
        return cls(
            order,
            tuple(by_name[name].capacity_rate for name in order),
            tuple(
                tuple((number[d], by_name[name].sent.get(d, 1.0)) for d in downstream[name])
                for name in order
            ),
            tuple(tuple(number[u] for u in upstream[name]) for name in order),
            buffer_s,
        )

    def start(self) -> tuple[FluidFlow, ...]:
        """Return the initial state: empty queues."""
        return tuple(FluidFlow(carried=(0.0,) * len(e), sent=(0,) * len(e)) for e in self.edges)

    def room(self, operator: int, replicas: int) -> int:
        """Return the records that fit into the queue of an operator."""
        if self.buffer_s is None or not self.feeders[operator]:
            return UNBOUNDED
        return max(1, int(self.buffer_s * self.capacity[operator] * replicas))


def step(
    network: Network, flows: Sequence[FluidFlow], loads: Sequence[Load], dt: float
) -> tuple[FluidFlow, ...]:
    """Return the state `dt` seconds later. Pure: the same arguments give the same state."""
    max_records = [
        flow.credit + load.replicas * capacity * load.speed * dt
        for flow, load, capacity in zip(flows, loads, network.capacity, strict=True)
    ]
    limits = _limits(network, flows, loads, max_records)
    arriving = [load.offered for load in loads]
    after = []
    for i, flow in enumerate(flows):
        queue, arrived, processed, dropped, busy_s, blocked_s, _, carried, sent = flow
        waiting, whole = queue + arriving[i], int(max_records[i])
        wanted = min(waiting, whole)
        taken = min(wanted, limits[i])
        if network.edges[i]:
            carried, sent = _send(network.edges[i], flow, taken, arriving)
        full_speed = network.capacity[i] * loads[i].speed
        after.append(
            FluidFlow(
                waiting - taken,
                arrived + arriving[i],
                processed + taken,
                dropped,
                busy_s + taken / full_speed if taken else busy_s,
                blocked_s + (wanted - taken) / full_speed if wanted > taken else blocked_s,
                max_records[i] - whole,
                carried,
                sent,
            )
        )
    return tuple(after)


def _send(
    edges: Sequence[tuple[int, float]], flow: FluidFlow, taken: int, arriving: list[int]
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Send the output on every edge; return the fractions to carry over and the new totals."""
    carried, sent = [], []
    for (target, share), carry, before in zip(edges, flow.carried, flow.sent, strict=True):
        out = taken * share + carry
        whole = int(out)
        arriving[target] += whole
        carried.append(out - whole)
        sent.append(before + whole)
    return tuple(carried), tuple(sent)


def _limits(
    network: Network,
    flows: Sequence[FluidFlow],
    loads: Sequence[Load],
    max_records: Sequence[float],
) -> list[int]:
    """Return the records that each operator may process, given the room downstream.

    Computed from the sinks upstream: an operator has room for its free buffer plus the records
    that it will process in this step.
    """
    limits = [UNBOUNDED] * len(flows)
    if network.buffer_s is None:
        return limits
    room: list[float] = [UNBOUNDED] * len(flows)
    for i in range(len(flows) - 1, -1, -1):
        for target, sent in network.edges[i]:
            if sent > 0:
                own_room = room[target]
                if len(network.feeders[target]) > 1:
                    own_room *= _share(network, flows, i, target)
                limits[i] = min(limits[i], int(min(own_room / sent, UNBOUNDED)))
        if network.feeders[i]:
            free = network.room(i, loads[i].replicas) - flows[i].queue
            room[i] = max(0, free) + min(int(max_records[i]), limits[i])
    return limits


def _share(network: Network, flows: Sequence[FluidFlow], feeder: int, target: int) -> float:
    """Return the feeder's share of the room at `target`: its share of the records sent so far."""
    feeders = network.feeders[target]
    sent = [_sent_to(network, flows, each, target) + 1 for each in feeders]
    return sent[feeders.index(feeder)] / sum(sent)


def _sent_to(network: Network, flows: Sequence[FluidFlow], feeder: int, target: int) -> int:
    edge = next(i for i, (to, _) in enumerate(network.edges[feeder]) if to == target)
    return flows[feeder].sent[edge]
