"""What has to be in order before the queries of a run start, for the first time or again."""

import time

from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.publication import publish_batch
from penstock.engines.spark.io.state_versions import remove_unused_files
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.readers import forget, positions, save_position
from penstock.topics.embedded.retention import remove_leftovers
from penstock.topics.embedded.topic import Topic


def recover(pipeline: Pipeline, layout: RunLayout) -> None:
    """Finish what a killed run left half done, and let topics know who reads them."""
    for operator in pipeline.operators.values():
        _finish(layout, operator)
    for name in pipeline.topics:
        readers = [op.name for op in pipeline.operators.values() if name in op.reads]
        _register(layout, Topic.open(layout.topic(name)), readers)


def _finish(layout: RunLayout, operator: Operator) -> None:
    """Publish what the last record names, then remove segments that nothing names.

    A batch with a record is decided, even if its rows did not reach every topic; Spark runs it
    again, finds the record and changes nothing. Attempts without a record do not exist.
    """
    record = BatchLog(layout.batches(operator.name)).last()
    topics = {name: Topic.open(layout.topic(name)) for name in operator.fills}
    if record is not None:
        publish_batch(operator, record, topics.__getitem__)
    for topic in topics.values():
        remove_leftovers(topic, time.time())
    remove_unused_files(layout.state(operator.name), BatchLog(layout.batches(operator.name)))


def _register(layout: RunLayout, topic: Topic, readers: list[str]) -> None:
    """Rows wait for operators that have not begun, and for none that is gone from the pipeline."""
    known = positions(topic.directory)
    for reader in known.keys() - set(readers):
        if layout.config(reader).is_file():
            forget(topic.directory, reader)
    for reader in set(readers) - known.keys():
        save_position(topic.directory, reader, topic.first)
