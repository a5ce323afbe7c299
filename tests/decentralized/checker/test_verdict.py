"""The model checker: planted bugs are found, the corrected protocol holds, reductions are sound."""

from dataclasses import replace
from functools import cache

import pytest
from tests.decentralized.network import Network

from penstock.decentralized.checker.configuration import BUGS, CheckConfig
from penstock.decentralized.checker.invariants import Invariant
from penstock.decentralized.checker.suite import bug_config
from penstock.decentralized.checker.transitions import StepKind
from penstock.decentralized.checker.verdict import CheckVerdict, check_protocol
from penstock.decentralized.messages import Message, PeerMessage
from penstock.decentralized.node_state import NodePhase, build_pipeline
from penstock.decentralized.protocol import handle, routes
from penstock.errors import InputError

SMALL = CheckConfig(instances=(1, 1, 1), max_instances=2, actions=2, records=1)
TINY = replace(SMALL, actions=1)
#: What each rule protects.
EXPECTED = {
    "no-fifo": Invariant.NO_MESSAGE_LOST,
    "no-acks": Invariant.NO_MESSAGE_LOST,
    "one-branch-ack": Invariant.ACTIONS_END,
    "no-to-delete": Invariant.NEIGHBOURS_AGREE,
    "no-keeper": Invariant.KEEPER_STAYS,
    "sides-by-sets": Invariant.NEIGHBOURS_AGREE,
    "start-without-departed": Invariant.NO_MESSAGE_LOST,
    "drain-to-any": Invariant.NO_RECORD_LOST,
    "decide-while-busy": Invariant.ACTIONS_END,
    "as-printed": Invariant.NEIGHBOURS_AGREE,
}


@cache
def check_bug(name: str) -> CheckVerdict:
    """The verdict on a planted bug, once for all tests."""
    return check_protocol(bug_config(name))


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    verdict = check_bug(bug)
    assert verdict.violation is not None
    assert verdict.violation.invariant is EXPECTED[bug]
    assert len(verdict.trace) == verdict.depth


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, instances=(2, 1, 2)),
        replace(SMALL, instances=(1, 1), actions=3, records=2),
        replace(SMALL, instances=(1,), max_instances=3),
        replace(TINY, max_instances=3),
    ],
    ids=["2 actions", "2-1-2 nodes", "3 actions", "1 operator", "3 instances"],
)
def test_the_corrected_protocol_holds(config: CheckConfig) -> None:
    verdict = check_protocol(config)
    assert verdict.violation is None
    assert verdict.is_complete
    # every size from 1 to the maximum, of every operator, comes to rest
    assert verdict.quiet_states == config.max_instances ** len(config.instances)


@pytest.mark.parametrize(
    "config", [TINY, replace(SMALL, records=0), replace(SMALL, instances=(1, 1))]
)
def test_reductions_explore_fewer_states_and_agree(config: CheckConfig) -> None:
    ordered = replace(config, has_symmetry=False, has_partial_order=False, max_instances=2)
    full, reduced = check_protocol(ordered), check_protocol(replace(config, max_instances=2))
    assert full.violation is None
    assert reduced.violation is None
    assert reduced.states < full.states
    assert reduced.quiet_states == full.quiet_states


@pytest.mark.slow
def test_the_order_of_steps_is_reduced_soundly_with_three_instances() -> None:
    config = replace(TINY, max_instances=3, records=0)
    ordered = check_protocol(replace(config, has_partial_order=False))
    reduced = check_protocol(config)
    assert ordered.violation is None
    assert reduced.violation is None
    assert reduced.states < 0.6 * ordered.states
    assert reduced.quiet_states == ordered.quiet_states == 27


@pytest.mark.parametrize("bug", BUGS)
def test_reductions_hide_no_planted_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckConfig, "reduces_order", property(lambda _: True))
    verdict = check_protocol(bug_config(bug))
    assert verdict.violation is not None
    assert verdict.violation.invariant is EXPECTED[bug]


def test_symmetry_counts_states_that_differ_in_names_once() -> None:
    config = CheckConfig(instances=(3, 3), max_instances=3, actions=1, records=1)
    plain = check_protocol(replace(config, has_symmetry=False, has_partial_order=False))
    sorted_states = check_protocol(replace(config, has_partial_order=False))
    assert plain.violation is None
    assert sorted_states.violation is None
    assert plain.states / 4 <= sorted_states.states < plain.states  # 2! orders per operator
    assert sorted_states.quiet_states == 9


def test_a_search_can_be_limited() -> None:
    verdict = check_protocol(SMALL, max_states=100)
    assert not verdict.is_complete
    assert verdict.violation is None
    assert verdict.states >= 100


@pytest.mark.parametrize("bug", ["drain-to-any", "no-to-delete", "start-without-departed"])
def test_a_trace_is_a_run_of_the_protocol(bug: str) -> None:
    """Replay a trace with the protocol alone, message by message."""
    _replay(check_bug(bug))


def _replay(verdict: CheckVerdict) -> None:
    variant = verdict.config.variant
    nodes = build_pipeline([["A1"], ["B1"], ["C1"]])
    channels: dict[tuple[str, str], list[PeerMessage | None]] = {}
    for step in verdict.trace:
        message: Message
        match step.kind:
            case StepKind.DELIVER:
                assert step.peer is not None
                item = channels[step.peer, step.node].pop(0)
                assert item == step.message
                message = Network.ARRIVED if item is None else item
            case StepKind.PROCESS:
                message = Network.PROCESSED
                if step.peer is not None:
                    assert step.peer in routes(nodes[step.node], variant)
                    channels.setdefault((step.node, step.peer), []).append(None)
            case _:
                message = Network.own_message(step.kind.value, step.peer)
        nodes[step.node], effects = handle(nodes[step.node], message, variant)
        for effect in effects:
            if hasattr(effect, "to"):
                channels.setdefault((step.node, effect.to), []).append(effect.message)
            elif hasattr(effect, "state"):
                nodes[effect.state.node] = effect.state
        phases = {name: state.phase for name, state in nodes.items()}
        alive = {name: phase for name, phase in phases.items() if phase is not NodePhase.STOPPED}
        shown = {n: p for n, p in step.phases.items() if p is not NodePhase.STOPPED}
        assert alive == shown


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"instances": ()}, "--operators: must be 1 to 5, got 0"),
        ({"instances": (1, 4)}, "--instances: must be 1 to 2"),
        ({"max_instances": 9}, "--max-instances: must be 1 to 4, got 9"),
        ({"actions": -1}, "--actions: must not be negative, got -1"),
    ],
)
def test_a_wrong_configuration_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        replace(SMALL, **changes)  # type: ignore[arg-type]
