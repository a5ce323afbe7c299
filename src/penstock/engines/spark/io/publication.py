"""Publishes the rows of recorded batches, each once, and completes what a kill interrupted."""

import time
from collections.abc import Callable

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.state_versions import remove_unused_files
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.completeness import mark_complete
from penstock.topics.embedded.readers import forget, positions, save_position
from penstock.topics.embedded.retention import remove_leftovers
from penstock.topics.embedded.topic import Topic


def publish_batch(
    operator: Operator, record: BatchRecord, open_topic: Callable[[str], Topic]
) -> None:
    """Publish the segments of a record; a published batch changes nothing.

    Topics are complete when the batch has read its source batches to their ends, even if it
    wrote no rows.
    """
    is_complete = not record.open_inputs
    for name in operator.fills:
        topic, segments = open_topic(name), record.outputs.get(name, ())
        topic.refresh()
        if segments:
            columns = topic.schema.names
            topic.publish(
                operator.name,
                record.batch,
                segments,
                record.committed_at,
                is_complete=is_complete,
                event_times={c: time for c, time in record.event_times.items() if c in columns},
            )
        elif is_complete:
            mark_complete(topic)


def recover(pipeline: Pipeline, layout: RunLayout) -> None:
    """Complete what a killed run left unfinished, and register the readers of each topic."""
    for operator in pipeline.operators.values():
        _finish(layout, operator)
    for name in pipeline.topics:
        readers = [op.name for op in pipeline.operators.values() if name in op.reads]
        _register(layout, Topic.open(layout.topic(name)), readers)


def _finish(layout: RunLayout, operator: Operator) -> None:
    """Publish the segments of the last record, then remove segments that no record names.

    A batch with a record is decided, even if its rows did not reach every topic; Spark runs it
    again, finds the record and changes nothing. Attempts without a record do not count.
    """
    record = BatchLog(layout.batches(operator.name)).last()
    topics = {name: Topic.open(layout.topic(name)) for name in operator.fills}
    if record is not None:
        publish_batch(operator, record, topics.__getitem__)
    for topic in topics.values():
        remove_leftovers(topic, time.time())
    remove_unused_files(layout.state(operator.name), BatchLog(layout.batches(operator.name)))


def _register(layout: RunLayout, topic: Topic, readers: list[str]) -> None:
    """Keep rows for operators that have not begun; forget operators that were removed."""
    known = positions(topic.directory)
    for reader in known.keys() - set(readers):
        if layout.config(reader).is_file():
            forget(topic.directory, reader)
    for reader in set(readers) - known.keys():
        save_position(topic.directory, reader, topic.first)
