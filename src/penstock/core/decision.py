"""What a policy answers: a number never travels without its reason."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from penstock.core.frozen import FrozenDict
from penstock.core.numbers import pretty


class Reason(StrEnum):
    """Stable names that stand in journals and tables, each with a sentence for people.

    A reason that `keeps` says that the policy left the operator as it runs instead of
    sizing it, so a guard that adds head room has nothing to add to.
    """

    sentence: str
    keeps: bool

    def __new__(cls, value: str, sentence: str, keeps: bool = False) -> "Reason":
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.keeps = keeps
        return member

    # sizing by rates
    RATE_ABOVE_CAPACITY = "rate-above-capacity", "more records come in than these replicas carry"
    RATE_BELOW_CAPACITY = "rate-below-capacity", "fewer replicas would carry what comes in"
    FITS = "fits", "what comes in fits what runs"
    METRICS_MISSING = (
        "metrics-missing",
        "a measure that the formula needs is unknown or zero; without evidence nothing is changed",
        True,
    )
    # threshold
    QUEUE_ABOVE_THRESHOLD = "queue-above-threshold", "the queue is longer than the upper threshold"
    QUEUE_BELOW_THRESHOLD = (
        "queue-below-threshold",
        "the queue is not longer than the lower threshold",
    )
    QUEUE_IN_RANGE = "queue-in-range", "the queue is between the two thresholds", True
    AT_MAXIMUM = "at-maximum", "the operator already has all the replicas it may have", True
    AT_MINIMUM = "at-minimum", "one replica is the least an operator can have", True
    # queueing
    RESPONSE_ABOVE_OBJECTIVE = (
        "response-above-objective",
        "the expected response time exceeds the objective",
    )
    RESPONSE_BELOW_OBJECTIVE = (
        "response-below-objective",
        "the expected response time leaves room to spare",
    )
    RESPONSE_IN_RANGE = (
        "response-in-range",
        "the expected response time is as it should be",
        True,
    )
    OBJECTIVE_UNREACHABLE = (
        "objective-unreachable",
        "no number of replicas reaches the objective: one record alone takes too long",
    )
    # dhalion
    BOTTLENECK = "bottleneck", "this operator holds the others back"
    BOTTLENECK_ELSEWHERE = (
        "bottleneck-elsewhere",
        "another operator is what holds back",
        True,
    )
    HEALTHY = "healthy", "no bottleneck and no lag: fewer replicas may do"
    HAS_LAG = "has-lag", "no bottleneck, but records still wait here", True
    # utilisation
    UTILISATION_ABOVE_TARGET = "utilisation-above-target", "the replicas are busier than the target"
    UTILISATION_BELOW_TARGET = (
        "utilisation-below-target",
        "the replicas are less busy than the target",
    )
    UTILISATION_AT_TARGET = "utilisation-at-target", "the replicas are as busy as they should be"
    STABILISING = "stabilising", "an earlier, larger proposal is still within the window"
    # flink
    INSIDE_BAND = "inside-band", "no operator is outside its utilisation band", True
    WINDOW_NOT_FULL = "window-not-full", "not enough has been measured since the last change", True
    SCALE_DOWN_DELAYED = "scale-down-delayed", "a decrease waits for its interval to pass", True
    INEFFECTIVE = "ineffective", "the last increase did not help, so another is not tried", True
    # decentralized
    INSTANCES_DUPLICATE = "instances-duplicate", "instances are above their upper threshold"
    INSTANCES_STOP = "instances-stop", "instances are below their lower threshold"
    LOAD_IN_RANGE = "load-in-range", "each instance's load is between the thresholds", True
    # fixed
    FIXED = "fixed", "this policy never changes"
    SIZED_FOR_PEAK = "sized-for-peak", "just enough replicas for the highest rate"
    # hosts and slices
    MEAN_ABOVE_RANGE = "mean-above-range", "the hosts are too busy on average"
    MEAN_BELOW_RANGE = "mean-below-range", "the hosts are too idle on average"
    HOST_ABOVE_RANGE = "host-above-range", "one host is too busy"
    HOST_BELOW_RANGE = "host-below-range", "one host is too idle"
    IN_RANGE = "in-range", "every host is where it should be", True
    WAITING = "waiting", "out of range, but not yet for long enough", True
    GRACE = "grace", "slices were moved a moment ago", True
    # guards
    OVERPROVISIONED = "overprovisioned", "head room was added"
    WITHIN_TOLERANCE = "within-tolerance", "too close to what runs to be worth a change"
    DRAINING = "draining", "the queue is still being worked off"
    STEP_LIMITED = "step-limited", "more than one action may add"
    CAPPED_BY_MAXIMUM = "capped-by-maximum", "more than the operator may have"
    RAISED_TO_MINIMUM = "raised-to-minimum", "less than one replica"
    OVER_BUDGET = "over-budget", "all demands together exceed the budget, so each gives way"
    COOLING_DOWN = "cooling-down", "the last change was a moment ago"


_REASONS: dict[str, str] = {str(reason): reason for reason in Reason}


def read_reason(word: str) -> str:
    """Return the known reason of that name, or the word itself for somebody else's policy."""
    return _REASONS.get(word, word)


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
    keeps the figures and only a reader who asks for it pays for the sentence.

    >>> Target(2, 3, Reason.FITS, "ceil({rate} / {capacity})", {"rate": 250.0, "capacity": 100}).why
    'ceil(250 / 100)'
    """

    current: int
    wanted: int
    reason: str
    formula: str = ""
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: What each guard changed, and the policy's own reason before any did.
    steps: tuple[Step, ...] = ()
    policy_reason: str = ""

    @property
    def why(self) -> str:
        """The formula with its numbers filled in."""
        return self.formula.format_map({name: pretty(v) for name, v in self.numbers.items()})

    @property
    def proposal(self) -> int:
        """What the policy asked for before any guard."""
        return self.steps[0].before if self.steps else self.wanted

    @property
    def proposal_reason(self) -> str:
        """Why the policy asked for it."""
        return self.policy_reason or self.reason

    @property
    def is_kept(self) -> bool:
        """Whether the policy left the operator alone rather than sized it."""
        if isinstance(self.reason, Reason):
            return self.reason.keeps
        return self.wanted == self.current

    def after(self, guards: Sequence[str]) -> int:
        """The number that stood after some of the guards had their say."""
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
    """Return the target that leaves an operator as it is."""
    return Target(current, current, reason, formula, numbers)


@dataclass(frozen=True, slots=True)
class Move:
    """One slice that changes its host."""

    slice: str
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Placement:
    """What a policy about hosts and slices answers."""

    current: int
    wanted: int
    reason: str
    moves: tuple[Move, ...] = ()
    formula: str = ""
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)

    @property
    def why(self) -> str:
        """The formula with its numbers filled in."""
        return self.formula.format_map({name: pretty(v) for name, v in self.numbers.items()})


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of one policy to one snapshot."""

    at: float
    policy: str
    targets: Mapping[str, Target] = field(default_factory=FrozenDict)
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
