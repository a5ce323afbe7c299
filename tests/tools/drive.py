"""The driver that faults happen to: runs a pipeline in a run directory, again and again.

Tells its parent on standard output, one JSON object a line, how far it is. Replicas change and
slices move at random. When the file `finish` is there it stops producing, lets everything be
processed, and leaves with 0. It leaves with 3 if an operator failed and with 4 if the JVM is
gone; the next start goes on where this one was.
"""

import argparse
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from tests.pubsub.oracle import make_key
from tests.tools.chaos_pipeline import chaos_pipeline
from tests.tools.kafka_rows import place_in
from tests.tools.resuming import broken_rules, run_again

from penstock.core.decision import Move
from penstock.core.histogram import Histogram
from penstock.demos import clicks, tweets_authors, words
from penstock.engines.event_json import event_fields
from penstock.engines.events import RestartingEvent
from penstock.engines.port import Plan
from penstock.engines.spark.chain_leftovers import process_leftovers
from penstock.engines.spark.cluster.session import (
    end_session,
    kill_session,
    module_list,
    start_session,
)
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.cluster.worker_process import needed_modules, write_module_list
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import LockedError
from penstock.files.lock import Lock
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.pipeline import Pipeline
from penstock.pubsub.pipeline import PubSubOptions, build_pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.workloads.workload import Workload

#: Slices and replicas of publish/subscribe.
PUBSUB = PubSubOptions(access_slices=4, match_slices=8, exit_slices=4, max_replicas=4)

#: Records take a while in all of them, so that kills come in the middle of a batch.
#: Those without producers read files from the directory that they are given.
PIPELINES: dict[str, Callable[[Path], Pipeline]] = {
    "chaos": chaos_pipeline,
    "chaos-chains": lambda source: chaos_pipeline(source, has_chains=True),
    "words": lambda _: words.build(service_s=0.02),
    "clicks": lambda _: clicks.build(service_s=0.02),
    "tweets-authors": lambda _: tweets_authors.build(service_s=0.02),
    "pubsub-plain": lambda _: build_pipeline(make_key("plain").space, PUBSUB),
    "pubsub-aspe": lambda _: build_pipeline(make_key("aspe").space, PUBSUB),
}
PACE = BatchTiming(batch_s=0.4, min_interval_s=0.3)
#: Where files arrive, beside the run directory.
SOURCE = "in"
#: Slices of an operator that move with each change.
MOVED = 3
FAILED, NO_JVM = 3, 4
#: How long the lock of the run directory is waited for: a JVM outlives its driver for a moment.
PATIENCE_S = 30.0
SLOTS = 40
#: Replicas whose workers are started beforehand, so that batches are quick from the beginning.
WARM = 8


def tell(state: str, **numbers: object) -> None:
    """Tell the parent."""
    print(json.dumps({"state": state, **numbers}), flush=True)


def say(text: str) -> None:
    """Tell the parent what the engine says."""
    tell("says", text=text)


def locked(path: Path) -> Lock:
    """Take the lock of a run directory, waiting for whoever is about to leave it."""
    lock, began = Lock(path), time.monotonic()
    while True:
        try:
            lock.acquire()
        except LockedError:
            if time.monotonic() > began + PATIENCE_S:
                raise
            time.sleep(0.1)
        else:
            tell("locked", waited_s=round(time.monotonic() - began, 3))
            return lock


class Producing:
    """Produces the one source topic in a thread of its own until it is told to stop."""

    def __init__(self, pipeline: Pipeline, layout: RunLayout, rate: float) -> None:
        (self._feed,) = pipeline.feeds.values()
        self._topic = Topic.open(layout.topic(self._feed.topic))
        self._load = Workload.of_steps([rate], step_s=1e6)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with TopicWriter(self._topic, "feed") as writer:
            Producer(writer, self._feed.make, self._load).run(stop=self._stop)

    def stop(self) -> int:
        """Stop and return how many rows there are."""
        self._stop.set()
        self._thread.join()
        return self._topic.refresh()


class Reading:
    """A topic that the parent fills; when it is done, `finish` says how many rows there are."""

    def __init__(self, topic: Path, finish: Path) -> None:
        self._topic, self._finish = Topic.open(topic), finish

    def stop(self) -> int | None:
        """Return how many rows there are; None while some have not been read."""
        rows = int(self._finish.read_text())
        return rows if self._topic.refresh() >= rows else None


