"""The shortest way to a state, as steps with the names that nodes have along the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from penstock.decentralized.checker.exploration import NO_PARENT, Search
from penstock.decentralized.checker.local_tables import OUTSIDE, LocalTables
from penstock.decentralized.checker.transitions import GlobalState, PipelineStep, StepKind
from penstock.decentralized.messages import Message
from penstock.decentralized.node_state import NodeId, NodePhase


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One step of a trace with names, and the phases that it leaves."""

    kind: StepKind
    node: NodeId
    #: The sender of a message, or where a result or a copy goes; None outside the pipeline.
    peer: NodeId | None
    #: The message that is delivered; None for a record.
    message: Message | None
    #: The phases of all nodes after the step.
    phases: dict[NodeId, NodePhase]


def shortest_trace(search: Search, number: int) -> tuple[TraceStep, ...]:
    """Return the steps from the beginning to a state.

    The graph holds representatives, whose names change from state to state. So the trace is found
    again from the beginning, by the step that leads to the next representative.
    """
    state, steps = search.transitions.initial(), []
    for following in _path(search, number)[1:]:
        representative = search.unpack(following)
        state, step = next(
            (after, step)
            for after, step in _successors(search, state)
            if search.canonical(after) == representative
        )
        steps.append(_describe(search.transitions.tables, state, step))
    return tuple(steps)


def _path(search: Search, number: int) -> list[int]:
    path = []
    while number != NO_PARENT:
        path.append(number)
        number = search.graph.parents[number]
    return path[::-1]


def _successors(search: Search, state: GlobalState) -> Iterator[tuple[GlobalState, PipelineStep]]:
    return chain(search.transitions.reactions(state), search.transitions.decisions(state))


def _describe(tables: LocalTables, state: GlobalState, step: PipelineStep) -> TraceStep:
    is_message = step.kind is StepKind.DELIVER and step.message != 0
    return TraceStep(
        kind=step.kind,
        node=tables.names[step.slot],
        peer=None if step.peer == OUTSIDE else tables.names[step.peer],
        message=tables.messages[step.message] if is_message else None,
        phases={
            name: tables.phase(state[slot]) for slot, name in enumerate(tables.names) if state[slot]
        },
    )
