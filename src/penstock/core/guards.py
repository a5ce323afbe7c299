"""Guards: rules that are applied to every decision, in a fixed order; each leaves its reason.

A guard gets the decision so far and earlier decisions, and returns a new decision. Guards keep no
state, and their effect does not add up over ticks: each tick starts with the new proposal of the
policy. Only configured guards are applied; the bounds always are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import NOISE, ceil
from penstock.core.params import Params, param
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards(Params):
    """Settings of the guards. None switches one off."""

    overprovision: float | None = param(None, "multiply what the policy sized", low=0, above=True)
    tolerance: float | None = param(None, "keep current if wanted / current is this near 1", low=0)
    stabilise_s: float | None = param(
        None, "scale in only to the largest proposal of this long", unit="s", low=0
    )
    hold_while_draining: float | None = param(
        None,
        "no scale-in while working off the queue takes longer",
        unit="s",
        low=0,
        is_scaled=False,
    )
    max_increase: int | None = param(None, "most replicas one action may add", low=0)
    bounds: bool = param(
        True, "at least the operator's minimum or 1, at most its maximum; always on"
    )
    budget: int | None = param(None, "most replicas of all operators together", low=1)
    cooldown_s: float | None = param(None, "no change this long after one", unit="s", low=0)
    cooldown_up_s: float | None = param(None, "the same for increases only", unit="s", low=0)
    cooldown_down_s: float | None = param(None, "the same for decreases only", unit="s", low=0)

    def check(self) -> None:
        """The bounds cannot be switched off."""
        if not self.bounds:
            raise InputError("bounds", "are always on and cannot be switched off")

    @property
    def memory_s(self) -> float:
        """Seconds of earlier decisions that the guards need."""
        return self.stabilise_s or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionHistory:
    """Earlier decisions, for the guards that look back."""

    #: All earlier decisions, applied or not, oldest first.
    decided: Sequence[Decision] = ()
    #: Applied decisions that changed something, oldest first.
    applied: Sequence[Decision] = ()


Change = Callable[[str, Target], tuple[int, Reason]]
Rule = Callable[[Decision, Snapshot, DecisionHistory, Guards], Decision]


def apply_guards(
    proposal: Decision, snapshot: Snapshot, past: DecisionHistory, guards: Guards
) -> Decision:
    """Apply all guards to the proposal of a policy."""
    if proposal.placement is not None:
        return _guard_placement(proposal, past, guards)
    decision = proposal
    for rule in ORDER:
        decision = rule(decision, snapshot, past, guards)
    return decision


def _each(decision: Decision, name: str, change: Change) -> Decision:
    targets = {op: t.guarded(name, *change(op, t)) for op, t in decision.targets.items()}
    return replace(decision, targets=FrozenDict(targets))


def _overprovision(
    decision: Decision, _now: Snapshot, _past: DecisionHistory, guards: Guards
) -> Decision:
    """1: add head room to a size; an operator that the policy left alone gets none."""
    factor = guards.overprovision
    if factor is None:
        return decision

    def change(_op: str, target: Target) -> tuple[int, Reason]:
        wanted = target.wanted if target.is_kept else ceil(target.wanted * factor)
        return wanted, Reason.OVERPROVISIONED

    return _each(decision, "overprovision", change)


def _tolerance(
    decision: Decision, _now: Snapshot, _past: DecisionHistory, guards: Guards
) -> Decision:
    """2: keep current while wanted is close to it."""
    tolerance = guards.tolerance
    if tolerance is None:
        return decision

    def change(_op: str, target: Target) -> tuple[int, Reason]:
        close = abs(target.wanted / target.current - 1) <= tolerance + NOISE
        return target.current if close else target.wanted, Reason.WITHIN_TOLERANCE

    return _each(decision, "tolerance", change)


def _stabilise(
    decision: Decision, _now: Snapshot, past: DecisionHistory, guards: Guards
) -> Decision:
    """3: scale in only to the largest proposal of the window."""
    if guards.stabilise_s is None:
        return decision
    oldest = decision.at - guards.stabilise_s - NOISE
    recent = [earlier for earlier in past.decided if earlier.at >= oldest]

    def change(op: str, target: Target) -> tuple[int, Reason]:
        if target.wanted >= target.current:
            return target.wanted, Reason.STABILISING
        earlier = [
            d.targets[op].after(("overprovision", "tolerance")) for d in recent if op in d.targets
        ]
        return min(target.current, max([target.wanted, *earlier])), Reason.STABILISING

    return _each(decision, "stabilise_s", change)


def _while_draining(
    decision: Decision, now: Snapshot, _past: DecisionHistory, guards: Guards
) -> Decision:
    """4: no scale-in while the queue is more than so many seconds of work."""
    limit_s = guards.hold_while_draining
    if limit_s is None:
        return decision

    def change(op: str, target: Target) -> tuple[int, Reason]:
        is_draining = target.wanted < target.current and _drain_s(now.operators[op]) > limit_s
        return target.current if is_draining else target.wanted, Reason.DRAINING

    return _each(decision, "hold_while_draining", change)


def _drain_s(op: OperatorSnapshot) -> float:
    """Return the seconds that working off the queue takes at the present rate."""
    if op.queue == 0:
        return 0.0
    if op.queue is None or not op.input_rate:
        return math.inf  # unknown: without evidence no replica is removed
    return op.queue / op.input_rate


def _max_increase(
    decision: Decision, _now: Snapshot, _past: DecisionHistory, guards: Guards
) -> Decision:
    """5: at most so many more; decreases are free."""
    most = guards.max_increase
    if most is None:
        return decision

    def change(_op: str, target: Target) -> tuple[int, Reason]:
        return min(target.wanted, target.current + most), Reason.STEP_LIMITED

    return _each(decision, "max_increase", change)


def _bounds(decision: Decision, now: Snapshot, _past: DecisionHistory, _guards: Guards) -> Decision:
    """6: at least the operator's minimum or 1, at most its maximum, and not more than helps."""

    def change(op: str, target: Target) -> tuple[int, Reason]:
        shown = now.operators[op]
        minimum, maximum = shown.min_parallelism or 1, shown.max_parallelism
        wanted, reason = max(minimum, target.wanted), Reason.RAISED_TO_MINIMUM
        if maximum is not None and wanted > maximum:
            wanted, reason = maximum, Reason.CAPPED_BY_MAXIMUM
        if shown.useful_parallelism is not None:
            helpful = max(shown.useful_parallelism, target.current, minimum)
            if wanted > helpful:
                wanted, reason = helpful, Reason.SCALING_WILL_NOT_HELP
        return wanted, reason

    return _each(decision, "bounds", change)


