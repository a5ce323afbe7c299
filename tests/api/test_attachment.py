"""Attaching from Python: arguments, a run directory that every reader understands, detaching."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engines.attached.reports import BEGAN, kafka, make_report

import penstock
from penstock.api.attachment import Attachment
from penstock.cli.main import main
from penstock.core.decision import Decision
from penstock.core.policy import Applied, History, Policy
from penstock.errors import InputError
from penstock.runs.run_status import read_status


class RemoteQuery:
    """A query of a Spark Connect session, which reports a batch every second."""

    name, id, runId = "words", "7e5f0a11-22", "a1"  # noqa: N815

    def __init__(self) -> None:
        self._began = time.time()
        self.isActive = True

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802
        seconds = int(time.time() - self._began) + 3
        shift = self._began - BEGAN - 3
        return [
            make_report(
                number,
                number + shift,
                work_s=0.9,
                overhead_s=0.05,
                sources=[kafka([number * 50], [(number + 1) * 50], [(number + 3) * 50])],
            )
            for number in range(seconds)
        ]

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": True}

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.isActive = False


class RemoteSession:
    """A Spark Connect session, as far as it is known by its module."""

    def __init__(self, *queries: RemoteQuery) -> None:
        self.streams = self
        self.active = list(queries)


RemoteSession.__module__ = "pyspark.sql.connect.session"


@pytest.fixture
def attached(tmp_path: Path) -> Iterator[Attachment]:
    session: Any = RemoteSession(RemoteQuery())
    found = penstock.attach(
        session, freshness="30 s", policy="ds2", interval_s=0.5, out=tmp_path / "run", quiet=True
    )
    yield found
    found.detach()


def wait_for(attached: Attachment, ticks: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        decided = [tick for tick in attached.journal.ticks if tick.decision is not None]
        if len(decided) >= ticks:
            return
        time.sleep(0.1)
    raise AssertionError(f"only {len(attached.journal.ticks)} ticks")


def test_a_remote_session_is_observed_and_says_why_it_is_not_changed(attached, tmp_path, capsys):
    assert attached.mode == "dry-run"
    assert "classic session" in attached.note
    wait_for(attached, 3)
    tick = attached.journal.ticks[-1]
    assert tick.snapshot is not None
    assert tick.snapshot.offered["words"] == pytest.approx(50.0, rel=0.2)
    assert tick.snapshot.operators["words"].queue is not None
    assert not tick.applied


def test_every_reader_of_run_directories_understands_it(attached, tmp_path, capsys):
    wait_for(attached, 3)
    run = tmp_path / "run"
    assert attached.decisions.num_rows >= 3
    assert "words" in attached.explain()
    status = attached.status()
    assert status.state == "running"
    assert [(o.name, o.running, o.kind) for o in status.operators] == [("words", 1, "query")]
    attached.detach()
    assert not attached.is_running
    assert attached.result.scores is not None
    for command in (
        ["explain", str(run)],
        ["status", str(run)],
        ["replay", str(run), "--policy", "threshold"],
        ["report", str(run), "-o", str(tmp_path / "report.html")],
        ["top", str(run), "--plain"],
    ):
        assert main(command) in (0, 3), command
    assert "attached application" in (tmp_path / "report.html").read_text()
    assert read_status(run).state == "finished"


def test_another_process_can_detach_it(attached, tmp_path):
    wait_for(attached, 1)
    assert main(["stop", str(tmp_path / "run")]) == 0  # a signal would end this process
    assert attached.wait(5.0)


def test_it_ends_when_the_given_queries_have_ended(tmp_path):
    query = RemoteQuery()
    session: Any = RemoteSession(query)
    found = penstock.attach(
        session, query, freshness=30, interval_s=0.5, out=tmp_path / "run", quiet=True
    )
    wait_for(found, 1)
    query.isActive = False
    assert found.wait(10.0)
    text = (tmp_path / "run" / "journal.jsonl").read_text()
    kinds = [
        event["kind"]
        for line in text.splitlines()[1:]
        for event in json.loads(line).get("events", [])
    ]
    assert "query-ended" in kinds


def test_a_program_that_ends_without_detaching_leaves_a_finished_run(tmp_path):
    program = f"""
import penstock
from tests.api.test_attachment import RemoteQuery, RemoteSession
penstock.attach(
    RemoteSession(RemoteQuery()), freshness=30, out={str(tmp_path / "run")!r}, quiet=True
)
"""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src")])
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    assert read_status(tmp_path / "run").state == "finished"


def test_a_policy_that_fails_changes_nothing_and_says_why(tmp_path):
    def fail(_history: History, _applied: Applied, _params: object) -> Decision:
        raise ZeroDivisionError("division by zero")

    policy = Policy(name="broken", summary="", paper="", decide=fail)
    session: Any = RemoteSession(RemoteQuery())
    found = penstock.attach(
        session, freshness="30 s", policy=policy, interval_s=0.5, out=tmp_path / "run", quiet=True
    )
    until = time.monotonic() + 20
    while not any("broken failed" in tick.error for tick in found.journal.ticks):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert found.is_running
    found.detach()


def test_it_says_on_stderr_that_it_advises_only(tmp_path, capsys):
    session: Any = RemoteSession(RemoteQuery())
    attached = penstock.attach(session, freshness="30 s", out=tmp_path / "run")
    assert attached.explain().startswith("nothing was decided yet")
    attached.detach()
    assert "needs a classic session" in capsys.readouterr().err
    with pytest.raises(InputError) as error:
        penstock.attach(session, freshness="30 s", out=tmp_path / "run")
    assert error.value.field == "out"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        pytest.param({"freshness": "soon"}, "freshness", id="no time"),
        pytest.param({"freshness": 0}, "freshness", id="no time at all"),
        pytest.param({"freshness": True}, "freshness", id="not a number"),
        pytest.param({"executors": 4}, "executors", id="one number"),
        pytest.param({"executors": (4, 2)}, "executors", id="fewest above most"),
        pytest.param({"executors": (0, 2)}, "executors", id="none"),
        pytest.param({"executors": (1, 2.5)}, "executors", id="half an executor"),
        pytest.param({"queries": []}, "queries", id="no query"),
        pytest.param({"queries": "words"}, "queries", id="a name in place of a query"),
        pytest.param({"mode": "reshard"}, "mode", id="unknown mode"),
        pytest.param({"mode": "restart"}, "queries", id="no factory to start it again"),
        pytest.param({"policy": "ds3"}, "policy", id="unknown policy"),
        pytest.param({"policy": "enforcer"}, "policy", id="a policy about hosts"),
        pytest.param({"guards": {"budgt": 3}}, "budgt", id="unknown guard"),
        pytest.param({"params": {"memory": 3}}, "memory", id="unknown parameter"),
        pytest.param({"interval_s": -1.0}, "interval_s", id="negative interval"),
    ],
)
def test_a_wrong_argument_is_named(options, field, tmp_path):
    session: Any = RemoteSession(RemoteQuery())
    with pytest.raises(InputError) as error:
        penstock.attach(session, out=tmp_path / "run", **{"freshness": "30 s", **options})
    assert error.value.field == field
    assert not (tmp_path / "run").exists()


def test_something_that_is_no_session_is_an_error():
    nothing: Any = object()
    with pytest.raises(InputError) as error:
        penstock.attach(nothing, freshness="30 s")
    assert error.value.field == "spark"
