"""The horizontal pod autoscaler's rule: scale by a factor, take the largest of a window."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.core.decision import Decision, Target, keep
from penstock.core.numbers import ceil
from penstock.core.policy import History, each_operator, within
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot

#: Factor by which one operator should change at one time, with the numbers it came from.
Factor = Callable[[OperatorSnapshot, Snapshot], tuple[float, Mapping[str, Any]] | None]


def propose_size(current: int, factor: float, tolerance: float) -> int:
    """Return max(1, ceil(current x factor)), or current while the factor is close to 1.

    >>> propose_size(10, 0.701 / 0.7, 0.0), propose_size(10, 0.701 / 0.7, 0.1)
    (11, 10)
    """
    if abs(factor - 1) <= tolerance:
        return current
    return max(1, ceil(current * factor))


def largest_of_window(
    name: str, history: History, factor_of: Factor, formula: str, *, window_s: float, tol: float
) -> Decision:
    """Return the largest proposal of the last `window_s` seconds for each operator."""
    now, recent = history[-1], within(history, window_s)
    factors = [{n: factor_of(op, past) for n, op in past.operators.items()} for past in recent]

    def answer(op: OperatorSnapshot) -> Target:
        proposals = [
            propose_size(past.operators[op.name].parallelism, proposal[0], tol)
            for past, by_name in zip(recent, factors, strict=True)
            if (proposal := by_name.get(op.name)) is not None
        ]
        if not proposals:
            return keep(op.parallelism, Reason.METRICS_MISSING)
        wanted = max(proposals)
        present = factors[-1][op.name]
        numbers = {"k": op.parallelism, "wanted": wanted, "window": window_s}
        if present is None:
            text = "unknown now; the largest proposal of the last {window} s is {wanted}"
            return Target(op.parallelism, wanted, Reason.STABILISING, text, numbers)
        numbers |= {"factor": present[0], "proposal": proposals[-1], **present[1]}
        reason = _reason(op.parallelism, wanted, proposals[-1])
        return Target(op.parallelism, wanted, reason, formula, numbers)

    return each_operator(name, now, answer)


def _reason(current: int, wanted: int, proposal: int) -> Reason:
    if wanted > proposal:
        return Reason.STABILISING
    if wanted > current:
        return Reason.UTILISATION_ABOVE_TARGET
    if wanted < current:
        return Reason.UTILISATION_BELOW_TARGET
    return Reason.UTILISATION_AT_TARGET
