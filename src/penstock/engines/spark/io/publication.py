"""Publishes the rows of recorded batches, each once, and completes what a kill interrupted."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.state_versions import remove_unused_files
from penstock.engines.spark.io.task_attempt import list_pending_files
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.completeness import mark_complete
from penstock.topics.embedded.readers import forget, positions, save_position
from penstock.topics.embedded.retention import remove_leftovers
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT


def publish_batch(
    operator: Operator, record: BatchRecord, open_topic: Callable[[str], Topic]
) -> None:
    """Publish the segments of a record; a published batch changes nothing.

    Topics are complete when the batch has read its source batches to their ends, even if it
    wrote no rows. A record may name other topics than the operator fills: it has become a member
    of a chain since, or has been one.
    """
    is_complete = not record.open_inputs
    for name in dict.fromkeys((*operator.fills, *record.outputs)):
        topic, segments = open_topic(name), record.outputs.get(name, ())
        own = topic.schema.names
        topic.refresh()
        if segments:
            columns = _passed_columns(operator, own) if name in operator.outputs else own
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
    operators = pipeline.operators.values()
    for operator in operators:  # all of them first: a record may name the topic of another one
        _publish_last(layout, operator)
    for operator in operators:
        _remove_leftovers(layout, operator)
    for name in pipeline.topics:
        readers = [op.name for op in pipeline.origin.operators.values() if name in op.reads]
        _register(layout, Topic.open(layout.topic(name)), readers)


def _passed_columns(operator: Operator, columns: Collection[str]) -> Collection[str]:
    """Return the columns that the topics between the members of a chain have, too."""
    inner = [member.output_schema for member in operator.members[:-1]]
    others = [{EVENT, *schema.names} for schema in inner if schema is not None]
    return {*columns}.intersection(*others)


def _publish_last(layout: RunLayout, operator: Operator) -> None:
    """Publish the segments of the last record.

    A batch with a record is decided, even if its rows did not reach every topic; Spark runs it
    again, finds the record and changes nothing. Attempts without a record do not count.
    """
    record = BatchLog(layout.batches(operator.name)).last()
    if record is None:
        return
    known = {
        name: segments
        for name, segments in record.outputs.items()
        if name in operator.fills or layout.topic(name).is_dir()
    }
    record = replace(record, outputs=known)
    publish_batch(operator, record, lambda name: Topic.open(layout.topic(name)))


def _remove_leftovers(layout: RunLayout, operator: Operator) -> None:
    """Remove segments and files of state that no record names."""
    for name in operator.fills:
        remove_leftovers(Topic.open(layout.topic(name)), time.time())
    pending = list_pending_files(layout, operator.name)
    log = BatchLog(layout.batches(operator.name))
    remove_unused_files(layout.state(operator.name), log, pending)


def _register(layout: RunLayout, topic: Topic, readers: list[str]) -> None:
    """Keep rows for operators that have not begun; forget operators that were removed."""
    known = positions(topic.directory)
    for reader in known.keys() - set(readers):
        if layout.config(reader).is_file():
            forget(topic.directory, reader)
    for reader in set(readers) - known.keys():
        save_position(topic.directory, reader, topic.first)
