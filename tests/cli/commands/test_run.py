"""`penstock run`, as a person uses it: options and reports here, real runs below."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.commands.run import EXAMPLES
from penstock.cli.main import build_parser, main
from penstock.cli.run_options import read_run_spec
from penstock.engines.events import ResumedRunEvent
from penstock.reports.spark_result_text import comparison, report
from penstock.runs.replica_limits import MIN_RETURN_S, RETURN_S
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run, finish_run, read_run
from penstock.runs.spark_preparation import (
    COOLDOWNS,
    DRAIN_SHARE,
    INTERVAL_S,
    MIN_INTERVAL_S,
    MIN_WINDOW_S,
    WINDOW_S,
    prepare_spark_run,
)
from penstock.runs.spec import SparkSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Capture = pytest.CaptureFixture[str]

TINY = """
import os
import time
import pyarrow as pa
from penstock import Pipeline

def build(take_s: float = 0.02, fails_at: int = -1, hang: str = ""):
    pipeline = Pipeline("tiny", objective_s=5)
    pipeline.topic("numbers", "id long")
    pipeline.topic("twice", "id long, twice long")
    pipeline.topic("stored", "id long, twice long")
    pipeline.topic("others", "id long")

    @pipeline.produces("numbers", arrivals="deterministic")
    def numbers(first_id, due):
        return pa.table({"id": range(first_id, first_id + len(due))})

    @pipeline.batches(reads="numbers", writes="twice", max_replicas=3)
    def double(batch):
        ids = batch["id"].to_pylist()
        if fails_at in ids:
            raise ValueError("seven is not a number")
        if hang and os.path.exists(hang):
            time.sleep(1000)
        time.sleep(take_s * len(ids))
        return {"id": ids, "twice": [2 * i for i in ids]}

    @pipeline.batches(reads="twice", writes="stored", max_replicas=1)
    def store(batch):
        return batch

    @pipeline.batches(reads="numbers", writes="others", max_replicas=1)
    def copy(batch):
        return batch

    return pipeline

