"""Engines that are stopped after each test."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.workloads.workload import Workload

QUICK = BatchTiming(batch_s=0.5, min_interval_s=0.2, window_s=4.0)


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path / "run")


class Started:
    """Engines that were started, with what feeds them."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark, self._home = spark, home
        self.engines: list[SparkEngine] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def engine(
        self, pipeline: Pipeline, load: Workload | None = None, layout: RunLayout | None = None
    ) -> SparkEngine:
        """Start an engine; its feeds follow the load, evenly."""
        layout = layout or RunLayout(self._home / f"run-{len(self.engines)}")
        engine = SparkEngine(self._spark, pipeline, layout, timing=QUICK)
        self.engines.append(engine)
        engine.start()
        for feed in pipeline.feeds.values() if load is not None else ():
            thread = threading.Thread(target=self._feed, args=(layout, feed, load), daemon=True)
            thread.start()
            self._threads.append(thread)
        return engine

    def _feed(self, layout: RunLayout, feed: object, load: Workload) -> None:
        with TopicWriter(Topic.open(layout.topic(feed.topic)), "feed") as writer:  # type: ignore[attr-defined]
            Producer(writer, feed.make, load).run(stop=self._stop)  # type: ignore[attr-defined]

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for engine in self.engines:
            engine.stop()


@pytest.fixture
def started(spark: SparkSession, tmp_path: Path) -> Iterator[Started]:
    all_of_them = Started(spark, tmp_path)
    yield all_of_them
    all_of_them.stop()


def until(engine: SparkEngine, done: Callable[[], bool], within_s: float = 240.0) -> None:
    """Let an engine run until something is so."""
    waited = 0.0
    while not done():
        errors = engine.operator_errors
        assert waited < within_s, f"still not so after {within_s} s; failed: {errors}"
        engine.advance(0.25)
        waited += 0.25
