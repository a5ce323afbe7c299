"""Fills a Kafka topic with rows as a workload offers them."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import pyarrow as pa

from penstock.core.progress import WorkProgress
from penstock.errors import InputError
from penstock.pipelines.function_call import call_producer, fit_producer
from penstock.runs import topic_production
from penstock.runs.topic_production import ProduceSpec, plain_rows
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import make_settings
from penstock.topics.kafka.clients import load_client
from penstock.topics.kafka.row_writer import KafkaRowWriter, make_topic
from penstock.topics.producer import Producer
from penstock.workloads.registry import make_workload


class KafkaFigures(TypedDict):
    """What was produced, how fast, and how late the latest record was."""

    topic: str
    partitions: int
    records: int
    seconds: float
    #: Records per second from the first one to the answer of the brokers for the last one.
    rate: float
    #: What the workload wanted in this time; None if everything was due at once.
    wanted_rate: float | None
    #: None if the records were not written at their due times.
    worst_lag_s: float | None
    is_interrupted: bool


def produce_to_kafka(
    spec: ProduceSpec,
    partitions: int | None,
    properties: Path | None,
    show: Callable[[WorkProgress], None],
) -> KafkaFigures:
    """Fill the topic until the workload ends or Ctrl-C, and return the figures."""
    load_client("penstock produce")
    address, settings = parse_address(spec.to, "--to"), make_settings(None, properties)
    if partitions is not None and partitions < 1:
        raise InputError("--partitions", f"must be at least 1, got {partitions}")
    load = make_workload(spec.workload, spec.minutes, spec.seed)
    load = (load * spec.rate_scale).sped_up(spec.speed_up)
    arrivals = topic_production._arrivals(spec)
    make = plain_rows(spec.seed) if spec.rows is None else topic_production._function(spec.rows)
    # one row shows the columns
    schema = call_producer(make, 0, pa.array([0], TIMESTAMP)).schema
    count = make_topic(address, settings, partitions)
    total, stop = load.total_records, threading.Event()
    show(WorkProgress(total=total, kept=0, done=0))
    with KafkaRowWriter(address, settings) as writer:
        rows = fit_producer(make, schema)
        producer = Producer(writer, rows, load, arrivals=arrivals, seed=spec.seed)
        began_s = time.monotonic()
        begin_at = time.time() - load.duration_s if spec.at_once else None
        is_interrupted = _run(producer, stop, begin_at, total, show)
        writer.flush()
        seconds = time.monotonic() - began_s
    due_s = min(seconds, load.duration_s)
    return {
        "topic": str(address),
        "partitions": count,
        "records": producer.produced,
        "seconds": seconds,
        "rate": producer.produced / seconds,
        "wanted_rate": None if spec.at_once else load.count(0, due_s) / due_s,
        "worst_lag_s": None if spec.at_once else producer.worst_lag_s,
        "is_interrupted": is_interrupted,
    }


def _run(
    producer: Producer,
    stop: threading.Event,
    begin_at: float | None,
    total: int,
    show: Callable[[WorkProgress], None],
) -> bool:
    """Produce; return whether Ctrl-C ended it. Rows that were begun are written completely."""

    def watch(producer: Producer) -> None:
        done = producer.produced
        show(WorkProgress(total=max(total, done), kept=0, done=done))

    failures: list[BaseException] = []

    def produce() -> None:
        try:
            producer.run(stop=stop, begin_at=begin_at, watch=watch)
        except BaseException as error:
            failures.append(error)

    # in a thread, so that Ctrl-C does not cut a batch of rows in two
    thread = threading.Thread(target=produce, name="producer", daemon=True)
    thread.start()
    is_interrupted = False
    while thread.is_alive():
        try:
            thread.join(0.2)
        except KeyboardInterrupt:
            is_interrupted = True
            stop.set()
    if failures:
        raise failures[0]
    return is_interrupted
