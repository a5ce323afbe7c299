"""A trace of the scaling protocol as a message sequence chart in text."""

from collections.abc import Iterator, Sequence

from penstock.decentralized.checker.trace import TraceStep
from penstock.decentralized.checker.transitions import StepKind
from penstock.decentralized.messages import (
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    Message,
    StartSignal,
)
from penstock.decentralized.node_state import NodePhase

_WIDTH = 6
_MARKS = {
    NodePhase.IDLE: ":",
    NodePhase.ACTIVE: "|",
    NodePhase.DUPLICATING: "D",
    NodePhase.STOPPING: "S",
    NodePhase.STOPPED: "x",
}
LEGEND = "* own step  o sender  | active  : idle  D duplicating  S stopping  x stopped"


def sequence_chart(trace: Sequence[TraceStep]) -> list[str]:
    """Return one line per step: an arrow when a message arrives, a star for a node's own step."""
    names = sorted({name for step in trace for name in step.phases})
    head = " " * 5 + "".join(name.ljust(_WIDTH) for name in names)
    return [head.rstrip(), *_lines(trace, names), "", LEGEND]


def _lines(trace: Sequence[TraceStep], names: Sequence[str]) -> Iterator[str]:
    for number, step in enumerate(trace, 1):
        cells = list("".join(_mark(step, name).ljust(_WIDTH) for name in names))
        if step.kind is StepKind.DELIVER and step.peer is not None:
            _draw_arrow(cells, names.index(step.peer), names.index(step.node))
        else:
            cells[names.index(step.node) * _WIDTH] = "*"
        yield f"{number:>3}  {''.join(cells)} {_describe(step)}"


def _mark(step: TraceStep, name: str) -> str:
    return _MARKS[step.phases[name]] if name in step.phases else " "


def _draw_arrow(cells: list[str], sender: int, receiver: int) -> None:
    start, end = sender * _WIDTH, receiver * _WIDTH
    low, high = min(start, end), max(start, end)
    cells[low + 1 : high] = "-" * (high - low - 1)
    cells[start], cells[end] = "o", ">" if start < end else "<"


def _describe(step: TraceStep) -> str:
    match step.kind:
        case StepKind.DUPLICATE:
            return f"{step.node} decides to duplicate itself into {step.peer}"
        case StepKind.STOP:
            return f"{step.node} decides to stop"
        case StepKind.OFFER:
            return f"{step.node} takes a record from outside"
        case StepKind.PROCESS:
            where = f"sends the result to {step.peer}" if step.peer else "delivers the result"
            return f"{step.node} processes a record and {where}"
        case StepKind.DELIVER:
            return describe_message(step.message)


def describe_message(message: Message | None) -> str:
    """Return a message in the words of the paper; None is a record.

    >>> describe_message(Duplication(sender="B1", operator=1, new_nodes=("B2",)))
    'duplication {B2}'
    """
    match message:
        case Duplication():
            return f"duplication {_set(message.new_nodes)}"
        case DuplicationAck():
            return "duplication_ack"
        case Deletion():
            return f"deletion {{{message.sender}}}"
        case DeletionAck():
            return "deletion_ack"
        case StartSignal():
            known = message.neighbours
            after, before = _set(known.successors), _set(known.predecessors)
            return f"start, successors {after}, predecessors {before}"
        case _:
            return "record"


def _set(nodes: Sequence[str] | frozenset[str]) -> str:
    return "{" + ", ".join(sorted(nodes)) + "}"
