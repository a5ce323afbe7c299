"""The parts around a run on Spark: who holds its directory, who feeds it, when it is over."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fakes import FakeEngine

from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, LockedError, PenstockError
from penstock.pipelines.pipeline import Pipeline
from penstock.runs import run_lock as holding
from penstock.runs import spark_run as running
from penstock.runs.observer import DRAIN_S, QUIET_S, ObservedEngine, StopCondition, StopRequest
from penstock.runs.pipeline_changes import check_description
from penstock.runs.producers import ProducerThreads
from penstock.runs.run_lock import keep_signal_handlers, remove_empty_run, run_lock
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import parse_schema
from penstock.workloads.workload import Workload

CHILD = """
import fcntl, sys, time
stream = open(sys.argv[1], "a")
fcntl.flock(stream, fcntl.LOCK_EX)
open(sys.argv[1], "w").write(sys.argv[2])
print("held", flush=True)
time.sleep(float(sys.argv[3]))
"""


MINE = """
import pyarrow as pa
from penstock import Pipeline

PIPELINE = Pipeline("mine")
PIPELINE.topic("a", "id long")
PIPELINE.topic("b", "id long")

@PIPELINE.produces("a")
def rows(first_id, due):
    return pa.table({"id": range(first_id, first_id + len(due))})

@PIPELINE.batches(reads="a", writes="b")
def copy(batch):
    return batch
"""


class Recorder:
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def show_progress(self, progress: object) -> None:
        """Nothing to see."""

    def tick(self, tick: object) -> None:
        """Nothing to see."""


def made(schema: str = "id long", reads: str = "a", writes: str = "b") -> Pipeline:
    pipeline = Pipeline("made")
    for name in ("a", "b", "c"):
        pipeline.topic(name, schema, external=name == "a")

    @pipeline.produces("a", arrivals="deterministic")
    def rows(first_id: int, due: pa.Array) -> pa.Table:
        return pa.table({"id": range(first_id, first_id + len(due))})

    @pipeline.batches(reads=reads, writes=writes)
    def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    return pipeline


# --- who holds the directory


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock for a second, in the name of one that is gone."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    arguments = [str(tmp_path / "lock"), str(gone.pid), "1"]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with child:
        yield child
        child.kill()


@pytest.mark.usefixtures("holder")
def test_what_is_left_of_a_killed_run_is_waited_for_and_that_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    began = time.monotonic()
    with run_lock(tmp_path, said.append) as lock:
        assert lock.fileno() >= 0
    assert 0.3 < time.monotonic() - began < 10
    assert len(said) == 1
    assert "waiting for it to end" in said[0]


def test_a_run_that_goes_on_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "SHORT_PATIENCE_S", 0.2)
    with (
        run_lock(tmp_path, print),
        pytest.raises(LockedError, match=f"process {os.getpid()}"),
        run_lock(tmp_path, print),
    ):
        pass


def test_a_directory_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="cannot be a run directory"),
        run_lock(tmp_path / "file" / "run", print),
    ):
        pass


def test_a_run_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds pickles, which a start loads."""
    with run_lock(tmp_path / "runs" / "new", print):
        assert (tmp_path / "runs" / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with run_lock(tmp_path / "shared", print):
        assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o755


def test_of_a_directory_that_is_no_run_only_the_lock_goes(tmp_path: Path) -> None:
    for name in ("lock", "precious"):
        (tmp_path / name).write_text("")
    remove_empty_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    (tmp_path / "run.toml").write_text("")
    remove_empty_run(tmp_path)
    assert not tmp_path.exists()


DATA = (
    "topics/a/commits/00000000000000000000.json",
    "checkpoints/copy/offsets/0",
    "checkpoints/copy/commits/0",
    "batches/copy/00000000000000000000.json",
    "state/copy/segments/1f.arrow",
)


@pytest.mark.parametrize("file", DATA)
@pytest.mark.parametrize(
    "error",
    [InputError("a", "b"), PenstockError("b"), OSError(), KeyboardInterrupt(), SystemExit()],
)
def test_no_error_removes_a_run_with_data(
    tmp_path: Path, file: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object, lock: object) -> None:
        (run / file).parent.mkdir(parents=True)
        (run / file).write_text("precious")
        raise error

    run, pipeline = tmp_path / "run", tmp_path / "mine.py"
    pipeline.write_text(MINE)
    monkeypatch.setattr(running._Run, "carry_out", fails)
    with pytest.raises(type(error)):
        running.run_on_spark(
            prepare_spark_run(SparkSpec(pipeline=str(pipeline))), run, Recorder(), StopRequest()
        )
    assert (run / file).read_text() == "precious"
    assert (run / "run.toml").is_file()


def test_a_run_that_has_not_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object, lock: object) -> None:
        Topic.create(run / "topics" / "a", parse_schema("id long"))
        raise InputError("a", "b")

    run, pipeline = tmp_path / "run", tmp_path / "mine.py"
    pipeline.write_text(MINE)
    monkeypatch.setattr(running._Run, "carry_out", fails)
    with pytest.raises(InputError):
        running.run_on_spark(
            prepare_spark_run(SparkSpec(pipeline=str(pipeline))), run, Recorder(), StopRequest()
        )
    assert not run.exists()


