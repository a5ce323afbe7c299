"""`penstock status` and `penstock stop`: from a run directory alone, whoever runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli.main import main
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.files.lock import Holder, Lock, find_holder
from penstock.pipelines.description import describe
from penstock.pipelines.pipeline import Pipeline
from penstock.runs import run_stop
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run, finish_run
from penstock.runs.run_status import MAX_STALL_S, MAX_START_S, read_status
from penstock.runs.spark_result import SparkResult
from penstock.state.version import Version
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

Capture = pytest.CaptureFixture[str]
HEADER = {"policy": "ds2", "interval_s": 15.0}
CHILD = """
import signal, sys, time
from pathlib import Path
from penstock.files.lock import Lock

def stop(number, frame):
    time.sleep(float(sys.argv[2]))
    sys.exit(143)

lock = Lock(Path(sys.argv[1]))
lock.acquire()
signal.signal(signal.SIGTERM, stop)
print("held", flush=True)
time.sleep(60)
"""


def build_pipeline() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.topic("raw", "id long")
    pipeline.topic("clean", "id long")
    pipeline.topic("counts", "id long, n long")

    @pipeline.ingest(writes="raw")
    def files(spark: object) -> object:
        raise AssertionError("nothing starts here")

    @pipeline.batches(reads="raw", writes="clean", on_error="dead-letter")
    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.sliced(reads="clean", writes="counts", key="id", state="n long")
    def count(batch: pa.RecordBatch, state: object) -> None:
        return None

    @pipeline.egress(reads="counts")
    def store(df: object) -> object:
        raise AssertionError("nothing starts here")

    return pipeline


def tick(at: float, events: Sequence[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:
    replicas = {"parse": 2, "count": 1}
    records = {"offered": 30, "processed": 10, "dropped": 4, "backlog": 20}
    targets = {"parse": {"current": 2, "wanted": 3, "reason": "fits"}}
    return {
        "at": at,
        "running": replicas,
        "requested": replicas,
        "records": records,
        "replica_s": {},
        "events": list(events),
        "decision": {"at": at, "policy": "ds2", "targets": targets},
        **more,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose first operator has read 10 of 30 rows and put two of them aside."""
    run, pipeline = tmp_path / "run", build_pipeline()
    with begin_run(run, {"pipeline": "shop"}, HEADER):
        pass
    layout = RunLayout(run)
    (run / "pipeline.json").write_text(json.dumps(describe(pipeline)))
    make_topics(pipeline, layout)
    with TopicWriter(Topic.open(layout.topic("raw")), "files") as writer:
        writer.append(pa.table({"id": range(30)}))
    errors = {"topic": ["raw"] * 2, "offset": [1, 2], "error": ["no"] * 2, "row": ["{}"] * 2}
    with TopicWriter(Topic.open(layout.topic("parse-errors")), "parse") as writer:
        writer.append(pa.table(errors))
    put_record(layout, "parse", "raw", 10)
    put_record(layout, "count", "clean", 0, late=3, state=Version(slices=64, watermark=5_000_000))
    write_command(layout, "parse", Command(replicas=3))
    return run


def put_record(
    layout: RunLayout, name: str, topic: str, rows: int, late: int = 0, **more: Any
) -> None:
    now = time.time()
    task = TaskRecord(
        rows_in=rows, rows_out=rows, busy_s=0.1, cpu_s=None, began=now, ended=now, late=late
    )
    record = BatchRecord(
        batch=0, start={topic: 0}, end={topic: rows}, planned_at=now, committed_at=now,
        tasks=(task,), **more,
    )  # fmt: skip
    BatchLog(layout.batches(name)).put(record)


def append(run: Path, *lines: dict[str, Any]) -> None:
    with (run / "journal.jsonl").open("a") as journal:
        journal.writelines(json.dumps(line) + "\n" for line in lines)


