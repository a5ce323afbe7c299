"""What a header holds is enough to ask the policy of a run again."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.control.rig import SlowEngine

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, run_loop
from penstock.control.registry import builtin_policies
from penstock.core.guards import Guards
from penstock.errors import InputError
from penstock.runs.journal import JournalWriter, read_journal
from penstock.runs.journal_header import SPARK, decider_of, engine_kind, make_header
from penstock.runs.replay import replay

POLICIES = {name: p for name, p in builtin_policies().items() if p.reads == "operators"}
GUARDS = Guards(cooldown_s=30.0, max_increase=2, budget=12, stabilise_s=45.0)
SCHEDULE = LoopSchedule(duration_s=math.inf, interval_s=15.0)


def header(policy: str, **params: Any) -> dict[str, Any]:
    decider = Decider(POLICIES[policy], POLICIES[policy].params(**params), GUARDS)
    made = make_header({"policy": policy}, decider, SCHEDULE, engine_kind=SPARK, objective_s=2.0)
    return json.loads(json.dumps(made))


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_parameters_and_guards_come_back(policy: str) -> None:
    again = decider_of(header(policy))
    assert again.policy is POLICIES[policy]
    assert again.params == POLICIES[policy].params()
    assert again.guards == GUARDS


def test_parameters_that_were_set_come_back() -> None:
    given = {"parallelism": {"work": 3.0, "*": 2.0}}
    params = decider_of(header("static", **given)).params
    assert {item.name: getattr(params, item.name) for item in fields(params)} == given


def test_something_else_can_be_asked_for() -> None:
    again = decider_of(header("hpa-cpu", target=0.5), params={"window_s": "60"})
    assert (again.params.target, again.params.window_s) == (0.5, 60.0)
    other = decider_of(header("hpa-cpu", target=0.5), "ds2", guards={"budget": "off"})
    assert other.policy.name == "ds2" and other.params == POLICIES["ds2"].params()
    assert other.guards == replace(GUARDS, budget=None)
    with pytest.raises(InputError, match="unknown parameter of ds2"):
        decider_of(header("hpa-cpu"), "ds2", {"target": "0.5"})


def test_it_says_what_kind_of_engine_ran() -> None:
    assert engine_kind(header("ds2")) == SPARK
    assert header("ds2")["objective_s"] == 2.0 and header("ds2")["interval_s"] == 15


def test_a_policy_from_a_file_is_found_by_what_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from penstock.core.policies.ds2 import POLICY\n")
    made = header("ds2") | {"spec": {"policy": str(file)}, "policy": "mine"}
    assert decider_of(made).policy.name == "ds2"


@pytest.mark.parametrize("policy", ["threshold", "hpa-cpu", "ds2", "flink"])
def test_a_run_is_answered_again_as_it_was(policy: str, tmp_path: Path) -> None:
    decider = Decider(POLICIES[policy], guards=GUARDS)
    made = make_header({"policy": policy}, decider, SCHEDULE, engine_kind=SPARK)
    engine = SlowEngine(not_ready=[45.0], oversleeps={90.0: 40.0})
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path, made) as journal:
        schedule = replace(SCHEDULE, duration_s=600.0)
        for tick in run_loop(engine, decider, schedule, clock=engine.clock):
            journal.write(tick)
    journal = read_journal(path)
    answers = list(replay(journal.ticks, decider_of(journal.run)))
    assert len(answers) == 37
    assert all(answer.other == answer.recorded for answer in answers)
