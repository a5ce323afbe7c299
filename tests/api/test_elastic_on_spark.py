"""Real queries are stopped and started again with other numbers of partitions."""

import json
from pathlib import Path

import pytest
from tests.api.test_attachment_on_spark import ROOT, run_python

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_queries_are_started_again_and_lose_nothing(tmp_path: Path) -> None:
    program = str(ROOT / "tests/api/programs/elastic_queries.py")
    ended = run_python(tmp_path, program, str(tmp_path), timeout_s=240)
    assert ended.returncode == 0, ended.stderr[-5000:]
    report = json.loads(ended.stdout.splitlines()[-1])
    assert report["mode"] == "restart"  # also in local mode
    events = [tuple(event) for event in report["events"]]
    assert ("partitions-changed", "copies", 3) in events
    assert ("partitions-changed", "counts", 3) in events
    assert ("partitions-restored", "fragile", 2) in events
    assert report["partitions"] == [3, 3, 2]
    assert report["state_partitions"] == 3
    assert report["shuffle_of_the_session"] == "200"
    assert report["are_active"] == report["active_after_detach"] == [True, True, True]
    assert "no connection for the third partition" in report["explained"]
    assert report["page"] == 2
    # nothing lost, nothing twice
    assert report["copied_once"]
    assert report["counted"] == report["read"]
    steps = [
        json.loads(line) for line in (tmp_path / "run/restarts.jsonl").read_text().split("\n")[:-1]
    ]
    of_counts = [line["step"] for line in steps if line["query"] == "counts"]
    assert of_counts == ["requested", "wait", "repartition", "restart", "verify", "changed"]
