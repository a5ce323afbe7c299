"""Publishes the rows of a recorded batch to the topics of its operator, each once."""

from collections.abc import Callable

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.pipelines.operator import Operator
from penstock.topics.embedded.completeness import mark_complete
from penstock.topics.embedded.topic import Topic


def publish_batch(
    operator: Operator, record: BatchRecord, open_topic: Callable[[str], Topic]
) -> None:
    """Publish what a record names; a batch that is there already changes nothing.

    Topics are complete again when the batch has read its source batches to their ends, also if
    nothing of the last part was left to write.
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
