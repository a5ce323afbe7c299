"""A driver on a cluster of its own: executors go from 1 to 3 and back to 1 under load.

There is one Spark context a process, so this one runs beside the tests; it tells what it saw as
one JSON object.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark_engines import until
from tests.tools.processes import command_lines, descendants, listened_on

from penstock.core.executors import ExecutorRules
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.executor_client import ExecutorClient
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.cluster.masters import parse_master
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.workloads.workload import Workload

RATE = 60.0
SERVICE_S = 0.005


def one_operator() -> Pipeline:
    pipeline = Pipeline("one")
    pipeline.topic("a", "id long")
    pipeline.topic("b", "id long, executor string")

    @pipeline.produces("a", arrivals="deterministic")
    def rows(first_id: int, due: pa.Array) -> pa.Table:
        return pa.table({"id": range(first_id, first_id + len(due))})

    @pipeline.batches(reads="a", writes="b", max_replicas=3)
    def work(batch: pa.RecordBatch) -> dict[str, Any]:
        time.sleep(batch.num_rows * SERVICE_S)
        # each executor works in a directory of its own, named by its number
        return {"id": batch["id"], "executor": [Path.cwd().name] * batch.num_rows}

    return pipeline


def drive(home: Path) -> dict[str, Any]:
    """Run it; return what was seen."""
    master, pipeline, layout = (
        parse_master("local-cluster[3,1,512]"),
        one_operator(),
        RunLayout(home),
    )
    spark = start_session("executors", 1, layout.log, master=master, executors=1)
    start_workers(spark, 1, home / "warm")
    rules = ExecutorRules(low=1, high=3, cores=1, delay_s=2.0)
    level = Executors(ExecutorClient(spark), rules, 1)
    timing = BatchTiming(batch_s=0.5, min_interval_s=0.2, window_s=4.0)
    engine = SparkEngine(spark, pipeline, layout, timing=timing, executors=level)
    engine.start()
    topics = {name: Topic.open(layout.topic(name)) for name in ("a", "b")}
    enough = threading.Event()
    feeding = threading.Thread(target=_feed, args=(topics["a"], pipeline, enough), daemon=True)
    feeding.start()

    counts = [level.alive]
    for replicas in (3, 1):
        engine.advance(2.0)
        engine.apply(Plan(replicas={"work": replicas}))
        counts.append(engine.status().executors_requested or 0)
        until(engine, lambda k=replicas: level.alive == k, within_s=90.0)  # type: ignore[misc]
        counts.append(level.alive)
        _until_all_work(engine, topics["b"], level.alive)
        if replicas > 1:
            all_of_us = descendants(os.getpid())
            listened, commands = listened_on(all_of_us), command_lines(all_of_us)
    enough.set()
    feeding.join()
    until(engine, lambda: engine.is_drained, within_s=60.0)
    status = engine.status()
    engine.stop()
    secret = spark.sparkContext.getConf().get("spark.authenticate.secret") or ""
    texts = (path.read_bytes() for path in home.rglob("*") if path.is_file())
    seen = {
        "listened": sorted(listened),
        "executors_seen": commands.count("CoarseGrainedExecutorBackend"),
        "secret_length": len(secret),
        "secret_shown": secret in commands or any(secret.encode() in text for text in texts),
        "counts": counts,
        "executor_s": status.executor_s,
        "replica_s": sum(status.replica_s.values()),
        "at": status.at,
        "offered": topics["a"].refresh(),
        "failed_tasks": _failed_tasks(spark),
        "failed": dict(engine.operator_errors),
        **_read(topics["b"]),
    }
    end_session(spark)
    left = sorted(path.name for path in home.iterdir() if path.name.startswith("spark"))
    return {**seen, "left": left, "lost_tasks": "Lost task" in layout.log.read_text()}


def _feed(topic: Topic, pipeline: Pipeline, enough: threading.Event) -> None:
    with TopicWriter(topic, "feed") as writer:
        load = Workload.of_steps([RATE], step_s=1e6)
        Producer(writer, pipeline.feeds["a"].make, load).run(stop=enough)


def _until_all_work(engine: SparkEngine, topic: Topic, executors: int) -> None:
    """Let it run until so many executors have written rows, and a second more."""

    def is_so() -> bool:
        topic.refresh()
        return len(_read(topic)["executors"]) >= executors

    until(engine, is_so, within_s=60.0)
    engine.advance(1.0)


def _read(topic: Topic) -> dict[str, Any]:
    topic.refresh()
    rows = pa.Table.from_batches(list(topic.read(topic.first, topic.end)) or [], topic.schema)
    return {
        "ids": rows["id"].to_pylist(),
        "executors": sorted(set(rows["executor"].to_pylist())),
    }


def _failed_tasks(spark: Any) -> int:
    known = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(known.apply(number).failedTasks() for number in range(known.size()))


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]))), flush=True)