def test_a_run_that_was_there_before_stays_also_without_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, pipeline = tmp_path / "run", tmp_path / "mine.py"
    pipeline.write_text(MINE)
    prepared = prepare_spark_run(SparkSpec(pipeline=str(pipeline)))
    for error in (PenstockError("Spark has ended"), InputError("a", "b")):

        def fails(self: object, lock: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(running._Run, "carry_out", fails)
        with pytest.raises(type(error)):
            running.run_on_spark(prepared, run, Recorder(), StopRequest())
    assert (run / "run.toml").is_file() and (run / "journal.jsonl").is_file()


# --- which pipeline it is


@pytest.mark.parametrize("content", ["", "[]", "{", "\0"])
def test_a_damaged_description_is_named(tmp_path: Path, content: str) -> None:
    check_description(made(), tmp_path)
    (tmp_path / "pipeline.json").write_text(content)
    with pytest.raises(InputError, match=r"pipeline\.json: is empty or damaged"):
        check_description(made(), tmp_path)


def test_the_same_pipeline_goes_on_without_a_word(tmp_path: Path) -> None:
    assert check_description(made(), tmp_path) == []
    assert check_description(made(), tmp_path) == []


def test_what_fits_is_told_and_what_does_not_is_refused(tmp_path: Path) -> None:
    check_description(made(), tmp_path)
    changed = made()
    changed.objective_s = 3.0
    assert check_description(changed, tmp_path) == [
        "changed since the run began: objective_s is 3.0, was None"
    ]
    with pytest.raises(InputError) as error:
        check_description(made(writes="c"), tmp_path)
    assert "operator 'copy': writes is 'c', was 'b'" in str(error.value)
    assert "--out" in str(error.value)
    # and nothing was overwritten
    assert check_description(changed, tmp_path) == []


# --- who feeds it


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    found = RunLayout(tmp_path)
    Topic.create(found.topic("a"), parse_schema("id long"))
    return found


def until_done(feeding: ProducerThreads) -> None:
    deadline = time.monotonic() + 10
    while not feeding.is_done and time.monotonic() < deadline:
        time.sleep(0.01)


def ids(layout: RunLayout, name: str = "a") -> list[int]:
    topic = Topic.open(layout.topic(name))
    return [n for batch in topic.read(0, topic.end, ["id"]) for n in batch.column(0).to_pylist()]


def test_producers_fill_topics_and_are_done(layout: RunLayout) -> None:
    load = Workload.of_steps([100.0], 0.5)
    feeding = ProducerThreads(made(), layout, load, seed=1)
    feeding.start()
    assert not feeding.is_done
    until_done(feeding)
    assert feeding.error is None
    assert ids(layout) == list(range(50))
    assert feeding.second == 0.5


def test_producers_go_on_where_the_topic_ends(layout: RunLayout) -> None:
    load = Workload.of_steps([100.0], 0.6)
    first = ProducerThreads(made(), layout, load, seed=1)
    first.start()
    time.sleep(0.2)
    first.stop()
    held_rows = Topic.open(layout.topic("a")).end
    assert 0 < held_rows < 60
    again = ProducerThreads(made(), layout, load, seed=1)
    again.start()
    assert again.begin_s == pytest.approx((held_rows + 1) / 100)
    until_done(again)
    assert ids(layout) == list(range(60))


def test_topics_get_their_shares_of_the_workload(layout: RunLayout) -> None:
    pipeline = made()
    Topic.create(layout.topic("c"), parse_schema("id long"))

    @pipeline.produces("c", arrivals="deterministic", share=0.25)
    def fewer(first_id: int, due: pa.Array) -> pa.Table:
        return pa.table({"id": range(first_id, first_id + len(due))})

    feeding = ProducerThreads(pipeline, layout, Workload.of_steps([100.0], 0.4), seed=1)
    feeding.start()
    until_done(feeding)
    assert feeding.error is None
    assert (ids(layout), ids(layout, "c")) == (list(range(40)), list(range(10)))


def test_a_producer_that_fails_is_done_and_says_why(layout: RunLayout) -> None:
    pipeline = made()
    pipeline.feeds.clear()

    @pipeline.produces("a")
    def wrong(first_id: int, due: pa.Array) -> pa.Table:
        raise ZeroDivisionError("no rows today")

    feeding = ProducerThreads(pipeline, layout, Workload.of_steps([100.0], 5), seed=1)
    feeding.start()
    until_done(feeding)
    assert isinstance(feeding.error, InputError)
    assert "no rows today" in str(feeding.error)


# --- when it is over


class Queue:
    """An engine of which only the queue is of interest."""

    def __init__(self) -> None:
        self.is_drained, self.operator_errors = False, {}


class Fed:
    """Producers that are done when somebody says so."""

    def __init__(self) -> None:
        self.is_done, self.error = False, None


class Rig:
    """An ending with a clock by hand."""

    def __init__(self) -> None:
        self.now, self.engine, self.feeding, self.stop = 100.0, Queue(), Fed(), StopRequest()
        self.ending = StopCondition(self.engine, self.feeding, self.stop, lambda: self.now)  # type: ignore[arg-type]

    def is_over(self, after: float = 0.0) -> bool:
        self.now += after
        return self.ending()


def test_it_is_over_when_nothing_has_waited_for_a_while() -> None:
    rig = Rig()
    rig.engine.is_drained = True
    assert not rig.is_over(10)  # drained, but more will come
    rig.feeding.is_done = True
    assert not rig.is_over()
    assert not rig.is_over(QUIET_S / 2)
    rig.engine.is_drained = False  # a batch had taken its rows, and only now published them
    assert not rig.is_over(QUIET_S)
    assert rig.ending.is_draining
    rig.engine.is_drained = True
    assert not rig.is_over()
    assert rig.is_over(QUIET_S)
    assert rig.ending.is_drained


def test_what_never_drains_is_cut_off() -> None:
    rig = Rig()
    rig.feeding.is_done = True
    assert not rig.is_over()
    assert not rig.is_over(DRAIN_S - 1)
    assert rig.is_over(2)
    assert not rig.ending.is_drained


def test_it_is_over_when_somebody_asks() -> None:
    rig = Rig()
    assert not rig.is_over()
    rig.stop.is_asked = True
    assert rig.is_over()
    assert not rig.ending.is_drained


def test_a_run_ends_when_an_operator_is_given_up() -> None:
    rig = Rig()
    assert not rig.is_over()
    rig.engine.operator_errors = {"copy": "why"}
    assert rig.is_over()
    assert not rig.ending.is_drained


def test_an_engine_is_looked_at_while_it_waits_and_left_early() -> None:
    engine, looks, over = FakeEngine(), [], threading.Event()
    clock = iter(range(100))

    def look(snapshot: object) -> None:
        looks.append(snapshot)
        if len(looks) == 3:
            over.set()

    ObservedEngine(engine, over.is_set, look, lambda: next(clock) / 10).advance(50.0)
    assert len(looks) == 3
    assert engine.now_s == pytest.approx(1.5)


def test_ctrl_c_stays_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with keep_signal_handlers():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before
