"""Exact mode: every instance is a node of the protocol, and every message is delivered.

All rules of scaling are those of `penstock.decentralized.protocol`; this module carries out the
effects of its nodes, deals records along their routes, and counts messages.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from penstock.decentralized.messages import (
    CreateNode,
    DeletionAck,
    Duplicate,
    DuplicationAck,
    Effect,
    Message,
    NodeStopped,
    PeerMessage,
    RecordsArrived,
    RecordsProcessed,
    Send,
    StartSignal,
    Stop,
)
from penstock.decentralized.node_state import NodeId, NodePhase, build_pipeline
from penstock.decentralized.protocol import accepts_input, can_scale, handle, routes
from penstock.decentralized.simulator.instance_graph import MakeCopy, SimulatedInstance
from penstock.decentralized.simulator.network import SimulatedNetwork
from penstock.decentralized.simulator.timeline import ScalingAction

#: Sends the records of the load to the first operator.
SOURCE: NodeId = "source"


class ExactGraph:
    """The nodes of the protocol behind the simulated instances."""

    def __init__(
        self,
        operators: Sequence[Sequence[SimulatedInstance]],
        make_copy: MakeCopy,
        network: SimulatedNetwork,
    ) -> None:
        self.actions: list[ScalingAction] = []
        self.lost = 0
        self._make_copy, self._network = make_copy, network
        self._messages = [0] * len(operators)
        #: Nodes that are not gone, by operator, in birth order.
        self._members = [[name_node(i) for i in instances] for instances in operators]
        self._instances = {name_node(i): i for instances in operators for i in instances}
        self._states = build_pipeline(self._members)
        #: The current action of each instance that has begun one.
        self._current: dict[NodeId, ScalingAction] = {}

    def deliver(self, step: int) -> None:
        """Deliver what is due, and let its receivers react."""
        for envelope in self._network.take_due(step):
            if envelope.action is not None:
                self._count(envelope.action, envelope.content, step)
            self._receive(envelope.to, envelope.content, step)

    def announce(self, step: int) -> None:
        """Deliver the announcements of this step's actions."""
        self.deliver(step)

    def send_records(self, loads: Sequence[int], step: int) -> None:
        """Send the load of every operator along the routes of its predecessors."""
        for operator, load in enumerate(loads):
            dealt = list(deal_in_turn(load, self._senders(operator)))
            self.lost += load - sum(count for _, _, count in dealt)
            # an instance takes records from the source itself, so this channel has no delay
            if operator and self._network.record_delay:
                for sender, to, count in dealt:
                    self._network.send((sender, to), RecordsArrived(count=count), step)
            else:
                for to, count in sum_by_receiver(dealt).items():
                    self._receive(to, RecordsArrived(count=count), step)
        self.deliver(step)

    def count_siblings(self, instance: SimulatedInstance) -> int:
        """Return what a working predecessor knows; for the first operator, what the source knows.

        Without a working predecessor the instance believes that it is alone.
        """
        if not instance.operator:
            return len(self._accepting_members(0))
        predecessors = self._states[name_node(instance)].neighbours.predecessors
        for node in sorted(predecessors):
            state = self._states.get(node)
            if state is not None and accepts_input(state):
                return max(1, len(state.neighbours.successors))
        return 1

    def start_action(self, instance: SimulatedInstance, change: int, step: int) -> None:
        """Give the decision to the node, which may refuse it while an earlier one is under way."""
        node = name_node(instance)
        state = self._states[node]
        if not can_scale(state):
            return
        copies = [self._make_copy(instance) for _ in range(change)]
        self._instances |= {name_node(copy): copy for copy in copies}
        self._current[node] = ScalingAction(
            operator=instance.operator,
            step=step,
            copies=len(copies),
            neighbours=len(state.neighbours.everyone()),
        )
        self.actions.append(self._current[node])
        instance.is_stopping = change < 0
        new_nodes = tuple(map(name_node, copies))
        self._handle(node, Duplicate(new_nodes=new_nodes) if new_nodes else Stop(), step)

    def note_processed(self, instance: SimulatedInstance, records: int, step: int) -> None:
        """Report records that left the queue."""
        if records:
            self._handle(name_node(instance), RecordsProcessed(count=records), step)

    def crash(self, instance: SimulatedInstance) -> None:
        """Remove an instance with its records; nobody is informed."""
        self.lost += instance.waiting
        instance.waiting = 0
        self._remove(name_node(instance))

    def take_message_counts(self) -> list[int]:
        """Return the messages since the last call, by operator."""
        counts, self._messages = self._messages, [0] * len(self._messages)
        return counts

    def _count(
        self, action: ScalingAction, content: PeerMessage | RecordsArrived, step: int
    ) -> None:
        action.messages += 1
        self._messages[action.operator] += 1
        if isinstance(content, StartSignal):
            action.started += 1
            action.end_step = step if action.started == action.copies else None

    def _senders(self, operator: int) -> list[tuple[NodeId, tuple[NodeId, ...]]]:
        """Return who sends records to an operator, and to which nodes."""
        if not operator:
            return [(SOURCE, tuple(self._accepting_members(0)))]
        senders = self._accepting_members(operator - 1)
        return [(node, routes(self._states[node])) for node in senders]

    def _accepting_members(self, operator: int) -> list[NodeId]:
        return [node for node in self._members[operator] if accepts_input(self._states[node])]

    def _receive(self, node: NodeId, content: PeerMessage | RecordsArrived, step: int) -> None:
        is_gone = self._instances[node].is_gone
        if isinstance(content, RecordsArrived):
            if is_gone:
                self.lost += content.count
            else:
                self._instances[node].receive(content.count)
        if not is_gone:
            self._handle(node, content, step)

    def _handle(self, node: NodeId, message: Message, step: int) -> None:
        before = self._states[node]
        self._states[node], effects = handle(before, message)
        if before.phase is NodePhase.IDLE is not self._states[node].phase:
            self._instances[node].active_since = step
        for effect in effects:
            self._carry_out(node, effect, step)

    def _carry_out(self, node: NodeId, effect: Effect, step: int) -> None:
        match effect:
            case CreateNode():
                self._states[effect.state.node] = effect.state
                self._members[effect.state.operator].append(effect.state.node)
            case NodeStopped():
                self._current[node].end_step = step
                self._remove(node)
            case Send():
                is_ack = isinstance(effect.message, DuplicationAck | DeletionAck)
                action = self._current[effect.to if is_ack else node]
                self._network.send((node, effect.to), effect.message, step, action)

    def _remove(self, node: NodeId) -> None:
        self._instances[node].is_gone = True
        self._members[self._states.pop(node).operator].remove(node)