PIPELINE = build()
"""


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.py"
    path.write_text(TINY)
    return str(path)


# --- options


def asked(*options: str) -> SparkSpec:
    return read_run_spec(build_parser("run").parse_args(["run", *options]))


def test_options_are_the_fields_of_a_spec() -> None:
    assert asked("images") == SparkSpec(pipeline="images")
    told = asked(
        *("images", "--workload", "cosine", "--policy", "ds2", "--minutes", "7"),
        *("--speed-up", "20", "--rate-scale", "0.5", "--seed", "3", "--objective", "2"),
        *("--interval", "30", "--batch", "0.5", "--initial", "resize:2", "--dry-run"),
        *("--param", "memory_s=60", "--guard", "budget=9", "--set", "service_s=0.2"),
        *("--workload-param", "mean=9"),
    )
    assert told == SparkSpec(
        pipeline="images",
        workload="cosine",
        policy="ds2",
        minutes=7,
        speed_up=20.0,
        rate_scale=0.5,
        seed=3,
        objective_s=2.0,
        interval_s=30.0,
        batch_s=0.5,
        initial={"resize": 2},
        dry_run=True,
        params={"memory_s": "60"},
        guards={"budget": "9"},
        build_args={"service_s": "0.2"},
        workload_params={"mean": "9"},
    )


def test_a_run_may_last_half_a_minute(tiny: str) -> None:
    assert prepare_spark_run(asked(tiny, "--minutes", "0.5")).duration_s == 30
    assert prepare_spark_run(asked(tiny, "--minutes", "0.5", "--speed-up", "5")).duration_s == 6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "PIPELINE: missing"),
        (("imges",), "did you mean 'images'"),
        (("images", "--policy", "ds3"), "did you mean 'ds2'"),
        (("images", "--compare", "ds2,treshold"), "did you mean 'threshold'"),
        (("images", "--compare", "ds2,psps", "--param", "x=1"), "--param"),
        (("images", "--resume", "somewhere"), "--resume"),
        (("--resume", "somewhere", "--executors", "1:4"), "--resume"),
        (("images", "--executors", "1:4"), "no executors in local mode"),
        (("images", "--master", "local-cluster[4]"), "--master: cannot be read"),
        (("images", "--master", "local-cluster[2,1,1024]"), "room for 2 replicas, images needs 3"),
        (("--resume", "somewhere"), "there is no run.toml"),
    ],
)
def test_mistakes_cost_no_session(options: tuple[str, ...], told: str, capsys: Capture) -> None:
    assert main(["run", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_directory_that_is_not_a_run_is_left_alone(
    tiny: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("")
    assert main(["run", tiny, "--out", str(tmp_path / "mine")]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious"]


# --- reports

RESULT: dict[str, Any] = {
    "spec": {},
    "build_args": {"service_s": 0.3},
    "ended": "finished",
    "seconds": 100.0,
    "replicas": {"avg": 4.0, "max": 9},
    "latency_s": {"avg": 1.0, "p50": 0.9, "p95": 2.5, "p99": 4.0, "max": 6.0},
    "slo": {"objective_s": 5.0, "violated_share": 0.015},
    "offered_records": 2000,  # two operators read each record
    "rescales": 7,
    "rescales_possible": 59,
    "static_peak": {"peak_rate": 32.0, "replicas": 10, "operators": {"map": 10}},
    "floor_s": 0.4,
    "change_s": {"median": 1.1, "max": 2.3},
    "change_batches": {"median": 1, "max": 2},
    "operators": {"map": {"replicas": {"avg": 4.0, "max": 9}, "rescales": 7}},
    "records": {
        "offered": 1000, "complete": 1000, "missing": 0, "doubled": 0, "strange": 0,
        "put_aside": 0, "dropped": 0, "lost": 0, "drained": True, "operators": {},
        "topics": {"stored": 1000},
    },
    "failed": {},
}  # fmt: skip


def shown(directory: Path, **changes: Any) -> str:
    begin_run(directory, {}, {}).__exit__(None, None, None)
    return "\n".join(report(RunResult.from_json({**RESULT, **changes}), directory))


def unfolded(text: str) -> str:
    """A page as one line, wherever it was broken."""
    return " ".join(text.split())


def records(**changes: Any) -> dict[str, Any]:
    return {**RESULT["records"], **changes}


def test_one_run_is_a_page(tmp_path: Path) -> None:
    text = shown(tmp_path)
    for part in (
        "40 % of a static deployment for the peak of 32 records/s",
        "p50 0.900 s, p95 2.5 s, p99 4.0 s; the batches alone take 0.400 s",
        "98.5 % of the records within 5 s",
        "7 of 59 possible; effective after 1.1 s (1 batch) in the median,"
        " 2.3 s (2 batches) at most",
        "1,000 offered, 1,000 processed, 0 lost, 0 doubled, 0 dropped",
        "Each record waits 0.3 s on average",
    ):
        assert part in unfolded(text)
    assert [
        line for line in text.splitlines() if len(line) > 80 and "topics tail" not in line
    ] == []
    row = next(line for line in text.splitlines() if line.startswith("map"))
    assert row.split() == ["map", "4.0", "9", "10", "7", "400"]
    assert "none: in local mode all replicas share one process" in text


def test_a_run_that_missed_its_objective_saved_nothing(tmp_path: Path) -> None:
    missed = {"objective_s": 5.0, "violated_share": 0.98}
    text = unfolded(shown(tmp_path, slo=missed))
    assert "of 32 records/s, but the objective was missed: no saving" in text
    assert "too few map had 9 at most, the peak needs 10: the maximum is too low, or" in text


def test_a_few_records_give_no_share_of_the_peak(tmp_path: Path) -> None:
    assert "static deployment" not in shown(tmp_path, records=records(offered=3, complete=3))


ON_A_CLUSTER = {
    "executors": {"avg": 1.75, "max": 3},
    "executor_changes": {
        "bought": 2,
        "returned": 1,
        "bought_s": {"median": 4.5, "max": 6.0},
        "returned_s": {"median": None, "max": None},
    },
}


def test_on_a_cluster_both_levels_are_shown(tmp_path: Path) -> None:
    text = shown(tmp_path, **ON_A_CLUSTER)
    assert (
        "1.8 on average, 3 at most, 175 executor-seconds;"
        " 2 requested (ready after 4.5 s in the median); 1 released"
    ) in unfolded(text)
    begin_run(tmp_path / "ds2", {}, {}).__exit__(None, None, None)
    above, _, row, *_ = comparison(
        {"ds2": RunResult.from_json({**RESULT, **ON_A_CLUSTER})}, tmp_path
    )
    assert above.split()[:2] == ["replicas", "executors"]
    assert row.split()[:6] == ["ds2", "4.0", "9", "1.8", "3", "1.0"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lost": 3, "complete": 997, "missing": 3}, "997 processed, 3 lost"),
        ({"lost": 0, "missing": 3, "waiting": 3, "drained": False}, "3 not finished"),
        ({"operators": {"odd": {"filtered": 3, "expanded": 0, "late": 0}}}, "3 filtered by odd"),
        ({"operators": {"cut": {"filtered": 0, "expanded": 9, "late": 0}}}, "9 added by cut"),
        ({"operators": {"sum": {"filtered": 0, "expanded": 0, "late": 2}}}, "2 late for sum"),
        ({"doubled": 2}, "2 doubled"),
        ({"strange": 2}, "2 that were never offered"),
        ({"put_aside": 2}, "2 sent to dead letters"),
        ({"complete": None, "missing": None, "doubled": 0, "lost": 0}, "1,000 in stored"),
    ],
)
def test_what_became_of_the_records(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in unfolded(shown(tmp_path, records=records(**changes)))


def test_late_rows_are_in_the_summary(tmp_path: Path) -> None:
    text = unfolded(shown(tmp_path, late_records={"minutes": 7}))
    assert "late 7 rows came after the watermark: minutes 7" in text
    assert "after the watermark" not in shown(tmp_path / "another")


def test_what_did_not_wait_is_not_said_to_wait(tmp_path: Path) -> None:
    assert "A record waits" not in shown(tmp_path, build_args={"service_s": 0.0})


def test_a_run_that_was_stopped_says_how_to_go_on(tmp_path: Path) -> None:
    text = shown(tmp_path, ended="stopped")
    assert f"penstock run --resume {tmp_path}" in text
    assert f"penstock topics tail {tmp_path}/topics/stored shows the output" in text


def test_policies_beside_each_other(tmp_path: Path) -> None:
    more = {**RESULT, "replicas": {"avg": 6.5, "max": 12}}
    results = {"ds2": RunResult.from_json(RESULT), "psps": RunResult.from_json(more)}
    for name in results:
        begin_run(tmp_path / name, {}, {}).__exit__(None, None, None)
    lines = comparison(results, tmp_path)
    rows = {line.split()[0]: line.split() for line in lines[: lines.index("")]}
    assert rows["ds2"][1:6] == ["4.0", "9", "1.0", "0.900", "2.5"]
    assert rows["psps"][1:3] == ["6.5", "12"]
    assert rows["static"] == ["static", "peak", "10", "10"]


def test_a_run_that_ended_before_its_first_decision(tmp_path: Path) -> None:
    assert "nothing was measured" in report(RunResult.from_json({"ended": "stopped"}), tmp_path)[0]


def test_what_has_finished_is_shown_without_running_again(
    tiny: str, tmp_path: Path, capsys: Capture
) -> None:
    prepared = prepare_spark_run(SparkSpec(pipeline=tiny))
    begin_run(tmp_path / "run", prepared.spec.to_json(), prepared.header()).__exit__(*[None] * 3)
    result = RunResult.from_json({**RESULT, "spec": prepared.spec.to_json()})
    finish_run(tmp_path / "run", result)
    assert main(["run", "--resume", str(tmp_path / "run")]) == 0
    told = capsys.readouterr()
    assert "is already finished" in told.err and "warning" not in told.err
    assert "1,000 offered" in told.out
    later = time.time() + 10
    os.utime(tiny, (later, later))
    assert main(["run", "--resume", str(tmp_path / "run")]) == 0
    told = capsys.readouterr()
    assert f"warning: {tiny} was changed after it, and the change did not run" in told.err


def test_the_help_tells_the_defaults_as_they_are() -> None:
    text = " ".join(EXAMPLES.split())
    up_s, down_s = COOLDOWNS["cooldown_up_s"], COOLDOWNS["cooldown_down_s"]
    assert f"{INTERVAL_S:g} s between decisions; metrics cover the last {WINDOW_S:g} s" in text
    assert f"no scale-up for {up_s:g} s and no scale-down for {down_s:g} s" in text
    assert f"the interval (at least {MIN_INTERVAL_S:g} s)" in text
    assert f"windows (at least {MIN_WINDOW_S:g} s)" in text
    assert (DRAIN_SHARE, text.count("half of it")) == (0.5, 1)
    assert f"sufficient for {RETURN_S:g} s (at least {MIN_RETURN_S:g} s with --speed-up)" in text


# --- real runs

MARK = "PENSTOCK_TESTED_RUN"


class Command:
    """`penstock run` in a process of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        code = "import sys; from penstock.cli.main import main; sys.exit(main())"
        self._err = directory.with_suffix(f".{time.monotonic_ns()}.err")
        with self._err.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "run", *options, "--json"],
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env={**os.environ, MARK: str(directory)},
            )

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + 150
        while not is_so():
            assert self.process.poll() is None, self.err
            assert time.monotonic() < deadline, self.err
            time.sleep(0.1)

    def until_told(self, text: str) -> None:
        """Wait until the journal tells of something once more than now."""
        journal, deadline = self.directory / "journal.jsonl", time.monotonic() + 150
        before = journal.read_text().count(text) if journal.is_file() else 0
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.err
            if journal.is_file() and journal.read_text().count(text) > before:
                return
            time.sleep(0.1)
        raise AssertionError(f"no {text}\n{self.err}")

    def ends(self) -> tuple[int, dict[str, Any]]:
        """Wait for the end; return the exit code and the figures."""
        out, _ = self.process.communicate(timeout=240)
        return self.process.returncode, json.loads(out) if out else {}

    @property
    def err(self) -> str:
        return self._err.read_text()


