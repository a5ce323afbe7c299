"""Reasons why more executors do not help, provoked on Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_attachment_on_spark import ROOT, run_python

pytestmark = [pytest.mark.spark, pytest.mark.long]  # a verdict needs some batches


def run_queries(kind: str, home: Path) -> dict[str, Any]:
    program = str(ROOT / "tests/api/programs/verdict_queries.py")
    ended = run_python(home, program, kind, str(home), timeout_s=400)
    assert ended.returncode == 0, ended.stderr[-5000:]
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return report


def test_a_driver_and_a_state_that_hold_up_their_queries(tmp_path: Path) -> None:
    verdicts = run_queries("local", tmp_path)["verdicts"]
    assert "most of it in latestOffset" in verdicts["catalog"]["driver"]
    assert verdicts["state"]["state-commit"].endswith("task seconds of a batch are state commits")


def test_a_service_that_takes_a_fixed_rate(tmp_path: Path) -> None:
    report = run_queries("service", tmp_path)
    assert report["verdicts"]["service"]["sink"].startswith("1 -> 2 executors: ")
    assert "the sink, or a service that tasks call, takes no more rows" in report["explained"]
