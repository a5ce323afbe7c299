"""Messages of the protocol cross the wire unchanged; others are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decentralized.messages import (
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    PeerMessage,
    StartSignal,
)
from penstock.decentralized.node_state import Neighbours, NodePhase, NodeState, build_pipeline
from penstock.decentralized.processes.frames import FrameError
from penstock.decentralized.processes.message_json import (
    message_from_json,
    message_to_json,
    state_from_json,
    state_to_json,
)

NODES = st.from_regex(r"[a-z]{1,5}-[0-9]{1,3}@[0-9]{4,5}", fullmatch=True)
SETS = st.frozensets(NODES, max_size=5)
NEIGHBOURS = st.builds(Neighbours, SETS, SETS)
MESSAGES: st.SearchStrategy[PeerMessage] = st.one_of(
    st.builds(
        Duplication,
        sender=NODES,
        operator=st.integers(0, 9),
        new_nodes=st.lists(NODES, max_size=4).map(tuple),
    ),
    st.builds(DuplicationAck, sender=NODES),
    st.builds(StartSignal, sender=NODES, neighbours=NEIGHBOURS),
    st.builds(Deletion, sender=NODES, operator=st.integers(0, 9), receivers=SETS),
    st.builds(DeletionAck, sender=NODES),
)


@given(MESSAGES)
def test_a_message_is_read_as_written(message: PeerMessage) -> None:
    assert message_from_json(message_to_json(message)) == message


@given(NODES, st.integers(0, 9), st.sampled_from(NodePhase), NEIGHBOURS, st.none() | NODES)
def test_a_state_is_read_as_written(
    node: str, operator: int, phase: NodePhase, neighbours: Neighbours, keeper: str | None
) -> None:
    state = NodeState(
        node=node, operator=operator, phase=phase, neighbours=neighbours, next_keeper=keeper
    )
    assert state_from_json(state_to_json(state)) == state


def test_the_first_states_of_a_pipeline_have_nothing_that_is_not_written() -> None:
    for state in build_pipeline([["a-1@1"], ["b-1@2", "b-2@3"], ["c-1@4"]]).values():
        assert state_from_json(state_to_json(state)) == state


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        ["Deletion"],
        ["Unknown", {"sender": "a-1@1"}],
        ["Deletion", {"sender": "a-1@1"}],
        ["Deletion", {"sender": 7, "operator": 1, "receivers": []}],
        ["Deletion", {"sender": "a-1@1", "operator": True, "receivers": []}],
        ["Deletion", {"sender": "a-1@1", "operator": 1, "receivers": {}}],
        ["Deletion", {"sender": "a-1@1", "operator": 1, "receivers": [], "more": 1}],
        ["Duplication", {"sender": "a-1@1", "operator": 1, "new_nodes": "b-1@1"}],
        ["StartSignal", {"sender": "a-1@1", "neighbours": [["b-1@1"]]}],
        ["StartSignal", {"sender": "a-1@1", "neighbours": [[1], []]}],
        ["Deletion", ["sender"]],
    ],
)
def test_anything_else_is_refused(body: Any) -> None:
    with pytest.raises(FrameError):
        message_from_json(body)


@pytest.mark.parametrize("body", [None, {}, [], {"node": "a-1@1", "operator": "0"}])
def test_what_is_no_state_is_refused(body: Any) -> None:
    with pytest.raises(FrameError):
        state_from_json(body)
