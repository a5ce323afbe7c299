"""Publish/subscribe on Spark against brute force, while slices move and drivers are killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.pubsub_chaos import wreak

pytestmark = pytest.mark.spark


def test_kills_and_moves_change_no_notice(tmp_path: Path) -> None:
    outcome = wreak(tmp_path, "aspe", kills=2, seed=5)
    assert (outcome.kills, outcome.publications > 100, outcome.unsubscribed > 5) == (2, True, True)
    # one match of each publication is that of the subscription to everything
    assert outcome.matches > 1.1 * outcome.publications


@pytest.mark.long
@pytest.mark.parametrize("options", [["--encrypted"], []], ids=["aspe", "plain"])
def test_the_benchmark_measures_the_service(options: list[str]) -> None:
    sizes = ["--subscriptions", "2000", "--publications", "100", "--rounds", "1", "--seconds", "3"]
    command = [sys.executable, "-m", "penstock", "pubsub", "bench", "--json", *sizes, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    figures = json.loads(done.stdout)
    assert figures["end_to_end_operations_per_s"] > 0
    assert figures["half_load_delay_p50_s"] <= figures["half_load_delay_p95_s"]
    assert (figures["wrong_publications"], figures["checked_publications"]) == (0, 32)
    assert set(figures["end_to_end_profile"]) == {"access", "match", "exit"}


@pytest.mark.long
def test_the_benchmark_of_migrations_moves_every_operator(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- penstock pubsub migrate-bench -->\n<!-- end -->\n")
    sizes = ["--per-slice", "200", "--moves", "2", "--pause", "2", "--markdown", str(page)]
    command = [sys.executable, "-m", "penstock", "pubsub", "migrate-bench", "--json", *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    assert [each["operator"] for each in json.loads(done.stdout)] == ["access", "match", "exit"]
    assert "| M (200) |" in page.read_text()
