"""What is said at the end of a run on Spark."""

from pathlib import Path

import pytest

from penstock.reports.run_view import ScreenView
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spark_result import RecordBalance, SparkResult
from penstock.runs.spec import SparkSpec

TRACE = 'Traceback (most recent call last):\n  File "mine.py", line 7\nValueError: seven'


@pytest.fixture(scope="module")
def prepared() -> PreparedSparkRun:
    return prepare_spark_run(SparkSpec(pipeline="words"))


def show(
    directory: Path,
    prepared: PreparedSparkRun,
    result: SparkResult,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    with begin_run(directory, prepared.spec.to_json(), prepared.header()):
        pass
    view = ScreenView(plain=True)
    view.show_end(prepared, directory, RunResult(spec={}, spark=result))
    return capsys.readouterr().err.splitlines()


def test_a_failure_is_shown_with_its_rows_and_the_users_traceback(
    prepared: PreparedSparkRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = f"parse failed on rows 7 to 11 of topic orders:\n{TRACE}"
    failed = SparkResult(ended="failed", failed={"parse": told, "store": "no space is left"})
    assert show(tmp_path / "run", prepared, failed, capsys) == [
        "error: parse failed on rows 7 to 11 of topic orders:",
        *TRACE.splitlines(),
        "error: store failed: no space is left",
    ]


def test_lost_records_are_an_error_and_a_whole_run_says_nothing(
    prepared: PreparedSparkRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = SparkResult(ended="finished", records=RecordBalance(offered=10_000, lost=1_630))
    assert show(tmp_path / "lost", prepared, lost, capsys) == [
        "error: 1,630 records were lost: no batch read them"
    ]
    assert show(tmp_path / "whole", prepared, SparkResult(ended="finished"), capsys) == []