def status(run: Path, capsys: Capture) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["status", str(run), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def holder(run: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the run and takes a while to stop."""
    arguments = [str(run / "lock"), "0.5"]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with child:
        yield child
        child.kill()


# --- status


@pytest.mark.usefixtures("holder")
def test_a_live_run_is_healthy_and_shows_everything(run: Path, capsys: Capture) -> None:
    ingest = {"rows": 30, "rows_per_s": 5.0, "backlog": 7.0, "unit": "files", "is_behind": True}
    append(run, tick(15.0), tick(30.0, ingests={"files": ingest}))
    code, found = status(run, capsys)
    assert (code, found["state"], found["healthy"], found["problems"]) == (0, "running", True, [])
    parse, count = found["operators"]["parse"], found["operators"]["count"]
    assert (parse["wanted"], parse["requested"], parse["running"]) == (3, 3, 2)
    assert parse["queue"] == 20
    assert 0 <= parse["oldest_waiting_s"] < 60
    assert (parse["dead_letter_rows"], parse["late_rows"]) == (2, None)
    assert (count["late_rows"], count["dead_letter_rows"], count["queue"]) == (3, None, 0)
    assert count["watermark"] == "1970-01-01T00:00:05.000+00:00"
    assert parse["last_commit_at"] > "2026-01-01"
    assert found["operators"]["files"]["wanted"] is None
    assert found["dropped_rows"] == 4
    assert found["disk_bytes"]["topics"] > 0
    assert found["disk_bytes"]["total"] == sum(
        size for name, size in found["disk_bytes"].items() if name != "total"
    )
    assert found["warnings"] == ["files falls behind: 7 files wait"]
    assert main(["status", str(run)]) == 0
    told = capsys.readouterr().out
    assert "count: 3 rows were late" in told
    assert "parse: 2 dead letters, see penstock topics tail" in told
    assert found["ingests"] == {"files": {**ingest, "backlog_rows": None}}
    assert main(["status", str(run)]) == 0
    text = capsys.readouterr().out
    assert "shop: running, healthy, process " in text
    assert "3/3/2" in text
    assert "2 dead letters, see penstock topics tail" in text
    assert all(len(line) <= 80 for line in text.splitlines() if str(run) not in line)


def test_an_egress_has_read_what_spark_has_committed(run: Path, capsys: Capture) -> None:
    """Its position in the topic is behind until the next batch; that would look like a queue."""
    with TopicWriter(Topic.open(run / "topics" / "counts"), "count") as writer:
        writer.append(pa.table({"id": range(7), "n": range(7)}))
    checkpoint = run / "checkpoints" / "store"
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True)
    about = '{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"1"}}'
    for batch, end in ((0, 4), (1, 7)):
        offset = f'{{"at":{{"counts":{end}}},"skips":{{}}}}'
        (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{about}\n{offset}")
    (checkpoint / "commits" / "0").touch()
    assert status(run, capsys)[1]["operators"]["store"]["queue"] == 3
    (checkpoint / "commits" / "1").touch()
    assert status(run, capsys)[1]["operators"]["store"]["queue"] == 0


def test_rows_that_wait_are_known_before_the_first_batch(run: Path, capsys: Capture) -> None:
    rmtree(RunLayout(run).batches("parse"))
    parse = status(run, capsys)[1]["operators"]["parse"]
    assert (parse["queue"], parse["last_commit_at"]) == (30, None)
    assert parse["oldest_waiting_s"] >= 0


@pytest.mark.usefixtures("holder")
def test_a_run_without_a_tick_is_starting(run: Path, capsys: Capture) -> None:
    code, found = status(run, capsys)
    assert (code, found["state"]) == (0, "starting")


@pytest.mark.usefixtures("holder")
def test_restarts_are_counted_and_a_failure_is_unhealthy(run: Path, capsys: Capture) -> None:
    died = {"at": 14.0, "kind": "revived", "operator": "parse", "tries": 1, "error": "lost\nmore"}
    append(run, tick(15.0, [died, died]))
    code, found = status(run, capsys)
    assert code == 0
    assert found["operators"]["parse"]["restarts"] == 2
    assert found["warnings"] == ["parse was restarted 2 times, the last time because: lost"]
    broken = {"at": 29.0, "kind": "failed", "operator": "parse", "error": "x\nValueError: seven"}
    append(run, tick(30.0, [broken]))
    code, found = status(run, capsys)
    assert (code, found["problems"]) == (1, ["parse failed: ValueError: seven"])
    append(run, {"resumed": {"at": 30.0}}, tick(45.0))  # what failed was mended
    code, found = status(run, capsys)
    assert (code, found["resumes"]) == (0, 1)


@pytest.mark.usefixtures("holder")
def test_an_ingest_that_fails_again_and_again_is_unhealthy(run: Path) -> None:
    """It reads no topic, so no rows wait for it."""
    failure = {"kind": "restarting", "operator": "files", "tries": 7, "error": "no such host"}
    append(run, tick(300.0, [{"at": 290.0, "delay_s": 32.0, "since_s": 63.0, **failure}]))
    now = time.time()
    assert read_status(run, now).problems == ()
    files = read_status(run, now).operators[0]
    assert (files.tries, round(files.restarting_s or 0)) == (7, 73)
    append(run, tick(400.0, [{"at": 390.0, "delay_s": 60.0, "since_s": 163.0, **failure}]))
    (problem,) = read_status(run, now).problems
    assert problem == "files has been restarting for 173 s, try 7: no such host"
    append(run, tick(600.0))  # it has not failed since
    assert read_status(run, now).problems == ()


@pytest.mark.usefixtures("holder")
def test_an_operator_that_has_committed_since_its_failure_works(run: Path) -> None:
    failure = {"kind": "restarting", "operator": "parse", "tries": 7, "error": "lost"}
    append(run, tick(300.0, [{"at": 290.0, "since_s": 500.0, **failure}]))
    assert read_status(run).operators[1].restarting_s is None


@pytest.mark.usefixtures("holder")
def test_a_run_that_starts_for_too_long_is_unhealthy(run: Path) -> None:
    later = read_status(run, time.time() + MAX_START_S + 1)
    assert later.problems[-1].startswith("the run has been starting for 60")


def test_late_rows_are_those_of_the_whole_journal(run: Path, capsys: Capture) -> None:
    """Records of old batches are gone; the journal has told of them."""
    late = {"at": 14.0, "kind": "late", "operator": "count", "records": 20, "total": 20}
    append(run, tick(15.0, [late]), {"resumed": {"at": 15.0}}, tick(30.0, [late]))
    assert status(run, capsys)[1]["operators"]["count"]["late_rows"] == 40


@pytest.mark.usefixtures("holder")
def test_what_is_stuck_is_unhealthy(run: Path) -> None:
    append(run, tick(15.0))
    later = read_status(run, time.time() + MAX_STALL_S + 10)
    assert later.exit_code == 1
    assert [problem.split()[0] for problem in later.problems] == ["parse", "the"]


@pytest.mark.parametrize(
    ("ended", "code"), [("stopped", 3), ("finished", 3), ("failed", 1), (None, 3)]
)
def test_a_run_that_nobody_runs(run: Path, ended: str | None, code: int, capsys: Capture) -> None:
    append(run, tick(15.0))
    if ended:
        finish_run(run, RunResult(spec={}, spark=SparkResult(ended=ended)))
    found = status(run, capsys)
    assert (found[0], found[1]["state"]) == (code, ended or "killed")
    main(["status", str(run)])
    assert ("--resume" in capsys.readouterr().out) == (ended != "finished")


def test_a_journal_that_is_cut_short_is_no_problem(run: Path, capsys: Capture) -> None:
    append(run, tick(15.0))
    with (run / "journal.jsonl").open("a") as journal:
        journal.write('{"at": 30.0, "runn')
    assert status(run, capsys)[1]["seconds"] == 15.0


@pytest.mark.parametrize(
    "damage",
    [
        {"running": 3},
        {"at": []},
        {"records": []},
        {"decision": {"targets": {"parse": 3}}},
        {"events": [{"kind": "restarting", "at": []}, 3]},
    ],
)
def test_a_damaged_tick_is_no_traceback(run: Path, damage: dict[str, Any], capsys: Capture) -> None:
    append(run, tick(15.0) | damage)
    assert status(run, capsys)[0] in (1, 3)


def test_a_damaged_header_is_no_traceback(run: Path, capsys: Capture) -> None:
    for header in ([], {"interval_s": "soon"}, {"interval_s": []}):
        (run / "journal.jsonl").write_text(json.dumps({"version": 1, "run": header}) + "\n")
        assert status(run, capsys)[0] in (1, 3)


def test_older_parts_of_the_journal_count(run: Path, capsys: Capture) -> None:
    """The newest part has a header only: it was just begun."""
    journal = run / "journal.jsonl"
    header = journal.read_text()
    died = {"at": 14.0, "kind": "restarting", "operator": "parse", "tries": 1, "error": "lost"}
    append(run, tick(15.0, [died]))
    journal.rename(run / "journal.000000.jsonl")
    journal.write_text(header)
    found = status(run, capsys)[1]
    assert (found["seconds"], found["operators"]["parse"]["restarts"]) == (15.0, 1)


@pytest.mark.parametrize("command", ["status", "stop"])
def test_what_is_no_run(tmp_path: Path, command: str, capsys: Capture) -> None:
    assert main([command, str(tmp_path)]) == 2
    assert "there is no run.toml" in capsys.readouterr().err
    assert main([command, str(tmp_path / ("n" * 300))]) == 2  # a name that no file can have
    assert "cannot be read" in capsys.readouterr().err


# --- who holds it


def test_nobody_and_somebody_hold_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert find_holder(path) is None
    with Lock(path):
        assert find_holder(path) == Holder(os.getpid(), True)
    assert find_holder(path) is None


def test_a_number_that_another_process_has_by_now_is_no_holder(tmp_path: Path) -> None:
    """The driver is gone, what it started holds the lock, and its number was given away."""
    path = tmp_path / "lock"
    with Lock(path), subprocess.Popen(["sleep", "60"]) as stranger:
        path.write_text(f"{stranger.pid}\n")
        assert find_holder(path) == Holder(stranger.pid, False)
        stranger.kill()


# --- stop


def test_a_run_is_asked_to_stop_and_waited_for(
    run: Path, holder: subprocess.Popen[str], capsys: Capture
) -> None:
    assert main(["stop", str(run)]) == 0
    assert holder.wait(10) == 143
    said = capsys.readouterr().err
    assert f"asked process {holder.pid} to stop" in said
    assert "has stopped" in said


def test_a_stopped_run_that_lost_records_is_no_success(
    run: Path, holder: subprocess.Popen[str], capsys: Capture
) -> None:
    append(run, tick(15.0))
    finish_run(run, RunResult.from_json({"ended": "stopped", "records": {"lost": 630}}))
    assert main(["stop", str(run)]) == 1
    assert "630 records were lost: no batch read them" in capsys.readouterr().err
    assert status(run, capsys)[0] == 1
    assert holder.wait(10) == 143


def test_it_is_said_what_a_stop_waits_for(
    run: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(run_stop, "_SAY_S", 0.1)
    plan = RunLayout(run).plan("parse")
    plan.parent.mkdir(exist_ok=True)
    plan.touch()  # of a batch after the last record
    assert main(["stop", str(run)]) == 0
    assert "still waiting after 0 s: a batch of parse runs" in capsys.readouterr().err
    assert holder.wait(10) == 143


def test_one_that_takes_too_long_is_told(
    run: Path, holder: subprocess.Popen[str], capsys: Capture
) -> None:
    assert main(["stop", str(run), "--timeout", "0.1"]) == 1
    assert f"still held by process {holder.pid} after 0.1 s" in capsys.readouterr().err
    assert holder.wait(10) == 143


def test_nobody_is_killed_in_the_name_of_a_driver_that_is_gone(run: Path, capsys: Capture) -> None:
    with Lock(run / "lock"), subprocess.Popen(["sleep", "60"]) as stranger:
        (run / "lock").write_text(f"{stranger.pid}\n")
        assert main(["stop", str(run), "--timeout", "0.3"]) == 1
        assert stranger.poll() is None
        stranger.send_signal(signal.SIGKILL)
    assert "driver of" in capsys.readouterr().err


def test_what_does_not_run_cannot_be_stopped(run: Path, capsys: Capture) -> None:
    assert main(["stop", str(run)]) == 3
    assert "is not running" in capsys.readouterr().err
    assert main(["stop", str(run), "--timeout", "nan"]) == 2
