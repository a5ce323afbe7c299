"""Topics with Nexmark events, complete or processed by the first operators of a pipeline."""

import threading
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.engines.spark.run_layout import RunLayout
from penstock.nexmark.event_order import KINDS
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import rows
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import EVENT, parse_schema

#: The events of the queries.
SETTING = StreamSettings(hot=False)
#: Rows of one call, as a producer asks for them at most.
PART = 1 << 16


def ready_rows(pipeline: Pipeline, topic: str, count: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a topic for this many events, by calling the operators before it."""
    (before,) = (op for op in pipeline.operators.values() if op.writes == topic)
    schema = before.output_schema
    assert schema is not None
    is_first = before.reads[0] in pipeline.feeds
    given = (
        whole_events(before.reads[0], count, schema.names)
        if is_first
        else ready_rows(pipeline, before.reads[0], count)
    )
    for batch in given:
        size = before.options.chunk_rows or batch.num_rows
        for low in range(0, batch.num_rows, size):
            yield before.function(batch.slice(low, size))


def whole_events(
    name: str, count: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one kind in this many events, with all or some columns."""
    kind = KINDS[name]
    known = parse_schema(kind.schema).names
    wanted = None if columns is None else [column for column in known if column in columns]
    _, end = kind.rows_within(0, count)
    for first in range(0, end, PART):
        yield from rows(kind, first, min(first + PART, end), SETTING, wanted).to_batches()


def fill(topic: Topic, made: Iterator[pa.RecordBatch], again: int = 1) -> None:
    """Write rows to a topic; `again` publishes the same files several times."""
    due = pa.array([int(time.time() * 1e6)] * PART, topic.schema.field(EVENT).type)
    segments, writer = [], topic.segment_writer()
    for batch in made:
        writer.write(batch.append_column(EVENT, due.slice(0, batch.num_rows)))
        if writer.rows >= 16 * PART:
            segments.append(writer.close())
            writer = topic.segment_writer()
    segments.append(writer.close())
    kept = [segment for segment in segments if segment is not None]
    for number in range(again):
        topic.publish("bench", number, kept, time.time())


def make_topics(pipeline: Pipeline, layout: RunLayout, names: Sequence[str]) -> list[Topic]:
    """Create some topics of a pipeline."""
    declared = (pipeline.topics[name] for name in names)
    return [
        Topic.create(layout.topic(topic.name), topic.schema, partition=topic.partition)
        for topic in declared
    ]


class TopicFeeder:
    """Appends rows to topics at a total rate while the `with` block runs."""

    def __init__(self, topics: Sequence[Topic], made: Sequence[pa.Table], rate: float) -> None:
        self._topics, self._made, self._rate = topics, made, rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        total = sum(map(len, self._made))
        each = [int(len(table) * self._rate * 0.1 / total) for table in self._made]
        writers = [TopicWriter(topic, "feed") for topic in self._topics]
        for writer in writers:
            writer.__enter__()
        step = 0
        while not self._stop.wait(0.1):
            for writer, table, count in zip(writers, self._made, each, strict=True):
                writer.append(table.slice(step * count, count))
            step += 1
        for writer in writers:
            writer.__exit__(None, None, None)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
