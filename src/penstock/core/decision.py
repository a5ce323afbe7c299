"""Decisions: for each operator current, wanted and the reason, and what guards changed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import pretty
from penstock.core.reasons import Reason, read_reason


def fill_in(formula: str, numbers: Mapping[str, Any]) -> str:
    """Write the numbers of a formula in their places.

    >>> fill_in("ceil({rate} / 100)", {"rate": 250.0})
    'ceil(250 / 100)'
    """
    return formula.format_map({name: pretty(value) for name, value in numbers.items()})


@dataclass(frozen=True, slots=True)
class Step:
    """What one guard changed."""

    guard: str
    before: int
    after: int
    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """Wanted parallelism of one operator.

    `formula` is a template whose names are filled in from `numbers`, so that a journal
    keeps the figures and the sentence is built only when it is read.

    >>> Target(2, 3, Reason.FITS, "ceil({rate} / {capacity})", {"rate": 250.0, "capacity": 100}).why
    'ceil(250 / 100)'
    """

    #: Replicas that run.
    current: int
    #: Replicas that it should have, after all guards.
    wanted: int
    #: A `Reason`, or the word of another package.
    reason: str
    #: How the number was computed: a template such as "ceil({rate} / {capacity})".
    formula: str = ""
    #: The numbers that fill in the formula.
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: What each guard changed: guard, before, after, reason.
    steps: tuple[Step, ...] = ()
    #: The policy's own reason, if a guard gave another.
    policy_reason: str = ""

    @property
    def why(self) -> str:
        """The formula with its numbers filled in."""
        return fill_in(self.formula, self.numbers)

    @property
    def proposal(self) -> int:
        """The number that the policy wanted, before any guard."""
        return self.steps[0].before if self.steps else self.wanted

    @property
    def proposal_reason(self) -> str:
        """The reason of the policy, before any guard."""
        return self.policy_reason or self.reason

    @property
    def is_kept(self) -> bool:
        """Whether the policy left the operator alone rather than sized it."""
        if isinstance(self.reason, Reason):
            return self.reason.keeps
        return self.wanted == self.current

    def after(self, guards: Sequence[str]) -> int:
        """Return the number after these guards and before all others."""
        return next((s.before for s in self.steps if s.guard not in guards), self.wanted)

    def guarded(self, guard: str, wanted: int, reason: Reason) -> "Target":
        """Return this target as changed by a guard, or itself if nothing changed."""
        if wanted == self.wanted:
            return self
        step = Step(guard, self.wanted, wanted, reason)
        return replace(
            self,
            wanted=wanted,
            reason=reason,
            steps=(*self.steps, step),
            policy_reason=self.proposal_reason,
        )


def keep(current: int, reason: Reason, formula: str = "", **numbers: Any) -> Target:
    """Return the target that leaves an operator as it is.

    >>> keep(3, Reason.METRICS_MISSING).wanted
    3
    """
    return Target(current, current, reason, formula, numbers)


@dataclass(frozen=True, slots=True)
class Move:
    """One slice that changes its host."""

    slice: str
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer of a policy about hosts and slices."""

    current: int
    wanted: int
    reason: str
    moves: tuple[Move, ...] = ()
    formula: str = ""
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)

    @property
    def why(self) -> str:
        """The formula with its numbers filled in."""
        return fill_in(self.formula, self.numbers)


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of one policy to one snapshot."""

    #: Seconds since the run began.
    at: float
    #: The name of the policy.
    policy: str
    #: What each operator should have.
    targets: Mapping[str, Target] = field(default_factory=FrozenDict)
    #: Hosts and slices, from a policy that places slices.
    placement: Placement | None = None

    @property
    def changes(self) -> dict[str, int]:
        """Operators to rescale, with their new parallelism."""
        return {n: t.wanted for n, t in self.targets.items() if t.wanted != t.current}

    @property
    def is_change(self) -> bool:
        """Whether carrying this out would change anything."""
        if self.placement and (
            self.placement.moves or self.placement.wanted != self.placement.current
        ):
            return True
        return any(t.wanted != t.current for t in self.targets.values())

    def to_json(self, *, with_numbers: bool = False) -> dict[str, Any]:
        """Write as plain dictionaries. What guards did appears only where they did something."""
        data: dict[str, Any] = {"at": self.at, "policy": self.policy}
        if self.placement is not None:
            data |= _placement_to_json(self.placement, with_numbers)
        else:
            data["targets"] = {
                name: _target_to_json(target, with_numbers) for name, target in self.targets.items()
            }
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Decision":
        """Read what `to_json` wrote."""
        targets = {name: _target_from_json(t) for name, t in data.get("targets", {}).items()}
        placement = _placement_from_json(data) if "hosts" in data else None
        return cls(data["at"], data["policy"], FrozenDict(targets), placement)


def _target_to_json(target: Target, with_numbers: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "current": target.current,
        "wanted": target.wanted,
        "reason": str(target.reason),
    }
    if target.steps:
        data["proposal"] = target.proposal
        data["proposal_reason"] = str(target.proposal_reason)
        data["guards"] = [
            {"guard": s.guard, "before": s.before, "after": s.after, "reason": str(s.reason)}
            for s in target.steps
        ]
    return data | _why_to_json(target, with_numbers)


def _target_from_json(data: Mapping[str, Any]) -> Target:
    steps = tuple(
        Step(s["guard"], s["before"], s["after"], read_reason(s["reason"]))
        for s in data.get("guards", ())
    )
    formula, numbers = data.get("formula", ""), FrozenDict(data.get("numbers", {}))
    reason = read_reason(data["reason"])
    policy_reason = read_reason(data.get("proposal_reason", ""))
    return Target(data["current"], data["wanted"], reason, formula, numbers, steps, policy_reason)


def _placement_to_json(placement: Placement, with_numbers: bool) -> dict[str, Any]:
    return {
        "hosts": {"current": placement.current, "wanted": placement.wanted},
        "moves": [
            {"slice": m.slice, "from": m.source, "to": m.destination} for m in placement.moves
        ],
        "reason": str(placement.reason),
    } | _why_to_json(placement, with_numbers)


def _placement_from_json(data: Mapping[str, Any]) -> Placement:
    return Placement(
        data["hosts"]["current"],
        data["hosts"]["wanted"],
        read_reason(data["reason"]),
        tuple(Move(m["slice"], m["from"], m["to"]) for m in data["moves"]),
        data.get("formula", ""),
        FrozenDict(data.get("numbers", {})),
    )


def _why_to_json(answer: Target | Placement, with_numbers: bool) -> dict[str, Any]:
    if not with_numbers or not answer.formula:
        return {}
    numbers = {name: _finite(value) for name, value in answer.numbers.items()}
    return {"formula": answer.formula, "numbers": numbers}


def _finite(value: Any) -> Any:
    # JSON has no infinity; a reader sees it as unknown
    return None if isinstance(value, float) and not math.isfinite(value) else value
