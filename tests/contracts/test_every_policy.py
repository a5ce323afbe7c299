"""General tests that all policies pass; a new one joins by being there."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.policy_checks import CHECKS

from penstock.control.policy_file import load_policy_file
from penstock.control.registry import alone_policy, builtin_policies, host_policy
from penstock.core import policies as room
from penstock.core.decision import Decision, Target
from penstock.core.policy import Policy, PolicyStyle, RunFacts
from penstock.core.reasons import Reason
from penstock.reports import styles
from penstock.runs.time_scaling import speed_up_params

POLICIES = builtin_policies()


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_policy(policy: Policy, check: Callable[[Policy], None]) -> None:
    check(policy)


def test_all_fifteen_are_here() -> None:
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
        "slo",
        "static",
        "static-peak",
        "streaming-dra",
        "threshold",
    }


NEW_POLICY = '''
"""Doubles whatever is more than 90 % busy."""

from dataclasses import dataclass

from penstock.core.decision import Target, keep
from penstock.core.params import Params, param
from penstock.core.policy import Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublingParams(Params):
    """Parameters of doubling."""

    window_s: float = param(60.0, "a time of the loop", unit="s", low=0)
    longest_s: float = param(1.0, "a time of a record", unit="s", low=0, is_scaled=False)


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
    name="doubling",
    summary="doubles the busy",
    paper="none",
    decide=doubling,
    params=DoublingParams,
    params_for=lambda facts: {"longest_s": facts.objective_s},
    measures=("busy",),
    style=PolicyStyle("#123456", "dotted", "+"),
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


SOURCE = Path(room.__path__[0]).parents[1]
#: Policies whose names are words of the language, or of an engine: only the quoted name counts.
COMMON_WORDS = {"decentralized", "flink", "queueing", "slo", "static", "threshold"}
#: Lines that may name a policy: examples of the command line, of Python and of a grid, the
#: defaults, and what shares its name with a policy: an engine profile, a command with its
#: experiments, a field of results.
EXAMPLES = (
    r"\s*>>> ",
    r"\s*['\"](penstock|q1 under)[ .]",
    r"\s*overprovision +1\.2 for ds2|.*real runs with ds2 had --guard overprovision=1\.2",
    r"\s*{'run': ",
    r"\s*\w+ = [\w.]+\.run\(",
    r"\s*return \"decentralized\"$",
    r"\s*\"decentralized\",$",
    r"\s*name: ClassVar\[str\] = \"decentralized\"",
    r"BACKENDS: Backends = {\"decentralized\": ",
    r"\s*penstock [a-z]+ ",
    r"\s*policy = \[\"ds2\", \{ policy = \"hpa-cpu\", ",
    r"DEFAULT_POLICY, DEFAULT_SIMULATED_POLICY = ",
    r".*(?i:engine|profile).*\"flink\"",
    r"\s*\"slo\": read_part\(ObjectiveScore, ",
)


def lines_that_name(policy: str, source: Path = SOURCE) -> list[str]:
    """Lines of the package, outside the policy's file or folder, that hold its name."""
    word = re.escape(policy)
    pattern = rf"[\"']{word}[\"']" if policy in COMMON_WORDS else rf"(?<![\w-]){word}(?![\w-])"
    home = source / "core" / "policies" / policy.replace("-", "_")
    return [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        if path != home.with_suffix(".py") and home not in path.parents
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(pattern, line) and not any(re.match(example, line) for example in EXAMPLES)
    ]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_named_in_its_own_file_only(name: str) -> None:
    assert lines_that_name(name) == []


def test_one_policy_decides_alone_and_one_reads_hosts() -> None:
    alone = [name for name, policy in POLICIES.items() if policy.decides_alone]
    on_hosts = [name for name, policy in POLICIES.items() if policy.reads == "hosts"]
    assert (alone, on_hosts) == ([alone_policy()], [host_policy()])


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_imported_by_discovery_only(name: str) -> None:
    module = name.replace("-", "_")
    home = SOURCE / "core" / "policies" / module
    others = [
        path
        for path in SOURCE.rglob("*.py")
        if path != home.with_suffix(".py") and home not in path.parents
    ]
    imports = re.compile(rf"core\.policies\.{module}\b|core\.policies import .*\b{module}\b")
    importers = [path for path in others if imports.search(path.read_text(encoding="utf-8"))]
    assert importers == []


def test_a_name_elsewhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "preparation.py").write_text('if policy.name == "static":\n    peak = "ds2"\n')
    assert lines_that_name("static", tmp_path) == [
        'preparation.py: if policy.name == "static":',
    ]
    assert lines_that_name("ds2", tmp_path) == ['preparation.py: peak = "ds2"']


def test_a_new_policy_brings_its_defaults_its_style_and_its_times(tmp_path: Path) -> None:
    path = tmp_path / "doubling.py"
    path.write_text(NEW_POLICY)
    policy = load_policy_file(path)
    facts = RunFacts(objective_s=4.0, peak_rates={"map": 10.0})
    params = policy.params.parse(policy.params_for(facts))
    assert asdict(params) == {"window_s": 60.0, "longest_s": 4.0}
    assert asdict(speed_up_params(params, 20)) == {"window_s": 3.0, "longest_s": 4.0}
    assert policy.style == PolicyStyle("#123456", "dotted", "+")


def test_pictures_show_a_new_policy_in_its_style(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "doubling.py"
    path.write_text(NEW_POLICY)
    policy = load_policy_file(path)
    monkeypatch.setattr(styles, "policies", lambda: {policy.name: policy})
    assert styles.declared_styles.__wrapped__()["doubling"].colour == "#123456"


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
