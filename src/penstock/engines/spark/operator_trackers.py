"""Makes the trackers of operators from a run directory."""

from collections.abc import Mapping

from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.spark.io.batch_log import BatchLog, SteadyLog
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.topics.embedded.topic import Topic
from penstock.topics.steady_clock import SteadyClock


def make_tracker(
    layout: RunLayout,
    operator: Operator,
    upstream: tuple[str, ...],
    replicas: int,
    timing: BatchTiming,
    clock: SteadyClock,
) -> OperatorTracker:
    """Return a tracker that starts where the records of an earlier start end."""
    tracker = OperatorTracker(
        name=operator.name,
        upstream=upstream,
        min_replicas=operator.options.min_replicas,
        max_replicas=operator.options.max_replicas,
        log=SteadyLog(BatchLog(layout.batches(operator.name)), clock),
        topics={name: Topic.open(layout.topic(name)) for name in operator.reads},
        batch_s=timing.batch_s,
        queue_limit=operator.options.queue_limit,
        late_to=operator.late_to,
        requested=replicas,
        running=replicas,
    )
    tracker.begin()
    tracker.running = replicas
    return tracker


def backpressure_s(
    layout: RunLayout, trackers: Mapping[str, OperatorTracker], operator: str
) -> float | None:
    """Return for how long back-pressure kept an operator from reading; None without limits."""
    if all(tracker.queue_limit is None for tracker in trackers.values()):
        return None
    try:
        return float(layout.backpressure_file(operator).read_text())
    except FileNotFoundError:
        return 0.0
    except ValueError:  # it is being written
        return None
