"""Producers of a run: one thread for each topic that the pipeline fills by itself."""

import threading
import time
from dataclasses import dataclass

from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.function_call import fit_producer
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.topic_declaration import Feed
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.producer import Producer
from penstock.topics.schedule import schedule_of
from penstock.topics.schema import without_event
from penstock.workloads.workload import Workload

#: The name under which rows are published.
WRITER = "producer"
#: Time to wait for the thread of a producer to stop; then it is abandoned.
PATIENCE_S = 10.0


@dataclass(slots=True)
class _One:
    """One producer."""

    feed: Feed
    load: Workload
    seed: int
    thread: threading.Thread | None = None
    error: BaseException | None = None


class ProducerThreads:
    """Fills the topics of a pipeline as a workload asks for it, from where they are.

    Each topic gets its share of the workload; and its own seed for arrivals.
    """

    def __init__(self, pipeline: Pipeline, layout: RunLayout, load: Workload, seed: int) -> None:
        self._layout, self._load = layout, load
        self._feeds = [
            _One(feed, load * feed.share, seed + i)
            for i, feed in enumerate(pipeline.feeds.values())
        ]
        self._stop = threading.Event()
        self._began_at = 0.0
        #: The second of the workload at which it begins.
        self.begin_s = 0.0

    def start(self) -> None:
        """Begin; the topics are there already."""
        self.begin_s = min(map(self._second_of, self._feeds), default=0.0)
        self._began_at = time.monotonic()
        for one in self._feeds:
            one.thread = threading.Thread(
                target=self._feed, args=(one,), name=f"producer of {one.feed.topic}", daemon=True
            )
            one.thread.start()

    def stop(self) -> None:
        """Write no more; what is being written is written."""
        self._stop.set()
        for one in self._feeds:
            if one.thread is not None:
                one.thread.join(PATIENCE_S)

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return all(one.thread is not None and not one.thread.is_alive() for one in self._feeds)

    @property
    def second(self) -> float:
        """The second of the workload that it is now."""
        if self.is_done:
            return self._load.duration_s
        return min(self.begin_s + time.monotonic() - self._began_at, self._load.duration_s)

    @property
    def error(self) -> BaseException | None:
        """What ended a producer before its time."""
        return next((one.error for one in self._feeds if one.error is not None), None)

    def _second_of(self, one: _One) -> float:
        schedule = schedule_of(one.load, one.feed.arrivals, one.seed)
        held = self._topic(one).end
        schedule.skip(held)
        return min(schedule.next_s(), self._load.duration_s) if held else 0.0

    def _feed(self, one: _One) -> None:
        try:
            topic = self._topic(one)  # a topic object is not for several threads
            rows = fit_producer(one.feed.make, without_event(topic.schema))
            with TopicWriter(topic, WRITER) as writer:
                Producer(writer, rows, one.load, arrivals=one.feed.arrivals, seed=one.seed).run(
                    stop=self._stop
                )
        except BaseException as error:
            one.error = error

    def _topic(self, one: _One) -> Topic:
        return Topic.open(self._layout.topic(one.feed.topic))