def drive(pipeline: Pipeline, args: argparse.Namespace) -> int:
    """Run it until the parent wants it finished, or until something breaks."""
    layout = RunLayout(args.run)
    lock = locked(args.run / "lock")
    for name in pipeline.operators:
        tell("begins", operator=name, **run_again(layout, name))
    tell("resuming", broken=broken_rules(layout, pipeline))
    spark = start_session("faults", SLOTS, layout.log, lock=lock.fileno())
    tell("session")
    write_module_list(module_list(layout.log), needed_modules(pipeline.operators.values()))
    start_workers(spark, WARM, args.run / "warm")
    if args.chain:
        pipeline = join_chains(pipeline)
        process_leftovers(spark, pipeline, layout, PACE, retry_for_s=60.0, say=say)
    engine = SparkEngine(spark, pipeline, layout, timing=PACE)
    engine.start()
    if pipeline.feeds:
        feeder: Producing | Reading = Producing(pipeline, layout, args.rate)
    else:
        first = next(iter(pipeline.topics))
        feeder = Reading(layout.topic(first), args.run / "finish")
    tell("running")
    produced = _until_finished(engine, feeder, args)
    if engine.operator_errors:
        tell("failed", operators=dict(engine.operator_errors))
        kill_session()
        return FAILED
    engine.stop()
    end_session(spark)
    tell("finished", produced=produced)
    return 0


def _until_finished(
    engine: SparkEngine, feeder: Producing | Reading, args: argparse.Namespace
) -> int | None:
    """Change replicas at random and report; return the rows produced, None if it failed."""
    rng = random.Random(args.seed)
    produced, told_at = None, time.monotonic()
    latency = Histogram()
    while not engine.operator_errors:
        engine.advance(args.change_s)
        status = engine.status()
        for seen in status.latency.values():
            latency.merge(seen)
        for event in status.events:
            if isinstance(event, RestartingEvent):
                again = run_again(engine.layout, event.operator)
                tell("revived", operator=event.operator, **again, **event_fields(event))
        if time.monotonic() >= told_at + args.tell_s:
            told_at = time.monotonic()
            tell("going", **_latency(latency))
            latency = Histogram()
        if produced is None and (args.run / "finish").exists():
            produced = feeder.stop()
        if produced is not None and engine.is_drained:
            return produced
        engine.apply(_change(engine.pipeline, rng))
    return None


#: How often an operator that stops for a change is asked for one.
SELDOM = 0.2


def _change(pipeline: Pipeline, rng: random.Random) -> Plan:
    """Any number of replicas for each operator, and some slices to any of them."""
    operators = pipeline.operators.values()
    replicas = {
        op.name: rng.randint(1, op.options.max_replicas)
        for op in operators
        if op.scales and (op.kind != "native" or rng.random() < SELDOM)
    }
    moves = tuple(
        Move(f"{op.name}/{rng.randrange(op.slicing.slices)}", "", f"{op.name}/{home}")
        for op in operators
        if op.slicing is not None
        for home in rng.choices(range(replicas[op.name]), k=MOVED)
    )
    return Plan(replicas=replicas, moves=moves)


def _latency(seen: Histogram) -> dict[str, float | None]:
    return {
        f"p{percent}_s": round(seen.percentile(percent), 3) if seen.count else None
        for percent in (50, 95)
    }


def main() -> int:
    """Drive what the parent names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--pipeline", choices=PIPELINES, default="chaos")
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--change-s", type=float, default=1.0)
    parser.add_argument("--tell-s", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chain", action="store_true", help="run chains as single operators")
    parser.add_argument("--topics", help="where in Kafka the rows of topics are")
    args = parser.parse_args()
    tell("started", pid=os.getpid())
    try:
        pipeline = PIPELINES[args.pipeline](args.run.parent / SOURCE)
        return drive(place_in(pipeline, args.topics), args)
    except (Py4JError, PySparkException, ConnectionError) as error:
        tell("no-jvm", error=repr(error)[:500])
        kill_session()
        return NO_JVM


if __name__ == "__main__":
    sys.exit(main())
