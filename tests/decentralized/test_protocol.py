"""The protocol of one node, and random interleavings of many."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decentralized.network import Network

from penstock.decentralized.messages import (
    CreateNode,
    Deletion,
    DeletionAck,
    Duplicate,
    Duplication,
    DuplicationAck,
    Message,
    NodeStopped,
    RecordsArrived,
    RecordsProcessed,
    Send,
    StartSignal,
    Stop,
)
from penstock.decentralized.node_state import Neighbours, NodePhase, NodeState, build_pipeline
from penstock.decentralized.protocol import accepts_input, can_process, handle, routes


def middle(*messages: Message) -> NodeState:
    """The second node of the middle operator, with 1, 2 and 2 nodes, after some messages."""
    state = build_pipeline([["a"], ["b", "b2"], ["c", "c2"]])["b2"]
    for message in messages:
        state, _ = handle(state, message)
    return state


def test_a_duplication_creates_nodes_announces_them_and_starts_them_after_the_last_ack() -> None:
    state, effects = handle(middle(), Duplicate(new_nodes=("x", "y")))
    assert [effect.state.node for effect in effects[:2] if isinstance(effect, CreateNode)] == [
        "x",
        "y",
    ]
    news = Duplication(sender="b2", operator=1, new_nodes=("x", "y"))
    assert effects[2:] == tuple(Send(to=node, message=news) for node in ("a", "c", "c2"))
    for sender in ("a", "c"):
        state, effects = handle(state, DuplicationAck(sender=sender))
        assert (effects, state.phase) == ((), NodePhase.DUPLICATING)
    state, effects = handle(state, DuplicationAck(sender="c2"))
    signal = StartSignal(sender="b2", neighbours=state.neighbours)
    assert effects == (Send(to="x", message=signal), Send(to="y", message=signal))
    assert state == middle()


def test_a_new_node_keeps_news_and_records_until_its_start() -> None:
    _, effects = handle(middle(), Duplicate(new_nodes=("x",)))
    state = next(effect.state for effect in effects if isinstance(effect, CreateNode))
    for message in (
        RecordsArrived(),
        Duplication(sender="c", operator=2, new_nodes=("c3",)),
        Deletion(sender="c2", operator=2, receivers=frozenset({"x"})),
        Duplication(sender="a", operator=0, new_nodes=("a2",)),
    ):
        state, effects = handle(state, message)
        assert all(isinstance(effect, Send) for effect in effects)
        assert not can_process(state)
        assert routes(state) == ()
    start = StartSignal(
        sender="b2", neighbours=Neighbours(frozenset({"c", "c2"}), frozenset({"a"}))
    )
    state, effects = handle(state, start)
    assert effects == ()
    assert state.neighbours == Neighbours(frozenset({"c", "c3"}), frozenset({"a", "a2"}))
    assert can_process(state)
    assert routes(state) == ("c", "c3")


def test_a_node_stops_after_its_last_ack_and_its_last_record() -> None:
    state = middle(RecordsArrived(count=2), Stop())
    for sender in ("a", "c", "c2"):
        state, effects = handle(state, DeletionAck(sender=sender))
        assert effects == ()
    assert routes(state) == ("c",)  # the keeper of the next operator
    state, effects = handle(state, RecordsProcessed())
    assert effects == ()
    state, effects = handle(state, RecordsProcessed())
    assert effects == (NodeStopped(node="b2"),)
    assert handle(state, RecordsArrived()) == (state, ())


@pytest.mark.parametrize("begin", [Stop(), Duplicate(new_nodes=("x",))])
@pytest.mark.parametrize("again", [Stop(), Duplicate(new_nodes=("y",))])
def test_a_busy_node_refuses_a_further_decision(
    begin: Stop | Duplicate, again: Stop | Duplicate
) -> None:
    state = middle(begin)
    assert handle(state, again) == (state, ())


def test_the_keeper_refuses_to_stop_and_no_copies_are_no_duplication() -> None:
    keeper = build_pipeline([["a"], ["b"]])["a"]
    assert handle(keeper, Stop()) == (keeper, ())
    assert handle(keeper, Duplicate(new_nodes=())) == (keeper, ())


def test_a_stopping_node_acknowledges_news_and_does_not_use_it() -> None:
    state = middle(Stop())
    after, effects = handle(state, Duplication(sender="c", operator=2, new_nodes=("c3",)))
    assert effects == (Send(to="c", message=DuplicationAck(sender="b2")),)
    assert after == state
    assert not accepts_input(after)


@pytest.mark.parametrize("is_told", [False, True])
def test_a_start_names_those_who_left_and_told_the_new_node(is_told: bool) -> None:
    receivers = frozenset({"b", "b2", "x"} if is_told else {"b", "b2"})
    deletion = Deletion(sender="c2", operator=2, receivers=receivers)
    acks = [DuplicationAck(sender=node) for node in ("a", "c2")]
    state = middle(Duplicate(new_nodes=("x",)), deletion, *acks)
    state, effects = handle(state, DuplicationAck(sender="c"))
    (start,) = effects
    assert isinstance(start, Send)
    assert isinstance(start.message, StartSignal)
    assert ("c2" in start.message.neighbours.successors) is is_told
    assert "c2" not in state.neighbours.successors


def test_a_pipeline_of_one_operator_scales_without_acks() -> None:
    network = Network(1)
    (new,) = network.duplicate("0.0")
    network.settle()
    network.command(new, Stop())
    network.assert_quiet_and_consistent()
    assert len(network.members(0)) == 1


def test_processing_more_than_the_queue_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="node b2, active: cannot process 1 of 0 records"):
        handle(middle(), RecordsProcessed())


@given(copies=st.integers(1, 4), before=st.integers(1, 4), after=st.integers(1, 4))
def test_messages_of_an_action_follow_the_formula(copies: int, before: int, after: int) -> None:
    network = Network(before, 2, after)
    network.duplicate("1.1", copies)
    network.settle()
    assert network.messages == 2 * (before + after) + copies
    network.messages = 0
    network.command("1.1", Stop())
    network.settle()
    assert network.messages == 2 * (before + after)
    network.assert_quiet_and_consistent()


@settings(max_examples=300, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    schedule=st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=150),
)
def test_any_interleaving_ends_quiet_consistent_and_complete(
    sizes: list[int], schedule: list[tuple[bool, int]]
) -> None:
    network = Network(*sizes)
    for decides, choice in schedule:
        enabled = (network.decisions() if decides else []) or network.reactions()
        if enabled:
            enabled[choice % len(enabled)]()
        assert all(any(s.is_keeper for s in network.members(op)) for op in range(len(sizes)))
    network.settle()
    network.assert_quiet_and_consistent()
