"""What people ask of a running loop: pause, pins, bounds, dry run; applied after all guards.

Requests are values, and their sum is a `ControlState`; both are pure. A request takes effect at
the next tick and becomes an event of that tick, so the journal says who asked for what and when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import MAX_COUNT
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.events import ControlEvent
from penstock.errors import InputError, nearest

PAUSE, RESUME, PIN, UNPIN = "pause", "resume", "pin", "unpin"
BOUNDS, DRY_RUN_ON, DRY_RUN_OFF = "bounds", "dry-run-on", "dry-run-off"
ACTIONS = (PAUSE, RESUME, PIN, UNPIN, BOUNDS, DRY_RUN_ON, DRY_RUN_OFF)
#: Actions about one operator.
_OPERATOR_ACTIONS = (PIN, UNPIN, BOUNDS)
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest:
    """One request of a person."""

    action: str
    #: Who asked, as they named themselves or as the server knows them.
    who: str
    #: When, in seconds since 1970.
    asked_at: float
    operator: str = ""
    #: Replicas of a pin.
    replicas: int | None = None
    #: Bounds; None for none.
    minimum: int | None = None
    maximum: int | None = None

    def __post_init__(self) -> None:
        _check(self)

    def to_json(self) -> dict[str, Any]:
        """Write as a plain dictionary, without what is not set."""
        data = {"at": self.asked_at, "who": self.who, "action": self.action}
        numbers = {"replicas": self.replicas, "minimum": self.minimum, "maximum": self.maximum}
        operator = {"operator": self.operator} if self.operator else {}
        return data | operator | {key: n for key, n in numbers.items() if n is not None}

    @classmethod
    def from_json(cls, data: Any) -> "ControlRequest":
        """Read what `to_json` wrote; `InputError` names a field that is wrong."""
        if not isinstance(data, Mapping):
            raise InputError("", "must be an object with action, who and at")
        known = {"at", "who", "action", "operator", "replicas", "minimum", "maximum"}
        for key in data:
            if key not in known:
                raise InputError(str(key), "unknown field", nearest(str(key), known))
        at = data.get("at")
        if not isinstance(at, int | float) or isinstance(at, bool):
            raise InputError("at", f"must be seconds since 1970, got {at!r}")
        fields = {key: data[key] for key in data if key != "at"}
        try:
            return cls(asked_at=float(at), **{"action": "", "who": "", **fields})
        except OverflowError:
            raise InputError("at", "is too large") from None

    def to_event(self, at: float, number: int) -> ControlEvent:
        """Return the event that a tick reports; `number` counts the requests of a run."""
        return ControlEvent(
            at=at,
            operator=self.operator,
            action=self.action,
            who=self.who,
            asked_at=self.asked_at,
            number=number,
            replicas=self.replicas,
            minimum=self.minimum,
            maximum=self.maximum,
        )


def _check(request: ControlRequest) -> None:
    if request.action not in ACTIONS:
        raise InputError(
            "action", f"is unknown: {request.action!r}", nearest(str(request.action), ACTIONS)
        )
    for name in ("who", "operator"):
        text = getattr(request, name)
        if not isinstance(text, str) or len(text) > _MAX_NAME:
            raise InputError(name, f"must be text of at most {_MAX_NAME} characters")
    if not request.who:
        raise InputError("who", "missing")
    needs = request.action in _OPERATOR_ACTIONS
    if needs != bool(request.operator):
        raise InputError(
            "operator", "missing" if needs else f"{request.action} is about all of them"
        )
    for name, action in (("replicas", PIN), ("minimum", BOUNDS), ("maximum", BOUNDS)):
        value = getattr(request, name)
        if value is None:
            if name == "replicas" and request.action == PIN:
                raise InputError(name, "missing")
            continue
        if type(value) is not int or not 1 <= value <= MAX_COUNT:
            raise InputError(name, f"must be a whole number from 1, got {value!r}")
        if request.action != action:
            raise InputError(name, f"does not belong to {request.action}")
    if None not in (request.minimum, request.maximum) and request.minimum > request.maximum:  # type: ignore[operator]
        raise InputError("minimum", f"{request.minimum} is above the maximum {request.maximum}")


class ControlSource(Protocol):
    """Where the requests for a loop come from."""

    @property
    def state(self) -> "ControlState":
        """What was asked before the loop began."""

    def read_new(self) -> Sequence[tuple[int, ControlRequest]]:
        """Return the new requests with their numbers; `InputError` for one that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """The sum of all requests."""

    is_paused: bool = False
    #: None: as the run was started.
    is_dry_run: bool | None = None
    pins: Mapping[str, int] = field(default_factory=FrozenDict)
    #: By operator: the fewest and the most replicas, None for none.
    bounds: Mapping[str, tuple[int | None, int | None]] = field(default_factory=FrozenDict)

    def after(self, request: ControlRequest) -> "ControlState":
        """Return the state after one more request."""
        name = request.operator
        match request.action:
            case "pause" | "resume":
                return replace(self, is_paused=request.action == PAUSE)
            case "dry-run-on" | "dry-run-off":
                return replace(self, is_dry_run=request.action == DRY_RUN_ON)
            case "pin":
                assert request.replicas is not None  # checked when it was made
                return replace(self, pins=FrozenDict({**self.pins, name: request.replicas}))
            case "unpin":
                rest = {key: n for key, n in self.pins.items() if key != name}
                return replace(self, pins=FrozenDict(rest))
            case _:
                others = {key: pair for key, pair in self.bounds.items() if key != name}
                pair = (request.minimum, request.maximum)
                bounds = {} if pair == (None, None) else {name: pair}
                return replace(self, bounds=FrozenDict({**others, **bounds}))


def constrain(decision: Decision, snapshot: Snapshot, state: ControlState) -> Decision:
    """Return a decision as people want it: what they ask for is the last word.

    The declared bounds of an operator still hold.
    """
    placement = decision.placement
    if placement is not None:
        is_change = placement.moves or placement.wanted != placement.current
        if not state.is_paused or not is_change:
            return decision
        kept = replace(placement, wanted=placement.current, moves=(), reason=Reason.PAUSED)
        return replace(decision, placement=kept)
    if not (state.is_paused or state.pins or state.bounds):
        return decision
    targets = dict(decision.targets)
    for name in state.pins:  # also an operator that the policy did not name
        if name in snapshot.operators and name not in targets:
            current = snapshot.operators[name].parallelism
            targets[name] = Target(current, current, Reason.PINNED)
    answers = {
        name: _ask(target, snapshot.operators[name], state) for name, target in targets.items()
    }
    return replace(decision, targets=FrozenDict(answers))


def _ask(target: Target, operator: OperatorSnapshot, state: ControlState) -> Target:
    if state.is_paused:
        return target.guarded("pause", target.current, Reason.PAUSED)
    if operator.name in state.pins:
        return target.guarded("pin", _within(operator, state.pins[operator.name]), Reason.PINNED)
    minimum, maximum = state.bounds.get(operator.name, (None, None))
    wanted = max(target.wanted, minimum or 1)
    wanted = min(wanted, maximum) if maximum is not None else wanted
    return target.guarded("asked-bounds", _within(operator, wanted), Reason.ASKED_BOUNDS)


def _within(operator: OperatorSnapshot, replicas: int) -> int:
    least, most = operator.min_parallelism or 1, operator.max_parallelism
    return max(least, replicas if most is None else min(most, replicas))


class NoRequests:
    """Nobody can ask, as in a simulation, which is a function of its spec."""

    state = ControlState()

    def read_new(self) -> Sequence[tuple[int, ControlRequest]]:
        """Return nothing."""
        return ()
