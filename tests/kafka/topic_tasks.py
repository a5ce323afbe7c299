"""The sink of an operator with two outputs in Kafka, without Spark; as a program, it is killed.

python -m tests.kafka.topic_tasks RUN ADDRESS MOMENT
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.tools.kafka_rows import read_rows

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io import sink, task_attempt
from penstock.engines.spark.io.plans import BatchPlan, TaskInput, save_plan
from penstock.engines.spark.io.sink import TopicSink
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.kind import SparkKind, TaskResult, find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.task_transaction import KafkaTransaction
from penstock.topics.kafka.transactional_producer import TransactionalProducer

#: Moments at which a task is killed, and the call that it does not come back from.
MOMENTS: dict[str, tuple[type, str]] = {
    "sent": (KafkaTransaction, "commit"),
    "noted": (TransactionalProducer, "commit"),
    "committed": (KafkaTransaction, "_remove_notes"),
}


class Rows(SparkKind):
    """A kind whose tasks write given numbers to two topics."""

    def make_query(self, query: Any) -> Any:
        raise NotImplementedError

    def run_task(self, layout: Any, bundle: Any, rows: Any, outputs: Any) -> TaskResult:  # noqa: ARG002
        ids = [number for batch in rows for number in batch.column(0).to_pylist()]
        values = {"id": ids, "_event": [0] * len(ids)}
        outputs.write(pa.RecordBatch.from_pydict(values, outputs.schema("b")))
        text = [""] * len(ids)
        letters = {"topic": text, "offset": ids, "error": text, "row": text}
        schema = outputs.schema("copy-errors")
        letter = pa.RecordBatch.from_pydict({**letters, "_event": [0] * len(ids)}, schema)
        outputs.write(letter, "copy-errors")
        return TaskResult(
            task=TaskRecord(
                rows_in=len(ids), rows_out=len(ids), busy_s=1, cpu_s=1, began=0, ended=1
            )
        )


class Operator:
    """The sink of an operator with two outputs in Kafka, without Spark around it."""

    def __init__(self, run: Path, address: str) -> None:
        self._place = parse_address(address)
        self.layout = RunLayout(run)
        self.pipeline = Pipeline("two", topics=address)
        self.pipeline.topic("a", "id long", external=True)
        self.pipeline.topic("b", "id long")

        @self.pipeline.batches("a", "b", on_error="dead-letter")
        def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

        self.operator = copy
        make_topics(self.pipeline, self.layout)
        self.sink = TopicSink(str(run), "copy")
        self.set_kind(find_spark_kind(copy.kind))

    def set_kind(self, kind: SparkKind) -> None:
        """Let the tasks of the sink be those of a kind that writes given rows."""
        rows = Rows(name=kind.name, reads_outside=kind.reads_outside)
        schemas = {name: Topic.open(self.layout.topic(name)).schema for name in self.operator.fills}
        bundle = OperatorBundle(operator=self.operator, kind=rows, outputs=schemas)
        self.layout.code("copy").parent.mkdir(parents=True, exist_ok=True)
        self._bundle = bundle

    def write(self, batch: int, index: int, ids: list[int]) -> TaskMessage:
        """Run a task of a batch."""
        self._set_context(batch, index)
        rows = pa.RecordBatch.from_pydict({"id": ids})
        message = self.sink.write(iter([rows]))
        assert isinstance(message, TaskMessage)
        return message

    def commit(self, batch: int, messages: list[TaskMessage]) -> None:
        """Commit a batch."""
        tasks = tuple(
            TaskInput(index=n, replicas=len(messages), parts=()) for n in range(len(messages))
        )
        start, end = {"a": batch}, {"a": batch + 1}
        plan = BatchPlan(start=start, end=end, planned_at=0, tasks=tasks)
        save_plan(self.layout.plan("copy"), plan)
        self._set_context(batch, 0)
        self.sink.commit(messages, batch)

    def _set_context(self, batch: int, index: int) -> None:
        """Say what Spark would say in the process of a task."""
        names: dict[str, Any] = vars(task_attempt)
        names["read_batch_number"], names["read_task_number"] = lambda: batch, lambda: index
        vars(sink)["load_bundle"] = lambda _: self._bundle

    def published(self) -> list[int]:
        """Return the numbers that readers of the pipeline see."""
        topic = Topic.open(self.layout.topic("b"))
        return [n for rows in topic.read(topic.first, topic.end) for n in rows["id"].to_pylist()]

    def seen(self, isolation: str = "read_committed", topic: str = "b") -> list[int]:
        """Return the numbers that foreign readers see."""
        rows = read_rows(self._place.bootstrap, f"{self._place.topic}.{topic}", isolation)
        column = "id" if topic == "b" else "offset"
        return sorted(json.loads(row)[column] for row in rows.elements())


def main() -> None:
    """Write a task of batch 0 and die at a moment."""
    run, address, moment = sys.argv[1:]
    place, name = MOMENTS[moment]
    setattr(place, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    Operator(Path(run), address).write(0, 0, [1, 2, 3])


if __name__ == "__main__":
    main()
