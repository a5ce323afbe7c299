"""The scaling protocol of one node: a pure function from state and message to state and effects.

Belkhiria, Tedeschi, "Decentralized Scaling for Stream Processing Engines", 2019, section 4.2.

How to use it. Build the first nodes with `node_state.build_pipeline`. For every command of the
node's own decision and for every message from another node call

    state, effects = handle(state, message)

and carry out the effects in their order: `CreateNode` lets a new idle node exist, `Send` delivers a
message, `NodeStopped` ends the node. The caller has these duties:

- Channels. All that goes from one node to another, messages and records, arrives once and in order.
- Records. A record that arrives is reported as `RecordsArrived`; it waits in the caller's queue
  while `can_process` is False. Its result goes to one node of `routes(state)`, which the caller
  chooses, and then `RecordsProcessed` is reported in the same step. `routes` is empty in the last
  operator. A count reports several records at once.
- Sources. Nodes of the first operator take records from outside while `accepts_input` is True.
- Decisions. The draw of `decide_alone` happens outside. It becomes `Duplicate(new_nodes=ids)`, one
  fresh id per copy, or `Stop()`. A refused decision has no effects and changes nothing;
  `can_scale(state)` says so in advance. The number of siblings is `len(neighbours.successors)` of
  any predecessor, so a predecessor can send it along with its records.

Where the paper is silent, the rule stands in the function of the algorithm that it completes.
"""

from dataclasses import replace

