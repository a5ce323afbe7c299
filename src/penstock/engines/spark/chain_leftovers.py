"""Processes what is left in the topics between the members of chains, before the chains start.

An earlier start may have run the members as separate operators. Their queries continue from their
own checkpoints until these topics are read; nothing else runs meanwhile, so rows keep their order.
"""

from collections.abc import Callable

from pyspark.sql import SparkSession

from penstock.core.numbers import pretty
from penstock.engines.events import Event
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.recovery.reconciliation import reconcile
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import RunError
from penstock.pipelines.chained_pipeline import separate_followers
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic

#: Seconds between two looks at whether all rows are processed.
LOOK_S = 0.25


def process_leftovers(
    spark: SparkSession,
    pipeline: Pipeline,
    layout: RunLayout,
    timing: BatchTiming,
    *,
    retry_for_s: float,
    say: Callable[[str], None],
    report: Callable[[Event], None] = lambda _: None,
) -> None:
    """Process the rows between the members of the chains of a pipeline."""
    for text in reconcile(pipeline.origin, layout):
        say(text)
    make_topics(pipeline.origin, layout)
    recover(pipeline.origin, layout)  # what a kill kept from these topics
    waiting = find_leftovers(pipeline, layout)
    if not waiting:
        return
    for name, rows in waiting.items():
        say(f"{pretty(rows)} rows from before the chain wait for {name}, and are processed first")
    followers = separate_followers(pipeline, waiting)
    engine = SparkEngine(
        spark,
        followers,
        layout,
        timing=timing,
        initial={name: op.options.max_replicas for name, op in followers.operators.items()},
        retry_for_s=retry_for_s,
        say=say,
        report=report,
    )
    engine.start()
    try:
        while not engine.operator_errors and not engine.is_drained:
            engine.advance(LOOK_S)
    finally:
        engine.stop()
    if engine.operator_errors:
        raise RunError("\n".join(engine.operator_errors.values()))


def find_leftovers(pipeline: Pipeline, layout: RunLayout) -> dict[str, int]:
    """Return the rows that wait for each follower of a chain; followers without are left out."""
    followers = [member for op in pipeline.operators.values() for member in op.members[1:]]
    waiting = {member.name: _count_waiting(layout, member) for member in followers}
    return {name: rows for name, rows in waiting.items() if rows}


def _count_waiting(layout: RunLayout, operator: Operator) -> int:
    (name,) = operator.reads
    topic, record = Topic.open(layout.topic(name)), None
    if layout.batches(operator.name).is_dir():
        record = BatchLog(layout.batches(operator.name)).last()
    return topic.end - max(topic.first, record.end.get(name, 0) if record is not None else 0)
