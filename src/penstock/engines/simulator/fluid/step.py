"""The fluid model: whole records flow through queues at the replicas' speed. A pure `step`.

Records are counted, not told apart. An operator takes what waits and what arrives, as far
as its replicas get in a step and as its downstream has room; what has no room stays where
it is, so that back-pressure walks upstream to the source's topic. All counts are whole
numbers, and what rounding leaves over is carried, so that nothing is lost or made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.engines.simulator.model import SimulatedPipeline

UNBOUNDED = 1 << 60


class FluidFlow(NamedTuple):
    """One operator: what waits now, and what has passed since the run began."""

    queue: int = 0
    #: Records taken in, taken for processing, and lost, since the run began.
    arrived: int = 0
    processed: int = 0
    dropped: int = 0
    #: Replica-seconds of work, and of work that could not go on for lack of room downstream.
    busy_s: float = 0.0
    blocked_s: float = 0.0
    #: Parts of a record: of capacity not used, and of output on each edge not sent yet.
    credit: float = 0.0
    carried: tuple[float, ...] = ()
    #: Records sent on each edge since the run began.
    sent: tuple[int, ...] = ()


class Load(NamedTuple):
    """What one operator gets in a step: records offered to it, replicas, and their speed."""

    offered: int
    replicas: int
    #: 1 at full speed, less while warming up, 0 while paused.
    speed: float


@dataclass(frozen=True, slots=True)
class Network:
    """A pipeline laid out for stepping: operators by number, in topological order."""

    names: tuple[str, ...]
    capacity: tuple[float, ...]
    #: For each operator its edges: (number of the downstream operator, records sent for one taken).
    edges: tuple[tuple[tuple[int, float], ...], ...]
    feeders: tuple[tuple[int, ...], ...]
    #: Seconds of work that fit in front of an operator that is not a source; None: any number.
    buffer_s: float | None

    @classmethod
    def of(cls, pipeline: SimulatedPipeline, buffer_s: float | None) -> "Network":
        """Lay out a pipeline."""
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
        """An empty pipeline."""
        return tuple(FluidFlow(carried=(0.0,) * len(e), sent=(0,) * len(e)) for e in self.edges)

    def room(self, operator: int, replicas: int) -> int:
        """Records that fit in front of an operator."""
        if self.buffer_s is None or not self.feeders[operator]:
            return UNBOUNDED
        return max(1, int(self.buffer_s * self.capacity[operator] * replicas))


def step(
    network: Network, flows: Sequence[FluidFlow], loads: Sequence[Load], dt: float
) -> tuple[FluidFlow, ...]:
    """Return the state `dt` seconds later. Pure: the same arguments give the same state."""
    able = [
        flow.credit + load.replicas * capacity * load.speed * dt
        for flow, load, capacity in zip(flows, loads, network.capacity, strict=True)
    ]
    limits = _limits(network, flows, loads, able)
    arriving = [load.offered for load in loads]
    after = []
    for i, flow in enumerate(flows):
        queue, arrived, processed, dropped, busy_s, blocked_s, _, carried, sent = flow
        waiting, whole = queue + arriving[i], int(able[i])
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
                able[i] - whole,
                carried,
                sent,
            )
        )
    return tuple(after)


def _send(
    edges: Sequence[tuple[int, float]], flow: FluidFlow, taken: int, arriving: list[int]
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Put out what was taken on every edge; return the parts left over and the new totals."""
    carried, sent = [], []
    for (target, share), carry, before in zip(edges, flow.carried, flow.sent, strict=True):
        out = taken * share + carry
        whole = int(out)
        arriving[target] += whole
        carried.append(out - whole)
        sent.append(before + whole)
    return tuple(carried), tuple(sent)


def _limits(
    network: Network, flows: Sequence[FluidFlow], loads: Sequence[Load], able: Sequence[float]
) -> list[int]:
    """What each operator may take, for the room that its downstream has.

    From the sinks up: an operator can let in what fits into its free buffer and what it
    will take out itself.
    """
    limits = [UNBOUNDED] * len(flows)
    if network.buffer_s is None:
        return limits
    room: list[float] = [UNBOUNDED] * len(flows)
    for i in range(len(flows) - 1, -1, -1):
        for target, sent in network.edges[i]:
            if sent > 0:
                mine = room[target]
                if len(network.feeders[target]) > 1:
                    mine *= _share(network, flows, i, target)
                limits[i] = min(limits[i], int(min(mine / sent, UNBOUNDED)))
        if network.feeders[i]:
            free = network.room(i, loads[i].replicas) - flows[i].queue
            room[i] = max(0, free) + min(int(able[i]), limits[i])
    return limits


def _share(network: Network, flows: Sequence[FluidFlow], feeder: int, target: int) -> float:
    """How much of the room in front of `target` is this feeder's: as much as it has sent so far."""
    feeders = network.feeders[target]
    sent = [_sent_to(network, flows, each, target) + 1 for each in feeders]
    return sent[feeders.index(feeder)] / sum(sent)


def _sent_to(network: Network, flows: Sequence[FluidFlow], feeder: int, target: int) -> int:
    edge = next(i for i, (to, _) in enumerate(network.edges[feeder]) if to == target)
    return flows[feeder].sent[edge]
