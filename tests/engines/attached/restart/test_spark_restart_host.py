"""What is asked of Spark for a restart, and what is made of its checkpoint; Spark is a fake."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.engines.attached.test_spark_application import Answers

from penstock.engines.attached.restart.batch_gate import stop_between_batches
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.engines.attached.restart.query_restarter import StateFacts
from penstock.engines.attached.restart.spark_restart_host import SparkRestartHost
from penstock.engines.spark.recovery.checkpoints import PARTITIONS
from penstock.errors import InputError, RescaleError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Query:
    """A StreamingQuery with one batch that runs until `end_batch`."""

    def __init__(self, root: str, *, is_working: bool = False) -> None:
        self.runId, self.recentProgress = "r1", ()
        self.root, self.isActive, self.is_held = root, True, False
        self.lastProgress: dict[str, Any] | None = {"stateOperators": [{"numRowsTotal": 7}]}
        self.error: Exception | None = None
        self.status = {"isDataAvailable": False, "message": "Initializing sources"}
        self.planned, self.committed = 3, 2 if is_working else 3
        self.message = "Processing new data" if is_working else "Waiting for next trigger"
        self.stops_held: list[bool] = []
        lock = Answers(lock=self._lock, unlock=self._unlock)
        execution = Answers(
            awaitProgressLock=lock,
            resolvedCheckpointRoot=lambda: self.root,
            offsetLog=Answers(getLatestBatchId=lambda: Answers(equals=self._is_committed)),
            commitLog=Answers(getLatestBatchId=None),
        )
        self._jsq = Answers(
            isActive=lambda: self.isActive,
            streamingQuery=execution,
            status=lambda: Answers(isTriggerActive=self.committed < 3, message=self.message),
        )

    def _is_committed(self, _other: object) -> bool:
        return self.planned == self.committed

    def _lock(self) -> None:
        self.is_held = True

    def _unlock(self) -> None:
        """Let a batch that runs be committed."""
        self.is_held, self.committed = False, self.planned

    def stop(self) -> None:
        self.stops_held.append(self.is_held)
        self.isActive = False

    def exception(self) -> Exception | None:
        return self.error


class Session:
    """A SparkSession with settings and Spark's tool, which does as `tool` says."""

    version = "4.3.0"

    def __init__(self, **settings: str) -> None:
        self.conf, self.settings = self, dict(settings)
        self.tool: Any = lambda _place, _partitions: None
        self._streamingCheckpointManager = self

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def unset(self, name: str) -> None:
        self.settings.pop(name, None)

    def repartition(self, place: str, partitions: int) -> None:
        self.tool(Path(place), partitions)


def write_batch(root: Path, number: int, partitions: int, *, is_committed: bool = True) -> None:
    for name in ("offsets", "commits", "state/0"):
        (root / name).mkdir(parents=True, exist_ok=True)
    conf = {PARTITIONS: str(partitions), PROVIDER: ROCKSDB}
    (root / "offsets" / str(number)).write_text("v1\n" + json.dumps({"conf": conf}) + "\n-")
    if is_committed:
        (root / "commits" / str(number)).write_text("v1\n{}")


def make_host(
    query: Any, session: Session | None = None, factory: Any = None
) -> tuple[SparkRestartHost, ElasticQuery]:
    elastic = ElasticQuery(
        factory or (lambda _spark, _k: query), bounds=(1, 8), initial=2, deadline_s=0.3
    )
    spark: Any = session or Session()
    return SparkRestartHost(spark, elastic), elastic


def test_a_query_is_stopped_behind_a_batch_while_it_cannot_plan_another():
    query: Any = Query("/work", is_working=True)
    threads = threading.active_count()
    assert stop_between_batches(query, lambda: query.planned == query.committed, 5.0)
    assert query.stops_held == [True]
    assert threading.active_count() <= threads + 1


def test_a_batch_that_takes_too_long_is_interrupted():
    query: Any = Query("/work")
    assert not stop_between_batches(query, lambda: False, 0.1)
    assert query.stops_held == [False]
    assert not stop_between_batches(query, lambda: True, 5.0)  # it has ended by itself


def test_the_factory_runs_with_its_number_of_shuffle_partitions(tmp_path: Path):
    seen, session = [], Session(**{PARTITIONS: "200"})

    def start(spark: Any, k: int) -> Any:
        seen.append((k, spark.conf.get(PARTITIONS)))
        if k == 5:
            spark.conf.set(PARTITIONS, "10")
        return Query(f"file:{tmp_path}")

    host, elastic = make_host(None, session, start)
    assert (host.start(3), host.start(5)) == (3, 10)
    assert seen == [(3, "3"), (5, "5")]
    assert session.settings[PARTITIONS] == "200"
    assert elastic.partitions == 5
    elastic.stop()
    with pytest.raises(RescaleError):
        host.start(2)


