"""The JVM of a run: it listens to this machine only, and never outlives who started it."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.tools.processes import (
    LOOPBACK,
    MARK,
    command_lines,
    descendants,
    listened_on,
    marked,
)

from penstock.engines.spark.cluster import jvm
from penstock.errors import LockedError
from penstock.files.lock import Lock

SEED = 20_161_024
#: What a run says while it starts, and the seconds after it within which a signal comes.
STAGES = ("starting Spark", "starting Spark", "starting 1 operator", "started in")
WITHIN_S = 4.0
PIPELINE = """
import pyarrow as pa
from penstock import Pipeline

PIPELINE = Pipeline("one")
PIPELINE.topic("a", "id long")
PIPELINE.topic("b", "id long")

@PIPELINE.produces("a")
def rows(first_id, due):
    return pa.table({"id": range(first_id, first_id + len(due))})

@PIPELINE.batches(reads="a", writes="b")
def copy(batch):
    return batch
"""


@pytest.mark.spark
def test_nobody_listens_to_other_machines(spark: SparkSession) -> None:
    found = descendants(os.getpid())
    assert spark.version and "org.apache.spark.deploy.SparkSubmit" in command_lines(found)
    assert listened_on(found) and listened_on(found) <= LOOPBACK


def test_a_child_dies_with_its_parent_whatever_that_dies_of(tmp_path: Path) -> None:
    """Without a JVM: a process that reads no input and ignores every polite signal."""
    code = (
        "import os, signal, sys, time\n"
        "from penstock.engines.spark.cluster import jvm\n"
        "stubborn = 'import signal, time\\n'\n"
        "stubborn += 'for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\\n'\n"
        "stubborn += 'time.sleep(600)'\n"
        "child = jvm._spawn([sys.executable, '-c', stubborn])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(0.5)\n"
        "{end}\n"
    )
    for end in ("os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)", "sys.exit(0)", "1 / 0"):
        parent = [sys.executable, "-c", code.format(end=end)]
        done = subprocess.run(parent, capture_output=True, text=True, timeout=60)
        pid = int(done.stdout)
        assert until_gone(lambda pid=pid: not Path(f"/proc/{pid}").exists()), end


def until_gone(is_gone: Callable[[], bool], within_s: float = 20.0) -> bool:
    deadline = time.monotonic() + within_s
    while not is_gone() and time.monotonic() < deadline:
        time.sleep(0.1)
    return is_gone()


def is_free(lock: Path) -> bool:
    """Whether a run could start: a process that is just being ended may have the lock for long."""
    try:
        with Lock(lock):
            return True
    except LockedError:
        return False


def end_while_starting(home: Path, stage: str, after_s: float, number: signal.Signals) -> None:
    """Send a signal so long after a run has said something; nothing of it may be left."""
    run, pipeline, said = home / "run", home / "one.py", home / "said.txt"
    pipeline.write_text(PIPELINE)
    command = [sys.executable, "-m", "penstock", "run", str(pipeline), "--plain", "--out", str(run)]
    with said.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, env={**os.environ, MARK: str(home)}
        )
    try:
        assert until_gone(
            lambda: stage in said.read_text() or process.poll() is not None, within_s=180.0
        )
        time.sleep(after_s)
        assert process.poll() is None, f"it ended before the signal: {said.read_text()}"
        process.send_signal(number)
        # the run ends by the signal, or says which one stopped it
        assert process.wait(timeout=120) in (-number, 128 + number), said.read_text()
    finally:
        process.kill()
        process.wait()
    what = f"{number.name} {after_s:.1f} s after {stage!r}"
    assert until_gone(lambda: not marked(str(home))), f"{what}: {marked(str(home))}"
    assert until_gone(lambda: not run.is_dir() or is_free(run / "lock")), what
    assert "Traceback" not in said.read_text(), what


@pytest.mark.spark
def test_a_run_that_ends_while_it_starts_leaves_no_process(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for number, stage in enumerate(STAGES):
        home = tmp_path / str(number)
        home.mkdir()
        sent = (signal.SIGTERM, signal.SIGKILL)[number % 2]
        end_while_starting(home, stage, rng.uniform(0, WITHIN_S) / (1 + number), sent)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_twenty_random_moments_of_a_start(tmp_path: Path, number: int) -> None:
    rng = random.Random(SEED + number)
    sent = rng.choice((signal.SIGTERM, signal.SIGKILL))
    end_while_starting(tmp_path, rng.choice(STAGES), rng.uniform(0, 2 * WITHIN_S), sent)


def test_a_jvm_that_does_not_start_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm, "_started", [])
    monkeypatch.setattr(jvm, "_command", lambda _: [sys.executable, "-c", "raise SystemExit(1)"])
    with (tmp_path / "out").open("wb") as stream, pytest.raises(Exception, match="JAVA_GATEWAY"):
        jvm.start_gateway(None, tmp_path, stream)  # type: ignore[arg-type]
    assert jvm._started == []


def has_ended(pid: int) -> bool:
    """Whether a process has ended; whoever adopted it may not have noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_worker_that_hangs_ends_with_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have a process group of their own, and one that hangs reads no input."""
    worker = "import time; time.sleep(600)"
    code = (
        "import subprocess, sys, time\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {worker!r}], process_group=0)\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr(jvm, "_started", [])
    process = jvm._spawn([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as stream:
        pid = int(stream.readline())
    assert not has_ended(pid)
    jvm.kill_jvm()
    assert process.poll() is not None
    assert until_gone(lambda: has_ended(pid))


def test_the_gateway_of_a_jvm_is_bound_to_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os, sys; sys.exit(os.environ['SPARK_LOCAL_IP'])"
    monkeypatch.setattr(jvm, "_started", [])
    monkeypatch.setattr(jvm, "_command", lambda _: [sys.executable, "-c", code])
    monkeypatch.setenv("SPARK_LOCAL_IP", "0.0.0.0")
    with (tmp_path / "out").open("wb") as stream, pytest.raises(Exception, match="JAVA_GATEWAY"):
        jvm.start_gateway(None, tmp_path, stream)  # type: ignore[arg-type]
    assert (tmp_path / "out").read_text().strip() == jvm.LOOPBACK


def test_an_interrupt_kills_a_jvm_that_is_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        pids.extend(process.pid for process in jvm._started)
        raise KeyboardInterrupt

    pids: list[int] = []
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(jvm, "_started", [])
    monkeypatch.setattr(jvm, "_command", lambda _: sleeper)
    monkeypatch.setattr(jvm, "_connect", interrupted)
    with (tmp_path / "out").open("wb") as stream, pytest.raises(KeyboardInterrupt):
        jvm.start_gateway(None, tmp_path, stream)  # type: ignore[arg-type]
    assert len(pids) == 1 and not Path(f"/proc/{pids[0]}").exists()
