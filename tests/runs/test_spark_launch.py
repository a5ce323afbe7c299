"""Spark starts with operators and replicas side by side; calls beside the caller."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.runs import spark_launch
from penstock.runs.spark_launch import BackgroundCall, SparkLauncher
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec

PIPELINE = """
from penstock import Pipeline

PIPELINE = Pipeline("one")
PIPELINE.topic("a", "id long", external=True)
PIPELINE.topic("b", "id long")

@PIPELINE.batches(reads="a", writes="b")
def copy(batch):
    return batch
"""


class Recorder:
    """Keeps what a start says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_operators_start_while_replicas_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators_begin, replicas_begin = threading.Event(), threading.Event()

    class Engine:
        def start(self, wait_for_others: Callable[[], object] = lambda: None) -> None:
            operators_begin.set()
            assert replicas_begin.wait(5), "replicas start before or after the operators"
            wait_for_others()

        def stop(self) -> None:
            """Nothing runs."""

    def start_workers(*_: object) -> None:
        replicas_begin.set()
        assert operators_begin.wait(5), "operators wait for the replicas"

    (tmp_path / "one.py").write_text(PIPELINE)
    prepared = prepare_spark_run(SparkSpec(pipeline=str(tmp_path / "one.py")))
    monkeypatch.setattr(spark_launch, "start_workers", start_workers)
    monkeypatch.setattr(SparkLauncher, "_session", lambda *_: None)
    monkeypatch.setattr(SparkLauncher, "_engine", lambda *_: Engine())
    watch: Any = Recorder()
    launcher = SparkLauncher(prepared, RunLayout(tmp_path), watch, prepared.initial, 0.0)
    lock: Any = None
    with ExitStack() as ending:
        launcher.start(lock, ending)
    assert watch.said[0] == "starting Spark"
    assert watch.said[1].startswith("starting 1 operator and a pool of ")
    assert watch.said[2].startswith("started in ")


def test_it_runs_beside_the_caller_and_gives_its_result() -> None:
    may_end = threading.Event()
    call = BackgroundCall(lambda: may_end.wait(10) and 42)
    call.start()
    may_end.set()  # not reached in time by a call that is waited for
    assert call.result() == 42


def test_its_error_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> int:
        raise InputError("model", "cannot be loaded")

    call = BackgroundCall(fail)
    with pytest.raises(InputError, match="cannot be loaded"):
        call.result()
