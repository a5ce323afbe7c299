"""General tests that all policies pass; a new one joins by being there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.policy_checks import CHECKS

from penstock.control.policy_file import load_policy_file
from penstock.control.registry import builtin_policies
from penstock.core import policies as room
from penstock.core.decision import Decision, Target
from penstock.core.policy import Policy
from penstock.core.reasons import Reason

POLICIES = builtin_policies()


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_policy(policy: Policy, check: Callable[[Policy], None]) -> None:
    check(policy)


def test_all_fourteen_are_here() -> None:
    assert set(POLICIES) == {
        "dabs",
        "decentralized",
        "dhalion",
        "ds2",
        "enforcer",
        "flink",
        "hpa-cpu",
        "hpa-varga",
        "psps",
        "queueing",
        "static",
        "static-peak",
        "streaming-dra",
        "threshold",
    }


NEW_POLICY = '''
"""Doubles whatever is more than 90 % busy."""

from penstock.core.decision import Target, keep
from penstock.core.reasons import Reason
from penstock.core.policy import Policy, each_operator


def doubling(history, applied, params):
    """Double a busy operator, leave the others alone."""
    return each_operator("doubling", history[-1], target)


def target(op):
    if op.busy is None:
        return keep(op.parallelism, Reason.METRICS_MISSING)
    if op.busy > 0.9:
        return Target(op.parallelism, 2 * op.parallelism, Reason.UTILISATION_ABOVE_TARGET)
    return keep(op.parallelism, Reason.UTILISATION_AT_TARGET)


POLICY = Policy(
    name="doubling", summary="doubles the busy", paper="none", decide=doubling, measures=("busy",)
)
'''


def test_adding_a_policy_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the room is found by discovery, so the suite above would test it as it is."""
    (tmp_path / "doubling_for_a_test.py").write_text(NEW_POLICY)
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    found = builtin_policies()
    assert found.keys() == POLICIES.keys() | {"doubling"}
    for check in CHECKS.values():
        check(found["doubling"])


def test_a_file_elsewhere_passes_the_same_suite(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(NEW_POLICY)
    policy = load_policy_file(path)
    for check in CHECKS.values():
        check(policy)


def counting(history: Any, applied: Any, params: Any) -> Decision:
    """A policy with a memory of its own."""
    counting.calls = getattr(counting, "calls", 0) + 1  # type: ignore[attr-defined]
    ops = history[-1].operators
    calls = counting.calls  # type: ignore[attr-defined]
    targets = {n: Target(op.parallelism, calls, Reason.FIXED) for n, op in ops.items()}
    return Decision(history[-1].at, "broken", targets)


def forgetful(history: Any, applied: Any, params: Any) -> Decision:
    """A policy that answers nothing."""
    return Decision(history[-1].at, "broken", {})


def greedy(history: Any, applied: Any, params: Any) -> Decision:
    """A policy that gives everything away."""
    ops = history[-1].operators
    targets = {n: Target(op.parallelism, 0, Reason.FIXED) for n, op in ops.items()}
    return Decision(history[-1].at, "broken", targets)


@pytest.mark.parametrize(
    ("decide", "check"),
    [
        (counting, "same input same answer"),
        (forgetful, "every operator is answered with a reason"),
        (forgetful, "scales out when load stays far above capacity"),
        (greedy, "holds on missing measures"),
        (greedy, "survives anything and never proposes below one"),
    ],
)
def test_the_suite_catches_a_broken_policy(decide: Any, check: str) -> None:
    broken = replace(POLICIES["static"], name="broken", decide=decide, reacts=True)
    with pytest.raises(AssertionError):
        CHECKS[check](broken)