from penstock.decentralized.messages import (
    CreateNode,
    Deletion,
    DeletionAck,
    Duplicate,
    Duplication,
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
from penstock.decentralized.node_state import (
    NOBODY,
    NodeId,
    NodePhase,
    NodeState,
    Side,
    idle_sibling,
)
from penstock.decentralized.variant import CORRECTED, AckRule, Variant

Step = tuple[NodeState, tuple[Effect, ...]]
_WORKING = frozenset({NodePhase.ACTIVE, NodePhase.DUPLICATING, NodePhase.STOPPING})
_IN_PIPELINE = frozenset({NodePhase.ACTIVE, NodePhase.DUPLICATING})


def handle(state: NodeState, message: Message, variant: Variant = CORRECTED) -> Step:
    """Return the state after a message, and what the node does about it.

    A stopped node ignores everything. With the rules below no message reaches one: the model
    checker explores all runs of small pipelines.
    """
    if state.phase is NodePhase.STOPPED:
        return state, ()
    match message:
        case Duplicate():
            return _begin_duplication(state, message, variant)
        case Stop():
            return _begin_deletion(state, variant)
        case Duplication():
            return _note_duplication(state, message, variant)
        case Deletion():
            return _note_deletion(state, message, variant)
        case DuplicationAck() | DeletionAck():
            return _note_ack(state, message.sender, variant)
        case StartSignal():
            return _start(state, message)
        case RecordsArrived():
            return replace(state, pending=state.pending + message.count), ()
        case RecordsProcessed():
            return _note_processed(state, message, variant)


def routes(state: NodeState, variant: Variant = CORRECTED) -> tuple[NodeId, ...]:
    """Return the nodes that the node may send results to, in a fixed order.

    The paper lets a stopping node send to all its successors. But they have removed it from their
    predecessors and may stop without its ack; the keeper of the next operator cannot.
    """
    if state.phase not in _WORKING:
        return ()
    if state.phase is NodePhase.STOPPING and variant.drains_to_keeper:
        return () if state.next_keeper is None else (state.next_keeper,)
    return tuple(sorted(state.neighbours.successors))


def can_process(state: NodeState) -> bool:
    """Whether the node may process a record of its queue; an idle node must wait."""
    return state.phase in _WORKING and state.pending > 0


def accepts_input(state: NodeState) -> bool:
    """Whether a node of the first operator may take records from outside."""
    return state.phase in _IN_PIPELINE


def can_scale(state: NodeState, variant: Variant = CORRECTED) -> bool:
    """Whether the node may begin a duplication; for `Stop` it must not be the keeper either.

    The paper does not say what happens if a node decides again while its last decision is under
    way. It would lose count of its acks, so it refuses, and may decide again when it has finished.
    """
    if not variant.refuses_if_busy:
        return state.phase in _IN_PIPELINE
    return state.phase is NodePhase.ACTIVE


def can_stop(state: NodeState, variant: Variant = CORRECTED) -> bool:
    """Whether the node may begin to stop (algorithm 11: a keeper may not)."""
    return can_scale(state, variant) and not (state.is_keeper and variant.has_keeper)


def _begin_duplication(state: NodeState, message: Duplicate, variant: Variant) -> Step:
    """Algorithms 1 and 4: create the new nodes and announce them; n >= 1 copies are meant."""
    if not (message.new_nodes and can_scale(state, variant)):
        return state, ()
    creations = tuple(CreateNode(state=idle_sibling(state, node)) for node in message.new_nodes)
    news = Duplication(sender=state.node, operator=state.operator, new_nodes=message.new_nodes)
    state = replace(
        state,
        phase=NodePhase.DUPLICATING,
        new_nodes=message.new_nodes,
        awaited=_expected_acks(state, variant),
    )
    announcements = _send_information(state, news)
    state, starts = _complete(state, variant)
    return state, (*creations, *announcements, *starts)


def _begin_deletion(state: NodeState, variant: Variant) -> Step:
    """Algorithms 1 and 8: announce the end. Siblings that stop at once do not affect each other."""
    if not can_stop(state, variant):
        return state, ()
    receivers = state.neighbours.everyone()
    news = Deletion(sender=state.node, operator=state.operator, receivers=receivers)
    awaited = _expected_acks(state, variant)
    state = replace(state, phase=NodePhase.STOPPING, awaited=awaited, new_nodes=())
    announcements = _send_information(state, news)
    state, end = _complete(state, variant)
    return state, (*announcements, *end)


def _send_information(state: NodeState, news: PeerMessage) -> tuple[Effect, ...]:
    """Algorithm 1: send the same message to all neighbours."""
    return tuple(Send(to=node, message=news) for node in sorted(state.neighbours.everyone()))


def _expected_acks(state: NodeState, variant: Variant) -> frozenset[NodeId]:
    return frozenset() if variant.acks is AckRule.NONE else state.neighbours.everyone()


def _note_duplication(state: NodeState, message: Duplication, variant: Variant) -> Step:
    """Algorithm 5: note new neighbours and acknowledge in every case.

    A stopping node acknowledges too, or the sender would wait for ever. It does not add the new
    nodes, because they do not hear of it: its deletion reaches the sender before its ack, and the
    sender leaves it out of their start signal.
    """
    side = _side_of(state, message, variant)
    if side is not None:
        if state.phase is NodePhase.IDLE:
            state = replace(state, to_add=state.to_add.add(side, message.new_nodes))
        elif state.phase in _IN_PIPELINE:
            state = replace(state, neighbours=state.neighbours.add(side, message.new_nodes))
    ack = DuplicationAck(sender=state.node)
    return state, _acknowledge(message.sender, ack, side, variant)


def _note_deletion(state: NodeState, message: Deletion, variant: Variant) -> Step:
    """Algorithm 9: remove a neighbour and acknowledge in every case.

    A start signal can overtake a deletion, because they come from different nodes. A new node that
    does not know the sender of a deletion could then stop before the deletion reaches it. So a node
    that duplicates keeps those apart that left and told its new siblings, for their start signal.
    """
    side, sender = _side_of(state, message, variant), message.sender
    if side is not None:
        if state.phase is NodePhase.IDLE:
            if variant.has_to_delete:
                state = replace(state, to_delete=state.to_delete.add(side, (sender,)))
        else:
            if not message.receivers.isdisjoint(state.new_nodes):
                state = replace(state, departed=state.departed.add(side, (sender,)))
            state = replace(state, neighbours=state.neighbours.remove(side, sender))
    ack = DeletionAck(sender=state.node)
    return state, _acknowledge(sender, ack, side, variant)


def _note_ack(state: NodeState, sender: NodeId, variant: Variant) -> Step:
    """Algorithms 6 and 10: an ack is missing no longer. By sender, not counted: same result."""
    return _complete(replace(state, awaited=state.awaited - {sender}), variant)


def _complete(state: NodeState, variant: Variant) -> Step:
    """Algorithms 6 and 10: end the duplication or deletion when nothing is missing any more.

    This is also tried at the beginning: a pipeline of one operator has no neighbours, and no ack
    will come. Records in flight to a stopping node arrive before the ack of their sender, and the
    node stops when it has processed them.
    """
    if state.awaited:
        return state, ()
    if state.phase is NodePhase.DUPLICATING:
        return _start_new_nodes(state, variant)
    if state.phase is NodePhase.STOPPING and state.pending == 0:
        return replace(state, phase=NodePhase.STOPPED), (NodeStopped(node=state.node),)
    return state, ()


def _start_new_nodes(state: NodeState, variant: Variant) -> Step:
    neighbours = state.neighbours
    if variant.names_departed:
        neighbours = neighbours.union(state.departed)
    signal = StartSignal(sender=state.node, neighbours=neighbours)
    starts = tuple(Send(to=node, message=signal) for node in state.new_nodes)
    return replace(state, phase=NodePhase.ACTIVE, new_nodes=(), departed=NOBODY), starts


def _start(state: NodeState, message: StartSignal) -> Step:
    """Algorithm 7: take the neighbours of the sender, and what happened since they were told.

    Deletions win over additions: an id is never used again.
    """
    neighbours = message.neighbours.union(state.to_add).without(state.to_delete)
    return replace(
        state, phase=NodePhase.ACTIVE, neighbours=neighbours, to_add=NOBODY, to_delete=NOBODY
    ), ()


def _note_processed(state: NodeState, message: RecordsProcessed, variant: Variant) -> Step:
    """Algorithm 10, line 4: a stopping node works off its queue first."""
    if state.phase not in _WORKING or message.count > state.pending:
        problem = f"cannot process {message.count} of {state.pending} records"
        raise ValueError(f"node {state.node}, {state.phase.value}: {problem}")
    return _complete(replace(state, pending=state.pending - message.count), variant)


def _side_of(state: NodeState, message: Duplication | Deletion, variant: Variant) -> Side | None:
    """Return on which side the sender is; None if the node cannot tell.

    The paper looks the sender up in the sets of neighbours. They are empty in an idle node, which
    then loses the news, so the message carries the position of its operator.
    """
    if variant.knows_sides:
        return Side.SUCCESSOR if message.operator > state.operator else Side.PREDECESSOR
    sides = (side for side in Side if message.sender in state.neighbours.on(side))
    return next(sides, None)


def _acknowledge(
    to: NodeId, ack: DuplicationAck | DeletionAck, side: Side | None, variant: Variant
) -> tuple[Effect, ...]:
    is_sent = variant.acks is AckRule.ALL or (
        variant.acks is AckRule.FROM_PREDECESSORS and side is Side.PREDECESSOR
    )
    return (Send(to=to, message=ack),) if is_sent else ()