def _budget(decision: Decision, _now: Snapshot, _past: DecisionHistory, guards: Guards) -> Decision:
    """7: all operators together."""
    if guards.budget is None:
        return decision
    fitted = fit_budget(
        {op: target.wanted for op, target in decision.targets.items()}, guards.budget
    )
    return _each(decision, "budget", lambda op, _target: (fitted[op], Reason.OVER_BUDGET))


def fit_budget(demands: Mapping[str, int], budget: int) -> dict[str, int]:
    """Return demands whose sum is at most `budget`, none below 1, in the same order of size.

    d' = 1 + k (d - 1) with k = (budget - n) / (sum d - n): every operator keeps one replica
    and the rest shrinks in proportion. Replicas that rounding leaves over go to the largest
    remainders, and to the first operator of a tie, so that the sum is exactly the budget.
    Only whole numbers are used, so float noise cannot break a tie.

    >>> fit_budget({"a": 10, "b": 30, "c": 20}, 30)
    {'a': 5, 'b': 15, 'c': 10}
    >>> fit_budget({"a": 3, "b": 3, "c": 3, "d": 3}, 10)
    {'a': 3, 'b': 3, 'c': 2, 'd': 2}
    """
    n, total = len(demands), sum(demands.values())
    if budget < n:
        problem = f"{budget} cannot give each of {n} operators a replica"
        raise InputError("budget", problem, f"at least {n} is needed here")
    if total <= budget:
        return dict(demands)
    shares = {name: divmod((budget - n) * (d - 1), total - n) for name, d in demands.items()}
    fitted = {name: 1 + whole for name, (whole, _) in shares.items()}
    by_remainder = sorted(shares, key=lambda name: -shares[name][1])  # stable: ties keep order
    for name in by_remainder[: budget - sum(fitted.values())]:
        fitted[name] += 1
    return fitted


def _cooldown(
    decision: Decision, _now: Snapshot, past: DecisionHistory, guards: Guards
) -> Decision:
    """8: no change for a time after the last applied one."""
    if not past.applied:
        return decision
    age_s = decision.at - past.applied[-1].at
    up, down = find_cooldowns(guards)

    def change(_op: str, target: Target) -> tuple[int, Reason]:
        pause_s = up if target.wanted > target.current else down
        return target.current if age_s < pause_s - NOISE else target.wanted, Reason.COOLING_DOWN

    cooled = _each(decision, "cooldown", change)
    # if only decreases are held, increases that rely on them would exceed the budget
    total = sum(target.wanted for target in cooled.targets.values())
    if guards.budget is not None and total > guards.budget and age_s < max(up, down):
        return _each(decision, "cooldown", lambda _, t: (t.current, Reason.COOLING_DOWN))
    return cooled


def find_cooldowns(guards: Guards) -> tuple[float, float]:
    """Return the seconds after a change without an increase, and without a decrease.

    >>> find_cooldowns(Guards(cooldown_s=30, cooldown_up_s=10))
    (10, 30)
    >>> find_cooldowns(Guards(cooldown_down_s=60))
    (0.0, 60)
    """
    both = guards.cooldown_s or 0.0
    up = both if guards.cooldown_up_s is None else guards.cooldown_up_s
    down = both if guards.cooldown_down_s is None else guards.cooldown_down_s
    return up, down


#: The order of the evaluation thesis, widened: sizing first, limits then, time last.
ORDER: tuple[Rule, ...] = (
    _overprovision,
    _tolerance,
    _stabilise,
    _while_draining,
    _max_increase,
    _bounds,
    _budget,
    _cooldown,
)


def _guard_placement(decision: Decision, past: DecisionHistory, guards: Guards) -> Decision:
    """Apply the cool-down, the only guard of moves of slices."""
    for item in fields(guards):
        is_set = getattr(guards, item.name) != item.default
        if is_set and not item.name.startswith("cooldown"):
            problem = f"is about operators; {decision.policy} decides about hosts"
            raise InputError(item.name, problem, "decisions about hosts have the cool-down only")
    placement = decision.placement
    pause_s = max(find_cooldowns(guards))
    if (
        placement is None
        or not past.applied
        or decision.at - past.applied[-1].at >= pause_s - NOISE
    ):
        return decision
    if not decision.is_change:
        return decision
    unchanged = replace(placement, wanted=placement.current, moves=(), reason=Reason.COOLING_DOWN)
    return replace(decision, placement=unchanged)
