"""What Spark does with one operator, done by hand: plan a batch, run its tasks, commit it."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.io.sink import TopicSink
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import without_event

Row = dict[str, Any]
#: What functions note about their calls: they are pickled by value, this module is not.
CALLS: list[Any] = []


class ByHand:
    """One operator of a pipeline in a run directory."""

    def __init__(self, run: Path, pipeline: Pipeline, name: str) -> None:
        self.layout, self.pipeline, self.name = RunLayout(run), pipeline, name
        operator = pipeline.operators[name]
        pipeline.check()
        make_topics(pipeline, self.layout)
        make_operator_config(pipeline, operator, BatchTiming()).save(self.layout)
        self.order(1)

        def schemas(names: tuple[str, ...]) -> dict[str, pa.Schema]:
            return {n: Topic.open(self.layout.topic(n)).schema for n in names}

        bundle = OperatorBundle(
            operator=operator,
            kind=find_spark_kind(operator.kind),
            outputs=schemas(operator.fills),
            inputs=schemas(operator.reads),
        )
        save_bundle(self.layout.code(name), bundle)
        recover(pipeline, self.layout)
        self.sink = TopicSink(str(run), name)
        self.log = BatchLog(self.layout.batches(name))
        self.batch, self.at = 0, self.mind().first()

    def order(self, replicas: int) -> None:
        write_command(self.layout, self.name, Command(replicas=replicas))

    def mind(self) -> BatchPlanner:
        """A source process that has just started and knows nothing but what is on disk."""
        mind = BatchPlanner(self.layout, self.name)
        mind.log.next = 0
        return mind

    def put(self, rows: list[Row], topic: str | None = None) -> None:
        """Append rows to an input as one source batch."""
        log = Topic.open(self.layout.topic(topic or next(iter(self.at))))
        with TopicWriter(log, "test") as writer:
            writer.append(pa.Table.from_pylist(rows, without_event(log.schema)))

    def run(self, end: int, replicas: int, *, attempts: int = 1, crash: bool = False) -> None:
        """Run one batch of the only input."""
        (topic,) = self.at
        self.run_to({topic: end}, replicas, attempts=attempts, crash=crash)

    def run_to(
        self, ends: Mapping[str, int], replicas: int, *, attempts: int = 1, crash: bool = False
    ) -> None:
        """Run one batch that ends at these offsets."""
        start = {"at": dict(self.at), "skips": {}}
        end = {"at": dict(ends), "skips": {}}
        self.run_between(start, end, replicas, attempts=attempts, crash=crash)

    def run_between(
        self,
        start: dict[str, Any],
        end: dict[str, Any],
        replicas: int,
        *,
        attempts: int = 1,
        crash: bool = False,
    ) -> None:
        """Run one batch; earlier attempts get as far as their commit, or die before it."""
        for attempt in range(attempts):
            self.order(replicas + attempt)  # an attempt may have other replicas
            plan = self.mind().plan(start, end)
            messages = [self.task(task) for task in plan.tasks]
            if attempt < attempts - 1 and crash:
                continue  # killed before the commit: its files are leftovers
            self.sink.commit(messages, self.batch)
        self.batch, self.at = self.batch + 1, dict(end["at"])

    def task(self, task: object) -> Any:
        row = pa.record_batch({"task": [pickle.dumps(task)]})
        return self.sink.write(iter([row]))

    def out(self, topic: str) -> Iterator[Row]:
        log = Topic.open(self.layout.topic(topic))
        for batch in log.read(log.first, log.end):
            yield from batch.drop_columns(["_event"]).to_pylist()

    def on_disk(self) -> set[str]:
        folder = self.layout.state(self.name) / SEGMENTS
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
