"""Policies from files: with files beside them, and with all that can be wrong in them."""

import sys
from pathlib import Path

import pytest

from penstock.control.decider import Decider
from penstock.control.policy_file import load_policy_file
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.errors import AnswerError, InputError, PolicyError

POLICY = """\
from __future__ import annotations
import helpers
from penstock.core.decision import Decision, Target
from penstock.core.policy import Policy

def decide(history, applied, params):
    now = history[-1]
    target = Target(1, {wanted}, "x", {formula!r})
    return Decision(at=now.at, policy="mine", targets={{"a": target}})

POLICY = Policy(
    name="mine", summary="mine", paper="none", decide=decide, params=helpers.Mine, measures=()
)
"""
HELPERS = """\
from __future__ import annotations
from dataclasses import dataclass
from penstock.core.params import Params, param

@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(Params):
    k: Number = param({k}, "replicas")

Number = int
"""
NOW = Snapshot(at=0.0, operators={"a": OperatorSnapshot(name="a", parallelism=1)})


def write(folder: Path, k: int, wanted: str = "params.k", formula: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "helpers.py").write_text(HELPERS.format(k=k))
    (folder / "mine.py").write_text(POLICY.format(wanted=wanted, formula=formula))
    return folder / "mine.py"


def test_a_policy_imports_the_file_beside_it_and_nobody_else_sees_it(tmp_path: Path) -> None:
    path = list(sys.path)
    policies = [load_policy_file(write(tmp_path / str(k), k)) for k in (3, 5)]
    assert [Decider(each).decide(NOW).changes for each in policies] == [{"a": 3}, {"a": 5}]
    # annotations that are texts are looked up in the file beside
    assert policies[1].params.parse({"k": "7"}).k == 7  # type: ignore[attr-defined]
    assert "helpers" not in sys.modules and sys.path == path
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("def (:\n", "SyntaxError"),
        ("import there_is_none\n", "ModuleNotFoundError"),
        ("POLICY = 3\n", "does not define POLICY"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=problem):
        load_policy_file(tmp_path / "mine.py")


def test_a_name_that_no_file_can_have_is_no_file() -> None:
    for name in ("x" * 5000 + ".py", "\ud800.py"):
        with pytest.raises(InputError, match="there is no file"):
            load_policy_file(Path(name))


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ("1 // 0", r"ZeroDivisionError: .* \(mine.py:8\)"),
        ("exit(4)", "SystemExit: 4"),
        ("decide(history, applied, params)", "RecursionError"),
    ],
)
def test_a_policy_that_raises_says_where(tmp_path: Path, wanted: str, problem: str) -> None:
    policy = load_policy_file(write(tmp_path / "a", 1, wanted))
    with pytest.raises(PolicyError, match=problem):
        Decider(policy).decide(NOW)


@pytest.mark.parametrize(("wanted", "formula"), [("10 ** 5000", ""), ("2", "{missing}")])
def test_what_cannot_be_written_down_is_nonsense(tmp_path: Path, wanted: str, formula: str) -> None:
    policy = load_policy_file(write(tmp_path / "a", 1, wanted, formula))
    with pytest.raises(AnswerError):
        Decider(policy).decide(NOW)