def name_node(instance: SimulatedInstance) -> NodeId:
    """Return an id that sorts by birth."""
    return f"{instance.number:07d}"


def deal_in_turn(
    records: int, senders: Sequence[tuple[NodeId, tuple[NodeId, ...]]]
) -> Iterator[tuple[NodeId, NodeId, int]]:
    """Yield (sender, receiver, count): equal parts by sender, record q to receiver q mod m.

    If all senders have the same routes, the numbers of two receivers differ by at most one.

    >>> list(deal_in_turn(5, [("a", ("x", "y")), ("b", ("x", "y"))]))
    [('a', 'x', 1), ('a', 'y', 1), ('b', 'x', 2), ('b', 'y', 1)]
    """
    for part, (sender, receivers) in enumerate(senders):
        first, end = (records * edge // len(senders) for edge in (part, part + 1))
        for place, receiver in enumerate(receivers):
            count = (end - place - 1) // len(receivers) - (first - place - 1) // len(receivers)
            if count:
                yield sender, receiver, count


def sum_by_receiver(dealt: Sequence[tuple[NodeId, NodeId, int]]) -> Counter[NodeId]:
    """Return the records of each receiver."""
    sums: Counter[NodeId] = Counter()
    for _, receiver, count in dealt:
        sums[receiver] += count
    return sums
