"""The process of the engine: started, started again, stopped; what its directory tells."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import PLAIN

from penstock.errors import InputError, RunError
from penstock.files.lock import Lock
from penstock.pipelines.host_declaration import Hosts
from penstock.pubsub.pipeline import PubSubOptions
from penstock.pubsub.server import engine_process
from penstock.pubsub.server.engine_process import EngineProcess
from penstock.pubsub.server.engine_status import RunDirectoryStatus, read_slice_loads
from penstock.pubsub.server.service_directory import declare_space
from penstock.pubsub.server.spark_engine import ENGINE_FILE, agree_options, load_pipeline
from penstock.runs.run_directory import JOURNAL

#: Notes its start, makes a file, and ends politely or at once.
RUN = """
import signal, sys, time
from pathlib import Path
run = Path(sys.argv[1])
run.mkdir(exist_ok=True)
with (run / "starts").open("a") as stream:
    stream.write("x")
def end(*_):
    (run / "stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
(run / "ready").touch()
time.sleep(float(sys.argv[2]))
sys.exit(3)
"""


def make_engine(tmp_path: Path, seconds: float) -> EngineProcess:
    run = tmp_path / "run"
    command = [sys.executable, "-c", RUN, str(run), str(seconds)]
    return EngineProcess(command, run, tmp_path / "run.log")


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_runs_beside_the_server_and_ends_politely(tmp_path: Path) -> None:
    with make_engine(tmp_path, 60) as engine:
        engine.wait_for(tmp_path / "run" / "ready")
        assert engine.problem == ""
    assert (tmp_path / "run" / "stopped").exists()
    assert (tmp_path / "run" / "starts").read_text() == "x"


def test_it_is_started_again_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_MIN_WAIT_S", 0.1)
    starts = tmp_path / "run" / "starts"
    with make_engine(tmp_path, 0) as engine:
        wait_until(lambda: starts.exists() and len(starts.read_text()) >= 3)
        wait_until(lambda: "the run ended with code 3" in engine.problem)
        with pytest.raises(RunError, match="ended with code 3"):
            engine.wait_for(tmp_path / "run" / "nothing")


def test_a_run_of_another_process_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with Lock(tmp_path / "run" / "lock"), make_engine(tmp_path, 60):
        time.sleep(0.5)
    assert not (tmp_path / "run" / "starts").exists()


def test_a_directory_without_a_run_is_starting(tmp_path: Path) -> None:
    status = RunDirectoryStatus(tmp_path / "run")()
    assert status["kind"] == "spark" and status["state"].startswith("starting")
    assert RunDirectoryStatus(tmp_path, lambda: "it ended")()["state"] == "it ended"


def test_loads_are_those_of_the_last_tick(tmp_path: Path) -> None:
    def tick(cpu: float) -> dict[str, object]:
        slices = {"match/1": {"cpu": cpu, "memory": 1}, "match/0": {"cpu": 0.1, "memory": 1}}
        return {"snapshot": {"hosts": {"host-0": {"slices": slices}}}}

    assert read_slice_loads(tmp_path) == {}
    lines = [json.dumps(tick(0.2)), json.dumps(tick(0.4)), json.dumps({"at": 3}), '{"hosts": cut']
    (tmp_path / JOURNAL).write_text("\n".join(lines))
    assert read_slice_loads(tmp_path) == {"match/1": 0.4, "match/0": 0.1}
    (tmp_path / JOURNAL).write_text(f"{lines[2]}\n")
    assert read_slice_loads(tmp_path) == {}


def test_slices_and_hosts_are_fixed_at_the_first_start(tmp_path: Path) -> None:
    hosts = Hosts(start=1, most=4, share=0.25)
    wanted = PubSubOptions(access_slices=2, match_slices=4, exit_slices=3, hosts=hosts)
    with declare_space(tmp_path, PLAIN):
        assert agree_options(tmp_path / ENGINE_FILE, wanted) == wanted
    assert agree_options(tmp_path / ENGINE_FILE, None) == wanted
    assert agree_options(tmp_path / ENGINE_FILE, wanted) == wanted
    with pytest.raises(InputError, match='"match_slices": 4'):
        agree_options(tmp_path / ENGINE_FILE, PubSubOptions())
    pipeline = load_pipeline(tmp_path)
    assert pipeline.hosts == hosts
    assert [op.slicing.slices for op in pipeline.operators.values() if op.slicing] == [2, 4, 3]
    (tmp_path / ENGINE_FILE).write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        load_pipeline(tmp_path)
