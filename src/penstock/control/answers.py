"""Checks that the answer of a policy is a decision that can be applied and logged.

Guards and engines rely on it. A number above the maximum of an operator is valid here, because
the bounds reduce it, unless no pipeline can ever have so many replicas.
"""

from collections.abc import Mapping
from typing import Any

from penstock.control.failures import describe_error
from penstock.core.decision import Decision, Move, Placement, Target, fill_in
from penstock.core.numbers import MAX_COUNT
from penstock.core.snapshot import Snapshot
from penstock.errors import AnswerError, nearest


def check_answer(answer: object, snapshot: Snapshot, policy: str) -> Decision:
    """Return the answer to a snapshot; `AnswerError` names what is wrong with it.

    >>> check_answer(3, Snapshot(at=15.0), "mine")
    Traceback (most recent call last):
    penstock.errors.AnswerError: mine answered nonsense: an int, not a Decision
    """
    if not isinstance(answer, Decision):
        raise AnswerError(policy, f"{_kind(answer)}, not a Decision")
    if problem := _problem(answer, snapshot):
        raise AnswerError(policy, problem)
    return answer


def _problem(answer: Any, snapshot: Snapshot) -> str:
    if answer.at != snapshot.at:
        return f"a decision for {answer.at!r} s, asked at {snapshot.at:g} s"
    if not isinstance(answer.policy, str) or not isinstance(answer.targets, Mapping):
        return "policy must be a name and targets a mapping"
    for name, target in answer.targets.items():
        if name not in snapshot.operators:
            return f"unknown operator {name!r}, {nearest(str(name), snapshot.operators)}"
        if not isinstance(target, Target):
            return f"{name}: {_kind(target)}, not a Target"
        if problem := _numbers(target) or _reason(target):
            return f"{name}: {problem}"
    return _placement_problem(answer.placement)


def _placement_problem(placement: Any) -> str:
    if placement is None:
        return ""
    if not isinstance(placement, Placement):
        return f"placement: {_kind(placement)}, not a Placement"
    if not all(isinstance(move, Move) for move in placement.moves):
        return "placement: not every move is a Move"
    problem = _numbers(placement) or _reason(placement)
    return problem and f"placement: {problem}"


def _numbers(answer: Any) -> str:
    for number in (answer.wanted, answer.current):
        if type(number) is not int:
            return f"{number!r} is {_kind(number)}, not a whole number"
    if answer.wanted > MAX_COUNT:
        return f"more than {MAX_COUNT:.0e} wanted"
    return "" if answer.wanted >= 1 else f"{answer.wanted} wanted, which is below 1"


def _reason(answer: Any) -> str:
    if not isinstance(answer.reason, str):
        return f"its reason is {_kind(answer.reason)}, not text"
    if not isinstance(answer.formula, str) or not isinstance(answer.numbers, Mapping):
        return "its formula must be text, and its numbers a mapping"
    try:
        fill_in(answer.formula, answer.numbers)
    except Exception as error:  # a foreign template or number may raise anything
        return f"its formula cannot be filled in from its numbers: {describe_error(error)}"
    return ""


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"
