"""Decisions from Python: the same as the command prints."""

import json
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import main
from penstock.core.snapshot_json import parse_snapshot

LINES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "examples/run.jsonl").read_text().splitlines()
]


def test_decisions_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["decide", "--policy", "ds2", "--guard", "overprovision=1.2", "examples/run.jsonl"])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    decisions = penstock.decide(LINES, policy="ds2", guards={"overprovision": 1.2})
    assert [decision.to_json() for decision in decisions] == printed


def test_snapshots_may_be_objects() -> None:
    objects = [parse_snapshot(line) for line in LINES]
    assert penstock.decide(objects, "ds2") == penstock.decide(LINES, "ds2")
    assert penstock.decide(objects[0], "ds2") == penstock.decide(LINES[:1], "ds2")


def test_an_error_names_the_snapshot() -> None:
    broken = [*LINES[:1], {"at": 40, "operators": {"a": {"parallelism": 0}}}]
    with pytest.raises(penstock.InputError, match=r"snapshots\[1\]"):
        penstock.decide(broken, "ds2")