@pytest.mark.parametrize(
    ("root", "settings"),
    [
        pytest.param("file:/tmp/temporary-5cd9", {}, id="none"),
        pytest.param(
            "file:/work/0a1b2c3d-0000-1111-2222-0123456789ab",
            {"spark.sql.streaming.checkpointLocation": "/work"},
            id="chosen at random, below that of the session",
        ),
    ],
)
def test_a_query_needs_a_checkpoint_that_stays(root, settings):
    query = Query(root)
    host, _ = make_host(query, Session(**settings))
    with pytest.raises(InputError) as error:
        host.start(2)
    assert error.value.field == "factory"
    assert not query.isActive


def test_another_checkpoint_is_an_error():
    queries = iter([Query("/one"), Query("/two")])
    host, _ = make_host(None, None, lambda _spark, _k: next(queries))
    host.start(2)
    with pytest.raises(RescaleError, match="/one to /two"):
        host.start(3)


def test_a_query_is_healthy_once_it_has_made_progress_or_waits_for_rows(tmp_path: Path):
    query = Query(f"file:{tmp_path}")
    host, _ = make_host(query)
    host.start(2)
    host.verify()
    query.lastProgress = None
    with pytest.raises(RescaleError, match=r"within 0\.3 s"):
        host.verify()
    query.status["message"] = "Waiting for data to arrive"
    host.verify()
    query.status["message"] = "Initializing sources"
    query.isActive, query.error = False, Exception("ValueError: boom")
    with pytest.raises(RescaleError, match="boom"):
        host.verify()


def test_state_is_read_from_the_checkpoint(tmp_path: Path):
    query = Query(f"file:{tmp_path}")
    host, _ = make_host(query)
    assert host.count_state_rows() is None  # not started yet
    host.start(2)
    assert host.read_state() is None
    write_batch(tmp_path, 6, 2)
    assert host.read_state() == StateFacts(2, True)
    assert (host.count_state_rows(), host.explain_refusal()) == (7, "")
    write_batch(tmp_path, 7, 3, is_committed=False)
    assert host.read_state() == StateFacts(3, False, is_interrupted=True)
    write_batch(tmp_path, 7, 2, is_committed=False)
    assert host.read_state() == StateFacts(2, False)


def test_state_that_cannot_be_repartitioned_says_why(tmp_path: Path):
    query = Query("hdfs://far/away")
    host, _ = make_host(query)
    host.start(2)
    assert "hdfs://far/away" in host.explain_refusal()
    query.lastProgress = {"stateOperators": []}
    assert host.explain_refusal() == ""
    query = Query(f"file:{tmp_path}")
    session = Session()
    host, _ = make_host(query, session)
    host.start(2)
    write_batch(tmp_path, 6, 2)
    log = tmp_path / "offsets" / "6"
    log.write_text(log.read_text().replace("RocksDB", "HDFSBacked"))
    assert "HDFSBackedStateStoreProvider" in host.explain_refusal()
    session.version = "4.1.0"
    assert "4.1.0" in host.explain_refusal()


def test_a_repartition_that_fails_half_way_is_tried_again(tmp_path: Path):
    query, session = Query(f"file:{tmp_path}"), Session()
    host, _ = make_host(query, session)
    host.start(2)
    write_batch(tmp_path, 6, 2)
    tries: list[int] = []

    def fail_once(_place: Path, partitions: int) -> None:
        tries.append(partitions)
        write_batch(tmp_path, 7, partitions, is_committed=len(tries) > 1)
        if len(tries) == 1:
            raise OSError("disk full")

    session.tool = fail_once
    host.repartition(3)
    assert tries == [3, 3]
    assert host.read_state() == StateFacts(3, True)

    def refuse(_place: Path, _partitions: int) -> None:
        raise OSError("not supported")

    session.tool = refuse
    with pytest.raises(RescaleError, match="not supported"):
        host.repartition(4)


def test_a_query_that_runs_is_stopped_before_a_start(tmp_path: Path):
    query = Query(f"file:{tmp_path}")
    host, _ = make_host(query)
    host.stop()  # nothing runs yet
    host.start(2)
    host.stop()
    assert not query.isActive
