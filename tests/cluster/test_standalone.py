"""`penstock run` on a real standalone cluster of Spark: rescales, and a worker that is killed.

Run by `make test-cluster`; everything is on this machine, so the run directory is shared.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands.test_run import Command, started
from tests.system.test_open_pipeline import POLICY
from tests.tools.standalone_cluster import StandaloneCluster

from penstock.topics.embedded.topic import Topic

pytestmark = [pytest.mark.spark, pytest.mark.long]
WITHIN_S = 400.0
PIPELINE = """
import time

import pyarrow as pa

from penstock import Pipeline

numbers = Pipeline("numbers", objective_s=10)
numbers.topic("raw", "id long")
numbers.topic("done", "id long", keep="1 day")


@numbers.produces("raw", arrivals="deterministic")
def rows(first_id, due):
    return pa.table({"id": range(first_id, first_id + len(due))})


@numbers.batches(reads="raw", writes="done", max_replicas=2)
def work(batch):
    time.sleep(batch.num_rows * 0.004)
    return {"id": batch["id"]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        yield cluster


def options(home: Path, cluster: StandaloneCluster, *more: str) -> list[str]:
    (home / "numbers.py").write_text(PIPELINE)
    (home / "swing.py").write_text(POLICY)
    return [
        *(str(home / "numbers.py"), "--policy", str(home / "swing.py"), "--interval", "6"),
        *("--guard", "cooldown_up_s=off", "--guard", "cooldown_down_s=off", "--plain"),
        *("--workload", "cosine", "--rate-scale", "0.00005", "--minutes", "2"),
        *("--master", cluster.url, "--conf", "spark.executor.memory=600m", *more),
    ]


def until(command: Command, run: Path, rows: int) -> None:
    deadline = time.monotonic() + WITHIN_S
    while len(ids(run)) < rows:
        assert command.process.poll() is None, command.err
        assert time.monotonic() < deadline, command.err
        time.sleep(0.5)


def ids(run: Path, topic: str = "done") -> list[int]:
    directory = run / "topics" / topic
    if not (directory / "topic.json").is_file():
        return []
    log = Topic.open(directory)
    return [row["id"] for batch in log.read(log.first, log.end) for row in batch.to_pylist()]


def test_a_worker_is_killed_and_every_row_is_there_once(
    tmp_path: Path, cluster: StandaloneCluster
) -> None:
    run = tmp_path / "run"
    chosen = options(tmp_path, cluster, "--executors", "1:2", "--out", str(run))
    with started(run, *chosen) as command:
        until(command, run, 500)
        cluster.kill_busy_worker()
        killed_at = len(ids(run))
        until(command, run, killed_at + 500)
        cluster.add_worker()
        code, result = command.ends()
    assert code == 0, command.err
    assert "Traceback" not in command.err
    counts = Counter(ids(run))
    assert set(counts.values()) == {1}, "a row came twice"
    assert set(counts) == set(range(len(counts)))
    assert len(counts) > 4_000
    assert result["records"]["lost"] == 0
    journal = (run / "journal.jsonl").read_text()
    assert '"why":"lost"' in journal, "the lost executor is told"
    assert cluster.executors() >= 2
