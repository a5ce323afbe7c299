"""Measures Kafka topics on this machine and prints one table: the figures of docs/kafka.md.

python -m tests.tools.kafka_figures
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from tests.tools.kafka_broker import KafkaBroker

from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka import transactional_writer
from penstock.topics.kafka.address import KafkaAddress, parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import make_producer
from penstock.topics.kafka.cluster import KafkaCluster, save_cluster
from penstock.topics.kafka.offset_ranges import PartitionRange, cut_shares, list_ranges
from penstock.topics.kafka.partition_offsets import PartitionOffsets
from penstock.topics.kafka.range_reader import RangeReader
from penstock.topics.kafka.row_writer import KafkaRowWriter, make_topic
from penstock.topics.kafka.segment_messages import MessageSegmentWriter
from penstock.topics.kafka.topic_setup import make_kafka_topic
from penstock.topics.kafka.transactional_producer import Messages, TaskId
from penstock.topics.kafka.transactional_writer import write_once
from penstock.topics.kafka.value_formats import make_decoder, make_encoder

ROWS, TASK_ROWS, TRIES, TURNS = 400_000, 50_000, 7, 5
NONE = ClientSettings()
COLUMNS = "id long, value double, key long, name string"


def make_rows(rows: int) -> pa.RecordBatch:
    """Rows of about 100 bytes in JSON."""
    ids = np.arange(rows)
    names = [f"customer-{number:>032}" for number in ids]
    return pa.record_batch({"id": ids, "value": ids / 7, "key": ids % 1000, "name": names})


def measure(call: Callable[[], object], tries: int = TRIES) -> list[float]:
    """Return the seconds of each call, after one to warm up."""
    call()
    times = []
    for _ in range(tries):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times


def read_all(address: KafkaAddress, reader: RangeReader) -> tuple[float, float]:
    """Return rows per second, by the clock and by processor time."""
    offsets = PartitionOffsets(address, NONE)
    ranges = list_ranges({}, offsets.end(offsets.list_partitions()))
    decoder, rows = make_decoder("json", COLUMNS), 0
    began, used = time.perf_counter(), time.process_time()
    for share in cut_shares(ranges, 3):
        for part in share:
            rows += sum(decoder.decode(block).num_rows for block in reader.read(part))
    assert rows == ROWS
    return rows / (time.perf_counter() - began), rows / (time.process_time() - used)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        with KafkaBroker(Path(home)) as broker:
            table = {"broker is ready, s": f"{time.perf_counter() - began:.1f}"}
            table |= measure_reading(broker)
            table |= measure_writing(broker)
            table |= measure_topics(broker, Path(home) / "run")
    table["load average"] = f"{os.getloadavg()[0]:.1f}"
    for name, value in table.items():
        print(f"{name:<58} {value}")


def measure_reading(broker: KafkaBroker) -> dict[str, str]:
    """Rows per second in large ranges, and milliseconds of a small one."""
    address = parse_address(broker.url("reading"))
    make_topic(address, NONE, 4)
    with KafkaRowWriter(address, NONE) as writer:
        writer.append(pa.Table.from_batches([make_rows(ROWS)]))
        writer.flush()
    reader = RangeReader(address, NONE)
    speeds = [read_all(address, reader) for _ in range(3)]
    small = [PartitionRange(0, first, first + 1000) for first in range(0, 20_000, 1000)]
    places = count()

    def read_small(partition: Callable[[int], int]) -> None:
        part = small[next(places) % len(small)]
        for _ in reader.read(PartitionRange(partition(part.start), part.start, part.end)):
            pass

    onward = measure(lambda: read_small(lambda _: 0), 15)
    elsewhere = measure(lambda: read_small(lambda at: at // 1000 % 4), 15)
    return {
        "read JSON into columns, rows/s": f"{max(speed for speed, _ in speeds):,.0f}",
        "  the same by processor time": f"{max(speed for _, speed in speeds):,.0f}",
        "read 1000 rows behind the last ones, ms": f"{1000 * statistics.median(onward):.1f}",
        "read 1000 rows of another partition, ms": f"{1000 * statistics.median(elsewhere):.1f}",
    }


def measure_writing(broker: KafkaBroker) -> dict[str, str]:
    """Seconds of a task with and without transaction and receipt."""
    address = parse_address(broker.url("writing"))
    make_topic(address, NONE, 4)
    table = {}
    for rows in (1000, TASK_ROWS):
        encoder_rows = make_rows(rows)
        encoder = make_encoder("json", encoder_rows.schema, None)
        messages = encoder.encode(encoder_rows)
        producer, batches = make_producer(address, NONE, enable_idempotence=True), count()

        def plain(messages: Messages = messages, producer: object = producer) -> None:
            values = [{"value": value} for value in messages[1]]
            producer.produce_batch(address.topic, values)  # type: ignore[attr-defined]
            producer.flush(60)  # type: ignore[attr-defined]

        def once(
            rows: int = rows, messages: Messages = messages, batches: Iterator[int] = batches
        ) -> None:
            write_once(address, NONE, TaskId("figures", rows), next(batches), iter([messages]))

        without, with_receipt = measure(plain), measure(once)
        table[f"write {rows:,} rows, without transaction, ms"] = format_times(without)
        table[f"write {rows:,} rows, with transaction and receipt, ms"] = format_times(with_receipt)
    transactional_writer._producers.clear()
    return table


def measure_topics(broker: KafkaBroker, run: Path) -> dict[str, str]:
    """Seconds of a task that writes Arrow to a topic between operators, with and without."""
    cluster = save_cluster(run, KafkaCluster(parse_address(broker.url("between"))))
    make_kafka_topic(cluster, cluster.receipts.topic)
    files = Topic.create(run.with_name("files") / "rows", make_rows(1).schema)
    topic = Topic.create(
        run / "rows",
        make_rows(1).schema,
        kafka=lambda name: make_kafka_topic(cluster, cluster.topic(name)),
    )
    assert topic.kafka is not None
    table, batches, place = {}, count(), topic.kafka
    for size in (1000, TASK_ROWS):
        rows = make_rows(size)
        rows = rows.append_column("_event", pa.repeat(pa.scalar(0, TIMESTAMP), size))
        producer = make_producer(cluster.address, NONE, enable_idempotence=True)

        def write(topic: Topic, batch: int, rows: pa.RecordBatch = rows) -> None:
            transaction = topic.begin("figures", batch)
            writer = topic.segment_writer(transaction)
            writer.write(rows)
            transaction.deliver()
            writer.close()
            transaction.commit(b"note" * 500)

        def plain(rows: pa.RecordBatch = rows, producer: object = producer) -> None:
            transaction = SimpleNamespace(index=0, add=lambda _: None)
            writer = MessageSegmentWriter(place.topic, 1, rows.schema, None, transaction)  # type: ignore[arg-type]
            writer.write(rows)
            for value in writer.take_messages().values:
                producer.produce(place.topic, value, partition=0)  # type: ignore[attr-defined]
            producer.flush(60)  # type: ignore[attr-defined]

        # by turns, because other programs change the speed of the machine
        times: dict[str, list[float]] = {"plain": [], "once": [], "files": []}
        for _ in range(TURNS):
            times["plain"] += measure(plain, 3)
            times["once"] += measure(lambda: write(topic, next(batches)), 3)
            times["files"] += measure(lambda: write(files, 0), 3)
        words = {"plain": "without transaction", "once": "with transaction", "files": "in files"}
        for name, what in words.items():
            table[f"topic: write {size:,} rows, {what}, ms"] = format_times(times[name])
        ratio = statistics.median(times["once"]) / statistics.median(times["plain"])
        table[f"topic: write {size:,} rows, with / without"] = f"{ratio:.2f}"
    reader = Topic.open(topic.directory)
    transaction = reader.begin("figures", next(batches))
    writer = reader.segment_writer(transaction)
    rows = make_rows(TASK_ROWS)
    writer.write(rows.append_column("_event", pa.repeat(pa.scalar(0, TIMESTAMP), TASK_ROWS)))
    transaction.deliver()
    segment = writer.close()
    transaction.commit(b"")
    assert segment is not None
    reader.publish("figures", 0, [segment], 0.0)
    speeds = [TASK_ROWS / seconds for seconds in measure(lambda: list(reader.read(0, TASK_ROWS)))]
    table["topic: read, rows/s"] = f"{statistics.median(speeds):,.0f}"
    return table


def format_times(times: list[float]) -> str:
    """Median, and the range."""
    low, middle, high = min(times), statistics.median(times), max(times)
    return f"{1000 * middle:.0f} ({1000 * low:.0f} to {1000 * high:.0f})"


if __name__ == "__main__":
    main()
