"""Messages of the protocol and states of new nodes as JSON, by the types of their fields."""

from collections.abc import Callable
from typing import Any, get_type_hints

from penstock.decentralized.messages import (
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    PeerMessage,
    StartSignal,
)
from penstock.decentralized.node_state import Neighbours, NodePhase, NodeState
from penstock.decentralized.processes.frames import FrameError

_CLASSES = (Duplication, DuplicationAck, StartSignal, Deletion, DeletionAck)
_KINDS: dict[str, type[PeerMessage]] = {kind.__name__: kind for kind in _CLASSES}
_FIELDS = {kind: get_type_hints(kind) for kind in (*_CLASSES, NodeState)}
#: What a new state consists of; the other fields have their defaults until the first message.
_STATE = ("node", "operator", "phase", "is_keeper", "next_keeper", "neighbours")


def message_to_json(message: PeerMessage) -> list[Any]:
    """Write a message as its kind and its fields.

    >>> message_to_json(DeletionAck(sender="map-1@4711"))
    ['DeletionAck', {'sender': 'map-1@4711'}]
    """
    names = _FIELDS[type(message)]
    return [type(message).__name__, {name: _write(getattr(message, name)) for name in names}]


def message_from_json(body: Any) -> PeerMessage:
    """Read what `message_to_json` returned."""
    try:
        kind, values = body
        types = _FIELDS[_KINDS[kind]]
        return _KINDS[kind](**{name: _read(types[name], value) for name, value in values.items()})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FrameError(f"no message of the protocol: {error!r}") from None


def state_to_json(state: NodeState) -> dict[str, Any]:
    """Write the state of a node that waits for nothing."""
    return {name: _write(getattr(state, name)) for name in _STATE}


def state_from_json(body: Any) -> NodeState:
    """Read what `state_to_json` returned."""
    types = _FIELDS[NodeState]
    try:
        return NodeState(**{name: _read(types[name], body[name]) for name in _STATE})
    except (TypeError, ValueError, KeyError) as error:
        raise FrameError(f"no state of a node: {error!r}") from None


def _write(value: Any) -> Any:
    match value:
        case Neighbours():
            return [sorted(value.successors), sorted(value.predecessors)]
        case NodePhase():
            return value.value
        case frozenset():
            return sorted(value)
        case tuple():
            return list(value)
    return value


def _read(kind: Any, value: Any) -> Any:
    if kind in _READERS:
        return _READERS[kind](value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind}")
    return value


def _read_nodes(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(node, str) for node in value):
        raise TypeError(f"{value!r} is no list of nodes")
    return value


def _read_neighbours(value: Any) -> Neighbours:
    successors, predecessors = map(_read_nodes, value)
    return Neighbours(frozenset(successors), frozenset(predecessors))


#: How the types that JSON does not have are read.
_READERS: dict[Any, Callable[[Any], Any]] = {
    NodePhase: NodePhase,
    Neighbours: _read_neighbours,
    tuple[str, ...]: lambda value: tuple(_read_nodes(value)),
    frozenset[str]: lambda value: frozenset(_read_nodes(value)),
}
