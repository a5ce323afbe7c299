"""Attached to real queries, in local mode and on a small cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.runs.run_directory import read_run

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


#: The command line, without the script that an installation makes.
PENSTOCK = ("-c", "import sys; from penstock.cli.main import main; sys.exit(main())")


def run_python(home: Path, *words: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run Python in a directory; Spark's workers use the same one."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.long  # what waits is an estimate, and depends on the machine
def test_plain_queries_are_measured_and_left_alone(tmp_path: Path) -> None:
    program = str(ROOT / "tests/api/programs/attached_queries.py")
    outside = (
        "attach",
        "--freshness",
        "20 s",
        "--interval",
        "2",
        "--out",
        str(tmp_path / "outside"),
    )
    words = (*PENSTOCK, *outside, program, "--", str(tmp_path))
    ended = run_python(tmp_path, *words, timeout_s=240)
    assert ended.returncode == 0, ended.stderr[:5000]
    report = json.loads(ended.stdout.splitlines()[-1])
    assert report["mode"] == "dry-run"
    assert report["note"].startswith("local[8] has no executors")
    assert report["offered"] == pytest.approx(40.0, rel=0.3)
    assert report["backlogs"] == ["offsets", "files"]
    assert 0 < report["waiting_files"] <= 1000  # rows of 40 files; those of one are an estimate
    assert report["allowed_s"] == 2.0
    assert report["tasks"] == 2
    assert report["state_rows"] > 0
    assert report["executors"] == 1
    assert report["are_active"] == [True, True, False, True, True]
    assert report["same_runs"]
    assert report["errors"] == ["ValueError: the sink is gone"]
    assert report["ends_with_its_query"]
    # provoked: one task for eight slots, one slow task of four, one file a trigger
    assert "few-partitions" in report["verdicts"]["narrow"]
    assert "hot-partition" in report["verdicts"]["hot"]
    assert "source-limit" in report["verdicts"]["files"]
    assert "counts" not in report["verdicts"]  # it keeps up
    # the command followed the same queries from outside, until the program stopped Spark
    ticks = read_run(tmp_path / "outside").journal.ticks
    assert {"counts", "files"} <= {name for tick in ticks for name in tick.status.running}
    assert (tmp_path / "outside" / "result.json").is_file()


def test_the_example_sends_an_executor_home_and_gets_it_back(tmp_path: Path) -> None:
    example = str(ROOT / "examples/attach_wordcount.py")
    ended = run_python(tmp_path, example, str(tmp_path), timeout_s=300)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    run = read_run(tmp_path / "run")
    executors = [tick.status.executors for tick in run.journal.ticks]
    assert (executors[0], min(executors), executors[-1]) == (2, 1, 2)  # type: ignore[type-var]
    events = [event for tick in run.journal.ticks for event in tick.status.events]
    needs = [event.needs for event in events if getattr(event, "needs", None)]
    assert needs[0] == "words 1"
    assert "service" in needs[-1]