@contextmanager
def started(directory: Path, *options: str) -> Iterator[Command]:
    command = Command(directory, *options)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.communicate()


def processes_of(directory: Path) -> list[int]:
    """Processes that a run has started, however far down; they have all inherited its name."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={directory}\0".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
        except OSError:  # gone, or not ours
            continue
    return found


def nothing_left_of(directory: Path) -> bool:
    deadline = time.monotonic() + 15
    while processes_of(directory) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not processes_of(directory)


@pytest.fixture
def shared(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process take the session of all tests, and leave it."""
    from penstock.runs import spark_launch as running  # noqa: PLC0415  (loads Spark)

    monkeypatch.setattr(running, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(running, "end_session", lambda *_: None)


LOAD = ("--workload", "constant(rate=20)", "--minutes", "1")


@pytest.mark.spark
@pytest.mark.slow
def test_stopped_killed_and_resumed_nothing_is_lost_or_doubled(
    tiny: str, tmp_path: Path, shared: None, capsys: Capture
) -> None:
    directory = tmp_path / "run"
    options = (*LOAD, "--speed-up", "5", "--policy", "ds2", "--set", "take_s=0.09")
    with started(directory, tiny, *options, "--out", str(directory)) as command:
        command.until_told('"after_s"')  # a change came about
        command.process.send_signal(signal.SIGINT)
        code, result = command.ends()
    assert code == 130, command.err
    assert "stopping after the running batches" in command.err
    assert "Traceback" not in command.err
    assert result["ended"] == "stopped"
    assert 0 < result["records"]["offered"] < 240
    assert nothing_left_of(directory)

    with started(directory, "--resume", str(directory)) as command:
        command.until_told('"snapshot"')
        command.process.kill()

    assert main(["run", "--resume", str(directory), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ended"] == "finished"
    assert (result["records"]["offered"], result["records"]["complete"]) == (240, 240)
    assert (result["records"]["lost"], result["records"]["doubled"]) == (0, 0)
    # 20 records/s of 0.09 s each do not fit into one replica
    assert result["operators"]["double"]["replicas"]["max"] >= 2
    assert result["change_s"]["median"] > 0
    recorded = read_run(directory)
    assert recorded.result == RunResult.from_json(result)
    assert recorded.journal.run["engine_kind"] == "spark"
    ticks = recorded.journal.ticks
    assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
    resumed = [event for tick in ticks for event in tick.status.events]
    assert sum(isinstance(event, ResumedRunEvent) for event in resumed) == 2
    assert result["seconds"] >= 12  # the whole workload, in three parts
    assert nothing_left_of(directory)


@pytest.mark.spark
@pytest.mark.slow
def test_an_operator_that_fails_ends_the_run(
    tiny: str, tmp_path: Path, shared: None, capsys: Capture
) -> None:
    options = ("--workload", "constant(rate=20)", "--minutes", "60", "--policy", "static")
    given = ("--set", "fails_at=77", "--out", str(tmp_path / "run"), "--json")
    assert main(["run", tiny, *options, *given]) == 1  # an hour, if it did not end
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert result["ended"] == "failed"
    assert list(result["failed"]) == ["double"]
    assert "ValueError: seven is not a number" in told.err
    assert "of topic numbers" in told.err
    assert result["records"]["offered"] < 60 * 60 * 20
    assert result["records"]["lost"] == 0


@pytest.mark.spark
@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_run_that_hangs_and_it_can_be_resumed(
    tiny: str, tmp_path: Path, shared: None, capsys: Capture
) -> None:
    directory, hang = tmp_path / "run", tmp_path / "hang"
    hang.touch()
    options = (*LOAD, "--speed-up", "12", "--set", f"hang={hang}", "--policy", "static")
    with started(directory, tiny, *options, "--out", str(directory)) as command:
        command.until(lambda: any(p.stat().st_size for p in directory.glob("marks/double/*.json")))
        command.process.send_signal(signal.SIGINT)
        command.until(lambda: "waiting for the batch of double" in command.err)
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(timeout=30) == 130
    assert nothing_left_of(directory)
    hang.unlink()
    assert main(["run", "--resume", str(directory), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["ended"], result["records"]["lost"]) == ("finished", 0)
    assert (result["records"]["offered"], result["records"]["complete"]) == (100, 100)
