"""Actions are logged when the protocol has finished them, with the neighbours at their start."""

from dataclasses import replace

from penstock.decentralized.messages import (
    DeletionAck,
    Duplicate,
    DuplicationAck,
    Message,
    RecordsArrived,
    RecordsProcessed,
    Stop,
)
from penstock.decentralized.node_state import NodeState, build_pipeline
from penstock.decentralized.processes.node_action import ActionLog
from penstock.decentralized.protocol import handle

PIPELINE = build_pipeline([["a"], ["b", "b2"], ["c", "c2"]])


class LoggedNode:
    """A node whose messages take one second each."""

    def __init__(self, node: str) -> None:
        self.state: NodeState = PIPELINE[node]
        self.now_s = 0.0
        self.log = ActionLog(node, "map", lambda: self.now_s)

    def take(self, *messages: Message) -> None:
        for message in messages:
            self.now_s += 1
            before = self.state
            self.state, _ = handle(before, message)
            self.log.note(before, self.state)


def test_a_duplication_lasts_from_the_decision_to_the_start_signals() -> None:
    node = LoggedNode("b")
    node.take(Duplicate(new_nodes=("b3", "b4")), DuplicationAck(sender="a"))
    node.take(DuplicationAck(sender="c"))
    assert node.log.take_finished() == []
    node.take(DuplicationAck(sender="c2"))
    (action,) = node.log.take_finished()
    assert (action.kind, action.copies, action.neighbours) == ("duplication", 2, 3)
    assert (action.at_s, action.took_s) == (1, 3)
    # an announcement and an ack for each of three neighbours, two start signals
    assert action.expected_messages == 3 + 3 + 2
    assert node.log.take_finished() == []


def test_a_deletion_lasts_until_the_queue_is_empty() -> None:
    node = LoggedNode("b2")
    node.take(RecordsArrived(), Stop())
    node.take(*(DeletionAck(sender=sender) for sender in ("a", "c", "c2")))
    assert node.log.take_finished() == []
    node.take(RecordsProcessed())
    (action,) = node.log.take_finished()
    assert (action.kind, action.copies, action.took_s) == ("deletion", 0, 4)
    assert action.expected_messages == 6
    assert replace(action, node="x").to_json()["node"] == "x"


def test_messages_that_change_no_phase_are_no_action() -> None:
    node = LoggedNode("b")
    node.take(RecordsArrived(), RecordsProcessed(), RecordsArrived(count=2))
    assert node.log.take_finished() == []
