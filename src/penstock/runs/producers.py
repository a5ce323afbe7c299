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
class _TopicProducer:
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
            _TopicProducer(feed, load * feed.share, seed + i)
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
        for producer in self._feeds:
            producer.thread = threading.Thread(
                target=self._feed,
                args=(producer,),
                name=f"producer of {producer.feed.topic}",
                daemon=True,
            )
            producer.thread.start()

    def stop(self) -> None:
        """Write no more; what is being written is written."""
        self._stop.set()
        for producer in self._feeds:
            if producer.thread is not None:
                producer.thread.join(PATIENCE_S)

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return all(
            producer.thread is not None and not producer.thread.is_alive()
            for producer in self._feeds
        )

    @property
    def second(self) -> float:
        """The second of the workload that it is now."""
        if self.is_done:
            return self._load.duration_s
        return min(self.begin_s + time.monotonic() - self._began_at, self._load.duration_s)

    @property
    def error(self) -> BaseException | None:
        """What ended a producer before its time."""
        return next(
            (producer.error for producer in self._feeds if producer.error is not None), None
        )

    def _second_of(self, producer: _TopicProducer) -> float:
        schedule = schedule_of(producer.load, producer.feed.arrivals, producer.seed)
        end = self._topic(producer).end
        schedule.skip(end)
        return min(schedule.next_s(), self._load.duration_s) if end else 0.0

    def _feed(self, producer: _TopicProducer) -> None:
        try:
            topic = self._topic(producer)  # a topic object is not for several threads
            rows = fit_producer(producer.feed.make, without_event(topic.schema))
            with TopicWriter(topic, WRITER) as writer:
                Producer(
                    writer, rows, producer.load, arrivals=producer.feed.arrivals, seed=producer.seed
                ).run(stop=self._stop)
        except BaseException as error:
            producer.error = error

    def _topic(self, producer: _TopicProducer) -> Topic:
        return Topic.open(self._layout.topic(producer.feed.topic))
